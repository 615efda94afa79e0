//! Properties of a host, not of an application on it.

use std::fmt;

use hol_base::{Duration, Time};
use hol_simco::{Change, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PendingRequests, Processor};

/// Node properties apart from links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// How a middlebox enforces rules before it replies; `"nftables"` only in the kernel world. Default `"none"`.
    pub filter: Filter,
    /// Time to process each message that an application reads; messages are processed one at a time. Default none.
    pub service: Duration,
}

impl HostSpec {
    /// Returns the processor whose processing time makes messages wait; `None` without processing time.
    pub fn processor(self) -> Option<Processor> {
        (self.service > Duration::ZERO).then(|| Processor::new(self.service))
    }
}

/// How the rules of a middlebox are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Rules are granted but not enforced.
    #[default]
    None,
    /// Rules are enforced with nftables in the host's Linux kernel.
    Nftables,
}

/// The resources that a host provides to its application.
#[derive(Debug, Default)]
pub struct Host {
    /// Packet filter of the host, if it has one.
    pub filter: Option<Box<dyn RuleEnforcer>>,
    /// Requests that wait for the replies to onward requests; `None` if the server sends no onward requests.
    pub pending_requests: Option<PendingRequests>,
}

/// A packet filter controlled by a middlebox.
pub trait RuleEnforcer: fmt::Debug {
    /// Applies all changes of rules, or none. Returns false if it could not apply them.
    fn apply(&mut self, now: Time, changes: &[Change]) -> bool;
    /// Compares the packet filter with `rules`, which should be in force at the end of the run, and records the
    /// differences.
    fn verify_rules(&mut self, now: Time, rules: &[Rule]);
}
