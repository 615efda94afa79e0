//! Parity packets: the XOR of a group of packets, which restores any single lost packet of the group. RFC 5109, with
//! one level of protection for whole packets.
//!
//! Not supported: levels above 0, which are skipped, and FEC as redundant coding (section 14.2).

use crate::{Header, ParseError};

/// Maximum number of packets in a group, the number of bits of the long mask. RFC 5109 section 7.4.
pub const MAX_GROUP: u8 = 48;
/// Number of bits of the short mask.
const SHORT_MASK_BITS: u8 = 16;

/// The L bit of the first octet, which indicates the long mask. The bits E and L take the place of RTP's version.
/// RFC 5109 section 7.3.
const LONG_MASK_BIT: u8 = 0x40;
const EXTENSION_AND_LONG: u8 = 0xc0;
/// Length of the FEC header in octets.
const HEADER_LENGTH: usize = 10;
/// Length in octets of the field "protection length" before the mask.
const LENGTH_FIELD_OCTETS: usize = 2;

/// Returns the number of octets by which the parity packet of `k` packets is longer than the longest of them.
pub const fn overhead(k: u8) -> usize {
    HEADER_LENGTH + LENGTH_FIELD_OCTETS + mask_octets(k > SHORT_MASK_BITS)
}

const fn mask_octets(is_long: bool) -> usize {
    (if is_long { MAX_GROUP } else { SHORT_MASK_BITS }) as usize / 8
}

/// Returns the parity payload of a group of RTP packets with sequence numbers from `first` on. RFC 5109 section 8.
///
/// # Panics
/// If the group has no packets or more than [`MAX_GROUP`], or if one is not an RTP packet or has 64 KiB or more after
/// its header.
pub fn payload(first: u16, group: &[Vec<u8>]) -> Vec<u8> {
    let k = u8::try_from(group.len())
        .ok()
        .filter(|k| (1..=MAX_GROUP).contains(k))
        .expect("a group has 1 to 48 packets");
    let mut bits = Vec::new();
    for packet in group {
        add(&mut bits, &protected_bits(packet).expect("the packet is an RTP packet"));
    }
    let (header, level) = bits.split_at_mut(HEADER_LENGTH);
    header[0] = header[0] & !EXTENSION_AND_LONG | if k > SHORT_MASK_BITS { LONG_MASK_BIT } else { 0 };
    header[2..4].copy_from_slice(&first.to_be_bytes());
    let length = u16::try_from(level.len()).expect("a packet has less than 64 KiB").to_be_bytes();
    let mask = (!0_u64 << (64 - k)).to_be_bytes();
    [&*header, &length, &mask[..mask_octets(k > SHORT_MASK_BITS)], level].concat()
}

/// Returns the protected octets of a packet in order: its header up to SSRC, the length of the rest, and the rest.
/// RFC 5109 sections 8.1 and 8.2.
fn protected_bits(packet: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = packet.split_at_checked(Header::OCTETS)?;
    let length = u16::try_from(rest.len()).ok()?.to_be_bytes();
    Some([&header[..8], &length, rest].concat())
}

/// Adds `octets` to `sum` by XOR; the shorter operand is padded with zeros.
fn add(sum: &mut Vec<u8>, octets: &[u8]) {
    sum.resize(sum.len().max(octets.len()), 0);
    sum.iter_mut().zip(octets).for_each(|(sum, octet)| *sum ^= octet);
}

/// A ULPFEC parity payload that has been parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UlpfecPayload<'p> {
    /// Sequence number of the first protected packet: SN base.
    pub first: u16,
    /// The mask of protected packets. Bit 63 stands for the first packet, bit 62 for the next, and so on.
    mask: u64,
    header: &'p [u8; HEADER_LENGTH],
    level: &'p [u8],
}

impl<'p> UlpfecPayload<'p> {
    /// Parses a parity payload. RFC 5109 sections 7.3 and 7.4.
    ///
    /// # Errors
    /// If the payload is shorter than its header and length field say.
    pub fn read(payload: &'p [u8]) -> Result<Self, ParseError> {
        let (header, rest) =
            payload.split_first_chunk::<HEADER_LENGTH>().ok_or(ParseError("an FEC packet has no header"))?;
        let (&[high, low], rest) = rest.split_first_chunk::<LENGTH_FIELD_OCTETS>().ok_or(NO_LEVEL)?;
        let (mask, rest) =
            rest.split_at_checked(mask_octets(header[0] & LONG_MASK_BIT != 0)).ok_or(NO_LEVEL)?;
        let level = rest.get(..usize::from(u16::from_be_bytes([high, low]))).ok_or(NO_LEVEL)?;
        let mask = mask.iter().fold(0, |bits, octet| bits << 8 | u64::from(*octet)) << (64 - 8 * mask.len());
        Ok(Self { first: u16::from_be_bytes([header[2], header[3]]), mask, header, level })
    }

    /// Returns the number of sequence numbers from the first protected packet to the last, both included.
    pub fn span(&self) -> u8 {
        64 - self.mask.trailing_zeros() as u8
    }

    /// Restores the missing packet, and returns it with its offset from the first. Returns `None` unless exactly
    /// one packet is missing, or if that packet has more octets than are protected. `received` maps offsets to
    /// received packets; `source` is the SSRC of all packets. RFC 5109 section 9.
    pub fn restore_packet(&self, received: &[(u8, &[u8])], source: u32) -> Option<(u8, Vec<u8>)> {
        let bit = |place: u8| 1_u64.checked_shl(63_u32.wrapping_sub(place.into())).unwrap_or(0);
        let is_protected = |(place, _): &&(u8, &[u8])| self.mask & bit(*place) != 0;
        let there = received.iter().filter(is_protected).fold(0, |there, (place, _)| there | bit(*place));
        let missing = self.mask & !there;
        if missing.count_ones() != 1 {
            return None;
        }
        let mut bits = [self.header, self.level].concat();
        for (_, packet) in received.iter().filter(is_protected) {
            add(&mut bits, &protected_bits(packet)?);
        }
        let place = missing.leading_zeros() as u8;
        Some((place, self.packet(place, &bits, source)?))
    }

    /// Returns the packet with the restored octets `bits`. RFC 5109 sections 9.1 and 9.2.
    fn packet(&self, place: u8, bits: &[u8], source: u32) -> Option<Vec<u8>> {
        let (header, rest) = bits.split_first_chunk::<HEADER_LENGTH>()?;
        let length = usize::from(u16::from_be_bytes([header[8], header[9]]));
        let rest = rest.get(..length).filter(|_| length <= self.level.len())?;
        let version = 0x80 | header[0] & !EXTENSION_AND_LONG;
        let sequence = self.first.wrapping_add(place.into()).to_be_bytes();
        Some([&[version, header[1]], &sequence[..], &header[4..8], &source.to_be_bytes(), rest].concat())
    }
}

const NO_LEVEL: ParseError = ParseError("an FEC packet is shorter than the length in its header");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns packets A to D of section 10: SSRC 2.
    fn example() -> Vec<Vec<u8>> {
        let packets = [(11, true, 3, 200_u16), (18, false, 5, 140), (11, true, 7, 100), (18, false, 9, 340)];
        (8..)
            .zip(packets)
            .map(|(sequence, (payload_type, marker, timestamp, octets))| {
                let header = Header { payload_type, marker, sequence, timestamp, source: 2 };
                let octet = |at: u16| (at * 7 + sequence) as u8;
                [&header.octets()[..], &(0..octets).map(octet).collect::<Vec<u8>>()].concat()
            })
            .collect()
    }

    /// Figures 8 and 9 of section 10.1, octet by octet.
    #[test]
    fn rfc_example_has_its_headers() {
        let payload = payload(8, &example());
        assert_eq!(payload[..10], [0, 0, 0, 8, 0, 0, 0, 8, 0x01, 0x74]);
        assert_eq!(payload[10..14], [0x01, 0x54, 0xf0, 0x00]);
        assert_eq!(payload.len(), 14 + 340);
        let at = |octet: usize| example().iter().fold(0, |sum, it| sum ^ it.get(12 + octet).unwrap_or(&0));
        assert!((0..340).all(|octet| payload[14 + octet] == at(octet)), "section 8.2");
    }

    /// The level header of figure 13, section 10.2: 70 octets of A and B, which are longer.
    #[test]
    fn partly_protected_packet_is_not_restored() {
        let packets = example();
        let whole = payload(8, &packets[..2]);
        let in_part = [&whole[..10], &[0, 70, 0xc0, 0], &whole[14..84]].concat();
        let of =
            |payload: &[u8]| UlpfecPayload::read(payload).unwrap().restore_packet(&[(0, &packets[0])], 2);
        assert_eq!(of(&whole), Some((1, packets[1].clone())));
        assert_eq!(of(&in_part), None);
        let with_level_1 = [&whole[..], &[0, 90, 0xc0, 0], &[0; 90]].concat();
        assert_eq!(of(&with_level_1), Some((1, packets[1].clone())), "level 1 follows level 0");
    }

    /// Section 7.4.
    #[test]
    fn a_long_group_has_a_long_mask() {
        let packets: Vec<Vec<u8>> = (0..17).map(|at| [&example()[0][..12], &[at]].concat()).collect();
        let [short, long] = [16, 17].map(|k| payload(0xfffe, &packets[..k]));
        assert_eq!(
            (short[0], &short[10..14], short.len()),
            (0x00, &[0, 1, 0xff, 0xff][..], 1 + overhead(16))
        );
        assert_eq!(
            (long[0], &long[10..18], long.len()),
            (0x40, &[0, 1, 0xff, 0xff, 0x80, 0, 0, 0][..], 1 + overhead(17))
        );
        let read = UlpfecPayload::read(&long).unwrap();
        assert_eq!((read.first, read.span()), (0xfffe, 17));
        assert!((0..long.len()).all(|octets| UlpfecPayload::read(&long[..octets]).is_err()));
    }

    fn group() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let packet = (any::<[u8; 8]>(), proptest::collection::vec(any::<u8>(), 0..50));
        proptest::collection::vec(packet, 1..49).prop_map(|packets| {
            let packet = |(at, (header, rest)): (u16, ([u8; 8], Vec<u8>))| {
                let sequence = 65_530_u16.wrapping_add(at).to_be_bytes();
                let [first, second, .., a, b, c, d] = header;
                let header = [first & 0x3f | 0x80, second, sequence[0], sequence[1], a, b, c, d, 1, 2, 3, 4];
                [&header, &rest[..]].concat()
            };
            (0..).zip(packets).map(packet).collect()
        })
    }

    proptest! {
        /// Section 9: the restored header is unchanged, including contributors, extension and padding.
        #[test]
        fn one_lost_packet_is_restored_and_two_are_not(group in group(), lost: prop::sample::Index, other: prop::sample::Index) {
            let payload = payload(65_530, &group);
            let protection = UlpfecPayload::read(&payload).unwrap();
            let (lost, other) = (lost.index(group.len()), other.index(group.len()));
            let without = |lost: &[usize]| -> Vec<(u8, &[u8])> {
                let received = group.iter().enumerate().filter(|(at, _)| !lost.contains(at));
                received.map(|(at, packet)| (at as u8, &packet[..])).collect()
            };
            let restored = protection.restore_packet(&without(&[lost]), 0x0102_0304);
            prop_assert_eq!(restored, Some((lost as u8, group[lost].clone())));
            prop_assert_eq!(protection.restore_packet(&without(&[]), 0), None);
            if lost != other {
                prop_assert_eq!(protection.restore_packet(&without(&[lost, other]), 0), None);
            }
        }

        #[test]
        fn any_octets_restore_something_or_nothing(payload: Vec<u8>, packets: Vec<(u8, Vec<u8>)>) {
            let received: Vec<(u8, &[u8])> = packets.iter().map(|(place, packet)| (*place, &packet[..])).collect();
            if let Ok(protection) = UlpfecPayload::read(&payload) {
                drop((protection.span(), protection.restore_packet(&received, 0)));
            }
        }
    }
}
