//! Parity packets: a group has k packets and n − k parity packets, and any k of these n restore all k packets.
//!
//! Packets of different lengths are padded as in RFC 6363 section 5.4: each is preceded by its length and followed by
//! zeros. A parity packet identifies its group by the first sequence number, as in RFC 5109 section 7.3, so the packets
//! themselves need no change.

use crate::{ParseError, erasure};

/// A parity code: the number of packets per group, without and with parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParityCode {
    k: u8,
    n: u8,
}

impl ParityCode {
    /// Maximum number of packets in a group, including its parity packets.
    pub const MAX_PACKETS: u16 = erasure::MAX_SYMBOLS - 1;

    /// Creates a code of `k` packets and `n - k` parity packets per group; `None` unless both numbers are at least 1.
    pub const fn new(k: u8, n: u8) -> Option<Self> {
        if k == 0 || k >= n { None } else { Some(Self { k, n }) }
    }

    /// Returns the number of packets per group without parity.
    pub const fn k(self) -> u8 {
        self.k
    }

    /// Returns the number of packets per group including parity.
    pub const fn n(self) -> u8 {
        self.n
    }
}

/// A Reed-Solomon parity payload that has been parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReedSolomonPayload<'p> {
    /// The sequence number of the first packet of the group.
    pub first: u16,
    /// The code of the group; the last group of a stream may be shorter.
    pub code: ParityCode,
    position: u8,
    symbol: &'p [u8],
}

/// Length of the header in octets: the first sequence number, k, n and the packet's place among the n.
const HEADER_LENGTH: usize = 5;
const LENGTH_FIELD_OCTETS: usize = 2;

/// Number of octets by which a parity payload is longer than the longest packet of its group.
pub const OVERHEAD: usize = HEADER_LENGTH + LENGTH_FIELD_OCTETS;

/// Returns the parity payloads of a group, whose packets are in the order of their sequence numbers, from `first` on.
/// Returns as many payloads as `code` defines, however many packets the group has.
///
/// # Panics
/// If the group has more packets than the code, or a packet of 64 KiB or more.
pub fn build_payloads(first: u16, group: &[Vec<u8>], code: ParityCode) -> impl Iterator<Item = Vec<u8>> {
    let k = u8::try_from(group.len()).ok().filter(|k| *k <= code.k).expect("a group has at most k packets");
    let n = k + (code.n - code.k);
    let octets = LENGTH_FIELD_OCTETS + group.iter().map(Vec::len).max().unwrap_or(0);
    let symbols: Vec<Vec<u8>> = group.iter().map(|packet| padded(packet, octets)).collect();
    (k..n).map(move |place| {
        let known: Vec<(u8, &[u8])> = (0..k).zip(symbols.iter().map(Vec::as_slice)).collect();
        let [high, low] = first.to_be_bytes();
        [&[high, low, k, n, place], &erasure::compute_symbol(&known, place)[..]].concat()
    })
}

fn padded(packet: &[u8], octets: usize) -> Vec<u8> {
    let length = u16::try_from(packet.len()).expect("a packet has less than 64 KiB").to_be_bytes();
    let mut symbol = [&length, packet].concat();
    symbol.resize(octets, 0);
    symbol
}

impl<'p> ReedSolomonPayload<'p> {
    /// Parses a payload.
    ///
    /// # Errors
    /// If the payload is too short, or if it names an invalid code, or a place that no parity packet has.
    pub fn read(payload: &'p [u8]) -> Result<Self, ParseError> {
        let (&[high, low, k, n, place], symbol) = payload
            .split_first_chunk::<HEADER_LENGTH>()
            .ok_or(ParseError("a parity packet has no header"))?;
        let code =
            ParityCode::new(k, n).filter(|_| (k..n).contains(&place) && symbol.len() >= LENGTH_FIELD_OCTETS);
        let code = code.ok_or(ParseError("a parity packet names an invalid group"))?;
        Ok(Self { first: u16::from_be_bytes([high, low]), code, position: place, symbol })
    }
}

/// Restores the missing packets of a group, and returns them with their places; `None` as long as too few packets
/// have been received. `received` maps places to received packets.
pub fn restore_packets(
    received: &[(u8, &[u8])],
    parities: &[ReedSolomonPayload<'_>],
) -> Option<Vec<(u8, Vec<u8>)>> {
    let ReedSolomonPayload { code, symbol, .. } = parities.first()?;
    let k = usize::from(code.k);
    if received.len() + parities.len() < k {
        return None;
    }
    let octets = symbol.len();
    let alike = parities.iter().filter(|parity| parity.code == *code && parity.symbol.len() == octets);
    // A packet or payload that does not fit belongs to another group.
    let fits =
        |(place, packet): &&(u8, &[u8])| *place < code.k && packet.len() + LENGTH_FIELD_OCTETS <= octets;
    let symbols: Vec<(u8, Vec<u8>)> =
        received.iter().filter(fits).map(|(place, packet)| (*place, padded(packet, octets))).collect();
    let mut known: Vec<(u8, &[u8])> = symbols.iter().map(|(place, symbol)| (*place, &symbol[..])).collect();
    known.extend(alike.map(|parity| (parity.position, parity.symbol)));
    known.sort_by_key(|(place, _)| *place);
    known.dedup_by_key(|(place, _)| *place);
    known.truncate(k);
    let is_missing = |place: &u8| known.iter().all(|(known, _)| known != place);
    let restore = |place: u8| Some((place, remove_padding(erasure::compute_symbol(&known, place))?));
    (known.len() == k).then(|| (0..code.k).filter(is_missing).filter_map(restore).collect())
}

/// Returns the packet in a symbol, without padding; `None` if the symbol is invalid.
fn remove_padding(mut symbol: Vec<u8>) -> Option<Vec<u8>> {
    let length = u16::from_be_bytes(*symbol.first_chunk()?);
    symbol.drain(..LENGTH_FIELD_OCTETS);
    (symbol.len() >= usize::from(length)).then(|| {
        symbol.truncate(length.into());
        symbol
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn code_needs_data_and_parity_packets() {
        assert_eq!([ParityCode::new(0, 2), ParityCode::new(3, 3), ParityCode::new(4, 3)], [None; 3]);
        assert!(ParityCode::new(254, 255).is_some());
    }

    #[test]
    fn header_identifies_its_group() {
        let group = [vec![1, 2, 3], vec![4]];
        let payload = build_payloads(0x1234, &group, ParityCode::new(5, 7).unwrap()).last().unwrap();
        assert_eq!(
            (&payload[..HEADER_LENGTH], payload.len()),
            (&[0x12, 0x34, 2, 4, 3][..], HEADER_LENGTH + LENGTH_FIELD_OCTETS + 3)
        );
        let parity = ReedSolomonPayload::read(&payload).unwrap();
        assert_eq!(
            (parity.first, parity.code.k(), parity.code.n()),
            (0x1234, 2, 4),
            "the last group is shorter"
        );
        assert!(
            ReedSolomonPayload::read(&payload[..6]).is_err()
                && ReedSolomonPayload::read(&[0, 0, 2, 4, 1, 0, 0]).is_err()
        );
    }

    fn group() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..12)
    }

    proptest! {
        #[test]
        fn any_k_packets_restore_the_group(
            group in group(),
            parity in 1u8..6,
            order in Just((0..20_usize).collect::<Vec<_>>()).prop_shuffle(),
            lacking in 0usize..2,
        ) {
            let k = group.len();
            let payloads: Vec<Vec<u8>> = build_payloads(7, &group, ParityCode::new(12, 12 + parity).unwrap()).collect();
            let kept: Vec<usize> = order.into_iter().filter(|at| *at < k + usize::from(parity)).take(k - lacking).collect();
            let received: Vec<(u8, &[u8])> = kept.iter().filter(|at| **at < k).map(|at| (*at as u8, &group[*at][..])).collect();
            let parities: Vec<ReedSolomonPayload<'_>> = kept.iter().filter(|at| **at >= k).map(|at| ReedSolomonPayload::read(&payloads[*at - k]).unwrap()).collect();
            match restore_packets(&received, &parities) {
                None => prop_assert!(lacking > 0 || parities.is_empty()),
                Some(missing) => {
                    prop_assert_eq!(lacking, 0);
                    prop_assert_eq!(missing.len(), k - received.len());
                    prop_assert!(missing.iter().all(|(place, packet)| *packet == group[usize::from(*place)]));
                }
            }
        }

        #[test]
        fn any_octets_restore_something_or_nothing(payloads: Vec<Vec<u8>>, packets: Vec<(u8, Vec<u8>)>) {
            let parities: Vec<ReedSolomonPayload<'_>> = payloads.iter().filter_map(|payload| ReedSolomonPayload::read(payload).ok()).collect();
            let received: Vec<(u8, &[u8])> = packets.iter().map(|(place, packet)| (*place, &packet[..])).collect();
            drop(restore_packets(&received, &parities));
        }
    }
}
