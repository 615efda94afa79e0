//! Tests our SCTP against independent implementations.

mod dcsctp;
mod sender;
#[path = "../talks/mod.rs"]
mod talks;
mod usrsctp;
