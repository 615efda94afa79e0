#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! In the model world packets are these values; `to_bytes` and `parse` convert them for captures, real
//! networks and fuzzing, and a property test checks that both agree. One header or chunk per file.

mod address;
pub mod capture;
mod checksum;
mod ecn;
mod error;
mod ipv4;
mod ipv6;
mod packet;
mod pcapng;
pub mod quic;
pub mod sctp;
pub mod tcp;
pub mod udp;

pub use address::{Address, ip_header_length, ipv4};
pub use ecn::Ecn;
pub use error::ParseError;
pub use ipv4::Ipv4Header;
pub use ipv6::Ipv6Header;
pub use packet::{Packet, SendTimes, Transport};
pub use pcapng::PcapngWriter;
