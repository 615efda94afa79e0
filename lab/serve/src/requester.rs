//! The user of a request.

/// The user of a request, which determines permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// The user's number.
    pub id: i64,
    /// The user name; without login, that of the owner of everything.
    pub name: String,
    /// Whether the user approves projects.
    pub is_administrator: bool,
    /// When the token of the request ends, in seconds since 1970; `None` without a token.
    pub token_ends: Option<i64>,
}
