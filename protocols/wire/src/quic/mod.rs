//! QUIC's packets and frames. RFC 9000, RFC 9001, RFC 9221.
//!
//! Endpoints of the model world leave their packets in the clear: headers without protection, and at the end of each, where the
//! AEAD's tag goes, [what a receiver of protected packets would know](PacketNumber). Their octets on the wire are protected
//! as any other QUIC's are, with secrets that a capture names.

mod clear;
mod datagram;
mod display;
mod frame;
mod protection;
mod varint;

pub use clear::{ClearPacket, PacketNumber, Space, packets};
pub use datagram::{CONNECTION_ID, Carried, Datagram};
pub use frame::{Frame, Frames};
pub use protection::{Secrets, Side};
