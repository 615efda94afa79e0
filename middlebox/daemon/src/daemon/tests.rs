//! Agents on real sockets and a daemon whose turns and time are controlled by the test: one thread, and time passes
//! only when the test says so.

mod filters;
mod handshakes;
mod harm;
mod hostility;
mod sctp;
mod serving;
mod world;
