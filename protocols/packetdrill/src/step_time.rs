//! The time of a step: `0.5`, `+0.1`, `*`, `+0~+0.2`, `+0...0.2`.

use hol_base::{Duration, Time};

use crate::tokens::number;

/// The time at which a step of a script takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepTime {
    /// This long after the start of the script.
    At(Duration),
    /// This long after the previous step.
    After(Duration),
    /// Between these two times after the previous step.
    Within(Duration, Duration),
    /// Between these two times after the start of the script.
    Between(Duration, Duration),
    /// The step may take place at any time.
    Whenever,
}

/// Maximum time for which a script waits for a packet.
const MAX_WAIT: Duration = Duration::from_secs(3600);

impl StepTime {
    /// Parses the time of a step, which is its first word.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        if word == "*" {
            return Ok(Self::Whenever);
        }
        if let Some((first, last)) = word.split_once('~').or_else(|| word.split_once("...")) {
            let (from, to) = (seconds(first)?, seconds(last)?);
            if from > to {
                return Err(format!("{word:?} is not a time, because the range ends before it begins"));
            }
            return Ok(if word.starts_with('+') { Self::Within(from, to) } else { Self::Between(from, to) });
        }
        let span = seconds(word)?;
        Ok(if word.starts_with('+') { Self::After(span) } else { Self::At(span) })
    }

    /// Returns whether the time of the step is a range.
    pub(crate) fn is_range(self) -> bool {
        matches!(self, Self::Within(..) | Self::Between(..))
    }

    /// Returns the earliest and the latest time of the step; `before` is the time of the previous
    /// step.
    pub(crate) fn bounds(self, before: Time) -> (Time, Time) {
        match self {
            Self::At(span) => (Time::ZERO + span, Time::ZERO + span),
            Self::After(span) => (before + span, before + span),
            Self::Within(first, last) => (before + first, before + last),
            Self::Between(first, last) => (Time::ZERO + first, Time::ZERO + last),
            Self::Whenever => (before, before + MAX_WAIT),
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = number("a time", text.trim_start_matches('+'))
        .map_err(|_| format!("{text:?} is not a time; write seconds such as \"+0.1\", \"2\" or \"*\""))?;
    if !(0.0..1e9).contains(&seconds) {
        return Err(format!("{text:?} is not between 0 and 1e9 seconds"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_relative_or_a_range() {
        let ms = Duration::from_millis;
        let after = |text: &str| StepTime::parse(text).unwrap().bounds(Time::from_millis(1000));
        assert_eq!(after("2.5"), (Time::from_millis(2500), Time::from_millis(2500)));
        assert_eq!(after("+.1"), (Time::from_millis(1100), Time::from_millis(1100)));
        assert_eq!(after("+0~+0.2"), (Time::from_millis(1000), Time::from_millis(1200)));
        assert_eq!(after("+0...0.2"), after("+0~+0.2"));
        assert_eq!(after("0.1~0.2"), (Time::from_millis(100), Time::from_millis(200)));
        assert!(StepTime::parse("+2~+1").unwrap_err().contains("ends before it begins"));
        assert_eq!(StepTime::parse("*"), Ok(StepTime::Whenever));
        assert_eq!(StepTime::parse("+1"), Ok(StepTime::After(ms(1000))));
        assert!(StepTime::parse("soon").unwrap_err().contains("write seconds"));
        assert!(StepTime::parse("-1").unwrap_err().contains("between"));
    }
}
