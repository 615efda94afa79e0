//! What a request brings, read strictly; what is wrong with it is answered as everything else is.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

/// A JSON body. Only `application/json` is taken: a form of another site cannot send that without being asked. Fetch, section 2.2.2
#[derive(Debug)]
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match <Json<T> as FromRequest<S>>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(refusal(&rejection)),
        }
    }
}

/// None if there is no body: then there is no type of one either.
impl<T: DeserializeOwned, S: Send + Sync> OptionalFromRequest<S> for Sent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Refusal> {
        match <Json<T> as OptionalFromRequest<S>>::from_request(request, state).await {
            Ok(value) => Ok(value.map(|Json(value)| Self(value))),
            Err(rejection) => Err(refusal(&rejection)),
        }
    }
}

fn refusal(rejection: &JsonRejection) -> Refusal {
    let cure = match rejection {
        JsonRejection::MissingJsonContentType(_) => "send Content-Type: application/json",
        _ if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => "send less at a time",
        _ => "/api/openapi.json says what is read here",
    };
    Refusal::new(rejection.status(), rejection.body_text(), cure)
}

/// What is behind the `?` of a URL.
#[derive(Debug)]
pub struct Wanted<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Wanted<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                Err(Refusal::bad(rejection.body_text(), "/api/openapi.json says what is read here"))
            }
        }
    }
}

/// A part of the path. What cannot be read as one is not there.
#[derive(Debug)]
pub struct Which<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Which<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(value)| Self(value)).map_err(|_| Refusal::not_found())
    }
}
