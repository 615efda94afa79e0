//! Which packet that one end received is which one that the other end had sent, and what became of the others.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::Duration;
use hol_network::Fate;
use hol_wire::{Packet, ParseError};

use crate::captured::Captured;

/// The places of the packets that were received, each with the place where it was sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Journeys(BTreeMap<usize, usize>);

impl Journeys {
    /// Finds the partners in sightings in order of time.
    pub(crate) fn of(sightings: &[Captured]) -> Self {
        let (mut sent, received) = by_octets(sightings);
        let passage = |from: usize, to: usize| sightings[to].time.saturating_since(sightings[from].time);
        let sure = sent.iter().filter_map(|(octets, from)| match (&from[..], &received.get(octets)?[..]) {
            ([from], [to]) => Some(passage(*from, *to)),
            _ => None,
        });
        let shortest = sure.min().unwrap_or_default();
        let mut journeys = BTreeMap::new();
        for (octets, places) in &received {
            let Some(copies) = sent.get_mut(octets) else { continue };
            for to in places {
                // Of copies that nothing tells apart, the last one that had the time.
                let had_time = |from: &usize| *from < *to && passage(*from, *to) >= shortest;
                if let Some(index) = copies.iter().rposition(had_time) {
                    journeys.insert(*to, copies.remove(index));
                }
            }
        }
        let mut left: BTreeSet<usize> = sent.into_values().flatten().collect();
        let all = received.into_values().flatten();
        for to in all.filter(|to| !journeys.contains_key(to)).collect::<Vec<_>>() {
            let damaged =
                |from: &&usize| **from < to && differ_by_one_bit(&sightings[**from], &sightings[to]);
            if let Some(from) = left.iter().find(damaged).copied() {
                left.remove(&from);
                journeys.insert(to, from);
            }
        }
        Self(journeys)
    }

    /// The places of packets that were sent and will not arrive: others of their sender that left later have arrived,
    /// or they would take twice as long as any other.
    fn lost(&self, sightings: &[Captured]) -> Vec<usize> {
        let passages = self.0.iter().map(|(to, from)| sightings[*to].time.since(sightings[*from].time));
        let longest = passages.max().unwrap_or(Duration::from_secs(1));
        let end = sightings.last().map(|last| last.time).unwrap_or_default();
        let arrived: BTreeSet<usize> = self.0.values().copied().collect();
        let mut last_arrived = BTreeMap::new();
        last_arrived.extend(arrived.iter().map(|place| (sightings[*place].source(), *place)));
        let is_lost = |(place, sighting): &(usize, &Captured)| {
            let overtaken = last_arrived.get(&sighting.source()).is_some_and(|last| last > place);
            let overdue = end.saturating_since(sighting.time) > longest * 2;
            sighting.fate == Fate::Sent && !arrived.contains(place) && (overtaken || overdue)
        };
        sightings.iter().enumerate().filter(is_lost).map(|(place, _)| place).collect()
    }
}

/// The sightings, with a second one for each packet that was lost, and `corrupted` for those that arrived so.
pub(crate) fn judged(mut sightings: Vec<Captured>) -> Vec<Captured> {
    let lost = Journeys::of(&sightings).lost(&sightings);
    let lost = lost.into_iter().map(|place| Captured { fate: Fate::Lost, ..sightings[place].clone() });
    let lost: Vec<_> = lost.collect();
    for sighting in sightings.iter_mut().filter(|sighting| sighting.fate == Fate::Received) {
        if Packet::parse(sighting.octets.clone().into()) == Err(ParseError::Checksum) {
            sighting.fate = Fate::Corrupted;
        }
    }
    sightings.extend(lost);
    sightings.sort_by_key(|sighting| sighting.time);
    sightings
}

impl Captured {
    /// The source address. RFC 791 section 3.1.
    fn source(&self) -> Option<&[u8]> {
        self.octets.get(12..16)
    }

    /// The octets that a router leaves alone: all but time to live and header checksum. RFC 791 section 3.1.
    fn lasting(&self) -> Vec<u8> {
        let mut octets = self.octets.clone();
        [8, 10, 11].into_iter().for_each(|at| octets.get_mut(at).into_iter().for_each(|octet| *octet = 0));
        octets
    }
}

/// Places by octets.
type Places = BTreeMap<Vec<u8>, Vec<usize>>;

/// The places of what was sent, and of what was received.
fn by_octets(sightings: &[Captured]) -> (Places, Places) {
    let (mut sent, mut received) = (Places::new(), Places::new());
    for (place, sighting) in sightings.iter().enumerate() {
        let places = if sighting.fate == Fate::Sent { &mut sent } else { &mut received };
        places.entry(sighting.lasting()).or_default().push(place);
    }
    (sent, received)
}

fn differ_by_one_bit(one: &Captured, other: &Captured) -> bool {
    let (one, other) = (one.lasting(), other.lasting());
    let bits = || one.iter().zip(&other).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    one.len() == other.len() && bits() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Time;
    use hol_wire::sctp;

    /// Chunks that differ in their number; the router takes one from the time to live.
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

    fn sent(ms: u64, number: u32) -> Captured {
        let (time, octets) = (Time::from_millis(ms), packet(number));
        Captured { time, interface: 0, fate: Fate::Sent, octets }
    }

    fn received(ms: u64, number: u32) -> Captured {
        let mut sighting = Captured { interface: 1, fate: Fate::Received, ..sent(ms, number) };
        sighting.octets[8] -= 1;
        sighting.octets[10] += 1;
        sighting
    }

    #[test]
    fn what_was_overtaken_is_lost_and_what_may_still_arrive_is_not() {
        let sightings =
            vec![sent(0, 1), sent(1, 2), sent(2, 3), received(10, 1), received(12, 3), sent(13, 4)];
        let judged = judged(sightings);
        let lost: Vec<_> = judged.iter().filter(|s| s.fate == Fate::Lost).map(|s| s.time).collect();
        assert_eq!(lost, [Time::from_millis(1)]);
        assert_eq!((judged[1].fate, judged[2].fate), (Fate::Sent, Fate::Lost));
    }

    #[test]
    fn of_equal_copies_the_one_that_had_the_time_arrived() {
        let sightings = [sent(0, 1), sent(5, 2), received(10, 1), sent(20, 2), sent(28, 2), received(30, 2)];
        let journeys = Journeys::of(&sightings);
        assert_eq!(journeys, Journeys(BTreeMap::from([(2, 0), (5, 3)])));
        assert_eq!(journeys.lost(&sightings), [1]);
    }

    #[test]
    fn a_packet_with_a_flipped_bit_is_corrupted_and_not_lost() {
        let mut damaged = received(12, 2);
        damaged.octets[24] ^= 4;
        let fates = judged(vec![sent(1, 1), sent(2, 2), received(11, 1), damaged]);
        let fates: Vec<_> = fates.iter().map(|sighting| sighting.fate).collect();
        assert_eq!(fates, [Fate::Sent, Fate::Sent, Fate::Received, Fate::Corrupted]);
    }
}
