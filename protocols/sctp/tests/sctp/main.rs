//! Our SCTP beside those that nobody here wrote.

mod dcsctp;
#[path = "../talks/mod.rs"]
mod talks;
mod usrsctp;
