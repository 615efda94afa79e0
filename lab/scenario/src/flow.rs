//! When a flow starts, stalls and ends: the only place where that is decided, in any world.
//!
//! A driver tells a [`Flow`] what happens, with the [`Tally`] of its two applications, and asks when to look again. It
//! knows no endpoint, no socket and no clock.

use std::borrow::Cow;

use hol_base::{Duration, Time};
use hol_measure::RecordKind;
use hol_quic::Carriage;
use hol_stack::{Protocol, TransportSpec};
use hol_udp::Sip;
use hol_workloads::{Quit, Standing, WorkloadSpec};

use crate::RunEnd;

/// A workload with a late limit ends after that, but not before this time.
const GRACE: Duration = Duration::from_secs(120);
/// So long a silence at the end settles what datagrams still owe.
const SILENCE: Duration = Duration::from_secs(10);
/// Without a delivery for so many times the longest retransmission timeout a run has stalled, unless the transport takes longer to
/// find that the connection has failed.
const STALLED_TIMEOUTS: u64 = 3;
/// UDP has no timeout of its own; a SIP transaction gives up after 32 s (RFC 3261 table 4).
const TIMEOUT_OF_DATAGRAMS: Duration = Duration::from_secs(32);

/// As long as TCP's on Linux, for a connection of QUIC that never times out.
const TIMEOUT_OF_ENDLESS_IDLE: Duration = Duration::from_secs(120);

/// What the end of a flow depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    start: Time,
    connect_timeout: Option<Duration>,
    /// So long without a delivery is a stall.
    patience: Duration,
    /// So long after the last message was scheduled it ends.
    grace: Option<Duration>,
    /// Messages may be lost without a word: once everything is due, a silence as long as this is an end like any other.
    silence: Option<Duration>,
    has_replies: bool,
    /// A message that the transport gives up is done; a frame may be had without it.
    settles_abandoned: bool,
}

/// How far the applications of a flow have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    due: u64,
    done: u64,
    last_due: Option<Time>,
    all_due: bool,
    awaits_answer: bool,
}

/// The rules of one flow, and what they have to remember.
#[derive(Debug, Clone)]
pub struct Flow {
    terms: Terms,
    /// Connections that the client has asked for, and that are open or were.
    asked: u32,
    open: u32,
    connected: Option<Time>,
    /// Messages that the transport says it gave up.
    abandoned: u64,
    /// The last delivery, or when something got under way after a time with nothing.
    progress: Time,
    stopped: Option<RunEnd>,
}

/// After so long a silence at the most a transport tells that the connection has failed: a run ends with that, and not before. Each
/// timeout is twice the one before, and the first as long as one without a sample.
fn time_to_failure(transport: &TransportSpec) -> Duration {
    let after = |first: Duration, most: Duration, timeouts: u32| {
        let timeout = |count: u32| first.saturating_mul(1 << count.min(40)).min(most);
        (0..=timeouts).map(timeout).fold(most, |sum, timeout| sum + timeout)
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

impl Terms {
    /// What follows from a workload over a transport; `start` is when the run's clock shows its start.
    pub fn of(workload: &WorkloadSpec, transport: &TransportSpec, start: Time) -> Self {
        let timeout = match transport.protocol() {
            Protocol::Tcp { config, .. } | Protocol::Mptcp { config, .. } => config.rto_max,
            Protocol::Sctp { config, .. } => config.rto_max,
            Protocol::Quic { config, .. } if config.idle_timeout.is_zero() => TIMEOUT_OF_ENDLESS_IDLE,
            Protocol::Quic { config, .. } => config.idle_timeout,
            // Neither has a timer.
            Protocol::Udp { .. } | Protocol::Unix { .. } => TIMEOUT_OF_DATAGRAMS,
        };
        let patience = (timeout * STALLED_TIMEOUTS).max(time_to_failure(transport));
        // SIP and partial reliability tell what they give up, but not every driver hears it: they have all the time
        // that a retransmission may take.
        let silence = match transport.protocol() {
            Protocol::Udp { config } if config.sip == Sip::Off => Some(SILENCE),
            Protocol::Quic { carriage: Carriage::Datagrams, .. } => Some(SILENCE),
            _ => transport.gives_up().then_some(patience),
        };
        Self {
            start,
            connect_timeout: workload.connect_timeout,
            patience,
            grace: workload.late_limit().map(|limit| limit.max(GRACE)),
            silence,
            has_replies: workload.has_replies(),
            settles_abandoned: workload.record_kind() != RecordKind::Frame,
        }
    }

    /// What the two sides of the flow say together.
    #[inline]
    pub fn tally(&self, client: Standing, server: Standing) -> Tally {
        let Standing { due, last_due, all_due, awaits_answer, .. } = client;
        let done = if self.has_replies { client.done } else { server.done };
        Tally { due, done, last_due, all_due, awaits_answer }
    }
}

impl Flow {
    /// A flow that has not begun.
    pub fn new(terms: Terms) -> Self {
        let progress = terms.start;
        Self { terms, asked: 0, open: 0, connected: None, abandoned: 0, progress, stopped: None }
    }

    /// What its end depends on.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// When it starts.
    pub const fn start(&self) -> Time {
        self.terms.start
    }

    /// From the start until every connection was open that it had asked for.
    pub fn connect_time(&self) -> Option<Duration> {
        self.connected.map(|connected| connected.since(self.terms.start))
    }

    /// When that was.
    pub const fn connected(&self) -> Option<Time> {
        self.connected
    }

    /// Why it ended, once it has.
    pub const fn stopped(&self) -> Option<&RunEnd> {
        self.stopped.as_ref()
    }

    /// It has ended because everything was done.
    pub fn is_finished(&self) -> bool {
        self.stopped == Some(RunEnd::Finished)
    }

    /// It ended before everything was done: its applications do no more.
    pub fn was_given_up(&self) -> bool {
        self.stopped.as_ref().is_some_and(|why| *why != RunEnd::Finished)
    }

    /// The client asks for a connection.
    pub fn note_opening(&mut self) {
        self.asked += 1;
    }

    /// A connection of the client is open.
    pub fn note_opened(&mut self, now: Time) {
        self.open += 1;
        if self.open == self.asked {
            self.connected.get_or_insert(now);
        }
        self.progress = now;
    }

    /// The server has accepted a connection.
    pub fn note_accepted(&mut self, now: Time) {
        self.progress = now;
    }

    /// The client hands a message to the transport.
    #[inline]
    pub fn note_sending(&mut self, now: Time, tally: Tally) {
        // Of what may be lost without a word nobody knows what is under way: silence begins with the last message.
        let last = self.terms.silence.is_some() && tally.all_due;
        if last || self.under_way(tally) <= 1 {
            self.progress = now;
        }
    }

    /// Something was delivered.
    #[inline]
    pub fn note_delivery(&mut self, now: Time, tally: Tally) {
        self.progress = now;
        self.finish_if_done(tally);
    }

    /// The transport gave a message up.
    pub fn note_abandoned(&mut self, now: Time, tally: Tally) {
        self.abandoned += u64::from(self.terms.settles_abandoned);
        self.note_delivery(now, tally);
    }

    /// An application gives up.
    pub fn note_quit(&mut self, now: Time, quit: Quit) {
        self.stop(RunEnd::by(quit, now));
    }

    /// The octets of a connection make no sense, or the system refuses to go on: why, in RFC words.
    pub fn note_failure(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.stop(RunEnd::Failed { reason: reason.into() });
    }

    /// Nothing more is wanted of it.
    pub fn end(&mut self) {
        self.stop(RunEnd::Finished);
    }

    /// When to look again whether it is stuck; [`Time::MAX`] when it has ended.
    pub fn deadline(&self, tally: Tally) -> Time {
        if self.stopped.is_some() {
            return Time::MAX;
        }
        let patience =
            self.silence(tally).map_or(self.terms.patience, |silence| silence.min(self.terms.patience));
        // Who is not connected is not stalled: the transport tells when it tries no more.
        let look = if self.connected.is_some() { self.progress + patience } else { Time::MAX };
        look.min(self.end_of_grace(tally)).min(self.connect_by())
    }

    /// Stops it if it is stuck.
    pub fn check(&mut self, now: Time, tally: Tally) {
        let outstanding = self.under_way(tally);
        if let (true, Some(within)) = (now >= self.connect_by(), self.terms.connect_timeout) {
            self.stop(RunEnd::NotConnected { within });
        } else if self.silence(tally).is_some_and(|silence| now >= self.progress + silence) {
            self.stop(RunEnd::Finished);
        } else if now >= self.end_of_grace(tally) {
            // What may be given up, and has not arrived when time is up, is given up.
            let lossy = self.terms.silence.is_some();
            self.stop(if lossy { RunEnd::Finished } else { RunEnd::OutOfTime { outstanding } });
        } else if self.connected.is_some() && now >= self.progress + self.terms.patience {
            // What is lost for good does not stall a schedule that goes on.
            let waits = outstanding > 0 && self.terms.silence.is_none();
            if waits || tally.awaits_answer {
                self.stop(RunEnd::Stalled { since: self.progress, at: now, outstanding });
            } else {
                // Nothing is under way; the schedule is merely slow.
                self.progress = now;
            }
        }
    }

    /// Nothing will ever happen again.
    pub fn deadlock(&mut self, now: Time, tally: Tally) {
        let outstanding = self.under_way(tally);
        self.stop(RunEnd::Stalled { since: self.progress, at: now, outstanding });
    }

    fn stop(&mut self, why: RunEnd) {
        self.stopped.get_or_insert(why);
    }

    fn finish_if_done(&mut self, tally: Tally) {
        if tally.all_due && self.under_way(tally) == 0 {
            self.stop(RunEnd::Finished);
        }
    }

    /// Messages that came due and are not settled.
    fn under_way(&self, tally: Tally) -> u64 {
        tally.due.saturating_sub(tally.done + self.abandoned)
    }

    /// How long a silence ends it.
    fn silence(&self, tally: Tally) -> Option<Duration> {
        self.terms.silence.filter(|_| tally.all_due)
    }

    /// When it has to be connected; [`Time::MAX`] if it is, or may take its time.
    fn connect_by(&self) -> Time {
        match (self.connected, self.terms.connect_timeout) {
            (None, Some(timeout)) => self.terms.start + timeout,
            _ => Time::MAX,
        }
    }

    fn end_of_grace(&self, tally: Tally) -> Time {
        match (tally.last_due, self.terms.grace) {
            (Some(last), Some(grace)) if tally.all_due => last + grace,
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

    fn terms(transport: &str, workload: &str) -> Terms {
        Terms::of(&toml::from_str(workload).unwrap(), &transport.parse().unwrap(), Time::ZERO)
    }

    const ONEWAY: &str = "kind = 'oneway'";

    fn tally(due: u64, done: u64, all_due: bool) -> Tally {
        Tally { due, done, last_due: Some(secs(1)), all_due, awaits_answer: false }
    }

    /// A connected flow after nine of ten messages.
    fn after_nine(transport: &str, workload: &str) -> (Flow, Tally) {
        let mut flow = Flow::new(terms(transport, workload));
        let tally = tally(10, 9, true);
        flow.note_opening();
        flow.note_opened(Time::ZERO);
        flow.note_delivery(secs(2), tally);
        (flow, tally)
    }

    #[test]
    fn datagrams_have_finished_when_they_are_silent() {
        let (mut flow, tally) = after_nine("udp", ONEWAY);
        assert_eq!(flow.deadline(tally), secs(12));
        flow.check(secs(11), tally);
        assert_eq!(flow.stopped(), None);
        flow.check(secs(12), tally);
        assert!(flow.is_finished());
    }

    /// RFC 3758: what is given up is told, but a retransmission may take as long as RTO.max before.
    #[test]
    fn partial_reliability_has_the_time_of_its_retransmissions_before_silence_is_an_end() {
        let (mut flow, tally) = after_nine("sctp:lifetime=100ms", ONEWAY);
        flow.check(secs(100), tally);
        assert_eq!(flow.stopped(), None);
        flow.check(secs(182), tally);
        assert!(flow.is_finished());
        let (mut told, tally) = after_nine("sctp:lifetime=100ms", ONEWAY);
        told.note_abandoned(secs(3), tally);
        assert!(told.is_finished());
    }

    /// Parity may stand for a packet of a frame: only what the player has settles one.
    #[test]
    fn a_packet_that_is_given_up_settles_no_frame() {
        let (mut flow, tally) = after_nine("sctp:lifetime=100ms", "kind = 'media'");
        flow.note_abandoned(secs(3), tally);
        assert_eq!(flow.stopped(), None);
        flow.check(secs(183), tally);
        assert!(flow.is_finished());
    }

    /// RFC 768: nobody tells of a datagram that is lost.
    #[test]
    fn the_silence_of_datagrams_begins_with_the_last_one_and_a_loss_stalls_no_schedule() {
        let mut flow = Flow::new(terms("udp", "kind = 'oneway'\ninterval = '200s'"));
        flow.note_opening();
        flow.note_opened(Time::ZERO);
        flow.note_sending(secs(200), tally(1, 0, false));
        flow.check(secs(390), tally(1, 0, false));
        assert_eq!(flow.stopped(), None, "the first was lost");
        flow.note_sending(secs(400), tally(2, 0, true));
        assert_eq!(flow.deadline(tally(2, 0, true)), secs(410));
    }

    #[test]
    fn a_reliable_transport_that_is_silent_has_stalled() {
        let (mut flow, tally) = after_nine("tcp", ONEWAY);
        flow.check(secs(361), tally);
        assert_eq!(flow.stopped(), None);
        flow.check(secs(362), tally);
        let stalled = RunEnd::Stalled { since: secs(2), at: secs(362), outstanding: 1 };
        assert_eq!(flow.stopped(), Some(&stalled));
    }

    #[test]
    fn who_waits_for_an_answer_that_never_comes_has_stalled_and_a_slow_schedule_has_not() {
        for (awaits_answer, stalls) in [(true, true), (false, false)] {
            let mut flow = Flow::new(terms("udp", "kind = 'simco'"));
            flow.note_opening();
            flow.note_opened(Time::ZERO);
            let tally = Tally { last_due: None, awaits_answer, ..tally(0, 0, false) };
            assert_eq!(flow.deadline(tally), secs(96));
            flow.check(secs(96), tally);
            assert_eq!(flow.was_given_up(), stalls, "{:?}", flow.stopped());
            if !stalls {
                assert_eq!(flow.deadline(tally), secs(192));
            }
        }
    }

    #[test]
    fn a_connection_that_is_not_open_in_time_ends_the_run() {
        let mut flow = Flow::new(terms("tcp", "kind = 'oneway'\nconnect_timeout = '10s'"));
        let none = Tally { last_due: None, ..tally(0, 0, false) };
        flow.note_opening();
        assert_eq!(flow.deadline(none), secs(10));
        flow.check(secs(10), none);
        assert_eq!(flow.stopped(), Some(&RunEnd::NotConnected { within: Duration::from_secs(10) }));
    }

    /// RFC 9260 section 5.1.6: an INIT is sent again for four minutes, longer than three times RTO.max.
    #[test]
    fn who_is_not_connected_is_not_stalled() {
        let mut flow = Flow::new(terms("sctp", ONEWAY));
        let none = Tally { last_due: None, ..tally(0, 0, false) };
        flow.note_opening();
        assert_eq!(flow.deadline(none), Time::MAX);
        flow.check(secs(100_000), none);
        assert_eq!(flow.stopped(), None);
    }

    #[test]
    fn only_a_late_limit_sets_an_end_to_what_still_moves() {
        for (workload, at) in [
            ("kind = 'oneway'\nlate_limit = '1s'", Some(121)),
            ("kind = 'oneway'\nlate_limit = '1h'", Some(3601)),
            (ONEWAY, None),
        ] {
            let (mut flow, tally) = after_nine("tcp", workload);
            (1..=5000).for_each(|second| {
                if flow.stopped().is_none() {
                    flow.note_accepted(secs(second));
                    flow.check(secs(second), tally);
                    assert_eq!(flow.was_given_up(), Some(second) == at, "{workload}: {second} s");
                }
            });
        }
    }

    #[test]
    fn it_is_connected_when_all_is_open_that_it_asked_for_at_first() {
        let mut flow = Flow::new(terms("tcp:connections=2", ONEWAY));
        flow.note_opening();
        flow.note_opening();
        flow.note_opened(secs(1));
        assert_eq!(flow.connect_time(), None);
        flow.note_opened(secs(2));
        flow.note_opening();
        flow.note_opened(secs(9));
        assert_eq!(flow.connect_time(), Some(Duration::from_secs(2)));
    }

    /// A driver's own words end a flow, and the first of them stay.
    #[test]
    fn what_ends_a_flow_first_is_why_it_ended() {
        let (mut done, _) = after_nine("tcp", ONEWAY);
        assert!(!done.is_finished() && !done.was_given_up());
        done.end();
        done.note_failure("it came too late");
        assert!(done.is_finished() && !done.was_given_up());
        let (mut broken, tally) = after_nine("tcp", ONEWAY);
        broken.note_failure("the octets make no sense");
        broken.end();
        assert_eq!(broken.stopped(), Some(&RunEnd::Failed { reason: "the octets make no sense".into() }));
        assert!(!broken.is_finished() && broken.was_given_up());
        assert_eq!(broken.deadline(tally), Time::MAX);
        let (mut behind, _) = after_nine("tcp", ONEWAY);
        behind.note_quit(secs(5), Quit::BehindSchedule { message: 9, scheduled: secs(4) });
        let why = RunEnd::BehindSchedule { message: 9, scheduled: secs(4), at: secs(5) };
        assert_eq!(behind.stopped(), Some(&why));
        let (mut stuck, tally) = after_nine("tcp", ONEWAY);
        stuck.deadlock(secs(7), tally);
        assert_eq!(stuck.stopped(), Some(&RunEnd::Stalled { since: secs(2), at: secs(7), outstanding: 1 }));
    }

    /// After a time with nothing the first message begins the time that may pass; those behind it do not.
    #[test]
    fn patience_begins_with_the_first_message_under_way() {
        let (mut flow, _) = after_nine("tcp", ONEWAY);
        flow.note_sending(secs(100), tally(10, 9, false));
        assert_eq!(flow.deadline(tally(10, 9, false)), secs(460));
        flow.note_sending(secs(200), tally(11, 9, false));
        assert_eq!(flow.deadline(tally(11, 9, false)), secs(460), "two are under way");
        flow.note_sending(secs(300), tally(11, 9, true));
        assert_eq!(flow.deadline(tally(11, 9, true)), secs(460), "and what is lost is told of");
    }

    /// What may be lost without a word is given up when time is up; what may not has not ended well.
    #[test]
    fn a_late_limit_ends_datagrams_well() {
        let workload = "kind = 'oneway'\nlate_limit = '1s'";
        for (transport, well) in [("udp", true), ("tcp", false)] {
            let (mut flow, _) = after_nine(transport, workload);
            // The schedule goes on for long: there is no end to look for.
            let before = tally(20, 9, false);
            flow.note_delivery(secs(125), before);
            flow.check(secs(126), before);
            assert_eq!(flow.stopped(), None, "{transport}");
            flow.check(secs(126), tally(20, 9, true));
            assert_eq!((flow.is_finished(), flow.was_given_up()), (well, !well), "{transport}");
        }
    }

    /// QUIC's connections end by their idle timeout (RFC 9000 section 10.1), and have TCP's time if they have none.
    #[test]
    fn quic_has_three_idle_timeouts() {
        let patience = |transport: &str| terms(transport, ONEWAY).patience;
        assert_eq!(patience("quic:idle_timeout=10s"), Duration::from_secs(30));
        assert_eq!(patience("quic:idle_timeout=0s"), Duration::from_secs(360));
    }

    #[test]
    fn datagrams_of_quic_are_lost_without_a_word_and_sip_tells_what_it_gives_up() {
        let silence = |transport: &str| terms(transport, ONEWAY).silence;
        assert_eq!(silence("quic:datagrams"), Some(SILENCE));
        assert_eq!(silence("quic"), None);
        assert_eq!(silence("udp"), Some(SILENCE));
        assert_eq!(silence("udp:sip=invite"), Some(TIMEOUT_OF_DATAGRAMS * STALLED_TIMEOUTS));
    }
}
