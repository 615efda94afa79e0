//! Processes an acknowledgment. RFC 9293 section 3.10.7.4, fifth.

use hol_base::{Duration, Time};
use hol_congestion::Round;
use hol_wire::tcp::{Flags, Segment, SeqNum};

use crate::Endpoint;
use crate::news::News;
use crate::resend::Resend;

impl Endpoint {
    /// Processes an acceptable ACK field, and the SACK blocks.
    pub(crate) fn process_ack(&mut self, now: Time, segment: &Segment) {
        let ack = segment.ack;
        let mut news = News {
            prior_una: self.snd.una(),
            carried_data: segment.sequence_length() > 0,
            ..News::default()
        };
        if self.cwnd.is_rate_based() {
            news.prior_in_flight = self.in_flight();
        }
        if ack.before(self.snd.una()) {
            return self.old_ack(now, segment, news);
        }
        news.advanced = ack.after(self.snd.una());
        if news.advanced {
            self.episode.timeouts.reset();
            self.count_octets(ack);
        }
        news.window_updated = self.snd.update_window(segment);
        if self.snd.window_is_closed() {
            // A window that has shrunk to nothing is probed by what is sent again, as long as the peer answers. RFC 9293
            // section 3.8.6.
            self.episode.timeouts.reset();
        }
        news.echoes = self.marks.hears_echo(segment);
        if self.marks.hears_of_reduction(segment.flags) && news.carried_data {
            // A sender that has reduced its window may wait for this acknowledgment.
            self.acks.hasten(true);
        }
        if !news.advanced && news.carried_data && !news.echoes && segment.options.sack.is_empty() {
            return;
        }
        let prior_highest =
            if self.agreed.sack() { self.board.highest_sacked(self.snd.una()) } else { self.snd.una() };
        let prior_sacked = self.board.sacked().segments;
        self.snd.acknowledge(ack);
        if self.agreed.sack() && !segment.options.sack.is_empty() {
            self.tag(now, segment, &mut news);
        }
        if self.board.len() == 0 {
            if news.dsack {
                self.alert(now, &mut news);
            }
            self.persist_or_stop(now);
            self.probe_acknowledged(ack, &news);
            return;
        }
        if self.config.grows_when_full {
            news.prior_in_flight = self.in_flight();
        }
        self.take_acknowledged(now, prior_highest, prior_sacked, &mut news);
        self.react(now, ack, &mut news);
    }

    /// Processes the ACK field of a reordered segment, whose SACK blocks may still be new.
    fn old_ack(&mut self, now: Time, segment: &Segment, mut news: News) {
        if self.agreed.sack() && !segment.options.sack.is_empty() {
            news.carried_data = true;
            self.tag(now, segment, &mut news);
            self.cwnd.count_delivered(news.delivered);
            let resend = self.alert(now, &mut news);
            self.resend_by(now, resend);
        }
    }

    /// Updates recovery, timer and window, in this order, then sends what recovery allows.
    fn react(&mut self, now: Time, ack: SeqNum, news: &mut News) {
        self.widen_reordering_window(news);
        self.count_marks(news);
        self.probe_acknowledged(ack, news);
        let mut resend = Resend::Nothing;
        let lost = self.board.losses();
        if news.is_dubious() || !self.episode.is_open() {
            resend = self.alert(now, news);
        }
        if news.restart_timer && !self.schedule_loss_probe(now, true) {
            self.rearm_retransmission(now);
        }
        news.newly_lost = self.board.losses() - lost;
        self.control_window(now, news);
        self.update_rate();
        self.resend_by(now, resend);
    }

    /// Removes the segments below SND.UNA from the scoreboard, and takes a round-trip sample from them.
    fn take_acknowledged(&mut self, now: Time, prior_highest: SeqNum, prior_sacked: u32, news: &mut News) {
        let unit = self.config.congestion_unit;
        let mut reordered = self.snd.nxt();
        while let Some(segment) = self.board.pop_acknowledged(self.snd.una()) {
            news.acked_segments += 1;
            if segment.ever_resent {
                news.resent_acked = true;
            } else if !segment.sacked {
                news.first_acked.get_or_insert(segment.sent);
                news.last_acked = Some(segment.sent);
                reordered = if segment.seq.before(reordered) { segment.seq } else { reordered };
                news.original_arrived |= segment.end().at_or_before(self.episode.recover());
            }
            if !segment.sacked {
                self.cwnd.deliver(segment.departure.as_deref(), segment.sent);
            }
            if self.agreed.sack() && !segment.sacked {
                news.delivered += segment.weight(unit);
                let spurious = segment.ever_resent && self.timestamps.echo_before(segment.sent);
                if !spurious {
                    self.advance_rack(now, &segment);
                }
            }
            let syn = segment.flags.contains(Flags::SYN);
            news.syn_acked |= syn;
            news.data_acked |= !syn;
        }
        news.reneged = self.board.front().is_some_and(|first| first.sacked) && self.agreed.sack();
        let sampled = self.sample_round_trip(now, news);
        if news.acked() {
            news.restart_timer = true;
            if self.agreed.sack() {
                if reordered.before(prior_highest) {
                    self.reordering_seen(reordered, prior_highest);
                }
            } else {
                self.duplicates_taken(prior_sacked, news);
            }
        } else if let (true, Some(first), Some(oldest)) = (sampled, news.first_sacked, self.board.front()) {
            // The sample is from data sent after the oldest was (re)sent last: it is not stuck behind a dead path.
            news.restart_timer = first < oldest.sent;
        }
    }

    /// Takes a round-trip sample (RTTM): from data never retransmitted (Karn), from SACK, or from the timestamp echo. RFC 7323 section 4.1.
    fn sample_round_trip(&mut self, now: Time, news: &mut News) -> bool {
        let since = |at: Time| now.since(at);
        let mut sample = news.first_acked.filter(|_| !news.resent_acked).map(since);
        let mut latest = news.last_acked.filter(|_| !news.resent_acked).map(since);
        if let Some(sacked) = news.last_sacked {
            latest = Some(since(sacked));
        }
        sample = sample.or(news.first_sacked.map(since));
        if sample.is_none() && news.acked() {
            sample = self.timestamps.round_trip(now);
            latest = sample;
        }
        let Some(sample) = sample else { return false };
        let latest: Duration = latest.unwrap_or(sample);
        news.rtt = Some(latest);
        self.rtt.observe_min(latest);
        self.rtt.sample(sample, self.snd.una(), self.snd.nxt());
        let (acknowledged, sent) = self.snd.progress();
        self.cwnd.on_rtt(Round { now, rtt: latest, acknowledged, sent });
        true
    }

    /// Increases the window, or continues its reduction. RFC 5681 section 3.1, RFC 6937.
    fn control_window(&mut self, now: Time, news: &News) {
        if self.cwnd.is_rate_based() {
            return self.report_delivery(now, news);
        }
        if self.episode.phase().is_reducing() {
            self.reduce_window(news.delivered, news.newly_lost, news.advanced);
            return;
        }
        let reordering = self.episode.reordering.dupthresh() > self.config.dupthresh && news.data_sacked;
        if !(news.data_acked || reordering) {
            return;
        }
        if self.window_was_used(news.prior_in_flight) {
            if self.config.byte_counting {
                self.cwnd.grow_by_octets(self.agreed.mss());
                return self.usage.on_window_changed(now);
            }
            let most = if self.config.one_segment_per_ack { self.cwnd.quantum() } else { u32::MAX };
            self.cwnd.on_ack(now, news.delivered.min(most));
        }
        self.usage.on_window_changed(now);
    }
}
