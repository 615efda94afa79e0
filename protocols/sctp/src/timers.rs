//! The timers of an association. The timers of a path are in `path`. RFC 9260 sections 5.1, 6.2 and 9.2.

use hol_base::{Duration, Time};

use crate::Endpoint;

/// The deadlines of the association's timers.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The deadline of T1-init or T1-cookie.
    pub(crate) t1: Option<Time>,
    /// The deadline of T2-shutdown.
    pub(crate) t2_shutdown: Option<Time>,
    /// The deadline of T5-shutdown-guard.
    pub(crate) t5_shutdown_guard: Option<Time>,
    /// The deadline of T-4, which waits for the acknowledgement of an ASCONF. RFC 5061 section 5.1.
    pub(crate) t4: Option<Time>,
    /// The deadline of the Re-configuration Timer. RFC 6525 section 5.1.1.
    pub(crate) reconfig: Option<Time>,
    /// The deadline of a SACK that is delayed.
    pub(crate) sack: Option<Time>,
    /// The duration for which T1 runs when it is started next.
    pub(crate) t1_delay: Duration,
    /// Number of consecutive expiries of T1.
    pub(crate) t1_expiries: u32,
    /// The path on which the last INIT was sent, not counting an INIT after a stale cookie.
    pub(crate) init_path: usize,
}

impl Timers {
    pub(crate) fn new(t1_delay: Duration) -> Self {
        Self {
            t1: None,
            t2_shutdown: None,
            t5_shutdown_guard: None,
            t4: None,
            reconfig: None,
            sack: None,
            t1_delay,
            t1_expiries: 0,
            init_path: 0,
        }
    }

    fn deadline(&self) -> Option<Time> {
        let Self { t1, t2_shutdown, t5_shutdown_guard, t4, reconfig, sack, .. } = *self;
        Time::earliest([t1, t2_shutdown, t5_shutdown_guard, t4, reconfig, sack])
    }
}

/// Stops a timer if it has expired; returns whether it has.
fn expire(timer: &mut Option<Time>, now: Time) -> bool {
    timer.take_if(|at| *at <= now).is_some()
}

impl Endpoint {
    pub(crate) fn deadline(&self) -> Option<Time> {
        Time::earliest([self.timers.deadline(), self.paths.deadline()])
    }

    /// Handles every timer that has expired, T3-rtx last, because it sends only one packet.
    pub(crate) fn on_timers(&mut self, now: Time) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.clock.on_expiry(now);
        }
        if expire(&mut self.timers.t1, now) {
            self.on_t1_expired(now);
        }
        if expire(&mut self.timers.t2_shutdown, now) {
            self.on_t2_expired(now);
        }
        if expire(&mut self.timers.t5_shutdown_guard, now) {
            self.on_t5_expired();
        }
        if expire(&mut self.timers.t4, now) {
            self.on_t4_expired(now);
        }
        if expire(&mut self.timers.reconfig, now) {
            self.on_reconfig_expired(now);
        }
        if expire(&mut self.timers.sack, now) {
            self.queue_sack();
        }
        for path in 0..self.paths.list.len() {
            if expire(&mut self.paths.list[path].heartbeat_due, now) {
                self.on_heartbeat_due(now, path);
            }
        }
        if !self.control.is_empty() {
            self.flush(now, false);
        }
        for path in 0..self.paths.list.len() {
            if let Some(purpose) = self.paths.list[path].rack.expire(now) {
                self.on_rack_timer(now, path, purpose);
            }
            if expire(&mut self.paths.list[path].t3_rtx, now) {
                self.on_t3_expired(now, path);
                self.flush(now, true);
            }
        }
    }
}
