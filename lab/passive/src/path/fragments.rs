//! Reassembles the fragments of IP packets, of whose content a capture may contain only the beginning. RFC 791 section 3.2, RFC 8200
//! section 4.5.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hol_wire::capture::LinkType;

use super::captured_ip::{CapturedIp, Fragment, IpHeader};

/// The time in ns after which fragments are given up. RFC 8200 section 4.5.
const REASSEMBLY_TIME: u64 = 60_000_000_000;
/// Maximum number of packets whose fragments are not complete.
const MAX_PACKETS: usize = 1024;
/// Maximum number of stored fragments, because each needs memory beyond its octets. The longest packet has 45 fragments
/// of 1500 octets.
const MAX_PIECES: usize = 1 << 16;
/// Maximum length of a packet. RFC 791 section 3.1.
const MAX_OCTETS: u32 = 65_535;

/// The incomplete packets: some of their fragments have been captured.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    partial: BTreeMap<Key, PartialPacket>,
    /// The keys of the incomplete packets, by the time of the first fragment.
    by_age: BTreeSet<(u64, Key)>,
    /// Number of stored fragments of incomplete packets.
    pieces: usize,
    /// Number of fragments that were invalid, or whose packet was given up.
    given_up: u64,
}

/// The addresses, the protocol and the identification of a packet.
type Key = ([IpAddr; 2], u8, u32);

/// A packet of which some fragments have been captured.
#[derive(Debug)]
struct PartialPacket {
    /// The time of the first fragment, in ns.
    since: u64,
    /// The fragments by position; they do not overlap.
    pieces: BTreeMap<u32, Piece>,
    /// The IP header in the packet's first fragment; `None` until it has been captured.
    header: Option<Vec<u8>>,
    /// Octets of all captured fragments, without their headers.
    octets: u32,
    /// Octets of the packet's payload; `None` until the last fragment has been captured.
    length: Option<u32>,
}

/// The payload of a fragment.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    /// Octets on the wire.
    length: u32,
    captured: Vec<u8>,
}

/// A packet that arrived whole or was reassembled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WholePacket<'p> {
    octets: Cow<'p, [u8]>,
    cut: u32,
    /// The number of fragments of which the packet was reassembled; 0 for a packet that was captured whole.
    pub fragments: u64,
}

impl WholePacket<'_> {
    pub fn as_captured(&self) -> CapturedIp<'_> {
        CapturedIp { octets: &self.octets, cut: self.cut }
    }

    /// Returns the packet inside this packet if it was reassembled and belongs to a tunnel. If a tunnel's packet was
    /// captured whole, its tunnel header was already removed with the link layer.
    pub fn tunnelled_packet(&self) -> Option<CapturedIp<'_>> {
        const RAW_IP: LinkType = LinkType(101);
        let inner = RAW_IP.ip_packet(&self.octets).ok().flatten().filter(|_| self.fragments > 0)?;
        (inner.len() < self.octets.len()).then_some(CapturedIp { octets: inner, cut: self.cut })
    }
}

impl Fragments {
    /// Returns the packet unchanged if it is not a fragment, and the whole packet if this is its last missing
    /// fragment; otherwise `None`.
    pub fn reassemble<'p>(
        &mut self,
        at: u64,
        packet: CapturedIp<'p>,
        header: &IpHeader,
    ) -> Option<WholePacket<'p>> {
        let Some(fragment) = header.fragment else {
            return Some(WholePacket { octets: packet.octets.into(), cut: packet.cut, fragments: 0 });
        };
        self.give_up_old(at);
        let piece = Piece::of(packet, header);
        if !piece.is_valid(fragment) {
            self.given_up += 1;
            return None;
        }
        let key = (header.hosts, header.protocol, fragment.identification);
        // A host must discard a packet whose fragments overlap (RFC 5722 section 4); here the identification was used again.
        if self.partial.get(&key).is_some_and(|partial| partial.overlaps(fragment, &piece)) {
            self.give_up(key);
        }
        self.make_room(key);
        let partial = self.partial.entry(key).or_insert_with(|| {
            self.by_age.insert((at, key));
            PartialPacket::new(at)
        });
        self.pieces += usize::from(partial.add(packet, header, fragment, piece));
        let whole = partial.whole(header.protocol)?;
        self.remove(key);
        Some(whole)
    }

    /// Returns the number of fragments whose packet is not complete.
    pub fn incomplete(&self) -> u64 {
        self.given_up + self.pieces as u64
    }

    /// Gives up all packets whose fragments are too old.
    fn give_up_old(&mut self, now: u64) {
        while let Some(&(since, key)) = self.by_age.first()
            && now.saturating_sub(since) > REASSEMBLY_TIME
        {
            self.give_up(key);
        }
    }

    /// Gives up the oldest packet if there is no room for another fragment of this packet.
    fn make_room(&mut self, key: Key) {
        let is_full = self.partial.len() >= MAX_PACKETS && !self.partial.contains_key(&key);
        if (is_full || self.pieces >= MAX_PIECES)
            && let Some((_, oldest)) = self.by_age.first().copied()
        {
            self.give_up(oldest);
        }
    }

    fn give_up(&mut self, key: Key) {
        self.given_up += self.remove(key).map_or(0, |packet| packet.pieces.len() as u64);
    }

    fn remove(&mut self, key: Key) -> Option<PartialPacket> {
        let packet = self.partial.remove(&key)?;
        self.by_age.remove(&(packet.since, key));
        self.pieces -= packet.pieces.len();
        Some(packet)
    }
}

impl Piece {
    fn of(packet: CapturedIp<'_>, header: &IpHeader) -> Self {
        let length = header.length.saturating_sub(header.octets as u32);
        let end = header.octets.saturating_add(length as usize).min(packet.octets.len());
        Self { length, captured: packet.octets.get(header.octets..end).unwrap_or_default().to_vec() }
    }

    /// Returns whether this can be a fragment of a valid packet (RFC 791 section 3.2, RFC 8200 section 4.5).
    const fn is_valid(&self, fragment: Fragment) -> bool {
        let ends_at_a_unit = fragment.is_last || self.length.is_multiple_of(8);
        self.length > 0 && ends_at_a_unit && fragment.offset.saturating_add(self.length) <= MAX_OCTETS
    }
}

impl PartialPacket {
    const fn new(since: u64) -> Self {
        Self { since, pieces: BTreeMap::new(), header: None, octets: 0, length: None }
    }

    /// Returns whether a fragment contradicts the others: it overlaps one of them, unless both are equal, or it has
    /// octets beyond the end of the packet.
    fn overlaps(&self, fragment: Fragment, piece: &Piece) -> bool {
        let end = fragment.offset + piece.length;
        let before = self.pieces.range(..end).next_back();
        let furthest = self.pieces.last_key_value().map_or(0, |(offset, last)| offset + last.length);
        match before {
            Some((offset, same)) if *offset == fragment.offset => same != piece,
            Some((offset, before)) if offset + before.length > fragment.offset => true,
            _ if fragment.is_last => self.length.is_some() || furthest > end,
            _ => self.length.is_some_and(|length| end > length),
        }
    }

    /// Adds a fragment that does not overlap the others, or equals one of them; returns whether it is new.
    fn add(&mut self, packet: CapturedIp<'_>, header: &IpHeader, fragment: Fragment, piece: Piece) -> bool {
        if fragment.offset == 0 {
            let length = if packet.octets[0] >> 4 == 4 { header.octets } else { 40 };
            self.header = packet.octets.get(..length).map(<[u8]>::to_vec);
        }
        if fragment.is_last {
            self.length = Some(fragment.offset + piece.length);
        }
        let length = piece.length;
        let is_new = self.pieces.insert(fragment.offset, piece).is_none();
        self.octets += if is_new { length } else { 0 };
        is_new
    }

    /// Returns the whole packet, if no fragment is missing. Extension headers before the fragment header are omitted.
    fn whole(&self, protocol: u8) -> Option<WholePacket<'static>> {
        let (header, length) = (self.header.as_ref()?, self.length?);
        if self.octets != length {
            return None;
        }
        let mut octets = header.clone();
        let (place, total) =
            if header[0] >> 4 == 4 { (2, header.len() as u32 + length) } else { (4, length) };
        // A length beyond 65,535 octets is that of the capture.
        octets[place..place + 2].copy_from_slice(&u16::try_from(total).unwrap_or(0).to_be_bytes());
        if header[0] >> 4 == 4 {
            octets[6..8].fill(0);
        } else {
            octets[6] = protocol;
        }
        for piece in self.pieces.values() {
            octets.extend(&piece.captured);
            if piece.captured.len() < piece.length as usize {
                break;
            }
        }
        let cut = header.len() as u32 + length - octets.len() as u32;
        Some(WholePacket { octets: octets.into(), cut, fragments: self.pieces.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fragment of IPv4 with this offset, in octets.
    fn ipv4(identification: u8, offset: u16, is_last: bool, payload: &[u8]) -> Vec<u8> {
        let place = (offset / 8) | if is_last { 0 } else { 0x2000 };
        let mut packet = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, identification];
        packet.extend(place.to_be_bytes());
        packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        [packet, payload.to_vec()].concat()
    }

    fn ipv6(identification: u8, offset: u16, is_last: bool, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8 + payload.len() as u8, 44, 64];
        packet.extend([[0xfd; 16], [0xfe; 16]].concat());
        packet.extend([17, 0]);
        packet.extend((offset | u16::from(!is_last)).to_be_bytes());
        packet.extend([0, 0, 0, identification]);
        [packet, payload.to_vec()].concat()
    }

    fn add(fragments: &mut Fragments, packet: &[u8], cut: u32) -> Option<(Vec<u8>, u32)> {
        let packet = CapturedIp { octets: packet, cut };
        let header = IpHeader::parse(packet).unwrap();
        let whole = fragments.reassemble(0, packet, &header)?;
        assert!(fragments.by_age.len() == fragments.partial.len());
        let header = IpHeader::parse(whole.as_captured()).unwrap();
        assert!(header.fragment.is_none() && header.protocol == 17);
        assert_eq!(header.length as usize, whole.octets.len() + whole.cut as usize);
        Some((whole.octets[header.octets..].to_vec(), whole.cut))
    }

    #[test]
    fn fragments_are_reassembled_in_any_order() {
        let payload: Vec<u8> = (0..40).collect();
        for of in [ipv4, ipv6] {
            let parts = [(0, &payload[..16]), (16, &payload[16..32]), (32, &payload[32..])];
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
                let mut fragments = Fragments::default();
                let mut whole = Vec::new();
                for part in order {
                    let (offset, octets) = parts[part];
                    // Another packet between them, and each fragment twice.
                    assert_eq!(add(&mut fragments, &of(9, 0, false, &[9; 8]), 0), None);
                    whole.extend(add(&mut fragments, &of(7, offset, part == 2, octets), 0));
                    if whole.is_empty() {
                        assert_eq!(add(&mut fragments, &of(7, offset, part == 2, octets), 0), None);
                    }
                }
                assert_eq!(whole, [(payload.clone(), 0)]);
                assert_eq!(fragments.incomplete(), 1, "the first fragment of the other packet");
            }
        }
    }

    #[test]
    fn a_cut_fragment_ends_the_captured_content() {
        let mut fragments = Fragments::default();
        // 16 octets, of which 8 were captured.
        let first = ipv4(7, 0, false, &[1; 16]);
        assert_eq!(add(&mut fragments, &first[..28], 8), None);
        assert_eq!(add(&mut fragments, &ipv4(7, 16, true, &[2; 10]), 0), Some((vec![1; 8], 18)));
    }

    #[test]
    fn old_fragments_are_given_up() {
        let mut fragments = Fragments::default();
        for at in 0..3 {
            let packet = ipv4(at, 0, false, &[0; 8]);
            let header = IpHeader::parse((&packet).into()).unwrap();
            fragments.reassemble(u64::from(at) * (REASSEMBLY_TIME + 1), (&packet).into(), &header);
        }
        assert_eq!((fragments.partial.len(), fragments.incomplete()), (1, 3));
    }

    /// Adds a fragment at a time; returns the payload of the whole packet.
    fn add_at(fragments: &mut Fragments, at: u64, packet: &[u8]) -> Option<Vec<u8>> {
        let header = IpHeader::parse(packet.into()).unwrap();
        let whole = fragments.reassemble(at, packet.into(), &header)?;
        Some(whole.octets[20..].to_vec())
    }

    /// The identification is used again after the rest of the first packet was lost.
    #[test]
    fn stale_fragments_are_not_part_of_a_later_packet() {
        let later = [ipv4(7, 0, false, &[2; 16]), ipv4(7, 16, true, &[2; 8])];
        for (stale, gap) in [
            (ipv4(7, 16, true, &[1; 8]), REASSEMBLY_TIME + 1),
            (ipv4(7, 0, false, &[1; 16]), 1),
            (ipv4(7, 8, false, &[1; 8]), 1),
        ] {
            let mut fragments = Fragments::default();
            assert_eq!(add_at(&mut fragments, 0, &stale), None);
            // A fragment of another packet neither extends nor hides the age.
            assert_eq!(add_at(&mut fragments, gap, &ipv4(9, 0, false, &[9; 8])), None);
            let whole: Vec<_> = later.iter().filter_map(|part| add_at(&mut fragments, gap, part)).collect();
            assert_eq!(whole, [[2; 24]], "{stale:?}");
            assert_eq!(fragments.incomplete(), 2);
        }
    }

    /// RFC 791 section 3.1, RFC 5722 section 4.
    #[test]
    fn invalid_fragments_are_never_reassembled() {
        let beyond = {
            let mut packet = ipv4(7, 0, true, &[1; 16]);
            packet[6..8].copy_from_slice(&[0x1f, 0xff]);
            packet
        };
        for parts in [
            vec![beyond],
            vec![ipv4(7, 0, false, &[])],
            vec![ipv4(7, 0, false, &[1; 9]), ipv4(7, 8, true, &[1; 8])],
            vec![ipv4(7, 0, false, &[1; 16]), ipv4(7, 8, true, &[1; 16])],
            vec![ipv4(7, 8, true, &[1; 16]), ipv4(7, 0, false, &[1; 16])],
            vec![ipv4(7, 24, true, &[1; 8]), ipv4(7, 0, false, &[1; 16]), ipv4(7, 16, true, &[1; 8])],
        ] {
            let mut fragments = Fragments::default();
            for part in &parts {
                assert_eq!(add_at(&mut fragments, u64::MAX, part), None, "{parts:?}");
            }
            assert_eq!(fragments.incomplete(), parts.len() as u64);
            assert!(fragments.partial.len() <= 1 && fragments.by_age.len() == fragments.partial.len());
        }
    }

    /// Many packets of few fragments, and few packets of many, in a time that does not grow with the number of fragments.
    #[test]
    fn memory_of_fragments_is_bounded() {
        for packets_at_a_time in [200, 1] {
            let mut fragments = Fragments::default();
            for number in 0..200_000_u32 {
                let mut packet = ipv4(0, (number % 8000) as u16 * 8, false, &[0; 8]);
                let identification = number / 8000 * packets_at_a_time + number % packets_at_a_time;
                packet[4..6].copy_from_slice(&(identification as u16).to_be_bytes());
                packet[15] = (number % 13) as u8;
                assert_eq!(add_at(&mut fragments, 0, &packet), None);
            }
            let pieces: usize = fragments.partial.values().map(|packet| packet.pieces.len()).sum();
            assert!(pieces <= MAX_PIECES && pieces == fragments.pieces, "{pieces}");
            assert!(
                fragments.partial.len() <= MAX_PACKETS && fragments.by_age.len() == fragments.partial.len()
            );
            assert_eq!(fragments.incomplete(), 200_000);
        }
    }

    /// The first of nine packets makes room.
    #[test]
    fn oldest_packet_is_given_up_for_the_fragments_of_another() {
        let mut fragments = Fragments::default();
        for number in 0..=MAX_PIECES {
            let packet = ipv4((number / 8000) as u8, (number % 8000) as u16 * 8, false, &[0; 8]);
            assert_eq!(add_at(&mut fragments, (number / 8000) as u64, &packet), None);
        }
        assert_eq!((fragments.pieces, fragments.given_up), (MAX_PIECES + 1 - 8000, 8000));
        assert_eq!(fragments.by_age.first().map(|(at, _)| *at), Some(1));
    }
}
