//! Authentication: passwords, and the keys that replace them afterwards.

pub mod attempts;
pub mod key;
pub mod password;
pub mod rate_limit;
