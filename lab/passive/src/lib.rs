//! Passive measurement: what packets alone tell of applications.
//!
//! [`measure`] takes the packets that the ends of a run saw and gives a record for each connection (TCP, MPTCP, SCTP, UDP)
//! and for each HTTP/1 request with its response, whatever the programs were.
//!
//! `copies` tells which packet that was sent is the one that arrived; `tcp`, `mptcp`, `sctp` and `udp` tell whose it is and
//! where its data stand; `passage` keeps when they were sent and arrived, `reassembly` puts them in order for `http`;
//! `connection` and `timetable` make records of it.
//!
//! [`PathLearner`] takes the packets of one place and tells what the path between two hosts is like (`path`);
//! [`Listener`] tells what applications said, message by message (`messages`).
//!
//! What cannot be seen: when a program wrote (taken for when its last octet was first sent), and when it read (taken for when
//! everything before was there). What is not read: IP fragments, associations that began before the capture did, and data
//! in chunks other than DATA (RFC 8260). HTTP ends at a hole that SCTP's partial reliability leaves.

mod connection;
mod copies;
mod http;
mod messages;
mod mptcp;
mod observer;
mod passage;
mod path;
mod places;
mod reassembly;
mod sctp;
mod spans;
mod tcp;
mod timetable;
mod totals;
mod udp;

pub use messages::{Exchanged, Heard, Listener};
pub use observer::{Sighting, Traffic, measure};
pub use path::{Bursts, Fates, Learned, Mtu, NoPackets, PathLearner, Rate, Reordering, RoundTrip};
pub use totals::{Carried, Totals};
