//! The timers of a connection, and the clock that runs them.

use hol_base::{Duration, Time};

/// What the sender's timer waits for. There is only one such timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerPurpose {
    /// The retransmission timeout. RFC 6298 section 5.
    Retransmission,
    /// The probe timeout, after which a tail loss probe is sent. RFC 8985 section 7.2.
    LossProbe,
    /// The end of RACK's reordering window. RFC 8985 section 6.2.
    Reordering,
    /// The time of the next zero-window probe. RFC 9293 section 3.8.6.1.
    Persist,
}

/// The deadline of the sender's timer, and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ArmedTimer {
    purpose: TimerPurpose,
    slot: Slot,
}

/// A timer that has expired, by its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiredTimer {
    Sender(TimerPurpose),
    DelayedAck,
    CompressedAck,
    /// The timer of a compressed acknowledgment, which expired at the deadline of an earlier delayed
    /// acknowledgment.
    HastenedAck,
    Departure,
    TimeWait,
    KeepAlive,
}

/// Two timers that are never active at the same time, because in TIME-WAIT no data are left to be paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExclusiveTimer {
    /// Pacing allows a segment at this time. The timer is exact.
    Departure,
    /// TIME-WAIT (2 MSL) ends at this time. RFC 9293 section 3.6.1.
    TimeWait,
}

/// Converts the delay of a timer to its deadline, as the timers of a kernel do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Length of a tick; zero means an exact clock.
    pub(crate) tick: Duration,
    /// Whether timers are in a hierarchical timer wheel.
    pub(crate) wheel: bool,
    /// The tick at which a timer last expired.
    last_expiry: Option<u64>,
}

/// The timers of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Timers {
    clock: Clock,
    sender: Option<ArmedTimer>,
    /// The last slot of the sender's timer, even if the timer was stopped.
    sender_slot: Option<Slot>,
    delayed_ack: Option<Slot>,
    ack_slot: Option<Slot>,
    /// When the timer of compressed acknowledgments expires; `None` if it does not run. Unlike the other timers it
    /// is exact.
    compressed_ack: Option<Time>,
    /// The deadline of a delayed acknowledgment, if it is earlier than that of the compressed acknowledgment. The
    /// compressed acknowledgment is then sent at the earlier time.
    hastened_ack: Option<Time>,
    exclusive: Option<(Time, ExclusiveTimer)>,
    keepalive: Option<Slot>,
}

/// The slot of a timer: its requested expiry, and the end of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// When the timer was requested to expire.
    due: Time,
    /// When the timer really expires: at the end of the slot.
    at: Time,
    /// The level of the timer wheel. Of timers that expire at the same tick, those on the highest level are
    /// handled first.
    level: u32,
    /// Sequence number of the insertion. Within a slot, the timer that was inserted last is handled first.
    inserted: u64,
}

impl Clock {
    pub(crate) const fn new(tick: Duration, wheel: bool) -> Self {
        Self { tick, wheel, last_expiry: None }
    }

    /// Records that a timer expires now.
    fn on_expiry(&mut self, now: Time) {
        self.last_expiry = now.as_nanos().checked_div(self.tick.as_nanos());
    }

    fn round_down(self, delay: Duration) -> Duration {
        match self.tick.as_nanos() {
            0 => delay,
            tick => Duration::from_nanos(delay.as_nanos() / tick * tick),
        }
    }

    /// Returns the start of the clock tick that contains `now`.
    fn tick(self, now: Time) -> Time {
        match self.tick.as_nanos() {
            0 => now,
            tick => Time::from_nanos(now.as_nanos() / tick * tick),
        }
    }

    /// Returns when a timer that is set now expires: at a tick, and never early.
    ///
    /// The first level of a wheel has 63 ticks; each further level is eight times longer and coarser, and every
    /// level rounds up, so that a timer is late by up to one slot. At a tick at which a timer expires, the wheel
    /// has already advanced to the next tick.
    fn deadline(self, now: Time, delay: Duration) -> Slot {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return Slot { due: now + delay, at: now + delay, level: 0, inserted: now.as_nanos() };
        }
        let ticks = delay.as_nanos().div_ceil(tick);
        let present = now.as_nanos() / tick;
        let due = present + ticks;
        let mut at = due;
        let mut shift = 0;
        if self.wheel {
            let ahead = u64::from(self.last_expiry == Some(present));
            while ticks.saturating_sub(ahead) >= 63 << shift && shift < 21 {
                shift += 3;
            }
            at = ((due >> shift) + 1) << shift;
        }
        // A delay of less than a tick also lasts until the next tick.
        let at = at.max(present + 1);
        let (due, at) = (Time::from_nanos(due * tick), Time::from_nanos(at * tick));
        Slot { due, at, level: shift, inserted: now.as_nanos() }
    }

    /// Returns the deadline of a timer that is set again. If it would be in the same slot as before, it keeps that
    /// slot. Linux: kernel/time/timer.c __mod_timer.
    fn rearmed(self, now: Time, delay: Duration, last: &mut Option<Slot>) -> Slot {
        let slot = self.deadline(now, delay);
        let stays = last.filter(|last| self.wheel && last.due == slot.due && last.at > now);
        *last.insert(stays.unwrap_or(slot))
    }
}

impl Timers {
    /// Creates timers that do not run.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            sender: None,
            sender_slot: None,
            delayed_ack: None,
            ack_slot: None,
            compressed_ack: None,
            hastened_ack: None,
            exclusive: None,
            keepalive: None,
        }
    }

    /// Restarts the timer of an idle connection.
    pub(crate) fn arm_keepalive(&mut self, now: Time, delay: Duration) {
        let mut last = self.keepalive;
        self.keepalive = Some(self.clock.rearmed(now, delay, &mut last));
    }

    /// Returns the time between two times, in whole ticks of the timers' clock.
    pub(crate) fn ticks_between(&self, from: Time, to: Time) -> Duration {
        self.clock.tick(to).saturating_since(self.clock.tick(from))
    }

    /// Rounds a delay up to whole ticks, at least one.
    pub(crate) fn round_up_to_ticks(&self, delay: Duration) -> Duration {
        delay.max(Duration::from_nanos(1)).round_up_to(self.clock.tick)
    }

    /// Restarts the sender's timer.
    pub(crate) fn arm(&mut self, now: Time, purpose: TimerPurpose, delay: Duration) {
        let slot = self.clock.rearmed(now, delay, &mut self.sender_slot);
        self.sender = Some(ArmedTimer { purpose, slot });
    }

    /// Returns whether the sender's timer is stopped.
    pub(crate) fn is_disarmed(&self) -> bool {
        self.sender.is_none()
    }

    /// Stops the sender's timer.
    pub(crate) fn disarm(&mut self) {
        self.sender = None;
    }

    /// Returns whether the sender's timer runs for `purpose`.
    pub(crate) fn is_armed_for(&self, purpose: TimerPurpose) -> bool {
        self.sender.is_some_and(|armed| armed.purpose == purpose)
    }

    /// Delays the acknowledgment, but not beyond an earlier deadline. Returns whether the deadline is so close
    /// that the acknowledgment can be sent now. Linux: tcp_send_delayed_ack.
    pub(crate) fn delay_ack(&mut self, now: Time, delay: Duration) -> bool {
        if let Some(earlier) = self.delayed_ack {
            let is_near = earlier.due <= self.clock.tick(now) + self.clock.round_down(delay / 4);
            if is_near || self.clock.deadline(now, delay).due >= earlier.due {
                return is_near;
            }
        }
        self.delayed_ack = Some(self.clock.rearmed(now, delay, &mut self.ack_slot));
        false
    }

    /// Returns whether an acknowledgment is delayed.
    pub(crate) fn is_ack_delayed(&self) -> bool {
        self.delayed_ack.is_some()
    }

    /// Starts the timer of compressed acknowledgments. Linux does not stop the timer of a delayed acknowledgment
    /// that is sent for another reason. If that timer expires first, the compressed acknowledgment is sent then:
    /// tcp_delack_timer_handler.
    pub(crate) fn start_compressed_ack(&mut self, now: Time, delay: Duration) {
        if self.compressed_ack.is_none() {
            let deadline = now + delay;
            let left_over = self.ack_slot.map(|slot| slot.at).filter(|_| self.clock.wheel);
            self.compressed_ack = Some(deadline);
            self.hastened_ack = left_over.filter(|at| *at > now && *at < deadline);
        }
    }

    /// Starts the pacing timer.
    pub(crate) fn pace(&mut self, departure: Time) {
        self.exclusive = Some((departure, ExclusiveTimer::Departure));
    }

    /// Stops the timers of acknowledgments, because an acknowledgment was sent.
    pub(crate) fn on_ack_sent(&mut self) {
        self.delayed_ack = None;
        (self.compressed_ack, self.hastened_ack) = (None, None);
    }

    /// Starts the timer of TIME-WAIT, which replaces all other timers of the sender. RFC 9293 section 3.6.1.
    pub(crate) fn start_time_wait(&mut self, now: Time, delay: Duration) {
        (self.sender, self.keepalive) = (None, None);
        self.exclusive = Some((self.clock.deadline(now, delay).at, ExclusiveTimer::TimeWait));
    }

    /// Returns the earliest deadline of all timers.
    pub(crate) fn next(&self) -> Option<Time> {
        let sender = self.sender.map(|armed| armed.slot.at);
        let exclusive = self.exclusive.map(|(at, _)| at);
        let delayed_ack = self.delayed_ack.map(|slot| slot.at);
        let keepalive = self.keepalive.map(|slot| slot.at);
        Time::earliest([delayed_ack, self.hastened_ack.or(self.compressed_ack), exclusive, sender, keepalive])
    }

    /// Removes and returns a timer that has expired; `None` if none has.
    pub(crate) fn expire(&mut self, now: Time) -> Option<ExpiredTimer> {
        let expired = self.take_expired(now);
        let is_exact = matches!(expired, Some(ExpiredTimer::CompressedAck | ExpiredTimer::Departure));
        if expired.is_some() && !is_exact {
            self.clock.on_expiry(now);
        }
        expired
    }

    fn take_expired(&mut self, now: Time) -> Option<ExpiredTimer> {
        let due = |at: &Time| *at <= now;
        if self.sender.is_some_and(|armed| due(&armed.slot.at) && self.is_served_first(armed.slot)) {
            return self.sender.take().map(|armed| ExpiredTimer::Sender(armed.purpose));
        }
        if self.delayed_ack.take_if(|slot| due(&slot.at)).is_some() {
            return Some(ExpiredTimer::DelayedAck);
        }
        if self.hastened_ack.take_if(|at| due(at)).is_some() {
            return Some(ExpiredTimer::HastenedAck);
        }
        if self.compressed_ack.take_if(|at| due(at)).is_some() {
            return Some(ExpiredTimer::CompressedAck);
        }
        if let Some(armed) = self.sender.take_if(|armed| due(&armed.slot.at)) {
            return Some(ExpiredTimer::Sender(armed.purpose));
        }
        if self.keepalive.take_if(|slot| due(&slot.at)).is_some() {
            return Some(ExpiredTimer::KeepAlive);
        }
        self.exclusive.take_if(|(at, _)| due(at)).map(|(_, last)| match last {
            ExclusiveTimer::Departure => ExpiredTimer::Departure,
            ExclusiveTimer::TimeWait => ExpiredTimer::TimeWait,
        })
    }

    /// Returns whether the sender's timer is handled before that of the delayed acknowledgment if both expire at
    /// the same tick. Linux: kernel/time/timer.c __run_timers.
    fn is_served_first(&self, sender: Slot) -> bool {
        self.clock.wheel
            && self.delayed_ack.is_some_and(|ack| {
                ack.at == sender.at && (sender.level, sender.inserted) > (ack.level, ack.inserted)
            })
    }

    /// Stops all timers.
    pub(crate) fn stop(&mut self) {
        *self = Self::new(self.clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn after(tick_ms: u64, wheel: bool, now_ms: u64, delay_ms: u64) -> u64 {
        let clock = Clock::new(MS(tick_ms), wheel);
        clock.deadline(Time::from_millis(now_ms), MS(delay_ms)).at.as_millis()
    }

    #[test]
    fn a_perfect_clock_is_exact() {
        assert_eq!(after(0, false, 3, 7), 10);
    }

    #[test]
    fn ticks_round_up_the_delay_but_not_the_start() {
        assert_eq!(after(4, false, 3, 5), 8, "set in tick 0, two ticks");
        assert_eq!(after(4, false, 3, 0), 4);
    }

    #[test]
    fn timer_wheel_is_a_tick_late_and_coarser_for_long_delays() {
        assert_eq!(after(4, true, 3, 220), 224, "55 ticks and one");
        assert_eq!(after(4, true, 3, 440), 448, "110 ticks, slots of 8 ticks: 14 slots of 32 ms");
        assert_eq!(after(4, true, 3, 416), 448, "a whole slot late at worst");
        assert_eq!(after(4, true, 3, 2016), 2048, "504 ticks, slots of 64");
    }

    #[test]
    fn timer_set_when_another_expires_counts_from_the_next_tick() {
        // kernel/time/timer.c __run_timers increments base->clk before it calls the handlers; calc_wheel_index.
        let mut timers = Timers::new(Clock::new(MS(4), true));
        timers.arm(Time::from_millis(3), TimerPurpose::LossProbe, MS(96));
        assert_eq!(
            timers.expire(Time::from_millis(100)),
            Some(ExpiredTimer::Sender(TimerPurpose::LossProbe))
        );
        timers.arm(Time::from_millis(100), TimerPurpose::Retransmission, MS(252));
        assert_eq!(timers.next(), Some(Time::from_millis(356)), "62 ticks, in slots of one tick");
        timers.arm(Time::from_millis(104), TimerPurpose::Retransmission, MS(252));
        assert_eq!(timers.next(), Some(Time::from_millis(384)), "63 ticks, in slots of eight");
    }

    #[test]
    fn timer_rearmed_for_the_same_tick_keeps_its_slot() {
        // kernel/time/timer.c __mod_timer; a stopped timer stays in the wheel (INET_CSK_CLEAR_TIMERS is not defined).
        let mut timers = Timers::new(Clock::new(MS(4), true));
        timers.arm(Time::from_millis(3), TimerPurpose::Retransmission, MS(416));
        assert_eq!(timers.next(), Some(Time::from_millis(448)));
        timers.disarm();
        timers.arm(Time::from_millis(203), TimerPurpose::LossProbe, MS(216));
        assert_eq!(timers.next(), Some(Time::from_millis(448)), "alone it would be 420");
        timers.arm(Time::from_millis(207), TimerPurpose::LossProbe, MS(216));
        assert_eq!(timers.next(), Some(Time::from_millis(424)), "another tick");
    }

    #[test]
    fn delayed_ack_timer_counts_ticks() {
        // net/ipv4/tcp_output.c tcp_send_delayed_ack: 40 ms; an acknowledgment that is due in 8 ms is sent at once.
        let mut timers = Timers::new(Clock::new(MS(4), true));
        assert!(!timers.delay_ack(Time::from_millis(3), MS(40)));
        assert_eq!(timers.next(), Some(Time::from_millis(44)));
        assert!(!timers.delay_ack(Time::from_millis(31), MS(40)));
        assert!(timers.delay_ack(Time::from_millis(32), MS(40)));
    }

    #[test]
    fn old_delayed_ack_timer_hastens_a_compressed_ack() {
        // net/ipv4/tcp_timer.c tcp_delack_timer_handler, whose timer tcp_event_ack_sent does not stop.
        let mut timers = Timers::new(Clock::new(MS(4), true));
        timers.delay_ack(Time::from_millis(3), MS(40));
        timers.on_ack_sent();
        timers.start_compressed_ack(Time::from_millis(42), MS(1));
        assert_eq!(timers.next(), Some(Time::from_millis(43)), "the delayed acknowledgment is due sooner");
        timers.on_ack_sent();
        timers.start_compressed_ack(Time::from_millis(43), MS(2));
        assert_eq!(timers.expire(Time::from_millis(44)), Some(ExpiredTimer::HastenedAck));
        timers.on_ack_sent();
        timers.start_compressed_ack(Time::from_millis(45), MS(2));
        assert_eq!(
            timers.next(),
            Some(Time::from_millis(47)),
            "the timer of the delayed acknowledgment has expired"
        );
    }

    #[test]
    fn last_timer_set_for_a_tick_expires_first() {
        // kernel/time/timer.c: enqueue_timer puts a timer at the head of its slot, and __run_timers starts with the highest level.
        let mut timers = Timers::new(Clock::new(MS(4), true));
        timers.delay_ack(Time::from_millis(4), MS(40));
        timers.arm(Time::from_millis(8), TimerPurpose::LossProbe, MS(36));
        assert_eq!(timers.expire(Time::from_millis(48)), Some(ExpiredTimer::Sender(TimerPurpose::LossProbe)));
        assert_eq!(timers.expire(Time::from_millis(48)), Some(ExpiredTimer::DelayedAck));
        timers.arm(Time::from_millis(52), TimerPurpose::LossProbe, MS(40));
        timers.delay_ack(Time::from_millis(56), MS(36));
        assert_eq!(timers.expire(Time::from_millis(96)), Some(ExpiredTimer::DelayedAck));
        assert_eq!(timers.expire(Time::from_millis(96)), Some(ExpiredTimer::Sender(TimerPurpose::LossProbe)));
        timers.arm(Time::from_millis(100), TimerPurpose::Retransmission, MS(300));
        timers.delay_ack(Time::from_millis(376), MS(36));
        assert_eq!(
            timers.expire(Time::from_millis(416)),
            Some(ExpiredTimer::Sender(TimerPurpose::Retransmission))
        );
    }

    #[test]
    fn timers_expire_once() {
        let mut timers = Timers::new(Clock::new(Duration::ZERO, false));
        timers.arm(Time::ZERO, TimerPurpose::LossProbe, MS(5));
        timers.delay_ack(Time::ZERO, MS(3));
        assert_eq!(timers.next(), Some(Time::from_millis(3)));
        assert_eq!(timers.expire(Time::from_millis(2)), None);
        assert_eq!(timers.expire(Time::from_millis(5)), Some(ExpiredTimer::DelayedAck));
        assert_eq!(timers.expire(Time::from_millis(5)), Some(ExpiredTimer::Sender(TimerPurpose::LossProbe)));
        assert_eq!(timers.expire(Time::from_millis(5)), None);
        assert_eq!(timers.next(), None);
    }
}
