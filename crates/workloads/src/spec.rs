//! The `[workload]` table of an experiment.

use hol_base::{ByteCount, Duration, Frequency};
use serde::{Deserialize, Serialize};

/// What the application does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The application.
    pub kind: Kind,
    /// Messages a second; not for `pingpong`, which sends when the reply comes. Default 100/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// How the messages are spaced; not for `pingpong`. Default periodic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Octets of a message, and of its reply; not for `simco`, whose messages have their own. Default 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteCount>,
    /// The run is aborted when a message cannot be handed to the transport this long after its scheduled time.
    #[serde(default = "default_late_limit")]
    pub late_limit: Duration,
}

/// The applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Policy enable requests to a middlebox, which grants them. RFC 4540.
    Simco,
    /// Each message comes back as it is.
    Echo,
    /// As `echo`, but the next message goes out when the reply to the last came back.
    Pingpong,
    /// Messages without replies.
    Oneway,
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
        Self { kind, rate: None, arrivals: None, size: None, late_limit: default_late_limit() }
    }

    /// Messages a second; `None` for a closed loop.
    pub fn rate(&self) -> Option<Frequency> {
        let default = || Frequency::new(100.0).expect("above zero");
        (self.kind != Kind::Pingpong).then(|| self.rate.unwrap_or_else(default))
    }

    /// How the messages are spaced.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.unwrap_or_default()
    }

    /// Octets of a message of the kinds whose messages are padding.
    pub fn size(&self) -> u64 {
        self.size.map_or(128, |size| size.0)
    }

    /// Whether each message is answered.
    pub fn has_replies(&self) -> bool {
        self.kind != Kind::Oneway
    }

    /// Whether the next message waits for the reply to the last one.
    pub fn waits_for_replies(&self) -> bool {
        self.kind == Kind::Pingpong
    }

    /// The same workload with every default spelt out.
    pub fn settled(&self) -> Self {
        let open_loop = self.rate();
        Self {
            kind: self.kind,
            rate: open_loop,
            arrivals: open_loop.map(|_| self.arrivals()),
            size: (self.kind != Kind::Simco).then(|| ByteCount(self.size())),
            late_limit: self.late_limit,
        }
    }

    /// Refuses keys that mean nothing for the kind, and impossible sizes.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let kind = self.kind.name();
        let meaningless = |key, reason| Err(WorkloadError::Meaningless { key, kind, reason });
        match self.kind {
            Kind::Pingpong if self.rate.is_some() => {
                meaningless("rate", "the next message waits for the reply")
            }
            Kind::Pingpong if self.arrivals.is_some() => {
                meaningless("arrivals", "the next message waits for the reply")
            }
            Kind::Simco if self.size.is_some() => {
                meaningless("size", "RFC 4540 gives its messages their sizes")
            }
            _ if !(Self::MIN_SIZE..=Self::MAX_SIZE).contains(&self.size()) => {
                Err(WorkloadError::Size { size: self.size() })
            }
            _ => Ok(()),
        }
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
        }
    }
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
        let with_size = |kind, size| WorkloadSpec { size: Some(ByteCount(size)), ..WorkloadSpec::new(kind) };
        assert!(with_rate(Kind::Pingpong).check().unwrap_err().to_string().contains("`rate`"));
        assert!(with_size(Kind::Simco, 64).check().is_err());
        assert_eq!(with_size(Kind::Echo, 7).check(), Err(WorkloadError::Size { size: 7 }));
        assert_eq!(with_size(Kind::Echo, 8).check(), Ok(()));
    }

    #[test]
    fn the_settled_table_names_every_default_and_stays_valid() {
        for kind in [Kind::Simco, Kind::Echo, Kind::Pingpong, Kind::Oneway] {
            let settled = WorkloadSpec::new(kind).settled();
            assert_eq!(settled.check(), Ok(()));
            assert_eq!(settled.size.is_none(), kind == Kind::Simco);
            assert_eq!(settled.rate.is_none(), kind == Kind::Pingpong);
        }
    }
}
