//! The rules of a flow's start, stall and end, the same in every world.
//!
//! A driver reports events to a [`Flow`], with the [`FlowProgress`] of its two applications, and asks for its next deadline. A flow uses no
//! endpoint, no socket and no clock.

use std::borrow::Cow;

use hol_base::{Duration, Time};
use hol_measure::RecordKind;
use hol_quic::MessageMapping;
use hol_stack::{Protocol, TransportSpec};
use hol_udp::SipTransaction;
use hol_workloads::{AbortReason, Progress, WorkloadSpec};

use crate::RunEnd;

/// The minimum time from the last scheduled message to the end of a flow with a late limit.
const MIN_GRACE: Duration = Duration::from_secs(120);
/// A flow that sends datagrams ends when nothing has been delivered for this long after its last datagram.
const FINAL_SILENCE: Duration = Duration::from_secs(10);
/// A run has stalled if nothing is delivered for this many times the maximum retransmission timeout, unless the transport takes longer to
/// detect that the connection has failed.
const TIMEOUTS_UNTIL_STALL: u64 = 3;
/// The timeout of UDP, which has no retransmission timer: the time after which a SIP transaction fails (RFC 3261 table 4).
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(32);

/// The timeout of QUIC connections without an idle timeout: the maximum retransmission timeout of TCP on Linux.
const QUIC_TIMEOUT_WITHOUT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// The parameters that decide when a flow ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowLimits {
    start: Time,
    connect_timeout: Option<Duration>,
    /// The time without a delivery after which the flow has stalled.
    stall_timeout: Duration,
    /// The time from the last scheduled message until the flow ends; `None` if there is no limit.
    grace: Option<Duration>,
    /// The time without a delivery that ends the flow normally once every message is due; `None` if no message can be
    /// lost unnoticed.
    silence: Option<Duration>,
    has_replies: bool,
    /// Whether a message counts as settled once the transport abandons it. Not for frames: a frame can be complete although one
    /// of its packets was abandoned.
    settles_abandoned: bool,
}

/// The progress of a flow's two applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowProgress {
    messages_due: u64,
    messages_done: u64,
    last_due_time: Option<Time>,
    is_all_due: bool,
    waits_for_reply: bool,
}

/// The state of one flow: when it starts, whether it has stalled, and how it ended.
#[derive(Debug, Clone)]
pub struct Flow {
    limits: FlowLimits,
    /// Connections that the client has requested, including those that have closed.
    requested: u32,
    /// Number of requested connections that have opened.
    open: u32,
    /// When all connections were open; `None` before.
    connected: Option<Time>,
    /// Messages that the transport reported as abandoned.
    abandoned: u64,
    /// The time of the last delivery, or of the first message after an idle period.
    last_progress: Time,
    run_end: Option<RunEnd>,
}

/// Returns the longest time without a reply after which a transport reports that the connection has failed: the flow waits for that report.
/// Each timeout is twice the previous one; the first is that of a connection without an RTT sample.
fn time_to_failure(transport: &TransportSpec) -> Duration {
    let after = |first: Duration, max: Duration, timeouts: u32| {
        let timeout = |count: u32| first.saturating_mul(1 << count.min(40)).min(max);
        (0..=timeouts).map(timeout).fold(max, |sum, timeout| sum + timeout)
    };
    match transport.protocol() {
        Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. } if config.user_timeout.is_zero() => {
            after(config.rto_initial, config.rto_max, config.max_retries)
        }
        Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. } => config.user_timeout + config.rto_max,
        Protocol::Sctp { config, .. } => {
            after(config.rto_initial, config.rto_max, config.association_max_retrans)
        }
        Protocol::Quic { .. } | Protocol::Udp { .. } | Protocol::Unix { .. } => Duration::ZERO,
    }
}

impl FlowLimits {
    /// Derives the parameters from a workload and a transport; `start` is the start of the workload on the run's clock.
    pub fn new(workload: &WorkloadSpec, transport: &TransportSpec, start: Time) -> Self {
        let timeout = match transport.protocol() {
            Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. } => config.rto_max,
            Protocol::Sctp { config, .. } => config.rto_max,
            Protocol::Quic { config, .. } if config.idle_timeout.is_zero() => {
                QUIC_TIMEOUT_WITHOUT_IDLE_TIMEOUT
            }
            Protocol::Quic { config, .. } => config.idle_timeout,
            // Neither of them has a retransmission timer.
            Protocol::Udp { .. } | Protocol::Unix { .. } => DATAGRAM_TIMEOUT,
        };
        let retransmissions = timeout * TIMEOUTS_UNTIL_STALL;
        let stall_timeout = retransmissions.max(time_to_failure(transport));
        // SIP and partial reliability report abandoned messages, but not every driver sees the report. These flows get the time that a
        // retransmission may take.
        let silence = match transport.protocol() {
            Protocol::Udp { config } if config.sip == SipTransaction::Off => Some(FINAL_SILENCE),
            Protocol::Quic { mapping: MessageMapping::Datagrams, .. } => Some(FINAL_SILENCE),
            _ => transport.may_lose_messages().then_some(retransmissions),
        };
        Self {
            start,
            connect_timeout: workload.connect_timeout,
            stall_timeout,
            grace: workload.late_limit().map(|limit| limit.max(MIN_GRACE)),
            silence,
            has_replies: workload.has_replies(),
            settles_abandoned: workload.record_kind() != RecordKind::Frame,
        }
    }

    /// Combines the progress of client and server.
    #[inline]
    pub fn combine_progress(&self, client: Progress, server: Progress) -> FlowProgress {
        let Progress { messages_due, last_due_time, is_all_due, waits_for_reply, .. } = client;
        let messages_done = if self.has_replies { client.messages_done } else { server.messages_done };
        FlowProgress { messages_due, messages_done, last_due_time, is_all_due, waits_for_reply }
    }
}

impl Flow {
    /// Creates a flow that has not started.
    pub fn new(limits: FlowLimits) -> Self {
        let last_progress = limits.start;
        Self { limits, requested: 0, open: 0, connected: None, abandoned: 0, last_progress, run_end: None }
    }

    /// Returns the parameters that decide when the flow ends.
    pub const fn limits(&self) -> &FlowLimits {
        &self.limits
    }

    /// Returns when the flow starts.
    pub const fn start_time(&self) -> Time {
        self.limits.start
    }

    /// Returns the time from the start until the client was `connected`.
    pub fn connect_time(&self, connected: Option<Time>) -> Option<Duration> {
        connected.map(|connected| connected.since(self.limits.start))
    }

    /// Returns when every requested connection was open.
    pub const fn connected_at(&self) -> Option<Time> {
        self.connected
    }

    /// Returns why the flow ended; `None` if it has not.
    pub const fn run_end(&self) -> Option<&RunEnd> {
        self.run_end.as_ref()
    }

    /// Returns whether every message was settled: delivered, lost or abandoned.
    pub fn is_finished(&self) -> bool {
        self.run_end == Some(RunEnd::Finished)
    }

    /// Returns whether the flow ended before every message was settled. Its applications must then stop.
    pub fn was_aborted(&self) -> bool {
        self.run_end.as_ref().is_some_and(|why| *why != RunEnd::Finished)
    }

    /// Records that the client requests a connection.
    pub fn note_opening(&mut self) {
        self.requested += 1;
    }

    /// Records that a connection of the client is open.
    pub fn note_opened(&mut self, now: Time) {
        self.open += 1;
        if self.open == self.requested {
            self.connected.get_or_insert(now);
        }
        self.last_progress = now;
    }

    /// Records that the server has accepted a connection.
    pub fn note_accepted(&mut self, now: Time) {
        self.last_progress = now;
    }

    /// Records that the client passes a message to the transport.
    #[inline]
    pub fn note_sending(&mut self, now: Time, tally: FlowProgress) {
        // Any of the messages that may be lost could still be in flight, so the silence begins with the last message.
        let last = self.limits.silence.is_some() && tally.is_all_due;
        if last || self.outstanding_messages(tally) <= 1 {
            self.last_progress = now;
        }
    }

    /// Handles the delivery of a message, which may end the flow.
    #[inline]
    pub fn note_delivery(&mut self, now: Time, tally: FlowProgress) {
        self.last_progress = now;
        self.finish_if_done(tally);
    }

    /// Records that the transport abandoned a message.
    pub fn note_abandoned(&mut self, now: Time, tally: FlowProgress) {
        self.abandoned += u64::from(self.limits.settles_abandoned);
        self.note_delivery(now, tally);
    }

    /// Ends the flow because an application has aborted.
    pub fn end_with_abort(&mut self, now: Time, abort_reason: AbortReason) {
        self.stop(RunEnd::from_abort(abort_reason, now));
    }

    /// Ends the flow because a connection received invalid octets or a system call failed. `reason` uses the terms of the RFC.
    pub fn end_with_failure(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.stop(RunEnd::Failed { reason: reason.into() });
    }

    /// Ends the flow normally.
    pub fn end(&mut self) {
        self.stop(RunEnd::Finished);
    }

    /// Returns when [`check`](Self::check) has to be called next; [`Time::MAX`] after the end of the flow.
    pub fn deadline(&self, tally: FlowProgress) -> Time {
        if self.run_end.is_some() {
            return Time::MAX;
        }
        let stall_timeout = self
            .silence(tally)
            .map_or(self.limits.stall_timeout, |silence| silence.min(self.limits.stall_timeout));
        // A flow without a connection has not stalled: the transport reports when it fails to connect.
        let look = if self.connected.is_some() { self.last_progress + stall_timeout } else { Time::MAX };
        look.min(self.end_of_grace(tally)).min(self.connect_by())
    }

    /// Ends the flow if it has stalled or its time is up.
    pub fn check(&mut self, now: Time, tally: FlowProgress) {
        let outstanding = self.outstanding_messages(tally);
        if let (true, Some(within)) = (now >= self.connect_by(), self.limits.connect_timeout) {
            self.stop(RunEnd::NotConnected { within });
        } else if self.silence(tally).is_some_and(|silence| now >= self.last_progress + silence) {
            self.stop(RunEnd::Finished);
        } else if now >= self.end_of_grace(tally) {
            // Unreliable messages that have not arrived by now count as lost.
            let lossy = self.limits.silence.is_some();
            self.stop(if lossy { RunEnd::Finished } else { RunEnd::OutOfTime { outstanding } });
        } else if self.connected.is_some() && now >= self.last_progress + self.limits.stall_timeout {
            // Lost unreliable messages do not stall a flow whose schedule continues.
            let waits = outstanding > 0 && self.limits.silence.is_none();
            if waits || tally.waits_for_reply {
                self.stop(RunEnd::Stalled { since: self.last_progress, at: now, outstanding });
            } else {
                // No message is in flight: the schedule has long intervals.
                self.last_progress = now;
            }
        }
    }

    /// Ends the flow because no further event can occur.
    pub fn end_with_deadlock(&mut self, now: Time, tally: FlowProgress) {
        let outstanding = self.outstanding_messages(tally);
        self.stop(RunEnd::Stalled { since: self.last_progress, at: now, outstanding });
    }

    fn stop(&mut self, why: RunEnd) {
        self.run_end.get_or_insert(why);
    }

    fn finish_if_done(&mut self, tally: FlowProgress) {
        if tally.is_all_due && self.outstanding_messages(tally) == 0 {
            self.stop(RunEnd::Finished);
        }
    }

    /// Returns the number of messages that are due and not settled.
    fn outstanding_messages(&self, tally: FlowProgress) -> u64 {
        tally.messages_due.saturating_sub(tally.messages_done + self.abandoned)
    }

    /// Returns the length of silence that ends the flow, if every message is due.
    fn silence(&self, tally: FlowProgress) -> Option<Duration> {
        self.limits.silence.filter(|_| tally.is_all_due)
    }

    /// Returns the time by which the flow has to be connected; [`Time::MAX`] if it is connected or there is no limit.
    fn connect_by(&self) -> Time {
        match (self.connected, self.limits.connect_timeout) {
            (None, Some(timeout)) => self.limits.start + timeout,
            _ => Time::MAX,
        }
    }

    fn end_of_grace(&self, tally: FlowProgress) -> Time {
        match (tally.last_due_time, self.limits.grace) {
            (Some(last), Some(grace)) if tally.is_all_due => last + grace,
            _ => Time::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_millis(secs * 1000)
    }

    fn limits(transport: &str, workload: &str) -> FlowLimits {
        FlowLimits::new(&toml::from_str(workload).unwrap(), &transport.parse().unwrap(), Time::ZERO)
    }

    const ONEWAY: &str = "kind = 'oneway'";

    fn tally(messages_due: u64, messages_done: u64, is_all_due: bool) -> FlowProgress {
        FlowProgress {
            messages_due,
            messages_done,
            last_due_time: Some(secs(1)),
            is_all_due,
            waits_for_reply: false,
        }
    }

    /// Returns a connected flow after nine of ten messages.
    fn after_nine(transport: &str, workload: &str) -> (Flow, FlowProgress) {
        let mut flow = Flow::new(limits(transport, workload));
        let tally = tally(10, 9, true);
        flow.note_opening();
        flow.note_opened(Time::ZERO);
        flow.note_delivery(secs(2), tally);
        (flow, tally)
    }

    #[test]
    fn datagram_flow_finishes_after_a_silence() {
        let (mut flow, tally) = after_nine("udp", ONEWAY);
        assert_eq!(flow.deadline(tally), secs(12));
        flow.check(secs(11), tally);
        assert_eq!(flow.run_end(), None);
        flow.check(secs(12), tally);
        assert!(flow.is_finished());
    }

    /// RFC 3758: the sender reports abandoned messages, but a retransmission may take as long as RTO.max before that.
    #[test]
    fn partially_reliable_flow_waits_for_retransmissions_before_it_ends() {
        let (mut flow, tally) = after_nine("sctp:lifetime=100ms", ONEWAY);
        flow.check(secs(100), tally);
        assert_eq!(flow.run_end(), None);
        flow.check(secs(182), tally);
        assert!(flow.is_finished());
        let (mut told, tally) = after_nine("sctp:lifetime=100ms", ONEWAY);
        told.note_abandoned(secs(3), tally);
        assert!(told.is_finished());
    }

    /// Parity may replace a lost packet of a frame: only the receiver can settle a frame.
    #[test]
    fn an_abandoned_packet_does_not_settle_a_frame() {
        let (mut flow, tally) = after_nine("sctp:lifetime=100ms", "kind = 'media'");
        flow.note_abandoned(secs(3), tally);
        assert_eq!(flow.run_end(), None);
        flow.check(secs(183), tally);
        assert!(flow.is_finished());
    }

    /// RFC 768: nothing reports the loss of a datagram.
    #[test]
    fn datagram_silence_starts_at_the_last_datagram() {
        let mut flow = Flow::new(limits("udp", "kind = 'oneway'\ninterval = '200s'"));
        flow.note_opening();
        flow.note_opened(Time::ZERO);
        flow.note_sending(secs(200), tally(1, 0, false));
        flow.check(secs(390), tally(1, 0, false));
        assert_eq!(flow.run_end(), None, "the first was lost");
        flow.note_sending(secs(400), tally(2, 0, true));
        assert_eq!(flow.deadline(tally(2, 0, true)), secs(410));
    }

    #[test]
    fn silent_reliable_flow_has_stalled() {
        let (mut flow, tally) = after_nine("tcp", ONEWAY);
        // 15 timeouts of 1 s, 2 s, 4 s and so on up to RTO.max, 120 s, and a last one that ends the connection.
        flow.check(secs(1328), tally);
        assert_eq!(flow.run_end(), None);
        flow.check(secs(1329), tally);
        let stalled = RunEnd::Stalled { since: secs(2), at: secs(1329), outstanding: 1 };
        assert_eq!(flow.run_end(), Some(&stalled));
    }

    #[test]
    fn waiting_for_a_reply_can_stall_but_a_slow_schedule_cannot() {
        for (waits_for_reply, stalls) in [(true, true), (false, false)] {
            let mut flow = Flow::new(limits("udp", "kind = 'simco'"));
            flow.note_opening();
            flow.note_opened(Time::ZERO);
            let tally = FlowProgress { last_due_time: None, waits_for_reply, ..tally(0, 0, false) };
            assert_eq!(flow.deadline(tally), secs(96));
            flow.check(secs(96), tally);
            assert_eq!(flow.was_aborted(), stalls, "{:?}", flow.run_end());
            if !stalls {
                assert_eq!(flow.deadline(tally), secs(192));
            }
        }
    }

    #[test]
    fn a_connection_that_is_not_open_in_time_ends_the_run() {
        let mut flow = Flow::new(limits("tcp", "kind = 'oneway'\nconnect_timeout = '10s'"));
        let none = FlowProgress { last_due_time: None, ..tally(0, 0, false) };
        flow.note_opening();
        assert_eq!(flow.deadline(none), secs(10));
        flow.check(secs(10), none);
        assert_eq!(flow.run_end(), Some(&RunEnd::NotConnected { within: Duration::from_secs(10) }));
    }

    /// RFC 9260 section 5.1.6: an INIT is retransmitted for four minutes, longer than three times RTO.max.
    #[test]
    fn an_unconnected_flow_has_not_stalled() {
        let mut flow = Flow::new(limits("sctp", ONEWAY));
        let none = FlowProgress { last_due_time: None, ..tally(0, 0, false) };
        flow.note_opening();
        assert_eq!(flow.deadline(none), Time::MAX);
        flow.check(secs(100_000), none);
        assert_eq!(flow.run_end(), None);
    }

    #[test]
    fn only_a_late_limit_ends_a_flow_that_progresses() {
        for (workload, at) in [
            ("kind = 'oneway'\nlate_limit = '1s'", Some(121)),
            ("kind = 'oneway'\nlate_limit = '1h'", Some(3601)),
            (ONEWAY, None),
        ] {
            let (mut flow, tally) = after_nine("tcp", workload);
            (1..=5000).for_each(|second| {
                if flow.run_end().is_none() {
                    flow.note_accepted(secs(second));
                    flow.check(secs(second), tally);
                    assert_eq!(flow.was_aborted(), Some(second) == at, "{workload}: {second} s");
                }
            });
        }
    }

    #[test]
    fn a_flow_is_connected_when_all_initial_connections_are_open() {
        let mut flow = Flow::new(limits("tcp:connections=2", ONEWAY));
        flow.note_opening();
        flow.note_opening();
        flow.note_opened(secs(1));
        assert_eq!(flow.connect_time(flow.connected_at()), None);
        flow.note_opened(secs(2));
        flow.note_opening();
        flow.note_opened(secs(9));
        assert_eq!(flow.connect_time(flow.connected_at()), Some(Duration::from_secs(2)));
    }

    /// A failure reported by the driver ends a flow; the first reason counts.
    #[test]
    fn first_reason_for_the_end_is_kept() {
        let (mut done, _) = after_nine("tcp", ONEWAY);
        assert!(!done.is_finished() && !done.was_aborted());
        done.end();
        done.end_with_failure("it came too late");
        assert!(done.is_finished() && !done.was_aborted());
        let (mut broken, tally) = after_nine("tcp", ONEWAY);
        broken.end_with_failure("the octets make no sense");
        broken.end();
        assert_eq!(broken.run_end(), Some(&RunEnd::Failed { reason: "the octets make no sense".into() }));
        assert!(!broken.is_finished() && broken.was_aborted());
        assert_eq!(broken.deadline(tally), Time::MAX);
        let (mut behind, _) = after_nine("tcp", ONEWAY);
        behind.end_with_abort(secs(5), AbortReason::BehindSchedule { message: 9, scheduled: secs(4) });
        let why = RunEnd::BehindSchedule { message: 9, scheduled: secs(4), at: secs(5) };
        assert_eq!(behind.run_end(), Some(&why));
        let (mut stuck, tally) = after_nine("tcp", ONEWAY);
        stuck.end_with_deadlock(secs(7), tally);
        assert_eq!(stuck.run_end(), Some(&RunEnd::Stalled { since: secs(2), at: secs(7), outstanding: 1 }));
    }

    /// After an idle period the stall timeout begins with the first message, not with later ones.
    #[test]
    fn the_stall_timeout_begins_with_the_first_message_in_flight() {
        let (mut flow, _) = after_nine("tcp", ONEWAY);
        flow.note_sending(secs(100), tally(10, 9, false));
        assert_eq!(flow.deadline(tally(10, 9, false)), secs(1427));
        flow.note_sending(secs(200), tally(11, 9, false));
        assert_eq!(flow.deadline(tally(11, 9, false)), secs(1427), "two are in flight");
        flow.note_sending(secs(300), tally(11, 9, true));
        assert_eq!(flow.deadline(tally(11, 9, true)), secs(1427), "a silence ends only unreliable flows");
    }

    /// At the time limit, unreliable messages count as lost and the flow ends normally; a reliable flow ends as out of time.
    #[test]
    fn late_limit_ends_a_datagram_flow_normally() {
        let workload = "kind = 'oneway'\nlate_limit = '1s'";
        for (transport, well) in [("udp", true), ("tcp", false)] {
            let (mut flow, _) = after_nine(transport, workload);
            // The schedule continues for long, so the flow has not ended.
            let before = tally(20, 9, false);
            flow.note_delivery(secs(125), before);
            flow.check(secs(126), before);
            assert_eq!(flow.run_end(), None, "{transport}");
            flow.check(secs(126), tally(20, 9, true));
            assert_eq!((flow.is_finished(), flow.was_aborted()), (well, !well), "{transport}");
        }
    }

    /// A QUIC flow has stalled after three idle timeouts (RFC 9000 section 10.1); without an idle timeout the maximum RTO of TCP counts.
    #[test]
    fn quic_stalls_after_three_idle_timeouts() {
        let stall_timeout = |transport: &str| limits(transport, ONEWAY).stall_timeout;
        assert_eq!(stall_timeout("quic:idle_timeout=10s"), Duration::from_secs(30));
        assert_eq!(stall_timeout("quic:idle_timeout=0s"), Duration::from_secs(360));
    }

    #[test]
    fn quic_datagrams_are_lost_silently_and_sip_reports_abandoned_messages() {
        let silence = |transport: &str| limits(transport, ONEWAY).silence;
        assert_eq!(silence("quic:datagrams"), Some(FINAL_SILENCE));
        assert_eq!(silence("quic"), None);
        assert_eq!(silence("udp"), Some(FINAL_SILENCE));
        assert_eq!(silence("udp:sip=invite"), Some(DATAGRAM_TIMEOUT * TIMEOUTS_UNTIL_STALL));
    }
}
