//! An acknowledgment arrives: what it tells, and what follows. RFC 9293 section 3.10.7.4, fifth.

use hol_base::{Duration, Time};
use hol_congestion::Round;
use hol_wire::tcp::{Flags, Segment, SeqNum};

use crate::recover::Resend;
use crate::scoreboard::SentSegment;
use crate::{CongestionUnit, Endpoint};

/// What one acknowledgment told.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// SND.UNA before it.
    pub(crate) prior_una: SeqNum,
    /// SND.UNA moved.
    pub(crate) advanced: bool,
    /// The segment carried data, SYN or FIN.
    pub(crate) carried_data: bool,
    pub(crate) window_updated: bool,
    /// Data, or the SYN, is newly acknowledged.
    pub(crate) data_acked: bool,
    pub(crate) syn_acked: bool,
    /// Some of it had been retransmitted.
    pub(crate) resent_acked: bool,
    /// Data that was never retransmitted arrived although recovery had begun.
    pub(crate) original_arrived: bool,
    /// It echoes a mark: congestion. RFC 3168 section 6.1.2.
    pub(crate) echoes: bool,
    /// Something is newly reported by SACK.
    pub(crate) data_sacked: bool,
    /// A retransmission was needless (D-SACK).
    pub(crate) dsack: bool,
    /// And it was the loss probe.
    pub(crate) dsack_of_probe: bool,
    /// A retransmission turned out to be lost.
    pub(crate) lost_retransmission: bool,
    /// The segment at SND.UNA had been reported before: the peer forgot it.
    pub(crate) reneged: bool,
    /// The retransmission timer starts over.
    pub(crate) restart_timer: bool,
    /// What left the network, in units of the window.
    pub(crate) delivered: u32,
    pub(crate) acked_segments: u32,
    /// What is newly taken for lost, in segments.
    pub(crate) newly_lost: u32,
    /// What was in flight before it, where the congestion controller wants to know.
    pub(crate) prior_in_flight: u32,
    /// The latest round trip that it gives.
    pub(crate) rtt: Option<Duration>,
    first_acked: Option<Time>,
    last_acked: Option<Time>,
    pub(crate) first_sacked: Option<Time>,
    pub(crate) last_sacked: Option<Time>,
}

impl News {
    /// Neither new data, nor a new window, nor data in it: a duplicate. RFC 5681 section 2.
    pub(crate) fn is_duplicate(&self) -> bool {
        !(self.carried_data || self.window_updated || self.acked())
    }

    pub(crate) fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    /// It acknowledges up to `una` one segment below `mss`, once sent, and nothing else: it may have been delayed.
    pub(crate) fn is_runt(&self, una: SeqNum, mss: u32) -> bool {
        let alone = self.acked_segments == 1 && self.data_acked && !self.data_sacked;
        alone && !self.resent_acked && una.distance_from(self.prior_una) < mss
    }

    fn is_dubious(&self) -> bool {
        self.is_duplicate() || self.data_sacked || self.dsack || self.echoes
    }
}

/// What `segment` counts in the unit of the congestion window.
pub(crate) fn weight(segment: &SentSegment, unit: CongestionUnit) -> u32 {
    match unit {
        CongestionUnit::Packets => 1,
        CongestionUnit::Bytes => segment.length(),
    }
}

impl Endpoint {
    /// Processes the ACK field, which is acceptable, and the SACK blocks.
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
        self.take_acknowledged(now, prior_highest, prior_sacked, &mut news);
        self.react(now, ack, &mut news);
        self.announce_space();
    }

    /// An ACK that others have overtaken may still carry news.
    fn old_ack(&mut self, now: Time, segment: &Segment, mut news: News) {
        if self.agreed.sack() && !segment.options.sack.is_empty() {
            news.carried_data = true;
            self.tag(now, segment, &mut news);
            self.cwnd.count_delivered(news.delivered);
            let resend = self.alert(now, &mut news);
            self.resend_by(now, resend);
        }
    }

    /// Recovery, timer, window, in this order; then what recovery lets out.
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
        self.resend_by(now, resend);
    }

    /// Takes what SND.UNA covers off the scoreboard, and a round-trip sample with it.
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
                news.delivered += weight(&segment, unit);
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

    /// RTTM: from data never retransmitted (Karn), from SACK, or from the echo. RFC 7323 section 4.1.
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

    /// The window grows, or is on its way down. RFC 5681 section 3.1, RFC 6937.
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
        if self.window_is_used() {
            let most = if self.config.one_segment_per_ack { self.cwnd.quantum() } else { u32::MAX };
            self.cwnd.on_ack(now, news.delivered.min(most));
        }
        self.usage.on_window_changed(now);
    }
}
