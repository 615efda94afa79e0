//! Finds packets that a capture has twice: at both ports of a bridge, at the interface and the one below it.

use std::collections::{BTreeMap, VecDeque};

use super::sight::{Says, Sight};
use crate::copies::Fingerprint;

/// So long a packet is remembered, in ns, if its identification tells it from what is sent again (RFC 6864 section 4.3).
const IDENTIFIED: u64 = 1_000_000_000;
/// Without one, what comes again so soon has not been sent again. RFC 9293 section 3.8.1: that takes a round trip at least.
const UNIDENTIFIED: u64 = 1_000_000;
/// Packets that are remembered.
const MOST: usize = 1 << 16;

/// The packets of late.
#[derive(Debug, Default)]
pub(crate) struct Twice {
    seen: BTreeMap<Fingerprint, u64>,
    order: VecDeque<(u64, Fingerprint)>,
    /// Packets that had been seen.
    pub repeats: u64,
}

impl Twice {
    /// Returns whether this packet, seen at this time, is one that has just been seen.
    pub fn is_repeat(&mut self, at: u64, ip: &[u8], sight: &Sight) -> bool {
        while let Some(&(before, print)) = self.order.front()
            && (before + IDENTIFIED < at || self.order.len() >= MOST)
        {
            self.order.pop_front();
            if self.seen.get(&print) == Some(&before) {
                self.seen.remove(&print);
            }
        }
        let is_identified = ip[0] >> 4 == 4 && ip.get(4..6).is_some_and(|number| number != [0, 0]);
        // Datagrams may be alike.
        if !is_identified && !matches!(sight.says, Says::Numbered(_)) {
            return false;
        }
        let Some(print) = Fingerprint::of(ip) else { return false };
        let patience = if is_identified { IDENTIFIED } else { UNIDENTIFIED };
        if self.seen.get(&print).is_some_and(|before| at.saturating_sub(*before) <= patience) {
            self.repeats += 1;
            return true;
        }
        self.seen.insert(print, at);
        self.order.push_back((at, print));
        false
    }
}
