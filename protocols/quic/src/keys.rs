//! Keys without encryption: the tag contains the information that a receiver of encrypted packets would have, and is
//! checked.

use bytes::BytesMut;
use hol_wire::quic::PacketNumber;
use quinn_proto::crypto::{CryptoError, HeaderKey, KeyPair, Keys, PacketKey};

/// Header protection that does not encrypt headers.
struct ClearHeader;

impl HeaderKey for ClearHeader {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// Returns the sample length of AES, because it determines the minimum packet length. RFC 9001 section 5.4.2.
    fn sample_size(&self) -> usize {
        16
    }
}

/// Packet protection that does not encrypt packets. The authentication tag contains the packet number.
struct CleartextPacket {
    generation: u64,
}

impl PacketKey for CleartextPacket {
    fn encrypt(&self, number: u64, packet: &mut [u8], _: usize) {
        let tag = PacketNumber { number, generation: self.generation }.to_tag();
        if let Some(place) = packet.last_chunk_mut() {
            *place = tag;
        }
    }

    fn decrypt(&self, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let tag = *payload.last_chunk().ok_or(CryptoError)?;
        payload.truncate(payload.len() - PacketNumber::TAG_OCTETS);
        let expected = PacketNumber { number, generation: self.generation };
        if PacketNumber::from_tag(tag) == expected { Ok(()) } else { Err(CryptoError) }
    }

    fn tag_len(&self) -> usize {
        PacketNumber::TAG_OCTETS
    }

    /// Returns the confidentiality limit of AEAD_AES_128_GCM. RFC 9001 section 6.6.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    /// Returns the integrity limit of AEAD_AES_128_GCM. RFC 9001 section 6.6.
    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

/// Returns the packet keys after `generation` key updates. RFC 9001 section 6.
pub(crate) fn packet_keys(generation: u64) -> KeyPair<Box<dyn PacketKey>> {
    let key = || Box::new(CleartextPacket { generation });
    KeyPair { local: key(), remote: key() }
}

/// Returns the keys of 0-RTT packets, which do not encrypt.
pub(crate) fn early_keys() -> (Box<dyn HeaderKey>, Box<dyn PacketKey>) {
    (Box::new(ClearHeader), Box::new(CleartextPacket { generation: 0 }))
}

/// Returns the keys of a packet number space, which do not encrypt.
pub(crate) fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(ClearHeader), remote: Box::new(ClearHeader) },
        packet: packet_keys(0),
    }
}
