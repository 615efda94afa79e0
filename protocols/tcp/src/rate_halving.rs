//! Rate halving, as in Linux until 3.2: while the window is being reduced, every second acknowledgment
//! reduces it by a segment.

use crate::recovery_phase::Phase;
use crate::{Endpoint, RateHalving};

/// The state of one window reduction by rate halving.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RateReduction {
    /// Number of acknowledgments that have arrived during this reduction.
    acknowledgments: u32,
}

impl Endpoint {
    /// Handles an acknowledgment during a reduction: every second one reduces cwnd by a segment, and each allows
    /// at most one segment to be sent. Linux 2.6.16: net/ipv4/tcp_input.c tcp_cwnd_down, net/ipv4/tcp_cong.c
    /// tcp_reno_min_cwnd, net/ipv4/tcp_bic.c bictcp_min_cwnd.
    pub(crate) fn halve_rate(&mut self) {
        let (quantum, ssthresh) = (self.cwnd.quantum(), self.cwnd.ssthresh());
        let floor = if self.config.rate_halving == RateHalving::ToSsthresh { ssthresh } else { ssthresh / 2 };
        let mut window = self.cwnd.cwnd();
        self.episode.halving.acknowledgments += 1;
        if self.episode.halving.acknowledgments.is_multiple_of(2) && window > floor {
            window -= quantum;
        }
        self.cwnd.set_cwnd(window.min(self.in_flight() + quantum));
    }

    /// Ends the reduction: cwnd becomes at most ssthresh. Linux 2.6.16: net/ipv4/tcp_input.c tcp_complete_cwr.
    pub(crate) fn finish_halving(&mut self) {
        self.cwnd.set_cwnd(self.cwnd.cwnd().min(self.cwnd.ssthresh()));
    }

    /// Limits the congestion window so that an acknowledgment that indicates a loss or reordering allows only a
    /// few segments. Linux 2.6.16: net/ipv4/tcp_input.c tcp_moderate_cwnd, called by tcp_try_to_open, by
    /// tcp_undo_cwr and in the Loss state of tcp_fastretrans_alert.
    pub(crate) fn moderate_window(&mut self) {
        let segments = self.config.cwnd_moderation;
        if segments > 0 && !self.cwnd.is_rate_based() {
            let max = self.in_flight() + segments * self.cwnd.quantum();
            self.cwnd.set_cwnd(self.cwnd.cwnd().min(max));
        }
    }

    /// Counts the octets that `ack` newly acknowledges, if the window grows by octets. Does not count while the
    /// window is being reduced, or after a timeout. Linux 2.6.16: net/ipv4/tcp_input.c tcp_ack, line 2453.
    pub(crate) fn count_octets(&mut self, ack: hol_wire::tcp::SeqNum) {
        if self.config.byte_counting && self.episode.phase() < Phase::Reduced {
            self.cwnd.count_octets(ack.distance_from(self.snd.una()));
        }
    }
}
