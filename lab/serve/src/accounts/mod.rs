//! Authentication: passwords for logging in, and the keys of sessions, tokens and shared links.

pub mod attempts;
pub mod key;
pub mod password;
pub mod rate_limit;
