//! The timestamps option. RFC 7323 sections 3 to 5.

use hol_base::{Duration, Time};
use hol_wire::tcp;

/// Length in octets of the timestamps option in every segment, including padding.
const OPTION_LENGTH: u32 = 12;

/// The state of the timestamps option.
#[derive(Debug, Clone)]
pub(crate) struct Timestamps {
    clock: Duration,
    offset: u32,
    /// Whether both endpoints send the timestamps option.
    is_negotiated: bool,
    /// TS.Recent: the timestamp that we echo.
    recent: u32,
    /// TSecr in the segment being processed; `None` if it has no timestamps option.
    echo: Option<u32>,
    /// Whether the segment being processed has a newer timestamp than earlier segments.
    has_advanced: bool,
}

impl Timestamps {
    /// Creates the state with the option disabled. The timestamp clock starts at a random `offset` (RFC 7323
    /// section 7.1).
    pub(crate) fn new(clock: Duration, offset: u32) -> Self {
        Self { clock, offset, is_negotiated: false, recent: 0, echo: None, has_advanced: false }
    }

    /// Negotiates the timestamps option from the peer's SYN; `offered` says whether we offer it. RFC 7323 section
    /// 3.2.
    pub(crate) fn negotiate(&mut self, offered: bool, syn: Option<tcp::Timestamps>) {
        self.is_negotiated = offered && syn.is_some();
        if let Some(stamps) = syn {
            self.recent = stamps.value;
            self.echo = Some(stamps.echo);
        }
    }

    /// Returns whether both endpoints send the timestamps option.
    pub(crate) fn are_enabled(&self) -> bool {
        self.is_negotiated
    }

    /// Returns the length in octets of the timestamps option in every segment, including padding.
    pub(crate) fn length(&self) -> u32 {
        if self.is_negotiated { OPTION_LENGTH } else { 0 }
    }

    /// Stores the timestamps option of the segment being processed.
    pub(crate) fn on_segment(&mut self, option: Option<tcp::Timestamps>) {
        self.echo = option.filter(|_| self.is_negotiated).map(|stamps| stamps.echo);
        self.has_advanced = false;
    }

    /// Updates TS.Recent, unless the timestamp is older. The caller ensures that the segment includes the next
    /// octet to be acknowledged. RFC 7323 section 4.3.
    pub(crate) fn update_ts_recent(&mut self, option: tcp::Timestamps) {
        self.has_advanced = before(self.recent, option.value);
        if !before(option.value, self.recent) {
            self.recent = option.value;
        }
    }

    /// Returns whether the segment being processed has a newer timestamp than earlier ones. Linux: FLAG_TS_PROGRESS.
    pub(crate) fn has_advanced(&self) -> bool {
        self.has_advanced
    }

    /// Returns TSecr of the segment being processed.
    pub(crate) fn echo(&self) -> Option<u32> {
        self.echo
    }

    /// Returns the value of our timestamp clock (TSval) at `time`.
    fn value(&self, time: Time) -> u32 {
        let steps = time.as_nanos() / self.clock.as_nanos().max(1);
        self.offset.wrapping_add(steps as u32)
    }

    /// Returns the timestamps option of a segment that is sent now.
    pub(crate) fn option(&self, now: Time) -> tcp::Timestamps {
        tcp::Timestamps { value: self.value(now), echo: self.recent }
    }

    /// Returns whether the segment being processed echoes a timestamp from before `time`.
    pub(crate) fn echoes_before(&self, time: Time) -> bool {
        self.echo.is_some_and(|echo| before(echo, self.value(time)))
    }

    /// Returns whether the segment being processed echoes the timestamp of `time`.
    pub(crate) fn echoes_time(&self, time: Time) -> bool {
        self.is_negotiated && self.echo == Some(self.value(time))
    }

    /// Returns the round-trip time according to TSecr, at least one tick of the timestamp clock. RFC 7323 section
    /// 4.1.
    pub(crate) fn round_trip(&self, now: Time) -> Option<Duration> {
        let steps = self.value(now).wrapping_sub(self.echo?);
        (steps < 1 << 31).then(|| self.clock * u64::from(steps.max(1)))
    }

    /// Returns the round-trip time according to TSecr; `None` if it is less than one tick.
    pub(crate) fn round_trip_if_any(&self, now: Time) -> Option<Duration> {
        self.round_trip(now).filter(|_| self.echo != Some(self.value(now)))
    }

    /// Returns whether the segment is older than a segment accepted earlier (PAWS). RFC 7323 section 5.3, R1.
    pub(crate) fn is_old(&self, option: &tcp::Timestamps) -> bool {
        self.is_negotiated && before(option.value, self.recent)
    }
}

/// Returns whether `earlier` is before `later`, modulo 2^32.
fn before(earlier: u32, later: u32) -> bool {
    (earlier.wrapping_sub(later) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_clock_wraps() {
        // RFC 7323 section 5.2: compared modulo 2^32.
        let mut timestamps = Timestamps::new(Duration::from_millis(1), u32::MAX - 1);
        timestamps.echo = Some(u32::MAX);
        assert!(timestamps.echoes_before(Time::from_millis(3)));
        assert!(!timestamps.echoes_before(Time::from_millis(1)));
        assert_eq!(timestamps.round_trip(Time::from_millis(5)), Some(Duration::from_millis(4)));
        assert_eq!(timestamps.round_trip(Time::from_millis(1)), Some(Duration::from_millis(1)));
    }
}
