//! Congestion controllers: pure state, facts in, window out. One algorithm a file.

pub mod sctp;
