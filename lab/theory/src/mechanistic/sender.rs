//! The sending end of a channel: detects losses by acknowledgements and timers.

use std::collections::VecDeque;

use crate::{Recovery, Transfer};

/// A packet that is unacknowledged, or that was sent after an unacknowledged one.
struct Packet {
    /// The time of the packet's last transmission.
    sent: u64,
    /// The first new packet sent after the last transmission of this packet. Only acknowledgments of that packet and
    /// later ones count as reports that this packet is missing.
    first_counted: usize,
    reports: u32,
    /// Whether the packet was retransmitted because of acknowledgments, not of a timeout.
    fast: bool,
    resent: bool,
    /// Whether the packet has been acknowledged.
    acknowledged: bool,
}

/// The purpose of a sender's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimerPurpose {
    Retransmission,
    /// The timer is for a tail loss probe (RFC 8985 section 7).
    Probe,
    /// The timer is for the reordering window of RACK (RFC 8985 section 6.2).
    Reordering,
}

/// The sending end of a channel. Packets are numbered from 0.
pub(super) struct Sender {
    recovery: Recovery,
    round_trip: u64,
    rto: u64,
    rto_max: u64,
    window_start: usize,
    window: VecDeque<Packet>,
    /// The number of entries of the receiver's log that acknowledgments have reported to the sender.
    reports_known: usize,
    timeouts: u32,
    /// The acknowledged packet that was sent last: its time of transmission and its number, which orders packets sent
    /// at the same time.
    latest_acknowledged: (u64, usize),
    timer: Option<(u64, TimerPurpose)>,
    newly_set: bool,
}

impl Sender {
    /// Creates the sender of a channel with the settings of `transfer`.
    pub fn new(transfer: &Transfer) -> Self {
        let round_trip = transfer.round_trip();
        let (rto, rto_max) = match transfer.recovery {
            Recovery::Ideal { .. } => (u64::MAX / 4, u64::MAX / 4),
            Recovery::Sctp { rto_min, .. } => (round_trip.max(rto_min.as_nanos()), 60_000_000_000),
            Recovery::TcpDupThresh { rto_min } | Recovery::TcpRack { rto_min } => {
                (round_trip + rto_min.as_nanos(), 120_000_000_000)
            }
        };
        Self {
            recovery: transfer.recovery,
            round_trip,
            rto,
            rto_max,
            window_start: 0,
            window: VecDeque::new(),
            reports_known: 0,
            timeouts: 0,
            latest_acknowledged: (0, 0),
            timer: None,
            newly_set: false,
        }
    }

    /// Sends a new packet; returns its number.
    pub fn send(&mut self, now: u64) -> usize {
        let number = self.window_start + self.window.len();
        let mark = number + 1;
        let packet = Packet {
            sent: now,
            first_counted: mark,
            reports: 0,
            fast: false,
            resent: false,
            acknowledged: false,
        };
        self.window.push_back(packet);
        if self.timer.is_none() {
            self.restart(now);
        }
        if self.may_probe() {
            self.set_probe(now);
        }
        number
    }

    /// Returns the new deadline of the timer; `None` if the timer was not set since the last call.
    pub fn take_new_deadline(&mut self) -> Option<u64> {
        let newly_set = std::mem::take(&mut self.newly_set);
        self.timer.filter(|_| newly_set).map(|(deadline, _)| deadline)
    }

    /// Handles an acknowledgment that reports `log`; returns the packets to retransmit.
    pub fn acknowledge(&mut self, now: u64, log: &[usize]) -> Vec<usize> {
        let news = &log[self.reports_known.min(log.len())..];
        self.reports_known = self.reports_known.max(log.len());
        let Some(highest) = news.iter().copied().max() else { return Vec::new() };
        for number in news {
            let packet = &mut self.window[number - self.window_start];
            packet.acknowledged = true;
            self.latest_acknowledged = self.latest_acknowledged.max((packet.sent, *number));
            if !packet.resent {
                // A packet that was sent only once is a new RTT sample and ends the back-off (Karn).
                self.timeouts = 0;
            }
        }
        let before = self.window_start;
        while self.window.front().is_some_and(|packet| packet.acknowledged) {
            self.window.pop_front();
            self.window_start += 1;
        }
        if self.window_start > before {
            self.restart(now);
        }
        let lost = self.take_lost(now, highest);
        self.send_again(now, &lost, true);
        if self.may_probe() {
            self.set_probe(now);
        }
        lost
    }

    /// Handles the expiry of the timer, unless it was set again; returns the packets to retransmit.
    pub fn handle_timer(&mut self, now: u64) -> Vec<usize> {
        let Some((_, alarm)) = self.timer.filter(|(deadline, _)| *deadline == now) else { return Vec::new() };
        match alarm {
            TimerPurpose::Reordering => {
                self.restart(now);
                let lost = self.take_lost(now, 0);
                self.send_again(now, &lost, true);
                lost
            }
            TimerPurpose::Probe => {
                let last = self.window_start + self.window.len() - 1;
                self.restart(now);
                self.send_again(now, &[last], false);
                vec![last]
            }
            TimerPurpose::Retransmission => {
                self.timeouts += 1;
                let missing: Vec<usize> = self.missing_packets().collect();
                self.restart(now);
                self.send_again(now, &missing, false);
                missing
            }
        }
    }

    fn missing_packets(&self) -> impl Iterator<Item = usize> {
        let open = self.window.iter().enumerate().filter(|(_, packet)| !packet.acknowledged);
        open.map(|(at, _)| self.window_start + at)
    }

    /// Returns the packets that are lost according to acknowledgments; `highest` is the highest newly acknowledged
    /// packet.
    fn take_lost(&mut self, now: u64, highest: usize) -> Vec<usize> {
        match self.recovery {
            Recovery::Ideal { reports } => self.count_missing_reports(highest, reports, false),
            Recovery::Sctp { again, .. } => self.count_missing_reports(highest, 3, again),
            Recovery::TcpDupThresh { .. } => {
                let beyond = self.third_highest_acknowledged();
                self.missing_packets()
                    .filter(|n| *n < beyond && !self.window[n - self.window_start].resent)
                    .collect()
            }
            Recovery::TcpRack { .. } => self.take_overtaken(now),
        }
    }

    /// Counts missing reports for every unacknowledged packet below `highest` (RFC 9260 section 7.2.4); returns the
    /// packets to retransmit.
    fn count_missing_reports(&mut self, highest: usize, reports: u32, again: bool) -> Vec<usize> {
        let mut lost = Vec::new();
        for (at, packet) in
            self.window.iter_mut().enumerate().take_while(|(at, _)| self.window_start + at < highest)
        {
            if !packet.acknowledged && highest >= packet.first_counted && (again || !packet.fast) {
                packet.reports += 1;
                if packet.reports >= reports {
                    lost.push(self.window_start + at);
                }
            }
        }
        lost
    }

    /// Returns the third highest acknowledged packet, or 0. Missing packets below it count as lost, because three later
    /// packets have arrived (RFC 6675).
    fn third_highest_acknowledged(&self) -> usize {
        let acknowledged = self.window.iter().enumerate().rev().filter(|(_, packet)| packet.acknowledged);
        acknowledged.map(|(at, _)| self.window_start + at).nth(2).unwrap_or(0)
    }

    /// Returns the packets that count as lost: they were sent before one that has arrived, and the time since is at
    /// least a round trip and the reordering window (RFC 8985 section 6.2). Sets the timer for packets that may count
    /// as lost later.
    fn take_overtaken(&mut self, now: u64) -> Vec<usize> {
        let settled = self.window.iter().any(|packet| packet.resent && !packet.acknowledged)
            || self.third_highest_acknowledged() > 0;
        let wait = self.round_trip + if settled { 0 } else { self.round_trip / 4 };
        let suspects: Vec<(usize, u64)> = self
            .missing_packets()
            .map(|number| (number, self.window[number - self.window_start].sent))
            .filter(|(number, sent)| (*sent, *number) < self.latest_acknowledged)
            .collect();
        if let Some(due) = suspects.iter().map(|(_, sent)| sent + wait).filter(|due| *due > now).min() {
            self.set_timer(due, TimerPurpose::Reordering);
        }
        suspects.into_iter().filter(|(_, sent)| sent + wait <= now).map(|(number, _)| number).collect()
    }

    fn send_again(&mut self, now: u64, numbers: &[usize], fast: bool) {
        let mark = self.window_start + self.window.len();
        for number in numbers {
            let packet = &mut self.window[number - self.window_start];
            (packet.sent, packet.first_counted, packet.reports) = (now, mark, 0);
            packet.resent = true;
            packet.fast |= fast;
        }
        if fast && numbers.first() == Some(&self.window_start) {
            self.restart(now);
        }
    }

    /// Restarts the retransmission timer, or stops it if no packet is outstanding.
    fn restart(&mut self, now: u64) {
        if self.window.is_empty() {
            self.timer = None;
        } else {
            let rto = self.rto.saturating_mul(1 << self.timeouts.min(20)).min(self.rto_max.max(self.rto));
            self.set_timer(now + rto, TimerPurpose::Retransmission);
        }
    }

    fn set_timer(&mut self, deadline: u64, alarm: TimerPurpose) {
        self.timer = Some((deadline, alarm));
        self.newly_set = true;
    }

    /// Returns whether a tail loss probe may be sent: no packet is known to be missing, and none was retransmitted.
    fn may_probe(&self) -> bool {
        matches!(self.recovery, Recovery::TcpRack { .. })
            && !self.window.is_empty()
            && self.window.iter().all(|packet| !packet.acknowledged && !packet.resent)
    }

    /// Sets the timer of the tail loss probe to two round trips after the last transmission, plus 200 ms for a single
    /// packet, but not later than the RTO.
    fn set_probe(&mut self, now: u64) {
        let single = if self.window.len() == 1 { 200_000_000 } else { 0 };
        let probe = now + 2 * self.round_trip + single;
        let timeout = self.window[0].sent + self.rto;
        if probe < timeout {
            self.set_timer(probe, TimerPurpose::Probe);
        } else {
            self.set_timer(timeout.max(now), TimerPurpose::Retransmission);
        }
    }
}
