//! Restores lost packets from parity.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_rtp::ParseError;
use hol_rtp::parity::{self, ReedSolomonPayload};
use hol_rtp::ulpfec::UlpfecPayload;

use super::Fec;
use super::extended_counter::ExtendedCounter;

/// Restores lost media packets. It stores only recent packets and groups, because older packets would be too late to be
/// played.
#[derive(Debug)]
pub(super) struct FecDecoder {
    fec: Fec,
    sequence: ExtendedCounter<16>,
    /// Received or restored packets of the medium, by sequence number.
    packets: BTreeMap<u64, Bytes>,
    /// Groups, by the sequence number of their first packet.
    groups: BTreeMap<u64, Group>,
}

/// A group of packets that are protected together, with its parity packets.
#[derive(Debug)]
struct Group {
    /// Number of sequence numbers from the first to the last media packet of the group.
    span: u8,
    /// SSRC of the media packets in the group.
    source: u32,
    /// The payloads of the group's received parity packets.
    parities: Vec<Bytes>,
}

impl FecDecoder {
    /// Maximum number of stored media packets, which is more than the longest group.
    const MAX_PACKETS: usize = 1024;
    const MAX_GROUPS: usize = 64;

    /// Creates a decoder without packets.
    pub(super) fn new(fec: Fec) -> Self {
        let (packets, groups) = (BTreeMap::new(), BTreeMap::new());
        Self { fec, sequence: ExtendedCounter::default(), packets, groups }
    }

    /// Adds a received media packet; returns the packets that can now be restored.
    pub(super) fn add_media_packet(&mut self, sequence: u16, packet: Bytes) -> Vec<Bytes> {
        let Some(sequence) = self.sequence.extend_and_update(sequence.into()) else { return Vec::new() };
        self.packets.insert(sequence, packet);
        if self.packets.len() > Self::MAX_PACKETS {
            self.packets.pop_first();
        }
        self.groups
            .range(..=sequence)
            .next_back()
            .map(|(first, _)| *first)
            .map_or(Vec::new(), |first| self.restore(first))
    }

    /// Adds a received parity packet; returns the packets that can now be restored.
    pub(super) fn add_parity_packet(
        &mut self,
        source: u32,
        payload: Bytes,
    ) -> Result<Vec<Bytes>, ParseError> {
        let (first, span) = match self.fec {
            Fec::ReedSolomon(_) => {
                ReedSolomonPayload::read(&payload).map(|parity| (parity.first, parity.code.k()))
            }
            Fec::Ulp { .. } => UlpfecPayload::read(&payload).map(|it| (it.first, it.span())),
        }?;
        let Some(first) = self.sequence.extend(first.into()) else { return Ok(Vec::new()) };
        let group = self.groups.entry(first).or_insert_with(|| Group { span, source, parities: Vec::new() });
        group.parities.push(payload);
        if self.groups.len() > Self::MAX_GROUPS {
            self.groups.pop_first();
        }
        Ok(self.restore(first))
    }

    /// Restores the missing packets of a group if enough of its packets have arrived; returns the restored packets.
    fn restore(&mut self, first: u64) -> Vec<Bytes> {
        let Some(group) = self.groups.get(&first) else { return Vec::new() };
        let received = self.packets.range(first..first + u64::from(group.span));
        let received: Vec<(u8, &[u8])> =
            received.map(|(at, packet)| ((at - first) as u8, &packet[..])).collect();
        if received.len() == usize::from(group.span) {
            return Vec::new();
        }
        let restored: Vec<(u64, Bytes)> = group
            .restore_packets(self.fec, &received)
            .into_iter()
            .map(|(place, packet)| (first + u64::from(place), Bytes::from(packet)))
            .collect();
        self.packets.extend(restored.iter().cloned());
        restored.into_iter().map(|(_, packet)| packet).collect()
    }
}

impl Group {
    /// Returns the restored packets of a group, each with its position in the group.
    fn restore_packets(&self, fec: Fec, received: &[(u8, &[u8])]) -> Vec<(u8, Vec<u8>)> {
        let payloads = self.parities.iter();
        match fec {
            Fec::ReedSolomon(_) => {
                let parities: Vec<ReedSolomonPayload<'_>> =
                    payloads.filter_map(|payload| ReedSolomonPayload::read(payload).ok()).collect();
                parity::restore_packets(received, &parities).unwrap_or_default()
            }
            Fec::Ulp { .. } => {
                let mut protections = payloads.filter_map(|payload| UlpfecPayload::read(payload).ok());
                protections.find_map(|it| it.restore_packet(received, self.source)).into_iter().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_rtp::Header;
    use hol_rtp::parity::ParityCode;

    const SOURCE: u32 = 7;
    const ULP: Fec = Fec::Ulp { k: 3 };

    fn reed_solomon() -> Fec {
        Fec::ReedSolomon(ParityCode::new(3, 5).unwrap())
    }

    fn group(fec: Fec, first: u16) -> (Vec<Bytes>, Vec<Bytes>) {
        let packet = |place: u8| {
            let sequence = first.wrapping_add(place.into());
            let header = Header { payload_type: 14, marker: false, sequence, timestamp: 1, source: SOURCE };
            [&header.octets()[..], &vec![place; 10 + usize::from(place)]].concat()
        };
        let packets: Vec<Vec<u8>> = (0..3).map(packet).collect();
        let parities = fec.parity_payloads(first, &packets).into_iter().map(Bytes::from).collect();
        (packets.into_iter().map(Bytes::from).collect(), parities)
    }

    /// Returns a decoder that has received packets up to sequence number 65,534.
    fn before_the_wrap(fec: Fec) -> FecDecoder {
        let mut repair = FecDecoder::new(fec);
        for sequence in (0..65_535).step_by(1000).chain([65_534]) {
            assert!(repair.add_media_packet(sequence, Bytes::from_static(b"before")).is_empty());
        }
        repair
    }

    #[test]
    fn the_last_packet_restores_a_missing_one_exactly_once() {
        let (packets, parities) = group(reed_solomon(), 65_535);
        let mut repair = before_the_wrap(reed_solomon());
        assert!(repair.add_parity_packet(SOURCE, parities[0].clone()).unwrap().is_empty());
        assert!(repair.add_parity_packet(SOURCE, parities[1].clone()).unwrap().is_empty());
        assert_eq!(repair.add_media_packet(0, packets[1].clone()), [packets[0].clone(), packets[2].clone()]);
        assert!(repair.add_media_packet(65_535, packets[0].clone()).is_empty(), "it comes after all");
        assert!(repair.add_parity_packet(SOURCE, Bytes::from_static(b"none")).is_err());
    }

    /// RFC 5109 section 9.
    #[test]
    fn ulpfec_restores_the_only_missing_packet() {
        let (packets, parities) = group(ULP, 65_535);
        let mut repair = before_the_wrap(ULP);
        assert!(repair.add_parity_packet(SOURCE, parities[0].clone()).unwrap().is_empty());
        assert!(repair.add_media_packet(1, packets[2].clone()).is_empty(), "two are missing");
        assert_eq!(repair.add_media_packet(65_535, packets[0].clone()), [packets[1].clone()]);
        assert!(repair.add_media_packet(0, packets[1].clone()).is_empty(), "it comes after all");
        assert!(repair.add_parity_packet(SOURCE, Bytes::from_static(b"none")).is_err());
    }

    #[test]
    fn complete_group_restores_nothing() {
        for fec in [reed_solomon(), ULP] {
            let (packets, parities) = group(fec, 0);
            let mut repair = FecDecoder::new(fec);
            for (sequence, packet) in (0..).zip(packets) {
                assert!(repair.add_media_packet(sequence, packet).is_empty());
            }
            assert!(
                parities
                    .into_iter()
                    .all(|parity| repair.add_parity_packet(SOURCE, parity).unwrap().is_empty())
            );
        }
    }
}
