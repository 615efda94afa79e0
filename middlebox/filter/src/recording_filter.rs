//! A packet filter for tests.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_simco::{Change, Pid, Rule};

use crate::{Corrections, FilterError, PacketFilter};

/// A packet filter for tests, which records the batches of changes and rejects them on demand.
#[derive(Debug, Clone, Default)]
pub struct RecordingFilter {
    batches: Vec<Vec<Change>>,
    rules: BTreeMap<Pid, Rule>,
    refused_pid: Option<Pid>,
}

impl RecordingFilter {
    /// Returns the batches of changes that have been applied, in order.
    pub fn batches(&self) -> &[Vec<Change>] {
        &self.batches
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }

    /// Makes all batches with a change of this rule fail; with `None`, no batches fail.
    pub fn refuse(&mut self, pid: Option<Pid>) {
        self.refused_pid = pid;
    }
}

impl PacketFilter for RecordingFilter {
    fn apply(&mut self, _now: Time, changes: &[Change]) -> Result<(), FilterError> {
        let pid_of = |change: &Change| change.after.or(change.before).map(|rule| rule.pid);
        if let Some(pid) = self.refused_pid
            && let Some(change) = changes.iter().position(|change| pid_of(change) == Some(pid))
        {
            let source = std::io::ErrorKind::Other.into();
            return Err(FilterError::Refused { changes: vec![change], is_transient: false, source });
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

    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Corrections, FilterError> {
        let wanted: BTreeMap<Pid, Rule> =
            rules.iter().filter(|rule| rule.is_in_force(now)).map(|rule| (rule.pid, *rule)).collect();
        let lacks = |some: &BTreeMap<Pid, Rule>, other: &BTreeMap<Pid, Rule>| {
            other.iter().filter(|(pid, rule)| some.get(pid) != Some(rule)).count()
        };
        let mended =
            Corrections { missing: lacks(&self.rules, &wanted), surplus: lacks(&wanted, &self.rules) };
        self.rules = wanted;
        Ok(mended)
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_simco::{Action, AddressTuple, AgentId, Location};

    use super::*;

    fn begin(pid: u32) -> Change {
        let host = |location| AddressTuple::of_host(location, 17, "192.0.2.1:5004".parse().unwrap());
        let action =
            Action::Disable { internal: host(Location::Internal), external: host(Location::External) };
        let expires = Time::ZERO + Duration::from_secs(60);
        Change { before: None, after: Some(Rule { pid: Pid(pid), owner: AgentId::NOBODY, expires, action }) }
    }

    #[test]
    fn a_batch_with_the_refused_rule_changes_nothing() {
        let mut filter = RecordingFilter::default();
        filter.apply(Time::ZERO, &[begin(1)]).unwrap();
        filter.refuse(Some(Pid(3)));
        let error = filter.apply(Time::ZERO, &[begin(2), begin(3)]).unwrap_err();
        assert!(matches!(error, FilterError::Refused { ref changes, .. } if *changes == [1]), "{error}");
        assert_eq!((filter.batches().len(), filter.rules().count()), (1, 1));
        filter.apply(Time::ZERO, &[begin(2), begin(1).inverse()]).unwrap();
        assert_eq!(filter.rules().map(|rule| rule.pid).collect::<Vec<_>>(), [Pid(2)]);
    }

    #[test]
    fn reconciliation_counts_missing_and_surplus_rules() {
        let mut filter = RecordingFilter::default();
        filter.apply(Time::ZERO, &[begin(1), begin(2)]).unwrap();
        let wanted: Vec<Rule> =
            [begin(2), begin(3), begin(4)].iter().filter_map(|change| change.after).collect();
        assert_eq!(filter.reconcile(Time::ZERO, &wanted).unwrap(), Corrections { missing: 2, surplus: 1 });
        assert_eq!(filter.reconcile(Time::ZERO, &wanted).unwrap(), Corrections::default());
    }
}
