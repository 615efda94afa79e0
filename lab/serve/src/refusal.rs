//! Why a request failed, and what its sender can do.

use std::fmt;
use std::io;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::is_disk_full;

/// A problem and its fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The line of the text, from 1, if it has a place.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// The fix; empty if the message contains it.
    pub cure: String,
}

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problems {
    /// At least one.
    pub errors: Vec<Problem>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// RFC 9110, section 15
    pub status: StatusCode,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Seconds until a retry may succeed.
    pub retry_after: Option<u32>,
}

impl Refusal {
    /// One problem without a place.
    pub fn new(status: StatusCode, message: impl Into<String>, cure: impl Into<String>) -> Self {
        let problem = Problem { line: None, column: None, message: message.into(), cure: cure.into() };
        Self { status, problems: vec![problem], retry_after: None }
    }

    /// It does not exist, or the user may not know of it.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such thing here", "look at / for what there is")
    }

    /// It is visible but must not be changed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message, "ask its owner, or the leader of its project")
    }

    /// Nobody is logged in.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message, "log in, or send a token: Authorization: Bearer TOKEN")
    }

    /// Its state does not allow it.
    pub fn conflict(message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message, cure)
    }

    /// It is not what it should be.
    pub fn bad(message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message, cure)
    }

    /// A text with mistakes.
    pub const fn unreadable(problems: Vec<Problem>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, problems, retry_after: None }
    }

    /// It is too much.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message, "send less at a time")
    }

    /// The server is overloaded.
    pub fn busy(message: impl Into<String>, seconds: u32) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, message, "try again soon");
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// It was tried too often.
    pub fn too_many(message: impl Into<String>, seconds: u32) -> Self {
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, message, "wait and try again");
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// There is no room for it. RFC 4918, section 11.5
    pub fn disk_full() -> Self {
        let cure = "delete experiments or files, or make room on the server";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "the disk of the server is full", cure)
    }

    /// A failure of the disk, the database, or our code; details go to the log, not to the client.
    pub fn internal(problem: impl fmt::Display) -> Self {
        let _ = io::Write::write_all(&mut io::stderr(), format!("error: {problem}\n").as_bytes());
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the server could not do it",
            "its standard error says why",
        )
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            // It was there when the request began.
            rusqlite::Error::QueryReturnedNoRows => Self::not_found(),
            error if is_disk_full(&error) => Self::disk_full(),
            error => Self::internal(format!("the database: {error}")),
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
        // For `guard`, which shows it as a page to people.
        response.extensions_mut().insert(self);
        response
    }
}
