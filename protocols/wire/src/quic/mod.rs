//! QUIC packets and frames. RFC 9000, RFC 9001, RFC 9221.
//!
//! Endpoints of the model world send unprotected packets: their headers are plain, and in place of the AEAD's tag
//! they contain [the complete packet number and the key generation](PacketNumber). When such packets become octets on
//! the wire, they are protected like those of any other QUIC implementation, with secrets that a capture contains.

mod cleartext;
mod datagram;
mod display;
mod frame;
mod protection;
mod unprotect;
mod varint;

pub use cleartext::{CleartextPacket, PacketNumber, PacketNumberSpace, packets};
pub use datagram::{CONNECTION_ID_OCTETS, Datagram, TimedData};
pub use frame::{Frame, Frames, StreamKind};
pub use protection::{Secrets, Side};
pub use unprotect::Unprotector;
