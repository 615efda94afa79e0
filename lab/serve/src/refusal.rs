//! Errors of requests: the problem, and the remedy for the client.

use std::fmt;
use std::io;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::is_disk_full;

/// A problem, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Line in the text, from 1, if the problem has a position.
    pub line: Option<u32>,
    /// Column in the text, from 1, if the problem has a position.
    pub column: Option<u32>,
    /// The problem.
    pub message: String,
    /// The remedy; empty if `message` contains it.
    pub cure: String,
}

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problems {
    /// Problems, at least one.
    pub errors: Vec<Problem>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Status code. RFC 9110, section 15
    pub status: StatusCode,
    /// Problems, at least one.
    pub problems: Vec<Problem>,
    /// Seconds until a retry may succeed.
    pub retry_after: Option<u32>,
}

impl Refusal {
    /// Creates a refusal with one problem without a position.
    pub fn new(status: StatusCode, message: impl Into<String>, cure: impl Into<String>) -> Self {
        let problem = Problem { line: None, column: None, message: message.into(), cure: cure.into() };
        Self { status, problems: vec![problem], retry_after: None }
    }

    /// Creates the refusal (404) for something that does not exist or is hidden from the user.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found, or not visible to you", "/ lists what you can see")
    }

    /// Creates the refusal (403) for something that the user may see but not change.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message, "ask the owner, or the leader of the project")
    }

    /// Creates the refusal (401) for a request without a valid session or token.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message, "log in, or send a token: Authorization: Bearer TOKEN")
    }

    /// Creates the refusal (409) for an action that the current state does not allow.
    pub fn conflict(message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message, cure)
    }

    /// Creates the refusal (400) for an invalid request.
    pub fn bad_request(message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message, cure)
    }

    /// Creates the refusal (422) for a text with errors.
    pub const fn invalid_text(problems: Vec<Problem>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, problems, retry_after: None }
    }

    /// Creates the refusal (413) for a request that is too large.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message, "send less at a time")
    }

    /// Creates the refusal (503) of an overloaded server.
    pub fn busy(message: impl Into<String>, seconds: u32) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, message, "try again soon");
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// Creates the refusal (429) for too many attempts.
    pub fn too_many(message: impl Into<String>, seconds: u32) -> Self {
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, message, "wait and try again");
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// Creates the refusal (507) for a full disk. RFC 4918, section 11.5
    pub fn disk_full() -> Self {
        let cure = "delete experiments or files, or free space on the server";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "the disk of the server is full", cure)
    }

    /// Creates the refusal (507) for octets beyond a quota; `why` ends with the remedy.
    pub fn quota_exceeded(why: &str) -> Self {
        let (problem, cure) = why.split_once("; ").unwrap_or((why, ""));
        Self::new(StatusCode::INSUFFICIENT_STORAGE, problem, cure)
    }

    /// Creates the refusal (500) for a failure of the disk, the database, or our code. The details are written to
    /// standard error, and not sent to the client.
    pub fn internal(problem: impl fmt::Display) -> Self {
        let _ = io::Write::write_all(&mut io::stderr(), format!("error: {problem}\n").as_bytes());
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error of the server",
            "the operator finds the reason in the standard error of the server",
        )
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            // The row was deleted since the request began.
            rusqlite::Error::QueryReturnedNoRows => Self::not_found(),
            error if is_disk_full(&error) => Self::disk_full(),
            error => Self::internal(format!("cannot use the database: {error}")),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::disk_full(),
            _ => Self::internal(error),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = self.problems.iter().map(|problem| match problem.cure.as_str() {
            "" => problem.message.clone(),
            cure => format!("{}; {cure}", problem.message),
        });
        f.write_str(&problems.collect::<Vec<_>>().join("\n"))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Problems { errors: self.problems.clone() })).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        // `guard` converts the refusal to a page for browsers.
        response.extensions_mut().insert(self);
        response
    }
}
