//! Finds packets that a capture contains twice, for example at both ports of a bridge.

use std::collections::{BTreeMap, VecDeque};

use super::parsed_packet::{ParsedPacket, TransportContent};
use crate::packets_in_flight::Fingerprint;

/// The time in ns for which a packet is remembered if its identification distinguishes it from retransmissions (RFC 6864 section 4.3).
const IDENTIFIED_TIME: u64 = 1_000_000_000;
/// The time in ns for which a packet without identification is remembered. A retransmission takes at least a round trip: RFC 9293 section
/// 3.8.1.
const UNIDENTIFIED_TIME: u64 = 1_000_000;
/// Maximum number of remembered packets.
const MAX_PACKETS: usize = 1 << 16;

/// The packets captured recently.
#[derive(Debug, Default)]
pub(crate) struct DuplicateFilter {
    seen_at: BTreeMap<Fingerprint, u64>,
    /// The known packets with the time of each in ns, oldest first.
    order: VecDeque<(u64, Fingerprint)>,
    /// Number of packets that had been captured before.
    pub repeats: u64,
}

impl DuplicateFilter {
    /// Returns whether this packet, captured at time `at`, is a duplicate of one captured shortly before.
    pub fn is_duplicate(&mut self, at: u64, ip: &[u8], parsed_packet: &ParsedPacket) -> bool {
        while let Some(&(before, print)) = self.order.front()
            && (at.saturating_sub(before) > IDENTIFIED_TIME || self.order.len() >= MAX_PACKETS)
        {
            self.order.pop_front();
            if self.seen_at.get(&print) == Some(&before) {
                self.seen_at.remove(&print);
            }
        }
        let is_identified = ip[0] >> 4 == 4 && ip.get(4..6).is_some_and(|number| number != [0, 0]);
        // Equal datagrams may be different packets.
        if !is_identified && !matches!(parsed_packet.content, TransportContent::Numbered(_)) {
            return false;
        }
        let Some(print) = Fingerprint::from_packet(ip) else { return false };
        let memory = if is_identified { IDENTIFIED_TIME } else { UNIDENTIFIED_TIME };
        if self.seen_at.get(&print).is_some_and(|before| at.saturating_sub(*before) <= memory) {
            self.repeats += 1;
            return true;
        }
        self.seen_at.insert(print, at);
        self.order.push_back((at, print));
        false
    }
}
