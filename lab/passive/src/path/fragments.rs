//! Reassembles the fragments of IP packets, of whose content a capture may contain only the beginning. RFC 791 section 3.2, RFC 8200
//! section 4.5.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use super::captured_ip::{CapturedIp, Fragment, IpHeader};

/// The time in ns after which fragments are given up. RFC 8200 section 4.5.
const REASSEMBLY_TIME: u64 = 60_000_000_000;
/// Maximum number of packets whose fragments are not complete.
const MAX_PACKETS: usize = 1024;

/// The packets of which some fragments have been captured.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    partial: BTreeMap<Key, PartialPacket>,
    /// Number of fragments whose packet was given up.
    given_up: u64,
}

/// The addresses, the protocol and the identification of a packet.
type Key = ([IpAddr; 2], u8, u32);

/// A packet of which some fragments have been captured.
#[derive(Debug)]
struct PartialPacket {
    /// The time of the first fragment, in ns.
    since: u64,
    /// The octets on the wire and the captured ones of each fragment, by its position.
    pieces: BTreeMap<u32, (u32, Vec<u8>)>,
    /// The IP header of the first part.
    header: Option<Vec<u8>>,
    /// Octets of the payload; known from the last part.
    length: Option<u32>,
}

/// A whole packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WholePacket<'p> {
    octets: Cow<'p, [u8]>,
    cut: u32,
}

impl WholePacket<'_> {
    pub fn as_captured(&self) -> CapturedIp<'_> {
        CapturedIp { octets: &self.octets, cut: self.cut }
    }
}

impl Fragments {
    /// Returns a packet that is not a fragment as it is, and with the last missing fragment the whole packet.
    pub fn reassemble<'p>(
        &mut self,
        at: u64,
        packet: CapturedIp<'p>,
        header: &IpHeader,
    ) -> Option<WholePacket<'p>> {
        let Some(fragment) = header.fragment else {
            return Some(WholePacket { octets: packet.octets.into(), cut: packet.cut });
        };
        let key = (header.hosts, header.protocol, fragment.identification);
        if !self.partial.contains_key(&key) {
            self.give_up_old(at);
        }
        let partial = self.partial.entry(key).or_insert_with(|| PartialPacket::new(at));
        partial.add(packet, header, fragment);
        let whole = partial.whole(header.protocol)?;
        self.partial.remove(&key);
        Some(whole)
    }

    /// Returns the number of fragments whose packet is not complete.
    pub fn incomplete(&self) -> u64 {
        self.given_up + self.partial.values().map(|packet| packet.pieces.len() as u64).sum::<u64>()
    }

    /// Gives up packets whose fragments are too old, or the oldest one if there are too many.
    fn give_up_old(&mut self, now: u64) {
        let oldest = self.partial.iter().min_by_key(|(_, packet)| packet.since);
        let Some((key, since)) = oldest.map(|(key, packet)| (*key, packet.since)) else { return };
        if since + REASSEMBLY_TIME < now || self.partial.len() >= MAX_PACKETS {
            self.given_up += self.partial.remove(&key).map_or(0, |packet| packet.pieces.len() as u64);
        }
    }
}

impl PartialPacket {
    const fn new(since: u64) -> Self {
        Self { since, pieces: BTreeMap::new(), header: None, length: None }
    }

    fn add(&mut self, packet: CapturedIp<'_>, header: &IpHeader, fragment: Fragment) {
        let length = header.length.saturating_sub(header.octets as u32);
        let end = header.octets.saturating_add(length as usize).min(packet.octets.len());
        let payload = packet.octets.get(header.octets..end).unwrap_or_default();
        self.pieces.entry(fragment.offset).or_insert_with(|| (length, payload.to_vec()));
        if fragment.offset == 0 {
            let length = if packet.octets[0] >> 4 == 4 { header.octets } else { 40 };
            self.header = packet.octets.get(..length).map(<[u8]>::to_vec);
        }
        if fragment.is_last {
            self.length = Some(fragment.offset + length);
        }
    }

    /// Returns the whole packet, if no fragment is missing. Extension headers before the fragment header are omitted.
    fn whole(&self, protocol: u8) -> Option<WholePacket<'static>> {
        let (header, length) = (self.header.as_ref()?, self.length?);
        let mut next = 0;
        for (offset, (octets, _)) in &self.pieces {
            next = if *offset == next { offset + octets } else { return None };
        }
        if next != length {
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
        for (octets_on_wire, piece) in self.pieces.values() {
            octets.extend(piece);
            if piece.len() < *octets_on_wire as usize {
                break;
            }
        }
        let cut = header.len() as u32 + length - octets.len() as u32;
        Some(WholePacket { octets: octets.into(), cut })
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
}
