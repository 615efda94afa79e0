//! When a run is over: the same rules as in the model world, and one more for transports that lose messages.

use hol_base::{Duration, Time};
use hol_model::{SILENCE, Stopped, grace};
use hol_workloads::{Trouble, WorkloadSpec};

/// How far a flow has come.
#[derive(Debug)]
pub(crate) struct Progress {
    messages: u64,
    /// Messages may be lost for good.
    lossy: bool,
    /// The last delivery, or when something got under way after a time with nothing.
    last: Time,
    /// So long without a delivery is a stall.
    patience: Duration,
    /// So long it may take to connect.
    connect_timeout: Option<Duration>,
    /// So long after the last message was scheduled it ends.
    grace: Duration,
    pub(crate) connected: Option<Time>,
    pub(crate) stopped: Option<Stopped>,
}

/// What the applications have counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    /// Messages that came due.
    pub(crate) sent: u64,
    /// Messages that were delivered, and answered if they are to be.
    pub(crate) done: u64,
    /// When the latest was scheduled.
    pub(crate) last_scheduled: Option<Time>,
}

impl Progress {
    pub(crate) fn new(workload: &WorkloadSpec, messages: u64, lossy: bool, patience: Duration) -> Self {
        Self {
            messages,
            lossy,
            last: Time::ZERO,
            patience,
            connect_timeout: workload.connect_timeout,
            grace: grace(workload),
            connected: None,
            stopped: None,
        }
    }

    /// Every connection is open.
    pub(crate) fn note_connected(&mut self, now: Time) {
        self.connected = Some(now);
        self.last = now;
    }

    /// The client hands a message to the transport.
    pub(crate) fn note_sending(&mut self, now: Time, tally: Tally) {
        if tally.under_way() <= 1 {
            self.last = now;
        }
    }

    /// Something was delivered.
    pub(crate) fn note_delivery(&mut self, now: Time, tally: Tally) {
        self.last = now;
        if tally.done >= self.messages {
            self.stop(Stopped::Finished);
        }
    }

    /// An application gives up.
    pub(crate) fn note_trouble(&mut self, now: Time, trouble: Trouble) {
        self.stop(match trouble {
            Trouble::BehindSchedule { message, scheduled } => {
                Stopped::BehindSchedule { message, scheduled, at: now }
            }
            Trouble::Nonsense(reason) => Stopped::Failed { reason },
        });
    }

    /// Nothing more is wanted.
    pub(crate) fn end(&mut self) {
        self.stop(Stopped::Finished);
    }

    /// A connection cannot go on.
    pub(crate) fn fail(&mut self, reason: &'static str) {
        self.stop(Stopped::Failed { reason });
    }

    /// When to look again whether it is stuck.
    pub(crate) fn deadline(&self, tally: Tally) -> Time {
        let patience = if self.may_end_silently(tally) { SILENCE } else { self.patience };
        (self.last + patience).min(self.end_of_grace(tally)).min(self.connect_by())
    }

    /// Stops if it is stuck.
    pub(crate) fn check(&mut self, now: Time, tally: Tally) {
        let outstanding = tally.under_way();
        if let (true, Some(within)) = (now >= self.connect_by(), self.connect_timeout) {
            self.stop(Stopped::NotConnected { within });
        } else if self.may_end_silently(tally) && now >= self.last + SILENCE {
            self.stop(Stopped::Finished);
        } else if now >= self.end_of_grace(tally) {
            self.stop(Stopped::OutOfTime { outstanding });
        } else if now >= self.last + self.patience {
            if outstanding > 0 || self.connected.is_none() {
                self.stop(Stopped::Stalled { since: self.last, at: now, outstanding });
            } else {
                // Nothing is under way; the schedule is merely slow.
                self.last = now;
            }
        }
    }

    fn stop(&mut self, why: Stopped) {
        self.stopped.get_or_insert(why);
    }

    fn may_end_silently(&self, tally: Tally) -> bool {
        self.lossy && tally.sent == self.messages
    }

    /// When it has to be connected; [`Time::MAX`] if it is, or may take its time.
    fn connect_by(&self) -> Time {
        match (self.connected, self.connect_timeout) {
            (None, Some(timeout)) => Time::ZERO + timeout,
            _ => Time::MAX,
        }
    }

    fn end_of_grace(&self, tally: Tally) -> Time {
        match tally.last_scheduled {
            Some(last) if tally.sent == self.messages => last + self.grace,
            _ => Time::MAX,
        }
    }
}

impl Tally {
    /// Messages that came due and are not done.
    fn under_way(self) -> u64 {
        self.sent.saturating_sub(self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_workloads::Kind;

    const ONEWAY: WorkloadSpec = WorkloadSpec::new(Kind::Oneway);

    fn secs(secs: u64) -> Time {
        Time::from_millis(secs * 1000)
    }

    fn after_ten_messages(lossy: bool) -> (Progress, Tally) {
        let mut progress = Progress::new(&ONEWAY, 10, lossy, Duration::from_secs(60));
        let tally = Tally { sent: 10, done: 9, last_scheduled: Some(secs(1)) };
        progress.note_connected(Time::ZERO);
        progress.note_delivery(secs(2), tally);
        (progress, tally)
    }

    #[test]
    fn a_transport_that_loses_messages_has_finished_when_it_is_silent() {
        let (mut progress, tally) = after_ten_messages(true);
        assert_eq!(progress.deadline(tally), secs(12));
        progress.check(secs(11), tally);
        assert_eq!(progress.stopped, None);
        progress.check(secs(12), tally);
        assert_eq!(progress.stopped, Some(Stopped::Finished));
    }

    #[test]
    fn a_reliable_transport_that_is_silent_has_stalled() {
        let (mut progress, tally) = after_ten_messages(false);
        progress.check(secs(62), tally);
        let stalled = Stopped::Stalled { since: secs(2), at: secs(62), outstanding: 1 };
        assert_eq!(progress.stopped, Some(stalled));
    }

    #[test]
    fn a_connection_that_is_not_open_in_time_ends_the_run() {
        let within = Duration::from_secs(10);
        let workload = WorkloadSpec { connect_timeout: Some(within), ..ONEWAY };
        let mut progress = Progress::new(&workload, 10, false, Duration::from_secs(60));
        let tally = Tally { sent: 0, done: 0, last_scheduled: None };
        assert_eq!(progress.deadline(tally), secs(10));
        progress.check(secs(10), tally);
        assert_eq!(progress.stopped, Some(Stopped::NotConnected { within }));
    }

    #[test]
    fn a_slow_schedule_is_no_stall() {
        let mut progress = Progress::new(&ONEWAY, 10, false, Duration::from_secs(60));
        let tally = Tally { sent: 3, done: 3, last_scheduled: Some(secs(1)) };
        progress.note_connected(Time::ZERO);
        progress.check(secs(61), tally);
        assert_eq!((progress.stopped, progress.deadline(tally)), (None, secs(121)));
    }
}
