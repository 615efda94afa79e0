//! Authentication: passwords, and the keys that replace them afterwards.

pub mod allowance;
pub mod attempts;
pub mod key;
pub mod password;
