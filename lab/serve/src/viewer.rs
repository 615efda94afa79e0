//! Who asks.

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
