//! The `[workload]` table of an experiment.

use std::fmt;

use hol_base::{ByteCount, Duration, Frequency};
use serde::{Deserialize, Serialize};

use crate::Mix;

/// What the application does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The application.
    pub kind: Kind,
    /// The node whose application connects and sends by the schedule. Default `client`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node whose application listens. Default `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When it connects, since the start of the run. Default at once.
    #[serde(default)]
    pub start: Duration,
    /// The run is over when it is not connected after this time. Default as long as the transport tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Duration>,
    /// Messages a second; not for `pingpong`, which sends when the reply comes. Default 100/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// The time between messages, instead of `rate`; `"0s"`: each as soon as the transport has taken the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// How the messages are spaced; not for `pingpong`. Default periodic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Sources that send in step, each by this `rate`: as many messages are due at once. Not for `pingpong`. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub sources: u16,
    /// Octets of a message, and of its reply; not for `simco`, whose messages have their own. Default 128, of
    /// `bulk` 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteCount>,
    /// What the requests ask for, as weights: `{ enable = 2, lifetime = 1, delete = 1 }`; only for `simco`. A request
    /// about a rule enables one as long as there is none. Default `enable` alone.
    #[serde(default, skip_serializing_if = "Mix::only_enables")]
    pub mix: Mix,
    /// What the middlebox puts its rules in force with, before it replies; only for `simco`. Default `none`.
    #[serde(default, skip_serializing_if = "Filter::is_none")]
    pub filter: Filter,
    /// The run is aborted when a message cannot be handed to the transport this long after its scheduled time;
    /// nothing is late where the transport sets the pace. For so long, but 120 s at least, the last may take to arrive.
    #[serde(default = "default_late_limit")]
    pub late_limit: Duration,
}

/// The applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Requests to a middlebox, which grants them: to enable a rule, or as the `mix` says. RFC 4540.
    Simco,
    /// Each message comes back as it is.
    Echo,
    /// As `echo`, but the next message goes out when the reply to the last came back.
    Pingpong,
    /// Messages without replies.
    Oneway,
    /// A greedy sender: messages without replies, each as soon as the transport has taken the last.
    Bulk,
}

/// What puts the rules of a middlebox in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Nothing does: it grants them, and that is all.
    #[default]
    None,
    /// The filter of the Linux kernel that it runs on.
    Nftables,
}

/// What makes the next message due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Time alone: an open loop.
    Every(Duration),
    /// The transport has taken the last message.
    Taken,
    /// The reply to the last message has come.
    Replied,
}

/// How the messages are spaced in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// All gaps are equal.
    #[default]
    Periodic,
    /// Gaps are exponential: a Poisson process.
    Poisson,
}

/// A workload table that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A key that this kind of workload does not have.
    #[error("`{key}` has no meaning for the {kind} workload ({reason}); remove it")]
    Meaningless {
        /// The key.
        key: &'static str,
        /// The workload's name.
        kind: &'static str,
        /// Why it means nothing.
        reason: &'static str,
    },
    /// Two keys say the same.
    #[error("`rate` and `interval` are two names of one thing; remove one")]
    RateAndInterval,
    /// Nobody sends.
    #[error("`sources` is 0; a workload needs at least one")]
    NoSources,
    /// Rules that are deleted have to be enabled first.
    #[error(
        "`mix` enables {} and deletes {}: nothing would be left to delete; raise `enable`, or lower `delete`",
        .0.enable,
        .0.delete
    )]
    Mix(Mix),
    /// A message must have room for its length and number.
    #[error(
        "`size` is {size} but a message needs at least {} octets and at most {}; choose one between",
        WorkloadSpec::MIN_SIZE,
        WorkloadSpec::MAX_SIZE
    )]
    Size {
        /// The size.
        size: u64,
    },
}

impl WorkloadSpec {
    /// Octets that the length and the number of a message take.
    pub const MIN_SIZE: u64 = 8;
    /// The longest message, in octets.
    pub const MAX_SIZE: u64 = 16 << 20;

    /// The workload called `kind` with every default.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            from: None,
            to: None,
            start: Duration::ZERO,
            connect_timeout: None,
            rate: None,
            interval: None,
            arrivals: None,
            sources: 1,
            size: None,
            mix: Mix::ENABLE,
            filter: Filter::None,
            late_limit: default_late_limit(),
        }
    }

    /// The node whose application sends by the schedule.
    pub fn from(&self) -> &str {
        self.from.as_deref().unwrap_or("client")
    }

    /// The node whose application listens.
    pub fn to(&self) -> &str {
        self.to.as_deref().unwrap_or("server")
    }

    /// Messages a second of each source; `None` where something else than time makes them due.
    pub fn rate(&self) -> Option<Frequency> {
        match (self.pace(), self.rate) {
            (Pace::Every(_), Some(rate)) => Some(rate),
            (Pace::Every(interval), None) => Frequency::new(1.0 / interval.as_secs_f64()),
            (Pace::Taken | Pace::Replied, _) => None,
        }
    }

    /// What makes the next message due.
    pub(crate) fn pace(&self) -> Pace {
        const DEFAULT: Duration = Duration::from_millis(10);
        match (self.kind, self.interval) {
            (Kind::Pingpong, _) => Pace::Replied,
            (Kind::Bulk, _) | (_, Some(Duration::ZERO)) => Pace::Taken,
            (_, Some(interval)) => Pace::Every(interval),
            (_, None) => Pace::Every(self.rate.map_or(DEFAULT, Frequency::period)),
        }
    }

    /// How the messages are spaced.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.unwrap_or_default()
    }

    /// Octets of a message of the kinds whose messages are padding.
    pub fn size(&self) -> u64 {
        let default = if self.kind == Kind::Bulk { 4096 } else { 128 };
        self.size.map_or(default, |size| size.0)
    }

    /// Whether each message is answered.
    pub fn has_replies(&self) -> bool {
        !matches!(self.kind, Kind::Oneway | Kind::Bulk)
    }

    /// Whether the next message waits for the reply to the last one.
    pub fn waits_for_replies(&self) -> bool {
        self.pace() == Pace::Replied
    }

    /// The same workload with every default spelt out.
    pub fn settled(&self) -> Self {
        Self {
            kind: self.kind,
            from: Some(self.from().to_owned()),
            to: Some(self.to().to_owned()),
            start: self.start,
            connect_timeout: self.connect_timeout,
            rate: self.rate().filter(|_| self.interval.is_none()),
            interval: self.interval,
            arrivals: self.rate().map(|_| self.arrivals()),
            sources: self.sources,
            size: (self.kind != Kind::Simco).then(|| ByteCount(self.size())),
            mix: self.mix,
            filter: self.filter,
            late_limit: self.late_limit,
        }
    }

    /// Refuses keys that mean nothing for the kind, and impossible sizes.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let kind = self.kind.name();
        let meaningless = |key, reason| Err(WorkloadError::Meaningless { key, kind, reason });
        let pacing = [
            ("rate", self.rate.is_some()),
            ("interval", self.interval.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("sources", self.sources > 1),
        ];
        let given = pacing.into_iter().find_map(|(key, given)| given.then_some(key));
        match (self.kind, given) {
            (Kind::Pingpong, Some(key)) => meaningless(key, "the next message waits for the reply"),
            (Kind::Bulk, Some(key)) => meaningless(key, "the transport sets the pace"),
            _ if self.rate.is_some() && self.interval.is_some() => Err(WorkloadError::RateAndInterval),
            _ if self.pace() == Pace::Taken && self.arrivals.is_some() => {
                meaningless("arrivals", "the transport sets the pace")
            }
            _ if self.pace() == Pace::Taken && self.sources > 1 => {
                meaningless("sources", "the transport sets the pace")
            }
            _ if self.sources == 0 => Err(WorkloadError::NoSources),
            (Kind::Simco, _) if !self.mix.is_sustainable() => Err(WorkloadError::Mix(self.mix)),
            (Kind::Simco, _) if self.size.is_some() => {
                meaningless("size", "RFC 4540 gives its messages their sizes")
            }
            (kind, _) if kind != Kind::Simco && !self.mix.only_enables() => {
                meaningless("mix", "it is about the rules of SIMCO")
            }
            (kind, _) if kind != Kind::Simco && !self.filter.is_none() => {
                meaningless("filter", "it puts the rules of SIMCO in force")
            }
            _ if !(Self::MIN_SIZE..=Self::MAX_SIZE).contains(&self.size()) => {
                Err(WorkloadError::Size { size: self.size() })
            }
            _ => Ok(()),
        }
    }
}

/// What the application does, in a few words.
impl fmt::Display for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, mix, filter, .. } = self;
        f.write_str(kind.name())?;
        if *kind != Kind::Simco {
            return write!(f, " {}B", self.size());
        }
        if !mix.only_enables() {
            write!(f, " {mix}")?;
        }
        if *filter == Filter::Nftables {
            f.write_str(" with nftables")?;
        }
        Ok(())
    }
}

impl Filter {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Kind {
    /// As it is written in an experiment.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simco => "simco",
            Self::Echo => "echo",
            Self::Pingpong => "pingpong",
            Self::Oneway => "oneway",
            Self::Bulk => "bulk",
        }
    }
}

const fn one() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_one(number: &u16) -> bool {
    *number == 1
}

const fn default_late_limit() -> Duration {
    Duration::from_secs(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_meaning_are_refused() {
        let with_rate = |kind| WorkloadSpec { rate: Frequency::new(10.0), ..WorkloadSpec::new(kind) };
        let two = |kind| WorkloadSpec { sources: 2, ..WorkloadSpec::new(kind) };
        assert!(two(Kind::Bulk).check().unwrap_err().to_string().contains("`sources`"));
        assert_eq!(two(Kind::Oneway).check(), Ok(()));
        let with_size = |kind, size| WorkloadSpec { size: Some(ByteCount(size)), ..WorkloadSpec::new(kind) };
        assert!(with_rate(Kind::Pingpong).check().unwrap_err().to_string().contains("`rate`"));
        assert!(with_size(Kind::Simco, 64).check().is_err());
        assert_eq!(with_size(Kind::Echo, 7).check(), Err(WorkloadError::Size { size: 7 }));
        assert_eq!(with_size(Kind::Echo, 8).check(), Ok(()));
    }

    #[test]
    fn a_mix_is_of_simco_and_deletes_what_it_enables() {
        let mixed = |kind, enable, delete| {
            let mix = Mix { enable, lifetime: 1, delete };
            WorkloadSpec { mix, ..WorkloadSpec::new(kind) }.check()
        };
        assert_eq!(mixed(Kind::Simco, 2, 2), Ok(()));
        assert!(mixed(Kind::Simco, 0, 0).is_err());
        let error = mixed(Kind::Simco, 1, 2).unwrap_err().to_string();
        assert!(error.contains("enables 1 and deletes 2"), "{error}");
        assert!(mixed(Kind::Echo, 2, 1).unwrap_err().to_string().contains("`mix`"));
        let filtered = |kind| WorkloadSpec { filter: Filter::Nftables, ..WorkloadSpec::new(kind) };
        assert_eq!(filtered(Kind::Simco).check(), Ok(()));
        assert!(filtered(Kind::Bulk).check().unwrap_err().to_string().contains("`filter`"));
    }

    #[test]
    fn the_settled_table_names_every_default_and_stays_valid() {
        for kind in [Kind::Simco, Kind::Echo, Kind::Pingpong, Kind::Oneway, Kind::Bulk] {
            let settled = WorkloadSpec::new(kind).settled();
            assert_eq!(settled.check(), Ok(()));
            assert_eq!(settled.size.is_none(), kind == Kind::Simco);
            assert_eq!(settled.rate.is_none(), matches!(kind, Kind::Pingpong | Kind::Bulk));
        }
    }

    #[test]
    fn an_interval_stands_for_a_rate_and_none_at_all_for_the_transports_own_pace() {
        let every = |interval| WorkloadSpec { interval: Some(interval), ..WorkloadSpec::new(Kind::Oneway) };
        let (twenty, none) = (every(Duration::from_millis(20)), every(Duration::ZERO));
        assert_eq!((twenty.rate(), none.rate()), (Frequency::new(50.0), None));
        assert_eq!((twenty.settled().check(), none.settled().check()), (Ok(()), Ok(())));
        let both = WorkloadSpec { rate: Frequency::new(50.0), ..twenty };
        assert_eq!(both.check(), Err(WorkloadError::RateAndInterval));
        let greedy = WorkloadSpec { interval: Some(Duration::ZERO), ..WorkloadSpec::new(Kind::Bulk) };
        assert!(greedy.check().unwrap_err().to_string().contains("`interval`"));
    }
}
