//! Matches packets captured at the receiver with those captured at the sender, and derives losses from the rest.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::Duration;
use hol_network::TapEvent;
use hol_wire::{Packet, ParseError};

use crate::captured_packet::CapturedPacket;

/// The sent packet that belongs to each received packet; both are indices into the capture.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketMatches(BTreeMap<usize, usize>);

impl PacketMatches {
    /// Finds the sent packet that belongs to each received packet. `packets` are in order of time.
    pub(crate) fn of(packets: &[CapturedPacket]) -> Self {
        let (mut sent, received) = group_by_octets(packets);
        let delay = |from: usize, to: usize| packets[to].time.saturating_since(packets[from].time);
        let unambiguous =
            sent.iter().filter_map(|(octets, from)| match (&from[..], &received.get(octets)?[..]) {
                ([from], [to]) => Some(delay(*from, *to)),
                _ => None,
            });
        let shortest = unambiguous.min().unwrap_or_default();
        let mut matches = BTreeMap::new();
        for (octets, indexes) in &received {
            let Some(copies) = sent.get_mut(octets) else { continue };
            for to in indexes {
                // If copies are identical, the last one that was sent early enough matches.
                let had_time = |from: &usize| *from < *to && delay(*from, *to) >= shortest;
                if let Some(index) = copies.iter().rposition(had_time) {
                    matches.insert(*to, copies.remove(index));
                }
            }
        }
        let mut left: BTreeSet<usize> = sent.into_values().flatten().collect();
        let all = received.into_values().flatten();
        for to in all.filter(|to| !matches.contains_key(to)).collect::<Vec<_>>() {
            let damaged = |from: &&usize| **from < to && differ_by_one_bit(&packets[**from], &packets[to]);
            if let Some(from) = left.iter().find(damaged).copied() {
                left.remove(&from);
                matches.insert(to, from);
            }
        }
        Self(matches)
    }

    /// Returns the indices of lost packets. A packet that has not arrived is lost in two cases: a later packet of the
    /// same sender has arrived, or the packet was sent more than twice the longest observed one-way delay before the
    /// end of the capture.
    fn find_lost(&self, packets: &[CapturedPacket]) -> Vec<usize> {
        let delays = self.0.iter().map(|(to, from)| packets[*to].time.since(packets[*from].time));
        let longest = delays.max().unwrap_or(Duration::from_secs(1));
        let end = packets.last().map(|last| last.time).unwrap_or_default();
        let arrived: BTreeSet<usize> = self.0.values().copied().collect();
        let mut last_arrived = BTreeMap::new();
        last_arrived.extend(arrived.iter().map(|index| (packets[*index].source(), *index)));
        let is_lost = |(index, packet): &(usize, &CapturedPacket)| {
            let overtaken = last_arrived.get(&packet.source()).is_some_and(|last| last > index);
            let overdue = end.saturating_since(packet.time) > longest * 2;
            packet.event == TapEvent::Sent && !arrived.contains(index) && (overtaken || overdue)
        };
        packets.iter().enumerate().filter(is_lost).map(|(index, _)| index).collect()
    }
}

/// Adds an entry `lost` to the capture for each packet that was lost, and marks received packets with a wrong checksum
/// as `corrupted`.
pub(crate) fn mark_losses(mut packets: Vec<CapturedPacket>) -> Vec<CapturedPacket> {
    let lost = PacketMatches::of(&packets).find_lost(&packets);
    let lost =
        lost.into_iter().map(|index| CapturedPacket { event: TapEvent::Lost, ..packets[index].clone() });
    let lost: Vec<_> = lost.collect();
    for packet in packets.iter_mut().filter(|packet| packet.event == TapEvent::Received) {
        if Packet::parse(packet.octets.clone().into()) == Err(ParseError::Checksum) {
            packet.event = TapEvent::Corrupted;
        }
    }
    packets.extend(lost);
    packets.sort_by_key(|packet| packet.time);
    packets
}

impl CapturedPacket {
    /// Returns whether the packet is an IPv6 packet, by the version at its start (RFC 791 section 3.1, RFC 8200
    /// section 3).
    fn is_ipv6(&self) -> bool {
        self.octets.first().is_some_and(|first| first >> 4 == 6)
    }

    /// Returns the source address of the packet.
    fn source(&self) -> Option<&[u8]> {
        self.octets.get(if self.is_ipv6() { 8..24 } else { 12..16 })
    }

    /// Returns the packet without the octets that a router changes: the hop limit of IPv6, or the time to live and
    /// the header checksum of IPv4.
    fn octets_unchanged_by_routers(&self) -> Vec<u8> {
        let changed: &[usize] = if self.is_ipv6() { &[7] } else { &[8, 10, 11] };
        let mut octets = self.octets.clone();
        changed.iter().for_each(|at| octets.get_mut(*at).into_iter().for_each(|octet| *octet = 0));
        octets
    }
}

/// Indices of packets in a capture, by the octets of the packet.
type IndexesByOctets = BTreeMap<Vec<u8>, Vec<usize>>;

/// Groups the sent packets and the received packets by their octets.
fn group_by_octets(packets: &[CapturedPacket]) -> (IndexesByOctets, IndexesByOctets) {
    let (mut sent, mut received) = (IndexesByOctets::new(), IndexesByOctets::new());
    for (index, packet) in packets.iter().enumerate() {
        let indexes = if packet.event == TapEvent::Sent { &mut sent } else { &mut received };
        indexes.entry(packet.octets_unchanged_by_routers()).or_default().push(index);
    }
    (sent, received)
}

fn differ_by_one_bit(one: &CapturedPacket, other: &CapturedPacket) -> bool {
    let (one, other) = (one.octets_unchanged_by_routers(), other.octets_unchanged_by_routers());
    let bits = || one.iter().zip(&other).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    one.len() == other.len() && bits() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Time;
    use hol_wire::sctp;

    /// Returns a data chunk whose content depends on the number; the router decrements the time to live.
    fn packet(number: u32) -> Vec<u8> {
        let (source, destination) = (hol_wire::ipv4(10, 0, 1, 1), hol_wire::ipv4(10, 0, 1, 2));
        let chunks = std::iter::once(sctp::Chunk::CookieAck).collect();
        let transport = sctp::Packet {
            source_port: 1,
            destination_port: 2,
            verification_tag: number,
            zero_checksum: false,
            chunks,
        };
        Packet::new(source, destination, transport).to_bytes().to_vec()
    }

    fn sent(ms: u64, number: u32) -> CapturedPacket {
        let (time, octets) = (Time::from_millis(ms), packet(number));
        CapturedPacket { time, interface: 0, event: TapEvent::Sent, octets }
    }

    fn received(ms: u64, number: u32) -> CapturedPacket {
        let mut packet = CapturedPacket { interface: 1, event: TapEvent::Received, ..sent(ms, number) };
        packet.octets[8] -= 1;
        packet.octets[10] += 1;
        packet
    }

    #[test]
    fn overtaken_packets_are_lost_and_packets_in_flight_are_not() {
        let packets = vec![sent(0, 1), sent(1, 2), sent(2, 3), received(10, 1), received(12, 3), sent(13, 4)];
        let packets_with_fates = mark_losses(packets);
        let lost: Vec<_> =
            packets_with_fates.iter().filter(|s| s.event == TapEvent::Lost).map(|s| s.time).collect();
        assert_eq!(lost, [Time::from_millis(1)]);
        assert_eq!(
            (packets_with_fates[1].event, packets_with_fates[2].event),
            (TapEvent::Sent, TapEvent::Lost)
        );
    }

    /// RFC 8200 section 3: the routers change the hop limit, octet 7; addresses begin at octet 8.
    #[test]
    fn packets_of_ipv6_match_after_a_router() {
        let packet = |ms, event, source: u8, number: u8, hops: u8| {
            let mut octets = vec![0x60, 0, 0, 0, 0, 4, 132, hops];
            octets.extend([[source; 16], [9; 16]].concat());
            octets.extend([number; 4]);
            CapturedPacket { time: Time::from_millis(ms), interface: 0, event, octets }
        };
        let packets = [
            packet(0, TapEvent::Sent, 1, 1, 64),
            packet(1, TapEvent::Sent, 2, 2, 64),
            packet(2, TapEvent::Sent, 1, 3, 64),
            packet(3, TapEvent::Received, 1, 3, 63),
        ];
        let matches = PacketMatches::of(&packets);
        assert_eq!(matches, PacketMatches(BTreeMap::from([(3, 2)])));
        assert_eq!(matches.find_lost(&packets), [0], "only packets of the same sender overtake");
    }

    #[test]
    fn a_received_packet_matches_the_last_identical_copy_sent_before_it() {
        let packets = [sent(0, 1), sent(5, 2), received(10, 1), sent(20, 2), sent(28, 2), received(30, 2)];
        let matches = PacketMatches::of(&packets);
        assert_eq!(matches, PacketMatches(BTreeMap::from([(2, 0), (5, 3)])));
        assert_eq!(matches.find_lost(&packets), [1]);
    }

    #[test]
    fn a_packet_with_a_flipped_bit_is_corrupted_and_not_lost() {
        let mut damaged = received(12, 2);
        damaged.octets[24] ^= 4;
        let fates = mark_losses(vec![sent(1, 1), sent(2, 2), received(11, 1), damaged]);
        let fates: Vec<_> = fates.iter().map(|packet| packet.event).collect();
        assert_eq!(fates, [TapEvent::Sent, TapEvent::Sent, TapEvent::Received, TapEvent::Corrupted]);
    }
}
