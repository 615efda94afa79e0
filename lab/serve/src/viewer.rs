//! Who asks.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;

use crate::accounts::key;
use crate::clock::now;
use crate::refusal::Refusal;
use crate::server::Server;
use crate::store::KeyKind;

/// The cookie of a session. `__Host-` would need TLS, which may be a proxy's.
pub const COOKIE_NAME: &str = "headofline";

/// Who asks: what this person may see and do follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    /// The user's number.
    pub id: i64,
    /// The name of the user; on loopback, where nobody logs in, that of the one who owns everything.
    pub name: String,
    /// Whether this one approves projects.
    pub is_administrator: bool,
}

impl FromRequestParts<Arc<Server>> for Viewer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Refusal> {
        if let Some(local) = &server.local {
            return Ok(local.clone());
        }
        let (kind, secret) = match (token(parts), cookie(parts)) {
            (Some(token), _) => (KeyKind::Token, token),
            (None, Some(cookie)) => (KeyKind::Session, cookie),
            (None, None) => return Err(Refusal::unauthorized("nobody is logged in")),
        };
        let holder = server.store.holder(&key::digest(secret), kind, now())?;
        holder.ok_or_else(|| Refusal::unauthorized("the session or the token has ended"))
    }
}

/// RFC 6750, section 2.1
fn token(parts: &Parts) -> Option<&str> {
    parts.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// RFC 6265, section 4.2
pub fn cookie(parts: &Parts) -> Option<&str> {
    let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value).next()
}
