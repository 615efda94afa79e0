//! What belongs to a host and not to an application on it.

use std::fmt;

use hol_base::{Duration, Time};
use hol_simco::{Change, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Desk, Processor};

/// The `[hosts.NAME]` table of an experiment: what a node has beside its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// What a middlebox on it puts its rules in force with, before it replies; `nftables` in the kernel world alone. Default
    /// `none`.
    pub filter: Filter,
    /// The time that it takes for each message that an application on it reads, one after the other. Default none.
    pub service: Duration,
}

impl HostSpec {
    /// What makes messages wait, if anything does.
    pub fn processor(self) -> Option<Processor> {
        (self.service > Duration::ZERO).then(|| Processor::new(self.service))
    }
}

/// What puts the rules of a middlebox in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Nothing does: it grants them, and that is all.
    #[default]
    None,
    /// The packet filter of the Linux kernel that it runs on.
    Nftables,
}

/// What a host lends to the application that it starts.
#[derive(Debug, Default)]
pub struct Host {
    /// Its packet filter, if it has one.
    pub filter: Option<Box<dyn Enforce>>,
    /// Where requests wait until it has asked others, if it asks any.
    pub desk: Option<Desk>,
}

/// A packet filter in the hands of a middlebox.
pub trait Enforce: fmt::Debug {
    /// Makes all changes of rules, or none; false: it cannot.
    fn apply(&mut self, now: Time, changes: &[Change]) -> bool;
    /// The run is over, and these are the rules that were said to be in force.
    fn settle(&mut self, now: Time, rules: &[Rule]);
}
