//! Passive measurement: what packets alone tell of applications.
//!
//! [`measure`] takes the packets that the ends of a run saw and gives a record for each connection (TCP, MPTCP, SCTP, UDP)
//! and for each HTTP/1 request with its response, whatever the programs were.
//!
//! `copies` tells which packet that was sent is the one that arrived; `tcp`, `mptcp`, `sctp` and `udp` tell whose it is and
//! where its data stand; `passage` keeps when they were sent and arrived, `reassembly` puts them in order for `http`;
//! `connection` and `timetable` make records of it.
//!
//! What cannot be seen: when a program wrote (taken for when its last octet was first sent), and when it read (taken for when
//! everything before was there). What is not read: IP fragments, associations that began before the capture did, and data
//! in chunks other than DATA (RFC 8260). HTTP ends at a hole that SCTP's partial reliability leaves.

mod connection;
mod copies;
mod http;
mod mptcp;
mod observer;
mod passage;
mod places;
mod reassembly;
mod sctp;
mod spans;
mod tcp;
mod timetable;
mod totals;
mod udp;

pub use observer::{Sighting, Traffic, measure};
pub use totals::{Carried, Totals};
