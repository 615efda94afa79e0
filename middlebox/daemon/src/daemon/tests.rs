//! Agents on real sockets and a daemon whose turns and time are controlled by the test: one thread, and time passes
//! only when the test says so.

mod attacks;
mod faulty_clients;
mod filters;
mod handshakes;
mod sctp;
mod sctp_over_udp;
mod serving;
mod world;
