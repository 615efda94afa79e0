//! Agents on real sockets and a daemon that the test turns by hand: one thread, and time passes when the test says so.

mod filters;
mod handshakes;
mod harm;
mod hostility;
mod sctp;
mod serving;
mod world;
