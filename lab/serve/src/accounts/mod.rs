//! Who may come in: passwords, and the keys that stand for them afterwards.

pub mod attempts;
pub mod key;
pub mod password;
