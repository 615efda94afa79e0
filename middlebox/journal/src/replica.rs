//! The copy of a journal on another host, which may go on in its place.
//!
//! It gets entries: first one of each rule, which replace what it had at once, then those of each batch. As they say what a
//! rule is, and not how it changes, it does not matter if some of a batch are already in the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hol_simco::{Pid, Recorded};

use crate::entry::{self, Entry, parse_all};
use crate::room::Usage;
use crate::{Journal, JournalError};

/// A copy of the journal of a middlebox, as [`Journal::open`] reads it.
#[derive(Debug)]
pub struct Replica {
    journal: Journal,
    held: BTreeSet<Pid>,
    /// Entries of a new copy that is not complete.
    incoming: Vec<u8>,
}

/// Appends the entry of a rule, for [`Replica::add`].
pub fn entry_of(recorded: &Recorded, out: &mut Vec<u8>) {
    entry::write_rule(recorded, out);
}

impl Replica {
    /// Opens the copy in this directory, or begins one.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let (journal, rules) = Journal::open(dir)?;
        let held = rules.iter().map(|recorded| recorded.rule.pid).collect();
        Ok(Self { journal, held, incoming: Vec::new() })
    }

    /// Returns the path of its directory.
    pub fn directory(&self) -> &Path {
        self.journal.directory()
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns true if it has no rule.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Begins a new copy. What was there stays until it is [complete](Self::finish).
    pub fn begin(&mut self) {
        self.incoming.clear();
    }

    /// Adds entries of rules to the new copy.
    pub fn add(&mut self, entries: &[u8]) {
        self.incoming.extend_from_slice(entries);
    }

    /// Replaces what was there by the new copy, which is on the disk on return.
    pub fn finish(&mut self) -> Result<(), JournalError> {
        let incoming = std::mem::take(&mut self.incoming);
        let (mut held, mut entries) = (BTreeSet::new(), Vec::new());
        for parsed in parse_all(&incoming) {
            match parsed {
                Some((Entry::Holds(recorded), octets)) if held.insert(recorded.rule.pid) => {
                    entries.push(octets);
                }
                _ => return Err(JournalError::Unreadable),
            }
        }
        self.journal.replace(&entries)?;
        self.held = held;
        Ok(())
    }

    /// Records the entries of a batch, which are on the disk on return.
    pub fn record(&mut self, entries: &[u8]) -> Result<(), JournalError> {
        let Usage { mut held, mut superseded, octets } = self.journal.usage();
        // Which rules there are after the entries so far, where they say so.
        let mut now: BTreeMap<Pid, bool> = BTreeMap::new();
        let mut kept = Vec::with_capacity(entries.len());
        for parsed in parse_all(entries) {
            let Some((entry, octets)) = parsed else { return Err(JournalError::Unreadable) };
            let is_held = |pid: &Pid| now.get(pid).copied().unwrap_or_else(|| self.held.contains(pid));
            match entry {
                Entry::Holds(Recorded { rule, .. }) => {
                    if is_held(&rule.pid) {
                        superseded += 1;
                    } else {
                        held += 1;
                    };
                    now.insert(rule.pid, true);
                }
                Entry::Ended(pid) if is_held(&pid) => {
                    held -= 1;
                    superseded += 2;
                    now.insert(pid, false);
                }
                // The copy was begun after its end.
                Entry::Ended(_) => continue,
            }
            kept.extend_from_slice(octets);
        }
        if kept.is_empty() {
            return Ok(());
        }
        self.journal.record_entries(&kept, Usage { held, superseded, octets })?;
        for (pid, is_held) in now {
            if is_held {
                self.held.insert(pid)
            } else {
                self.held.remove(&pid)
            };
        }
        Ok(())
    }

    /// Syncs the mark and compacts, where that is due. An error costs no record.
    pub fn tidy(&mut self) -> Result<(), JournalError> {
        if self.journal.is_mark_behind() {
            self.journal.sync_mark()?;
        }
        self.journal.tidy()
    }
}
