//! Sessions with a middlebox.

mod middlebox;
mod sctp;
mod sctp_over_udp;
mod sessions;
mod words;
