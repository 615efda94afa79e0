//! Sessions with a middlebox.

mod middlebox;
mod sctp;
mod sessions;
mod words;
