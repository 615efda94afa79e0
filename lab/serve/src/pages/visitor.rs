//! Authentication for pages: visitors who are not logged in are redirected to the login.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::layout::bare;
use crate::refusal::Refusal;
use crate::server::Shared;
use crate::viewer::Viewer;

/// Somebody who may look.
#[derive(Debug)]
pub struct Visitor(pub Viewer);

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Self, Response> {
        match Viewer::from_request_parts(parts, server).await {
            Ok(viewer) => Ok(Self(viewer)),
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                Err(Redirect::to("/login").into_response())
            }
            Err(refusal) => Err(Apology(refusal).into_response()),
        }
    }
}

/// A refusal as a page.
#[derive(Debug)]
pub struct Apology(pub Refusal);

impl From<Refusal> for Apology {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Apology {
    fn into_response(self) -> Response {
        let page: Markup = bare(
            "Not here",
            &html! {
                h1 { "Not here" }
                @for problem in &self.0.problems { p { (problem.message) } }
                p { a href="/" { "What there is" } }
            },
        );
        (self.0.status, page).into_response()
    }
}
