//! Processes an acknowledgment. RFC 9293 section 3.10.7.4, fifth.

use hol_base::{Duration, Time};
use hol_congestion::RoundTripSample;
use hol_wire::tcp::{Flags, Segment, SeqNum};

use crate::Endpoint;
use crate::ack_info::AckInfo;
use crate::resend::RecoveryTransmission;

impl Endpoint {
    /// Processes an acceptable ACK field and the SACK blocks of a segment.
    pub(crate) fn process_ack(&mut self, now: Time, segment: &Segment) {
        let ack = segment.ack;
        let mut info = AckInfo {
            prior_una: self.snd.una(),
            carried_data: segment.sequence_length() > 0,
            ..AckInfo::default()
        };
        if self.cwnd.is_rate_based() {
            info.prior_in_flight = self.in_flight();
        }
        if ack.before(self.snd.una()) {
            return self.old_ack(now, segment, info);
        }
        info.advanced = ack.after(self.snd.una());
        if info.advanced {
            self.episode.timeouts.reset();
            self.count_octets(ack);
        }
        info.window_updated = self.snd.update_window(segment);
        if self.snd.window_is_closed() {
            // A window that has shrunk to zero is probed by retransmissions, as long as the peer answers. RFC 9293 section 3.8.6.
            self.episode.timeouts.reset();
        }
        info.echoes = self.marks.is_mark_echo(segment);
        if self.marks.on_reduction_report(segment.flags) && info.carried_data {
            // A sender that has reduced its window may wait for this acknowledgment.
            self.acks.make_immediate_if(true);
        }
        if !info.advanced && info.carried_data && !info.echoes && segment.options.sack.is_empty() {
            self.take_marks(segment, &mut info);
            return;
        }
        let prior_highest = if self.negotiated.uses_sack() {
            self.board.highest_sacked(self.snd.una())
        } else {
            self.snd.una()
        };
        let prior_sacked = self.board.sacked().segments;
        self.snd.acknowledge(ack);
        if self.negotiated.uses_sack() && !segment.options.sack.is_empty() {
            self.mark_sacked_segments(now, segment, &mut info);
        }
        if self.board.len() == 0 {
            if info.dsack {
                self.process_dubious_ack(now, &mut info);
            }
            self.take_marks(segment, &mut info);
            self.persist_or_stop(now);
            self.on_probe_acknowledged(ack, &info);
            return;
        }
        if self.config.grows_when_full {
            info.prior_in_flight = self.in_flight();
        }
        self.take_acknowledged(now, prior_highest, prior_sacked, &mut info);
        self.take_marks(segment, &mut info);
        self.update_after_ack(now, ack, &mut info);
    }

    /// Processes the ACK field of a segment that newer ones have overtaken. Its SACK blocks may still be new.
    fn old_ack(&mut self, now: Time, segment: &Segment, mut info: AckInfo) {
        if self.negotiated.uses_sack() && !segment.options.sack.is_empty() {
            info.carried_data = true;
            self.mark_sacked_segments(now, segment, &mut info);
            self.cwnd.count_delivered(info.delivered);
            let resend = self.process_dubious_ack(now, &mut info);
            self.transmit_in_recovery(now, resend);
        }
    }

    /// Updates loss recovery, timer and congestion window after an acknowledgment, in this order; then sends what
    /// recovery allows.
    fn update_after_ack(&mut self, now: Time, ack: SeqNum, info: &mut AckInfo) {
        self.widen_reordering_window(info);
        self.count_marks(info);
        self.on_probe_acknowledged(ack, info);
        let mut resend = RecoveryTransmission::Nothing;
        let lost = self.board.losses();
        if info.is_dubious() || !self.episode.is_open() {
            resend = self.process_dubious_ack(now, info);
        }
        if info.restarts_timer && !self.schedule_loss_probe(now, true) {
            self.rearm_retransmission(now);
        }
        info.newly_lost = self.board.losses() - lost;
        self.control_window(now, info);
        self.update_rate();
        self.transmit_in_recovery(now, resend);
    }

    /// Removes the segments below SND.UNA from the scoreboard, and takes a round-trip sample from them.
    fn take_acknowledged(&mut self, now: Time, prior_highest: SeqNum, prior_sacked: u32, info: &mut AckInfo) {
        let unit = self.config.congestion_unit;
        let mut reordered = self.snd.nxt();
        while let Some(segment) = self.board.pop_acknowledged(self.snd.una()) {
            info.acked_segments += 1;
            if segment.ever_resent {
                info.resent_acked = true;
            } else if !segment.sacked {
                info.first_acked.get_or_insert(segment.sent);
                info.last_acked = Some(segment.sent);
                reordered = if segment.seq.before(reordered) { segment.seq } else { reordered };
                info.original_arrived |= segment.end().at_or_before(self.episode.recover());
            }
            if !segment.sacked {
                self.cwnd.on_segment_delivered(segment.departure.as_deref(), segment.sent);
            }
            if self.negotiated.uses_sack() && !segment.sacked {
                info.delivered += segment.size_in(unit);
                info.delivered_octets += segment.payload.len() as u32;
                let spurious = segment.ever_resent && self.timestamps.echoes_before(segment.sent);
                if !spurious {
                    self.advance_rack(now, &segment);
                }
            }
            let syn = segment.flags.contains(Flags::SYN);
            info.syn_acked |= syn;
            info.data_acked |= !syn;
        }
        info.reneged = self.board.front().is_some_and(|first| first.sacked) && self.negotiated.uses_sack();
        let sampled = self.sample_round_trip(now, info);
        if info.acknowledges_data() {
            info.restarts_timer = true;
            if self.negotiated.uses_sack() {
                if reordered.before(prior_highest) {
                    self.note_reordering(reordered, prior_highest);
                }
            } else {
                // Without SACK the retransmission may have arrived, and the other data before it. Linux:
                // tcp_clean_rtx_queue.
                info.original_arrived &= !info.resent_acked;
                self.deduct_covered_duplicates(prior_sacked, info);
            }
        } else if let (true, Some(first), Some(oldest)) = (sampled, info.first_sacked, self.board.front()) {
            // Data sent after the latest copy of the oldest segment do not restart the timer, otherwise SACKs could
            // postpone the timeout throughout recovery.
            info.restarts_timer = first < oldest.sent;
        }
    }

    /// Takes a round-trip time sample (RTTM) from data that were never retransmitted (Karn's algorithm), from
    /// SACK, or from the timestamp echo. RFC 7323 section 4.1.
    fn sample_round_trip(&mut self, now: Time, info: &mut AckInfo) -> bool {
        let since = |at: Time| now.since(at);
        let mut sample = info.first_acked.filter(|_| !info.resent_acked).map(since);
        let mut latest = info.last_acked.filter(|_| !info.resent_acked).map(since);
        if let Some(sacked) = info.last_sacked {
            latest = Some(since(sacked));
        }
        sample = sample.or(info.first_sacked.map(since));
        if sample.is_none() && info.acknowledges_data() {
            sample = self.timestamps.round_trip(now);
            latest = sample;
        }
        let Some(sample) = sample else { return false };
        let latest: Duration = latest.unwrap_or(sample);
        info.rtt = Some(latest);
        self.rtt.observe_min(latest);
        self.rtt.sample(sample, self.snd.una(), self.snd.nxt());
        let (acknowledged, sent) = self.snd.progress();
        self.cwnd.on_rtt(RoundTripSample { now, rtt: latest, acknowledged, sent });
        true
    }

    /// Increases the congestion window after an acknowledgment, or continues its reduction. RFC 5681 section 3.1,
    /// RFC 6937.
    fn control_window(&mut self, now: Time, info: &AckInfo) {
        if self.cwnd.is_rate_based() {
            return self.report_delivery(now, info);
        }
        if self.episode.phase().is_reducing() {
            self.reduce_window(info.delivered, info.newly_lost, info.advanced);
            return;
        }
        let reordering = self.episode.reordering.dupthresh() > self.config.dupthresh && info.data_sacked;
        if !(info.data_acked || reordering) {
            return;
        }
        if self.was_cwnd_limited(info.prior_in_flight) {
            if self.config.byte_counting {
                self.cwnd.grow_by_octets(self.negotiated.mss());
                return self.usage.on_window_changed(now);
            }
            let max = if self.config.one_segment_per_ack { self.cwnd.quantum() } else { u32::MAX };
            self.cwnd.on_ack(now, info.delivered.min(max));
        }
        self.usage.on_window_changed(now);
    }
}
