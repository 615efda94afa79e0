//! Rules that begin, change and end, and a directory that records them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hol_base::Time;
use hol_journal::{Durability, Journal, JournalError, RecordedRule};
use hol_simco::*;
use tempfile::TempDir;

const UDP: u8 = 17;

/// Returns a pinhole; `version` distinguishes it from others with its PID.
pub fn rule(pid: u32, version: u32) -> Rule {
    let internal = AddressTuple::of_host(Location::Internal, UDP, "10.0.0.5:5004".parse().unwrap());
    let external = AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap());
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::Inbound };
    let action =
        Action::Enable { gid: Gid(pid), parameters, internal, external, binding: Binding::default() };
    let expires = Time::from_nanos(1_800_000_000_000_000_000 + u64::from(version));
    Rule { pid: Pid(pid), owner: AgentId::NOBODY, expires, action }
}

pub fn begin(rule: Rule) -> Change {
    Change { before: None, after: Some(rule) }
}

/// The current rules by PID, which a journal has to contain.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CurrentRules(pub BTreeMap<Pid, Rule>);

impl CurrentRules {
    /// Returns a change according to random values: the rule begins, changes, or ends.
    pub fn change(&mut self, pid: u32, version: u32, is_end: bool) -> Change {
        let before = self.0.remove(&Pid(pid));
        let after = (!is_end || before.is_none()).then(|| rule(pid, version));
        self.0.extend(after.map(|rule| (rule.pid, rule)));
        Change { before, after }
    }

    pub fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            self.0.extend(change.after.map(|rule| (rule.pid, rule)));
            if let Change { before: Some(rule), after: None } = change {
                self.0.remove(&rule.pid);
            }
        }
    }
}

impl From<Vec<RecordedRule>> for CurrentRules {
    fn from(rules: Vec<RecordedRule>) -> Self {
        assert!(rules.iter().all(|recorded| recorded.owner == "call-server"));
        Self(rules.into_iter().map(|recorded| (recorded.rule.pid, recorded.rule)).collect())
    }
}

/// A temporary directory, whose journals do not wait for the disk.
pub struct Store(TempDir);

impl Store {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn segment(&self, number: u32) -> PathBuf {
        self.path().join(format!("journal.{number:010}"))
    }

    pub fn try_open(&self) -> Result<(Journal, CurrentRules), JournalError> {
        let (journal, rules) = Journal::open(self.path())?;
        Ok((journal.with_durability(Durability::Buffered), rules.into()))
    }

    pub fn open(&self) -> (Journal, CurrentRules) {
        self.try_open().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the names of all files except the mark, in order.
    pub fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "mark").collect();
        names.sort();
        names
    }
}

pub fn record(journal: &mut Journal, changes: &[Change]) {
    try_record(journal, changes).unwrap_or_else(|error| panic!("{error}"));
}

pub fn try_record(journal: &mut Journal, changes: &[Change]) -> Result<(), JournalError> {
    journal.record(changes, |_| Owner::new("call-server"))
}
