//! Our SCTP beside those that nobody here wrote.

mod dcsctp;
mod sender;
#[path = "../talks/mod.rs"]
mod talks;
mod usrsctp;
