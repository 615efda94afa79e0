//! The copy of a journal on another host, which can take over.
//!
//! The copy receives entries: first one for each rule, which replace the copy's previous content, then the
//! entries of each batch. An entry contains the whole rule, not a change, so the copy may already have some
//! entries of a batch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hol_simco::{Pid, RecordedRule};

use crate::entry::{self, Entry, parse_all};
use crate::usage::JournalUsage;
use crate::{Journal, JournalError};

/// A standby's copy of a middlebox's journal; [`Journal::open`] can open it.
#[derive(Debug)]
pub struct Replica {
    journal: Journal,
    /// PIDs of the current rules.
    current: BTreeSet<Pid>,
    /// Entries of a new copy that is not complete yet.
    incoming: Vec<u8>,
}

/// Encodes the entry of a rule for [`Replica::add`] and appends it to `out`.
pub fn write_entry(recorded: &RecordedRule, out: &mut Vec<u8>) {
    entry::write_rule(recorded, out);
}

impl Replica {
    /// Opens the copy in this directory, and creates it if there is none.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let (journal, rules) = Journal::open(dir)?;
        let current = rules.iter().map(|recorded| recorded.rule.pid).collect();
        Ok(Self { journal, current, incoming: Vec::new() })
    }

    /// Returns the path of the directory that contains the copy.
    pub fn directory(&self) -> &Path {
        self.journal.directory()
    }

    /// Returns the number of current rules.
    pub fn len(&self) -> usize {
        self.current.len()
    }

    /// Returns true if the copy has no current rules.
    pub fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// Begins a new copy. The previous content stays until the new copy is [finished](Self::finish).
    pub fn begin(&mut self) {
        self.incoming.clear();
    }

    /// Adds entries of rules to the new copy.
    pub fn add(&mut self, entries: &[u8]) {
        self.incoming.extend_from_slice(entries);
    }

    /// Replaces the previous content with the new copy, which is on the disk on return.
    pub fn finish(&mut self) -> Result<(), JournalError> {
        let incoming = std::mem::take(&mut self.incoming);
        let (mut current, mut entries) = (BTreeSet::new(), Vec::new());
        for parsed in parse_all(&incoming) {
            match parsed {
                Some((Entry::Current(recorded), octets)) if current.insert(recorded.rule.pid) => {
                    entries.push(octets);
                }
                _ => return Err(JournalError::Unreadable),
            }
        }
        self.journal.replace(&entries)?;
        self.current = current;
        Ok(())
    }

    /// Records the entries of a batch, which are on the disk on return.
    pub fn record(&mut self, entries: &[u8]) -> Result<(), JournalError> {
        let JournalUsage { mut current, mut superseded, octets } = self.journal.usage();
        // For each rule in the entries so far: true if these entries leave the rule in force.
        let mut now: BTreeMap<Pid, bool> = BTreeMap::new();
        let mut relevant = Vec::with_capacity(entries.len());
        for parsed in parse_all(entries) {
            let Some((entry, octets)) = parsed else { return Err(JournalError::Unreadable) };
            let is_current = |pid: &Pid| now.get(pid).copied().unwrap_or_else(|| self.current.contains(pid));
            match entry {
                Entry::Current(RecordedRule { rule, .. }) => {
                    if is_current(&rule.pid) {
                        superseded += 1;
                    } else {
                        current += 1;
                    };
                    now.insert(rule.pid, true);
                }
                Entry::Ended(pid) if is_current(&pid) => {
                    current -= 1;
                    superseded += 2;
                    now.insert(pid, false);
                }
                // The rule had ended before the copy began.
                Entry::Ended(_) => continue,
            }
            relevant.extend_from_slice(octets);
        }
        if relevant.is_empty() {
            return Ok(());
        }
        self.journal.record_entries(&relevant, JournalUsage { current, superseded, octets })?;
        for (pid, is_current) in now {
            if is_current {
                self.current.insert(pid)
            } else {
                self.current.remove(&pid)
            };
        }
        Ok(())
    }

    /// Syncs the high-water mark and compacts the journal, each if it is time. In case of an error no record is lost.
    pub fn compact_if_due(&mut self) -> Result<(), JournalError> {
        if self.journal.needs_mark_sync() {
            self.journal.sync_mark()?;
        }
        self.journal.compact_if_due()
    }
}
