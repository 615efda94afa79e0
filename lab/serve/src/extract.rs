//! Parses a request strictly, and authenticates its user; errors are [`Refusal`]s.

use std::convert::Infallible;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{
    DefaultBodyLimit, FromRequest, FromRequestParts, OptionalFromRequest, Path, Query, Request,
};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use crate::accounts::key;
use crate::clock::now;
use crate::concurrency::UserPermit;
use crate::reading::MAX_TEXT_SIZE;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::SharedServer;
use crate::store::KeyKind;

/// Name of the session cookie.
pub const COOKIE_NAME: &str = "headofline";

/// A JSON body. Requires the type `application/json`, which a form on another site cannot send.
/// Fetch, section 2.2.2
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match <Json<T> as FromRequest<S>>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(json_refusal(&rejection)),
        }
    }
}

/// Returns `None` if the request has no body. Such a request needs no content type.
impl<T: DeserializeOwned, S: Send + Sync> OptionalFromRequest<S> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Refusal> {
        match <Json<T> as OptionalFromRequest<S>>::from_request(request, state).await {
            Ok(value) => Ok(value.map(|Json(value)| Self(value))),
            Err(rejection) => Err(json_refusal(&rejection)),
        }
    }
}

fn json_refusal(rejection: &JsonRejection) -> Refusal {
    let cure = match rejection {
        JsonRejection::MissingJsonContentType(_) => "send Content-Type: application/json",
        _ if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => "send less at a time",
        _ => "see /api/openapi.json for the expected request",
    };
    Refusal::new(rejection.status(), rejection.body_text(), cure)
}

/// The query of a URL.
#[derive(Debug)]
pub struct QueryParameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Refusal::bad_request(
                rejection.body_text(),
                "see /api/openapi.json for the expected request",
            )),
        }
    }
}

/// A path parameter. An invalid one results in 404.
#[derive(Debug)]
pub struct PathParameter<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParameter<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(value)| Self(value)).map_err(|_| Refusal::not_found())
    }
}

impl FromRequestParts<SharedServer> for Requester {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &SharedServer) -> Result<Self, Refusal> {
        if let Some(local) = &server.local {
            return Ok(local.clone());
        }
        let (kind, secret) = match (token(parts), cookie(parts)) {
            (Some(token), _) => (KeyKind::Token, token),
            (None, Some(cookie)) => (KeyKind::Session, cookie),
            (None, None) => return Err(Refusal::unauthorized("you are not logged in")),
        };
        let holder = server.store.user_of_key(&key::digest(secret), kind, now())?;
        holder.ok_or_else(|| Refusal::unauthorized("the session or token is unknown or has expired"))
    }
}

/// Maximum number of octets of a body with a text or a file. JSON may need six octets for one octet of text: `\u0000`.
const MAX_LARGE_BODY: usize = 6 * MAX_TEXT_SIZE + (64 << 10);
/// Number of octets up to which a body is not large.
const MAX_SMALL_BODY: u64 = 64 << 10;

/// Allows large bodies on a route, whose handler must have a [`Uploader`].
pub fn allow_large_body() -> DefaultBodyLimit {
    DefaultBodyLimit::max(MAX_LARGE_BODY)
}

/// The user who sends a body that may be large, and the permission to do so. It precedes the body in the parameters of a
/// handler, so that the body is received only with the permission.
#[derive(Debug)]
pub struct Uploader {
    /// The user who sends the body.
    pub requester: Requester,
    /// The permission to send a large body, which ends with the request; `None` for a small body.
    pub permit: Option<UserPermit>,
}

impl FromRequestParts<SharedServer> for Uploader {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &SharedServer) -> Result<Self, Refusal> {
        let requester = Requester::from_request_parts(parts, server).await?;
        let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length <= MAX_SMALL_BODY) {
            return Ok(Self { requester, permit: None });
        }
        let permit = Some(server.limits.admit_large_body(server.limited_user(&requester)).await?);
        Ok(Self { requester, permit })
    }
}

/// Whether the client accepts HTML. RFC 9110, section 12.5.1
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptHeader {
    /// Whether the client is a browser that loads a page: browsers accept `text/html`, and other programs do not.
    pub is_browser: bool,
}

impl AcceptHeader {
    /// Reads the header of a request.
    pub fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
        Self { is_browser: accepted.is_some_and(|accepted| accepted.contains("text/html")) }
    }
}

impl<S: Sync> FromRequestParts<S> for AcceptHeader {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// Returns the bearer token of a request. RFC 6750, section 2.1
fn token(parts: &Parts) -> Option<&str> {
    parts.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Returns the session cookie of a request. RFC 6265, section 4.2
pub fn cookie(parts: &Parts) -> Option<&str> {
    let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value).next()
}
