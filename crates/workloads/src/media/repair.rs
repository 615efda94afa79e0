//! Packets that were lost, restored with parity.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_rtp::Malformed;
use hol_rtp::parity::{self, Parity};

use super::unwrapped::Unwrapped;

/// The packets and the groups that may still be of use; what is older is too late for any buffer.
#[derive(Debug, Default)]
pub(super) struct Repair {
    sequence: Unwrapped<16>,
    /// By the sequence number.
    packets: BTreeMap<u64, Bytes>,
    /// By the sequence number of the first packet.
    groups: BTreeMap<u64, Group>,
}

#[derive(Debug)]
struct Group {
    k: u8,
    /// The payloads of its parity.
    parities: Vec<Bytes>,
}

impl Repair {
    /// More than the longest group.
    const PACKETS: usize = 1024;
    const GROUPS: usize = 64;

    /// A packet of the medium has come; those that it restores, if it is the last that its group needs.
    pub(super) fn medium(&mut self, sequence: u16, packet: Bytes) -> Vec<Bytes> {
        let Some(sequence) = self.sequence.see(sequence.into()) else { return Vec::new() };
        self.packets.insert(sequence, packet);
        if self.packets.len() > Self::PACKETS {
            self.packets.pop_first();
        }
        self.groups
            .range(..=sequence)
            .next_back()
            .map(|(first, _)| *first)
            .map_or(Vec::new(), |first| self.restore(first))
    }

    /// Parity has come; the packets that it restores.
    pub(super) fn parity(&mut self, payload: Bytes) -> Result<Vec<Bytes>, Malformed> {
        let Parity { first, code, .. } = Parity::read(&payload)?;
        let Some(first) = self.sequence.near(first.into()) else { return Ok(Vec::new()) };
        let group = self.groups.entry(first).or_insert_with(|| Group { k: code.k(), parities: Vec::new() });
        group.parities.push(payload);
        if self.groups.len() > Self::GROUPS {
            self.groups.pop_first();
        }
        Ok(self.restore(first))
    }

    /// What is missing of a group, if enough of it is there.
    fn restore(&mut self, first: u64) -> Vec<Bytes> {
        let Some(Group { k, parities }) = self.groups.get(&first) else { return Vec::new() };
        let come = self.packets.range(first..first + u64::from(*k));
        let come: Vec<(u8, &[u8])> = come.map(|(at, packet)| ((at - first) as u8, &packet[..])).collect();
        if come.len() == usize::from(*k) || come.len() + parities.len() < usize::from(*k) {
            return Vec::new();
        }
        let parities: Vec<Parity<'_>> =
            parities.iter().filter_map(|payload| Parity::read(payload).ok()).collect();
        let restored: Vec<(u64, Bytes)> = parity::restored(&come, &parities)
            .into_iter()
            .flatten()
            .map(|(place, packet)| (first + u64::from(place), Bytes::from(packet)))
            .collect();
        self.packets.extend(restored.iter().cloned());
        restored.into_iter().map(|(_, packet)| packet).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_rtp::parity::Code;

    fn group(first: u16) -> (Vec<Bytes>, Vec<Bytes>) {
        let packets: Vec<Vec<u8>> =
            (0..3_u8).map(|place| vec![place.wrapping_add(first as u8); 10 + usize::from(place)]).collect();
        let parities = parity::payloads(first, &packets, Code::new(3, 5).unwrap()).map(Bytes::from).collect();
        (packets.into_iter().map(Bytes::from).collect(), parities)
    }

    #[test]
    fn whatever_comes_last_restores_what_is_missing_and_that_once() {
        let (packets, parities) = group(65_535);
        let mut repair = Repair::default();
        for sequence in (0..65_535).step_by(1000).chain([65_534]) {
            assert!(repair.medium(sequence, Bytes::from_static(b"before")).is_empty());
        }
        assert!(repair.parity(parities[0].clone()).unwrap().is_empty());
        assert!(repair.parity(parities[1].clone()).unwrap().is_empty());
        assert_eq!(repair.medium(0, packets[1].clone()), [packets[0].clone(), packets[2].clone()]);
        assert!(repair.medium(65_535, packets[0].clone()).is_empty(), "it comes after all");
        assert!(repair.parity(Bytes::from_static(b"none")).is_err());
    }

    #[test]
    fn a_group_that_is_whole_needs_nothing() {
        let (packets, parities) = group(0);
        let mut repair = Repair::default();
        for (sequence, packet) in (0..).zip(packets) {
            assert!(repair.medium(sequence, packet).is_empty());
        }
        assert!(parities.into_iter().all(|parity| repair.parity(parity).unwrap().is_empty()));
    }
}
