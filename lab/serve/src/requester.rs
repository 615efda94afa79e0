//! The user of a request.

/// The user who sends a request, and on whom its permissions depend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// Number of the user.
    pub id: i64,
    /// Name of the user; without login, the name of the local user.
    pub name: String,
    /// Whether the user is an administrator, who approves projects.
    pub is_administrator: bool,
    /// Time at which the token of the request expires, in seconds since 1970; `None` without a token.
    pub token_expires_at: Option<i64>,
}
