//! Round trips that the latency spin bit of QUIC shows. RFC 9000 section 17.4, RFC 9312 section 3.8.2.
//!
//! The server reflects the bit of the client, which inverts that of the server. So each side changes its bit once per round trip, in turns,
//! and the time from a change of one side to the next of the other is a round trip between the capture point and the other side. It includes
//! queues and the time that hosts wait before they send.

use super::capture_clock::measured_delay;

/// The spin bits of a connection; side 0 is the client. Times are in ns.
#[derive(Debug, Default)]
pub(crate) struct SpinBits {
    /// The spin bit of each side after its latest change; `None` before the side's first packet.
    values: [Option<bool>; 2],
    /// The latest change of a spin bit.
    latest: Option<Change>,
    /// For each side, the times from a change of the other side's bit to the next change of this side's bit, in order.
    delays: [Vec<u64>; 2],
    /// Number of changes that followed the rules: the server reflects the client's bit, and the client then inverts it.
    changes: u64,
    /// Number of changes that are ambiguous, because a packet with an unexpected bit followed.
    ambiguous: u64,
}

/// A change of a side's spin bit.
#[derive(Debug, Clone, Copy)]
struct Change {
    side: usize,
    /// When the change was captured; `None` if the change is ambiguous.
    at: Option<u64>,
    /// The time since the change of the other side's bit, if known.
    delay: Option<u64>,
}

/// Minimum number of changes for an estimate. Hosts that disable the spin bit may send random bits (RFC 9000 section
/// 17.4), some of which change as if they spun.
const MIN_CHANGES: u64 = 12;

/// Minimum number of changes for each ambiguous change; with fewer, the bits do not spin. Of random changes about a
/// third are ambiguous.
const CHANGES_FOR_EACH_AMBIGUOUS: u64 = 8;

/// Maximum number of round trips that are stored.
const MAX_DELAYS: usize = 100_000;

impl SpinBits {
    /// Handles a packet with a short header that `side` sent.
    pub fn handle_packet(&mut self, at: u64, side: usize, bit: bool) {
        let Some(former) = self.values[side] else {
            self.values[side] = Some(bit);
            return;
        };
        if bit == former {
            return;
        }
        let Some(other) = self.values[1 - side] else {
            self.values[side] = Some(bit);
            return;
        };
        // The client may change its bit after the server has reflected it, the server while they differ.
        let is_turn = (former == other) == (side == 0);
        if !is_turn {
            // Either this packet or the one that changed the bit was overtaken.
            if let Some(latest) = self.latest.as_mut().filter(|latest| latest.at.is_some()) {
                self.ambiguous += 1;
                (latest.at, latest.delay) = (None, None);
            }
            return;
        }
        self.confirm();
        self.changes += 1;
        let since = self.latest.filter(|latest| latest.side != side).and_then(|latest| latest.at);
        let delay = since.and_then(|since| measured_delay(since, at));
        self.latest = Some(Change { side, at: Some(at), delay });
        self.values[side] = Some(bit);
    }

    /// Stores the delay of the latest change, to which the other side has reacted.
    fn confirm(&mut self) {
        if let Some(Change { side, delay: Some(delay), .. }) = self.latest
            && self.delays[side].len() < MAX_DELAYS
        {
            self.delays[side].push(delay);
        }
    }

    /// Returns the times from a change of the other side's bit to the next change of this side's bit; none if the bits
    /// do not spin.
    pub fn delays(&self, side: usize) -> &[u64] {
        let does_spin = self.changes >= MIN_CHANGES
            && self.ambiguous.saturating_mul(CHANGES_FOR_EACH_AMBIGUOUS) <= self.changes;
        if does_spin { &self.delays[side] } else { &[] }
    }

    /// Returns the shortest time between a packet of this side and the reply of the other side.
    pub fn shortest_reply_time(&self, side: usize) -> Option<u64> {
        self.delays(1 - side).iter().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends `packets` of (ms, side, bit).
    fn spin(packets: &[(u64, usize, u8)]) -> SpinBits {
        let mut bits = SpinBits::default();
        packets.iter().for_each(|(at, side, bit)| bits.handle_packet(at * MS, *side, *bit == 1));
        bits
    }

    /// A client that sends every 5 ms, 2 ms from the capture point, and a server 18 ms behind it that answers each packet.
    fn connection() -> Vec<(u64, usize, u8)> {
        let bit_of_client = |ms: u64| ((ms + 2) / 40 % 2) as u8;
        let mut packets: Vec<(u64, usize, u8)> = (0..100).map(|k| (5 * k, 0, bit_of_client(5 * k))).collect();
        packets.extend((0..100).map(|k| (5 * k + 36, 1, bit_of_client(5 * k))));
        packets.sort();
        packets
    }

    #[test]
    fn changes_are_a_round_trip_apart() {
        let bits = spin(&connection());
        assert!(bits.delays(1).len() >= 10);
        assert!(bits.delays(1).iter().all(|delay| *delay == 36 * MS), "{:?}", bits.delays(1));
        // The client sends every 5 ms, so it changes its bit up to 5 ms late.
        assert!(bits.delays(0).iter().all(|delay| (4 * MS..=9 * MS).contains(delay)), "{:?}", bits.delays(0));
    }

    /// A packet with the former bit that arrives up to 10 ms after the change must not look like the next change.
    #[test]
    fn overtaken_packets_give_no_short_round_trips() {
        let all = connection();
        let has_changed = |(at, side, bit): (u64, usize, u8)| {
            all.iter()
                .any(|before| (at - 10..at).contains(&before.0) && (before.1, before.2) == (side, 1 - bit))
        };
        let changed = all.iter().enumerate().skip(10).filter(|(_, packet)| has_changed(**packet));
        for (place, (at, side, bit)) in changed.map(|(place, packet)| (place, *packet)) {
            let mut packets = all.clone();
            packets.insert(place + 1, (at, side, 1 - bit));
            let bits = spin(&packets);
            assert!(bits.delays(1).len() >= 8, "{place}");
            assert!(bits.delays(1).iter().all(|delay| *delay == 36 * MS), "{place}: {:?}", bits.delays(1));
            assert!(bits.delays(0).iter().all(|delay| *delay >= 4 * MS), "{place}: {:?}", bits.delays(0));
        }
    }

    /// RFC 9000 section 17.4: hosts that disable the spin bit send a constant or random values.
    #[test]
    fn disabled_bits_give_no_round_trips() {
        let mut random = hol_base::Seed(7).rng();
        let mut sent = |is_random: [bool; 2]| {
            let packets: Vec<_> = connection()
                .into_iter()
                .map(|(at, side, bit)| (at, side, if is_random[side] { random.below(2) as u8 } else { bit }))
                .collect();
            let bits = spin(&packets);
            [0, 1].map(|side| bits.delays(side).len())
        };
        for is_random in [[true, true], [true, false], [false, true]] {
            assert_eq!(sent(is_random), [0, 0], "{is_random:?}");
        }
        let constant: Vec<_> = connection().into_iter().map(|(at, side, _)| (at, side, 1)).collect();
        assert_eq!(spin(&constant).shortest_reply_time(0), None);
    }
}
