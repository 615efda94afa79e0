//! Typed packets, their bytes, and captures: pcapng written, pcap and pcapng read.
//!
//! In the model world packets travel as these values; `to_bytes` and `parse` turn them into bytes for captures,
//! real networks and fuzzing, and a property test holds the two equal. One header or chunk a file.

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

pub use address::{Address, ip_header, ipv4};
pub use ecn::Ecn;
pub use error::ParseError;
pub use ipv4::Ipv4Header;
pub use ipv6::Ipv6Header;
pub use packet::{Packet, Stamp, Transport};
pub use pcapng::PcapngWriter;
