//! QUIC packets and frames. RFC 9000, RFC 9001, RFC 9221.
//!
//! Endpoints of the model world send unprotected packets: plain headers, and instead of the AEAD's tag [the
//! state of a receiver of protected packets](PacketNumber). On the wire their octets are protected like any
//! other QUIC's, with secrets that a capture contains.

mod cleartext;
mod datagram;
mod display;
mod frame;
mod protection;
mod varint;

pub use cleartext::{CleartextPacket, PacketNumber, PacketNumberSpace, packets};
pub use datagram::{CONNECTION_ID_OCTETS, Datagram, TimedData};
pub use frame::{Frame, Frames, StreamKind};
pub use protection::{Secrets, Side};
