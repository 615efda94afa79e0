//! Recorded messages and replies, for `replay`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hol_base::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

/// An exchange: a message and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the message is due, from the earliest possible start.
    pub at: Duration,
    /// Octets of the message.
    pub octets: ByteCount,
    /// Octets of the reply; `None` if the message has none.
    pub reply: Option<ByteCount>,
}

/// A sequence of exchanges, which is shared between copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Exchange>", into = "Vec<Exchange>")]
pub struct Exchanges(pub(crate) Arc<[Exchange]>);

impl Default for Exchanges {
    fn default() -> Self {
        let octets = ByteCount(128);
        vec![Exchange { at: Duration::ZERO, octets, reply: Some(octets) }].into()
    }
}

impl From<Vec<Exchange>> for Exchanges {
    fn from(exchanges: Vec<Exchange>) -> Self {
        Self(exchanges.into())
    }
}

impl From<Exchanges> for Vec<Exchange> {
    fn from(exchanges: Exchanges) -> Self {
        exchanges.0.to_vec()
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, octets, reply } = self;
        write!(f, "{at} {octets}")?;
        reply.map_or(Ok(()), |reply| write!(f, " {reply}"))
    }
}

impl FromStr for Exchange {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let size = |text: &str| text.parse::<ByteCount>().map_err(|problem| problem.to_string());
        let (at, octets, reply) = match words[..] {
            [at, octets] => (at, octets, None),
            [at, octets, reply] => (at, octets, Some(size(reply)?)),
            _ => {
                return Err(format!(
                    "{text:?} is not an exchange; write a time and one or two sizes, as in \"12ms 200B 5kB\""
                ));
            }
        };
        let at = at.parse::<Duration>().map_err(|problem| problem.to_string())?;
        Ok(Self { at, octets: size(octets)?, reply })
    }
}

impl Serialize for Exchange {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Exchange {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Exchanges {
    /// Returns the time after which the sequence repeats: the time of the last exchange plus the mean interval. With
    /// only one exchange the interval is 10 ms.
    pub fn period(&self) -> Duration {
        const DEFAULT_INTERVAL: Duration = Duration::from_millis(10);
        let (count, last) = (self.0.len() as u64, self.0.last().map_or(Duration::ZERO, |last| last.at));
        match count.saturating_sub(1) {
            0 => DEFAULT_INTERVAL,
            gaps => last + Duration::from_nanos((last.as_nanos() / gaps).max(1)),
        }
    }

    /// Returns when the message with this number is due, from the earliest possible start.
    pub(crate) fn due_time(&self, number: u64) -> Duration {
        let (round, place) = (number / self.0.len() as u64, number % self.0.len() as u64);
        self.period().saturating_mul(round) + self.0[place as usize].at
    }

    /// Returns the exchange of the message with this number.
    pub(crate) fn get(&self, number: u32) -> &Exchange {
        &self.0[number as usize % self.0.len()]
    }

    /// Returns whether the messages have replies.
    pub(crate) fn are_answered(&self) -> bool {
        self.0.iter().all(|exchange| exchange.reply.is_some())
    }
}
