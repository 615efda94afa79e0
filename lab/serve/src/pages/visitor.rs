//! Authentication for pages: visitors who are not logged in are redirected to the login page.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::layout::logged_out_page;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::SharedServer;

/// The user of a page.
#[derive(Debug)]
pub struct Visitor(pub Requester);

impl FromRequestParts<SharedServer> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, server: &SharedServer) -> Result<Self, Response> {
        match Requester::from_request_parts(parts, server).await {
            Ok(requester) => Ok(Self(requester)),
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                Err(Redirect::to("/login").into_response())
            }
            Err(refusal) => Err(RefusalPage(refusal).into_response()),
        }
    }
}

/// A [`Refusal`] as a page.
#[derive(Debug)]
pub struct RefusalPage(pub Refusal);

impl From<Refusal> for RefusalPage {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for RefusalPage {
    fn into_response(self) -> Response {
        let Refusal { status, problems, retry_after } = self.0;
        let title = status.canonical_reason().unwrap_or("Error");
        let page: Markup = logged_out_page(
            title,
            &html! {
                h1 { (title) }
                @for problem in &problems {
                    p { (problem.message) @if !problem.cure.is_empty() { "; " (problem.cure) } "." }
                }
                @if status == StatusCode::UNAUTHORIZED { p { a.button.usual href="/login" { "Log in" } } }
                p { a href="/" { "All experiments" } }
            },
        );
        let mut response = (status, page).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
