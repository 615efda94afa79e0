//! SCTP in UDP datagrams, for hosts whose kernels have no SCTP. RFC 6951.
//!
//! [`Association`] is one association, of an agent or of a middlebox; [`Port`] finds the association of a datagram, and accepts new
//! ones. Both are sans-IO: datagrams and time are arguments. [`PortSocket`] is the UDP socket of a port. The protocol itself is
//! [`hol_sctp`].
//!
//! An association has one path. Addresses in INIT and INIT ACK are ignored, because a NAT does not translate them, and because they
//! would make this host send heartbeats to hosts that have not asked for them (RFC 6951 section 5.7).

mod association;
mod datagram;
mod parameters;
mod path;
mod port;
mod random;
mod socket;

pub use association::{Association, AssociationEnd};
pub use datagram::parse;
pub use hol_sctp::HeldData;
pub use hol_sctp::wire::sctp::Packet;
pub use parameters::Role;
pub use path::UdpPath;
pub use port::{Port, PortOutput};
pub use socket::{PortSocket, ReceivedDatagram};

/// The UDP port for SCTP over UDP. RFC 6951 section 5.1.
pub const UDP_PORT: u16 = 9899;
