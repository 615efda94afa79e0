//! A filter for tests.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_simco::{Change, Pid, Rule};

use crate::{FilterError, Mended, PacketFilter};

/// Remembers what it was told, and fails on demand.
#[derive(Debug, Clone, Default)]
pub struct RecordingFilter {
    batches: Vec<Vec<Change>>,
    rules: BTreeMap<Pid, Rule>,
    refused: Option<Pid>,
}

impl RecordingFilter {
    /// The batches that it made, in order.
    pub fn batches(&self) -> &[Vec<Change>] {
        &self.batches
    }

    /// The rules that hold.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }

    /// From now on refuses batches with a change of this rule; `None` refuses none.
    pub fn refuse(&mut self, pid: Option<Pid>) {
        self.refused = pid;
    }
}

impl PacketFilter for RecordingFilter {
    fn apply(&mut self, _now: Time, changes: &[Change]) -> Result<(), FilterError> {
        let pid_of = |change: &Change| change.after.or(change.before).map(|rule| rule.pid);
        if let Some(pid) = self.refused
            && let Some(change) = changes.iter().position(|change| pid_of(change) == Some(pid))
        {
            return Err(FilterError::Refused { change, source: std::io::ErrorKind::Other.into() });
        }
        for change in changes {
            if let Some(before) = change.before {
                self.rules.remove(&before.pid);
            }
            if let Some(after) = change.after {
                self.rules.insert(after.pid, after);
            }
        }
        self.batches.push(changes.to_vec());
        Ok(())
    }

    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Mended, FilterError> {
        let wanted: BTreeMap<Pid, Rule> =
            rules.iter().filter(|rule| rule.is_in_force(now)).map(|rule| (rule.pid, *rule)).collect();
        let lacks = |some: &BTreeMap<Pid, Rule>, other: &BTreeMap<Pid, Rule>| {
            other.iter().filter(|(pid, rule)| some.get(pid) != Some(rule)).count()
        };
        let mended = Mended { missing: lacks(&self.rules, &wanted), surplus: lacks(&wanted, &self.rules) };
        self.rules = wanted;
        Ok(mended)
    }
}
