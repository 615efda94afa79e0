//! Virtual time: integer nanoseconds since the start of the run.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(u64);

/// A non-negative span of time in nanoseconds. Text form: `"10ms"`, `"0s"`, `"250us"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(into = "String")]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// The maximum time, later than every event of a run.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time `nanos` ns after the start of the run.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Returns the time `millis` ms after the start of the run.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// Returns nanoseconds since the start of the run.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns whole milliseconds since the start of the run (the granularity of many protocol clocks).
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Returns seconds since the start of the run, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns the earliest of several deadlines; `None` if there is none.
    #[inline]
    pub fn earliest<const N: usize>(deadlines: [Option<Self>; N]) -> Option<Self> {
        // This runs a few times per packet: `MAX` for "none" avoids a branch.
        let first = deadlines.iter().fold(Self::MAX, |first, at| first.min(at.unwrap_or(Self::MAX)));
        (first != Self::MAX).then_some(first)
    }
    /// Returns the time since `earlier`.
    ///
    /// # Panics
    /// If `earlier` is later than this time: virtual time never runs backwards.
    #[inline]
    #[track_caller]
    pub fn since(self, earlier: Time) -> Duration {
        assert!(self.0 >= earlier.0, "time ran backwards: {earlier} is after {self}");
        Duration(self.0 - earlier.0)
    }
    /// Returns the time since `earlier`, or zero if `earlier` is later than this time.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// A duration of zero.
    pub const ZERO: Self = Self(0);
    /// The maximum duration, longer than every run.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a duration of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Creates a duration of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }
    /// Creates a duration of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// Creates a duration of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }
    /// Creates a duration of `secs` seconds, rounded to the nearest nanosecond; negative values become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }
    /// Returns the duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the duration in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Returns the duration in milliseconds, for reports.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the duration in seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns true if the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// Returns the difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Returns the duration times `factor`, at most [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
    /// Returns the absolute difference of two durations.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
    /// Rounds the duration up to a multiple of `tick`. If `tick` is zero, returns the duration unchanged.
    pub fn round_up_to(self, tick: Self) -> Self {
        if tick.is_zero() { self } else { Self(self.0.div_ceil(tick.0) * tick.0) }
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Duration {
    type Output = Self;
    #[track_caller]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a duration is never negative"))
    }
}
impl SubAssign for Duration {
    #[track_caller]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        self.saturating_mul(factor)
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Duration {
    /// Formats the duration in the largest unit in which it is an integer: `"10ms"`, `"1500us"`, `"60s"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, nanos) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if self.0.is_multiple_of(nanos) {
                return write!(f, "{}{unit}", self.0 / nanos);
            }
        }
        write!(f, "{}ns", self.0)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_in_their_largest_whole_unit() {
        assert_eq!(Duration::from_millis(10).to_string(), "10ms");
        assert_eq!(Duration::from_micros(1500).to_string(), "1500us");
        assert_eq!(Duration::from_secs(60).to_string(), "60s");
        assert_eq!(Duration::ZERO.to_string(), "0s");
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn time_never_runs_backwards() {
        let _ = Time::ZERO.since(Time::from_millis(1));
    }

    #[test]
    fn round_up_to_ticks() {
        let tick = Duration::from_millis(4);
        assert_eq!(Duration::from_millis(5).round_up_to(tick), Duration::from_millis(8));
        assert_eq!(Duration::from_millis(8).round_up_to(tick), Duration::from_millis(8));
        assert_eq!(Duration::from_millis(5).round_up_to(Duration::ZERO), Duration::from_millis(5));
    }
}
