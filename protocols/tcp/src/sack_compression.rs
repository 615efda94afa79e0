//! SACK compression: out-of-order segments share acknowledgments, so that a burst after a hole does not
//! cause a burst of SACKs. Linux since 4.18; RFC 5681 section 4.2 requires an immediate acknowledgment of
//! each.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

use crate::Endpoint;

/// Number of out-of-order segments that are acknowledged at once while RCV.NXT does not change; enough
/// for a fast retransmit.
const IMMEDIATE_ACKS: u32 = 3;

/// Counts out-of-order segments that wait for a common acknowledgment.
#[derive(Debug, Clone, Default)]
pub(crate) struct AckCompression {
    /// Number of out-of-order segments that wait for a common acknowledgment.
    waiting_segments: u32,
    /// Number of segments that were acknowledged at once since RCV.NXT has been `nxt`.
    at_once: u32,
    nxt: SeqNum,
}

impl AckCompression {
    /// Records that an acknowledgment was sent, which covers the waiting segments.
    pub(crate) fn on_ack_sent(&mut self) {
        self.waiting_segments = 0;
    }

    /// Counts an out-of-order segment that arrives while `nxt` (RCV.NXT) is missing; returns whether it
    /// must be acknowledged at once.
    pub(crate) fn on_segment(&mut self, nxt: SeqNum, max: u32) -> bool {
        if self.waiting_segments >= max {
            return true;
        }
        if self.nxt != nxt {
            (self.nxt, self.at_once) = (nxt, 0);
        }
        if self.at_once < IMMEDIATE_ACKS {
            self.at_once += 1;
            return true;
        }
        self.waiting_segments += 1;
        false
    }
}

impl Endpoint {
    /// Acknowledges an out-of-order segment, now or together with later ones.
    pub(crate) fn acknowledge_out_of_order(&mut self, now: Time) {
        let max = self.config.sack_compression;
        if !self.negotiated.uses_sack() || self.acks.on_segment_out_of_order(self.rcv.nxt(), max) {
            self.send_ack(now);
        } else {
            self.timers.start_compressed_ack(now, self.compression_delay());
        }
    }

    fn compression_delay(&self) -> Duration {
        let measured = self.sizing.round_trip().unwrap_or_default();
        let round_trip = self.rtt.srtt().map_or(measured, |srtt| srtt.min(measured));
        let share = round_trip * u64::from(self.config.sack_compression_percent) / 100;
        share.min(self.config.sack_compression_max) + self.config.sack_compression_slack
    }
}
