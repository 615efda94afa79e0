//! Finds packets that a capture contains twice, for example at both ports of a bridge.

use std::collections::{BTreeMap, VecDeque};

use super::captured_ip::IpHeader;
use crate::packets_in_flight::Fingerprint;

/// The time in ns for which a packet is remembered if its identification distinguishes it from retransmissions (RFC 6864 section 4.3).
const IDENTIFIED_TIME: u64 = 1_000_000_000;
/// The time in ns for which a packet without identification is remembered. A retransmission takes at least a round trip: RFC 9293 section
/// 3.8.1.
const UNIDENTIFIED_TIME: u64 = 1_000_000;
/// Length of a TCP header in octets, and of an SCTP header with a DATA chunk's header up to its TSN.
const NUMBERED_OCTETS: usize = 20;
/// Maximum number of remembered packets.
const MAX_PACKETS: usize = 1 << 16;

/// What identifies a packet: its fingerprint, and the position of a fragment.
type Print = (Fingerprint, Option<u32>);

/// Recognizes packets that were captured shortly before.
#[derive(Debug, Default)]
pub(crate) struct DuplicateFilter {
    seen_at: BTreeMap<Print, u64>,
    /// The known packets with the time of each in ns, oldest first.
    order: VecDeque<(u64, Print)>,
    /// Number of packets that had been captured before.
    pub repeats: u64,
}

impl DuplicateFilter {
    /// Returns whether this packet, captured at time `at`, is a duplicate of one captured shortly before.
    pub fn is_duplicate(&mut self, at: u64, ip: &[u8], header: &IpHeader) -> bool {
        while let Some(&(before, print)) = self.order.front()
            && (at.saturating_sub(before) > IDENTIFIED_TIME || self.order.len() >= MAX_PACKETS)
        {
            self.order.pop_front();
            if self.seen_at.get(&print) == Some(&before) {
                self.seen_at.remove(&print);
            }
        }
        let is_ipv4 = ip[0] >> 4 == 4;
        // RFC 8200 section 4.5: fragments of IPv6 have an identification.
        let is_identified = if is_ipv4 { ip.get(4..6) != Some(&[0, 0]) } else { header.fragment.is_some() };
        // Equal datagrams may be different packets, and a part of a transport header does not distinguish segments.
        let numbered = (header.length as usize).min(header.octets + NUMBERED_OCTETS);
        let is_numbered = matches!(header.protocol, 6 | 132) && ip.len() >= numbered;
        if !is_identified && !is_numbered {
            return false;
        }
        let Some(print) = Fingerprint::from_packet(ip) else { return false };
        let print = (print, header.fragment.map(|fragment| fragment.offset));
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
