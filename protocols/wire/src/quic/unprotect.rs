//! Removes the packet protection of captured datagrams with a key log. RFC 9001 section 5, and key updates of section 6.

use std::collections::BTreeMap;

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce};

use super::cleartext::{EncryptionLevel, LONG_HEADER_BIT, extent};
use super::protection::{KEY_PHASE, Secret, Secrets, Side, expand, mask_header, nonce};
use super::{CONNECTION_ID_OCTETS, PacketNumber, PacketNumberSpace};

/// Decrypts the QUIC datagrams of a capture, in the order in which they were captured at one place. The packets
/// must use TLS_AES_128_GCM_SHA256, and connection IDs of [`CONNECTION_ID_OCTETS`] octets.
#[derive(Debug, Default)]
pub struct Unprotector {
    /// The secrets of a key log, by label and the ClientHello's random value.
    log: BTreeMap<(String, String), Secret>,
    /// The connections, by the numbers that the caller gives them.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    /// The Destination Connection ID of the client's first Initial.
    origin: Option<[u8; CONNECTION_ID_OCTETS]>,
    /// The ClientHello's random value, which identifies the connection's secrets in the key log.
    random: Option<String>,
    /// The state of the client's packets (index 0) and of the server's packets (1).
    senders: [Sender; 2],
}

/// What is known about the packets of one endpoint.
#[derive(Debug, Default)]
struct Sender {
    /// The largest packet number so far in each packet number space.
    largest: [Option<u64>; 3],
    /// The number of key updates so far.
    generation: u64,
}

impl Unprotector {
    /// Adds the secrets of a key log (draft-ietf-tls-keylogfile).
    pub fn add_key_log(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(label), Some(random), Some(secret)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if let Some(secret) = parse_secret(secret) {
                self.log.insert((label.to_owned(), random.to_owned()), secret);
            }
        }
    }

    /// Decrypts the packets of a datagram. Returns them unencrypted, as endpoints of the model world send them,
    /// with the packet number in place of the tag. Stops at the first packet that cannot be decrypted.
    /// `connection` is a number that identifies the connection.
    pub fn open(&mut self, connection: u64, sender: Side, mut datagram: &[u8]) -> Vec<u8> {
        let mut clear = Vec::with_capacity(datagram.len());
        while let Ok((level, number_at, length)) = extent(datagram) {
            let Some(packet) = datagram.split_off(..length) else { break };
            let Some(opened) = self.open_packet(connection, sender, (level, number_at), packet) else {
                break;
            };
            clear.extend_from_slice(&opened);
        }
        clear
    }

    fn open_packet(
        &mut self,
        connection: u64,
        sender: Side,
        (level, number_at): (EncryptionLevel, usize),
        packet: &[u8],
    ) -> Option<Vec<u8>> {
        let Self { log, connections } = self;
        let known = connections.entry(connection).or_default();
        if known.origin.is_none() && sender == Side::Client && level == EncryptionLevel::Initial {
            known.origin = first_connection_id(packet);
        }
        let secrets: Vec<(Option<String>, Secret)> = match (sender.log_label(level), known.origin) {
            (Some(label), _) => logged(log, known.random.as_deref(), label),
            (None, Some(origin)) => vec![(None, Secrets { origin, sender }.secret(level))],
            (None, None) => Vec::new(),
        };
        secrets.into_iter().find_map(|(random, secret)| {
            let opened = known.senders[sender as usize].open(&secret, (level, number_at), packet)?;
            known.random = known.random.take().or(random);
            Some(opened)
        })
    }
}

/// Returns the traffic secrets with this label, each with the random value of its ClientHello: only those of the
/// connection with the value `random` if it is given, otherwise those of all connections.
fn logged(
    log: &BTreeMap<(String, String), Secret>,
    random: Option<&str>,
    label: &str,
) -> Vec<(Option<String>, Secret)> {
    let of_label = log.iter().filter(|((known, _), _)| *known == label);
    let wanted = of_label.filter(|((_, known), _)| random.is_none_or(|random| random == known));
    wanted.map(|((_, random), secret)| (Some(random.clone()), *secret)).collect()
}

/// Decrypts the frames of a packet; `None` if the keys are not those of the packet.
fn open_body(secret: &Secret, number: u64, header: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let mut body = sealed.to_vec();
    let key: [u8; 16] = expand(secret, "quic key");
    Aes128Gcm::new(&key.into())
        .decrypt_in_place(&Nonce::<Aes128Gcm>::from(nonce(secret, number)), header, &mut body)
        .ok()?;
    Some(body)
}

impl Sender {
    /// Decrypts a packet of a sender whose initial secret is `secret`, with the current, the next or the previous
    /// keys; `None` if that fails.
    fn open(
        &mut self,
        secret: &Secret,
        (level, number_at): (EncryptionLevel, usize),
        packet: &[u8],
    ) -> Option<Vec<u8>> {
        let mut packet = packet.to_vec();
        if packet.len() < number_at + 4 + PacketNumber::TAG_OCTETS {
            return None;
        }
        mask_header(expand(secret, "quic hp"), number_at, &mut packet, true);
        let header = number_at + 1 + usize::from(packet[0] & 3);
        let space = level.space();
        let number = self.full_number(space, &packet[number_at..header]);
        let has_phase = level == EncryptionLevel::OneRtt;
        let phase = has_phase && packet[0] & KEY_PHASE != 0;
        let (head, sealed) = packet.split_at(header);
        // A packet of the previous keys may arrive late.
        let current = if has_phase { self.generation } else { 0 };
        let candidates = [current, current + 1, current.saturating_sub(1)];
        let fits =
            |generation: &u64| if has_phase { (*generation % 2 == 1) == phase } else { *generation == 0 };
        let (generation, body) = candidates.into_iter().filter(fits).find_map(|generation| {
            let updated = (0..generation).fold(*secret, |secret, _| expand(&secret, "quic ku"));
            Some((generation, open_body(&updated, number, head, sealed)?))
        })?;
        let largest = &mut self.largest[space as usize];
        *largest = (*largest).max(Some(number));
        self.generation = self.generation.max(generation);
        Some([head, &body, &PacketNumber { number, generation }.to_tag()].concat())
    }

    /// Returns the complete packet number, whose last octets are `truncated`. RFC 9000 appendix A.3.
    fn full_number(&self, space: PacketNumberSpace, truncated: &[u8]) -> u64 {
        let expected = self.largest[space as usize].map_or(0, |largest| largest + 1);
        let window = 1_u64 << (8 * truncated.len());
        let short = truncated.iter().fold(0, |number, octet| number << 8 | u64::from(*octet));
        let candidate = expected & !(window - 1) | short;
        if candidate + window / 2 <= expected {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }
}

/// Returns the Destination Connection ID of a packet with a long header. RFC 9000 section 17.2.
fn first_connection_id(packet: &[u8]) -> Option<[u8; CONNECTION_ID_OCTETS]> {
    let (first, rest) = packet.split_first()?;
    let (length, id) = rest.get(4..)?.split_first()?;
    let has_length = first & LONG_HEADER_BIT != 0 && usize::from(*length) == CONNECTION_ID_OCTETS;
    id.first_chunk().copied().filter(|_| has_length)
}

/// Parses a 32-octet secret in hexadecimal.
fn parse_secret(text: &str) -> Option<Secret> {
    let digits = text.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let octets: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |octet, digit| octet << 4 | *digit as u8)).collect();
    octets.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::packets;
    use super::super::protection::{protect, seal};
    use super::*;

    const ORIGIN: [u8; CONNECTION_ID_OCTETS] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    /// Returns a packet of a level in the clear, with a frame of type PING.
    fn clear(level: EncryptionLevel, number: u64) -> Vec<u8> {
        let tag = PacketNumber { number, generation: 0 }.to_tag();
        let short = (number as u16).to_be_bytes();
        let frames = [1, 0, 0, 0, 0];
        let id = [&[8][..], &ORIGIN, &[0]].concat();
        let length = [0x40, (short.len() + frames.len() + tag.len()) as u8];
        let header = match level {
            EncryptionLevel::Initial => [&[0xc1, 0, 0, 0, 1], &id[..], &[0], &length, &short].concat(),
            EncryptionLevel::ZeroRtt => [&[0xd1, 0, 0, 0, 1], &id[..], &length, &short].concat(),
            EncryptionLevel::Handshake => [&[0xe1, 0, 0, 0, 1], &id[..], &length, &short].concat(),
            EncryptionLevel::OneRtt => [&[0x41][..], &ORIGIN, &short].concat(),
        };
        [&header[..], &frames, &tag].concat()
    }

    fn protected(sender: Side, clear: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let secrets = Secrets { origin: ORIGIN, sender };
        packets(clear).for_each(|packet| protect(&packet.unwrap(), secrets, &mut out));
        out
    }

    fn unprotector() -> Unprotector {
        let mut unprotector = Unprotector::default();
        unprotector.add_key_log(&Secrets { origin: ORIGIN, sender: Side::Client }.key_log());
        unprotector
    }

    #[test]
    fn coalesced_packets_of_all_levels_are_opened() {
        use EncryptionLevel::{Handshake, Initial, OneRtt, ZeroRtt};
        let mut unprotector = unprotector();
        let levels: [(_, &[_]); 2] = [
            (Side::Client, &[Initial, ZeroRtt, Handshake, OneRtt]),
            (Side::Server, &[Initial, Handshake, OneRtt]),
        ];
        for (sender, levels) in levels {
            let datagram = levels.iter().map(|level| clear(*level, 0)).collect::<Vec<_>>().concat();
            let sealed = protected(sender, &datagram);
            assert_ne!(sealed, datagram);
            assert_eq!(unprotector.open(7, sender, &sealed), datagram);
        }
    }

    #[test]
    fn rfc9000_a_3_packet_numbers_are_completed() {
        let mut unprotector = unprotector();
        for number in [0, 60_000, 65_530, 65_540, 65_535, 140_000_u64] {
            let packet = clear(EncryptionLevel::OneRtt, number);
            // A gap of more than half the window cannot be completed, so the numbers in between arrive.
            for skipped in (0..number).step_by(20_000) {
                unprotector.open(
                    1,
                    Side::Client,
                    &protected(Side::Client, &clear(EncryptionLevel::OneRtt, skipped)),
                );
            }
            assert_eq!(unprotector.open(1, Side::Client, &protected(Side::Client, &packet)), packet);
        }
        let sender = Sender { largest: [None, None, Some(0xa82f_30ea)], generation: 0 };
        assert_eq!(sender.full_number(PacketNumberSpace::Data, &[0x9b, 0x32]), 0xa82f_9b32);
    }

    #[test]
    fn rfc9001_6_updated_keys_are_found() {
        let mut unprotector = unprotector();
        let first = Secrets { origin: ORIGIN, sender: Side::Server }.secret(EncryptionLevel::OneRtt);
        for (number, generation) in [(0, 0), (1, 1), (3, 2), (2, 1), (4, 3), (5, 3_u64)] {
            let secret = (0..generation).fold(first, |secret, _| expand(&secret, "quic ku"));
            let mut packet = clear(EncryptionLevel::OneRtt, number);
            if generation % 2 == 1 {
                packet[0] |= KEY_PHASE;
            }
            let (head, frames) = packet[..packet.len() - PacketNumber::TAG_OCTETS].split_at(11);
            let mut sealed = Vec::new();
            seal(&secret, expand(&first, "quic hp"), (head, 9), frames, number, &mut sealed);
            let opened = unprotector.open(1, Side::Server, &sealed);
            let opened = packets(&opened).next().expect("the packet is opened").unwrap();
            assert_eq!(opened.number, PacketNumber { number, generation });
        }
    }

    #[test]
    fn other_secrets_and_damaged_packets_open_nothing() {
        let sealed = protected(Side::Client, &clear(EncryptionLevel::OneRtt, 5));
        assert!(unprotector().open(1, Side::Server, &sealed).is_empty());
        assert!(Unprotector::default().open(1, Side::Client, &sealed).is_empty());
        for length in 0..sealed.len() {
            assert!(unprotector().open(1, Side::Client, &sealed[..length]).is_empty(), "{length}");
        }
    }
}
