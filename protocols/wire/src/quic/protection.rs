//! Packet protection on the wire: AEAD_AES_128_GCM, and its header protection. RFC 9001 section 5.
//!
//! Endpoints of the model world encrypt nothing. Their packets are encrypted when they become octets, so that a capture
//! with its key log is as readable as one of any other QUIC implementation. Keys of Initial packets are those of RFC
//! 9001. All other keys are derived from the same secret instead of a key exchange, so nothing is confidential. Keys
//! are never updated (section 6), whatever the endpoints do: a capture shows packets at both ends, and a reader cannot
//! determine their order.

use std::fmt::Write as _;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, Nonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::cleartext::{EncryptionLevel, LONG_HEADER_BIT};
use super::{CONNECTION_ID_OCTETS, CleartextPacket, PacketNumber};

/// The values from which the keys of a datagram are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secrets {
    /// The Destination Connection ID of the client's first Initial. RFC 9001 section 5.2.
    pub origin: [u8; CONNECTION_ID_OCTETS],
    /// The endpoint that sends the datagram.
    pub sender: Side,
}

/// An endpoint of a QUIC connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The endpoint that opened the connection.
    Client,
    /// The endpoint to which the connection was opened.
    Server,
}

/// A traffic secret of a cipher suite with SHA-256.
pub(super) type Secret = [u8; 32];

/// The bit of a short header that changes with each key update. RFC 9001 section 6.
pub(super) const KEY_PHASE: u8 = 0x04;

impl Side {
    /// Returns the label that a key log uses for the secret of this sender's packets; `None` if a key log does not
    /// contain such a secret. draft-ietf-tls-keylogfile.
    pub(super) const fn log_label(self, level: EncryptionLevel) -> Option<&'static str> {
        match (self, level) {
            (_, EncryptionLevel::Initial) | (Self::Server, EncryptionLevel::ZeroRtt) => None,
            (Self::Client, EncryptionLevel::ZeroRtt) => Some("CLIENT_EARLY_TRAFFIC_SECRET"),
            (Self::Client, EncryptionLevel::Handshake) => Some("CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
            (Self::Server, EncryptionLevel::Handshake) => Some("SERVER_HANDSHAKE_TRAFFIC_SECRET"),
            (Self::Client, EncryptionLevel::OneRtt) => Some("CLIENT_TRAFFIC_SECRET_0"),
            (Self::Server, EncryptionLevel::OneRtt) => Some("SERVER_TRAFFIC_SECRET_0"),
        }
    }
}

impl Secrets {
    /// Returns the random value of the ClientHello, which identifies a connection in a key log. RFC 8446 section
    /// 4.1.2.
    pub fn client_random(self) -> [u8; 32] {
        let mut random = [0; 32];
        random.chunks_mut(CONNECTION_ID_OCTETS).for_each(|part| part.copy_from_slice(&self.origin));
        random
    }

    /// Returns the key log of the connection, one secret per line. draft-ietf-tls-keylogfile.
    pub fn key_log(self) -> String {
        let mut log = String::new();
        for level in [EncryptionLevel::ZeroRtt, EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
            for sender in [Side::Client, Side::Server] {
                let Some(label) = sender.log_label(level) else { continue };
                let secret = Self { sender, ..self }.secret(level);
                let (random, secret) = (hexadecimal(&self.client_random()), hexadecimal(&secret));
                writeln!(log, "{label} {random} {secret}").expect("writing to a string does not fail");
            }
        }
        log
    }

    /// Returns the traffic secret of an encryption level. RFC 9001 section 5.2, RFC 8446 section 7.1.
    pub(super) fn secret(self, level: EncryptionLevel) -> Secret {
        const INITIAL_SALT: [u8; 20] = [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
            0xcc, 0xbb, 0x7f, 0x0a,
        ];
        let label = match (level, self.sender) {
            (EncryptionLevel::Initial, Side::Client) => "client in",
            (EncryptionLevel::Initial, Side::Server) => "server in",
            (EncryptionLevel::ZeroRtt, _) => "c e traffic",
            (EncryptionLevel::Handshake, Side::Client) => "c hs traffic",
            (EncryptionLevel::Handshake, Side::Server) => "s hs traffic",
            (EncryptionLevel::OneRtt, Side::Client) => "c ap traffic",
            (EncryptionLevel::OneRtt, Side::Server) => "s ap traffic",
        };
        expand(&hmac(&INITIAL_SALT, &[&self.origin]), label)
    }
}

/// Appends the encrypted packet to `out`, as it is on the wire. RFC 9001 sections 5.3 and 5.4.
pub(super) fn protect(packet: &CleartextPacket<'_>, secrets: Secrets, out: &mut Vec<u8>) {
    let PacketNumber { number, .. } = packet.number;
    let secret = secrets.secret(packet.level());
    let (header, body) = packet.octets.split_at(packet.header);
    let mut header = header.to_vec();
    if packet.level() == EncryptionLevel::OneRtt {
        header[0] &= !KEY_PHASE;
    }
    let body = &body[..body.len() - PacketNumber::TAG_OCTETS];
    seal(&secret, expand(&secret, "quic hp"), (&header, packet.number_at), body, number, out);
}

/// Encrypts a packet and appends it to `out`. The keys are derived from `secret`; the key of header protection is
/// separate, because key updates do not change it.
pub(super) fn seal(
    secret: &Secret,
    header_key: [u8; 16],
    (header, number_at): (&[u8], usize),
    body: &[u8],
    number: u64,
    out: &mut Vec<u8>,
) {
    let mut body = body.to_vec();
    let key: [u8; 16] = expand(secret, "quic key");
    Aes128Gcm::new(&key.into())
        .encrypt_in_place(&Nonce::<Aes128Gcm>::from(nonce(secret, number)), header, &mut body)
        .expect("a packet is shorter than the limit of AES-GCM");
    let start = out.len();
    out.extend_from_slice(header);
    out.extend_from_slice(&body);
    mask_header(header_key, number_at, &mut out[start..], false);
}

/// Returns the nonce of a packet. RFC 9001 section 5.3.
pub(super) fn nonce(secret: &Secret, number: u64) -> [u8; 12] {
    let mut nonce: [u8; 12] = expand(secret, "quic iv");
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(nonce, number)| *nonce ^= number);
    nonce
}

/// Masks the packet number and bits of the first octet with a sample of the ciphertext; if the packet `is_masked`,
/// removes the mask. RFC 9001 section 5.4.
pub(super) fn mask_header(key: [u8; 16], number_at: usize, packet: &mut [u8], is_masked: bool) {
    let Some(sample) = packet[number_at..].get(4..).and_then(|rest| rest.first_chunk::<16>()) else { return };
    let mut mask = (*sample).into();
    Aes128::new(&key.into()).encrypt_block(&mut mask);
    let plain = packet[0];
    packet[0] ^= mask[0] & if packet[0] & LONG_HEADER_BIT == 0 { 0x1f } else { 0x0f };
    // The octet without mask contains the length of the packet number.
    let length = 1 + usize::from(if is_masked { packet[0] } else { plain } & 3);
    packet[number_at..number_at + length].iter_mut().zip(&mask[1..]).for_each(|(octet, mask)| *octet ^= mask);
}

/// Computes HKDF-Expand-Label with an empty context, for at most one block of SHA-256. RFC 8446 section 7.1.
pub(super) fn expand<const LENGTH: usize>(secret: &Secret, label: &str) -> [u8; LENGTH] {
    let length = [(LENGTH >> 8) as u8, LENGTH as u8, (6 + label.len()) as u8];
    let block = hmac(secret, &[&length, b"tls13 ", label.as_bytes(), &[0, 1]]);
    *block.first_chunk().expect("a key is at most as long as a block")
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Secret {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().into()
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::packets;
    use super::*;

    fn octets(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            hexadecimal.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn secrets(sender: Side) -> Secrets {
        Secrets { origin: [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08], sender }
    }

    /// Returns the packet with this header and these frames, as on the wire.
    fn protected(sender: Side, header: &str, frames: Vec<u8>, number: u64) -> Vec<u8> {
        let tag = PacketNumber { number, generation: 0 }.to_tag();
        let clear = [octets(header), frames, tag.to_vec()].concat();
        let mut out = Vec::new();
        packets(&clear).for_each(|packet| protect(&packet.unwrap(), secrets(sender), &mut out));
        out
    }

    #[test]
    fn the_keys_are_those_of_rfc_9001_appendix_a_1() {
        for (sender, secret, key, iv, hp) in [
            (
                Side::Client,
                "c00cf151ca5be075ed0ebfb5c80323c4 2d6b7db67881289af4008f1f6c357aea",
                "1f369613dd76d5467730efcbe3b1a22d",
                "fa044b2f42a3fd3b46fb255c",
                "9f50449e04a0e810283a1e9933adedd2",
            ),
            (
                Side::Server,
                "3c199828fd139efd216c155ad844cc81 fb82fa8d7446fa7d78be803acdda951b",
                "cf3a5331653c364c88f0f379b6067e37",
                "0ac1493ca1905853b0bba03e",
                "c206b8d9b9f0f37644430b490eeaa314",
            ),
        ] {
            let own = secrets(sender).secret(EncryptionLevel::Initial);
            assert_eq!(own.to_vec(), octets(secret));
            assert_eq!(expand::<16>(&own, "quic key").to_vec(), octets(key));
            assert_eq!(expand::<12>(&own, "quic iv").to_vec(), octets(iv));
            assert_eq!(expand::<16>(&own, "quic hp").to_vec(), octets(hp));
        }
    }

    #[test]
    fn a_client_initial_is_protected_as_in_rfc_9001_appendix_a_2() {
        let mut frames = octets(
            "060040f1010000ed0303ebf8fa56f129 39b9584a3896472ec40bb863cfd3e868
             04fe3a47f06a2b69484c000004130113 02010000c000000010000e00000b6578
             616d706c652e636f6dff01000100000a 00080006001d00170018001000070005
             04616c706e0005000501000000000033 00260024001d00209370b2c9caa47fba
             baf4559fedba753de171fa71f50f1ce1 5d43e994ec74d748002b000302030400
             0d0010000e0403050306030203080408 050806002d00020101001c0002400100
             3900320408ffffffffffffffff050480 00ffff07048000ffff08011001048000
             75300901100f088394c8f03e51570806 048000ffff",
        );
        frames.resize(1162, 0);
        let packet = protected(Side::Client, "c300000001088394c8f03e5157080000449e00000002", frames, 2);
        assert_eq!(packet.len(), 1200);
        let start = "c000000001088394c8f03e5157080000 449e7b9aec34d1b1c98dd7689fb8ec11
                     d242b123dc9bd8bab936b47d92ec356c 0bab7df5976d27cd449f63300099f399";
        assert_eq!(packet[..64], octets(start));
        assert_eq!(packet[1184..], octets("e221af44860018ab0856972e194cd934"));
    }

    #[test]
    fn a_server_initial_is_protected_as_in_rfc_9001_appendix_a_3() {
        let frames = octets(
            "02000000000600405a020000560303ee fce7f7b37ba1d1632e96677825ddf739
             88cfc79825df566dc5430b9a045a1200 130100002e00330024001d00209d3c94
             0d89690b84d08a60993c144eca684d10 81287c834d5311bcf32bb9da1a002b00 020304",
        );
        let whole = "cf000000010008f067a5502a4262b500 4075c0d95a482cd0991cd25b0aac406a
                     5816b6394100f37a1c69797554780bb3 8cc5a99f5ede4cf73c3ec2493a1839b3
                     dbcba3f6ea46c5b7684df3548e7ddeb9 c3bf9c73cc3f3bded74b562bfb19fb84
                     022f8ef4cdd93795d77d06edbb7aaf2f 58891850abbdca3d20398c276456cbc4
                     2158407dd074ee";
        let packet = protected(Side::Server, "c1000000010008f067a5502a4262b50040750001", frames, 1);
        assert_eq!(packet, octets(whole));
    }
}
