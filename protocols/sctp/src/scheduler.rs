//! The stream schedulers. RFC 8260 section 3.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The stream scheduler. Without I-DATA it completes a message before it starts another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// First come, first served (FCFS). RFC 8260 section 3.1.
    Fcfs,
    /// Round robin (RR): streams take turns message by message or, with I-DATA, chunk by chunk. RFC 8260 section
    /// 3.2.
    Rr,
    /// Round robin per packet: each packet contains the data of one stream, and streams take turns. RFC 8260
    /// section 3.3.
    RrPacket,
    /// Strict priority: the stream with the smallest value is next; streams with equal values take turns. RFC
    /// 8260 section 3.4.
    Prio,
    /// Fair capacity: the next stream is the one that has sent the fewest octets. RFC 8260 section 3.5.
    Fc,
    /// Weighted fair queueing: the next stream is the one that has sent the fewest octets in proportion to its
    /// weight. RFC 8260 section 3.6.
    Wfq,
}

impl Scheduler {
    /// Returns whether the scheduler uses the priorities or weights of the streams.
    pub(crate) const fn has_values(self) -> bool {
        matches!(self, Self::Prio | Self::Wfq)
    }
}

/// The priorities or weights of the outgoing streams, from stream 0 on, as in `"7/0"`. The last number applies to
/// all further streams. Without numbers the defaults apply: priority 0, weight 1. RFC 8260 section 4.3.3.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamValues(Vec<u16>);

impl StreamValues {
    /// Returns the priority or weight of a stream; `None` if no stream has one.
    pub fn of(&self, stream: u16) -> Option<u16> {
        self.0.get(usize::from(stream)).or(self.0.last()).copied()
    }

    /// Returns whether no stream has a priority or weight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has_zero(&self) -> bool {
        self.0.contains(&0)
    }
}

impl fmt::Display for StreamValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(u16::to_string).collect::<Vec<_>>().join("/"))
    }
}

impl FromStr for StreamValues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let values: Result<_, _> = text.split('/').map(|value| value.trim().parse()).collect();
        let wrong = |_| format!("{text:?} must be numbers from 0 to 65535, one per stream, as in \"7/0\"");
        values.map(Self).map_err(wrong)
    }
}

impl Serialize for StreamValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StreamValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_stream_value_applies_to_all_further_streams() {
        let values: StreamValues = "7/0".parse().unwrap();
        assert_eq!([0, 1, 2, 65535].map(|stream| values.of(stream)), [Some(7), Some(0), Some(0), Some(0)]);
        assert_eq!(values.to_string(), "7/0");
        let none: StreamValues = "".parse().unwrap();
        assert_eq!((none.of(0), none.to_string().as_str()), (None, ""));
    }

    #[test]
    fn invalid_stream_values_are_refused() {
        for text in ["7/", "/", "-1", "65536", "a", "1;2"] {
            let error = text.parse::<StreamValues>().unwrap_err();
            assert!(error.contains(&format!("{text:?}")) && error.contains("65535"), "{error}");
        }
    }
}
