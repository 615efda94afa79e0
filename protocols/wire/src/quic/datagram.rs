//! A UDP datagram of QUIC packets. RFC 9000 section 12.2.

use bytes::{BufMut, Bytes};
use smallvec::SmallVec;

use super::{Secrets, packets, protection};
use crate::{Address, SendTimes, udp};

/// Length in octets of the connection IDs of endpoints in the model world (the simulator). A short header does not
/// state the length. RFC 9000 section 17.3.1.
pub const CONNECTION_ID_OCTETS: usize = 8;

/// A UDP datagram with QUIC packets that are not encrypted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// The QUIC packets, unencrypted.
    pub payload: Bytes,
    /// The secrets with which the packets are encrypted on the wire.
    pub secrets: Secrets,
    /// The user data in the packets, in the order of the frames. This list is not on the wire.
    pub carried: SmallVec<[TimedData; 2]>,
}

/// The user data of one STREAM or DATAGRAM frame, and when they were sent. This is for measurement only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedData {
    /// Number of the stream; `None` for a DATAGRAM frame.
    pub stream: Option<u64>,
    /// Offset of the first octet in the stream.
    pub start: u64,
    /// Offset that follows the last octet in the stream.
    pub end: u64,
    /// When the data were sent.
    pub stamp: SendTimes,
}

impl Datagram {
    /// Returns the length in octets of the UDP header and the payload. Encryption does not change the length.
    pub fn length(&self) -> usize {
        udp::Datagram::HEADER_LENGTH + self.payload.len()
    }

    /// Appends the datagram with encrypted packets.
    ///
    /// # Panics
    /// If the datagram is too long for its length field.
    pub(crate) fn emit(&self, source: Address, destination: Address, out: &mut Vec<u8>) {
        let Self { source_port, destination_port, .. } = *self;
        let (payload, stamp) = (self.protected(), SendTimes::default());
        udp::Datagram { source_port, destination_port, payload, stamp }.emit(source, destination, out);
    }

    /// Returns the packets as they are on the wire. From the first malformed packet on, they are not encrypted.
    fn protected(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len());
        for packet in packets(&self.payload).map_while(Result::ok) {
            protection::protect(&packet, self.secrets, &mut out);
        }
        out.put_slice(&self.payload[out.len()..]);
        out.into()
    }
}
