//! Applies changes to the packet filter, then to the journal: to both or to neither.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use hol_base::{Duration, Time};
use hol_filter::{Corrections, FilterError, PacketFilter, Progress};
use hol_journal::{Journal, JournalError};
use hol_simco::{Batch, Change, Middlebox, Policy, Refusal, Rule};

use crate::clock::Clock;
use crate::log::Level;
use crate::metrics::Metrics;
use crate::standby::Shipper;

/// The packet filter and the journal.
pub(crate) struct Ledger {
    filter: Box<dyn PacketFilter>,
    journal: Option<Journal>,
    /// Ends of rules, and changes taken back, that could not be recorded: recorded with the next changes. A rule
    /// that replaces one of them is never recorded before that end.
    owed: Vec<Change>,
    clock: Clock,
    metrics: Metrics,
    /// When to repair the filter, if its content may be wrong.
    mend_at: Time,
    /// When to continue the repair; [`Time::MAX`] if finished.
    go_on_at: Time,
    /// When to check whether somebody else has changed the filter, if possible.
    look_at: Time,
    /// Where the clock is to be stored, when there is room, and when to try.
    unkept: Option<PathBuf>,
    keep_at: Time,
    /// When to sync the journal's mark.
    mark_at: Time,
    /// When to compact the journal again, if necessary.
    tidy_at: Time,
    /// The second middlebox that gets every record.
    standby: Option<Shipper>,
}

/// Why a change could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It is not in force.
    #[error("packet filter: {0}")]
    Filter(#[from] FilterError),
    /// It is not recorded.
    #[error("journal: {0}")]
    Journal(#[from] JournalError),
    /// It is not recorded by the standby.
    #[error(
        "the standby has not recorded the change, which [standby] required = true demands; start the standby, or set required = false"
    )]
    Standby,
}

impl LedgerError {
    /// Returns the log level: agents must not be able to fill a log with failing requests.
    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Filter(FilterError::Unsupported { .. } | FilterError::TooManyShapes(_)) => Level::Debug,
            Self::Filter(_) | Self::Journal(_) | Self::Standby => Level::Error,
        }
    }

    /// Returns the changes that it is due to; `None` if it concerns all.
    fn changes(&self, all: &[Change]) -> Option<Vec<usize>> {
        match self {
            Self::Filter(FilterError::Refused { changes, .. }) => Some(changes.clone()),
            Self::Filter(FilterError::Unsupported { pid, .. }) => {
                let is_of = |rule: &Option<Rule>| rule.is_some_and(|rule| rule.pid == *pid);
                let are_of = |(_, change): &(usize, &Change)| is_of(&change.before) || is_of(&change.after);
                Some(all.iter().enumerate().filter(are_of).map(|(index, _)| index).collect())
            }
            _ => None,
        }
    }

    /// Returns the answer to a request that it is due to. RFC 4540 sections 4.2.3 and 8.3.2: what may work later
    /// lacks resources.
    fn refusal(&self) -> Refusal {
        match self {
            Self::Filter(FilterError::Refused { is_transient: true, .. }) => Refusal::NoResources,
            _ => Refusal::ConfigurationFailed,
        }
    }

    /// Returns true if it is unknown what is recorded, so that only a restart helps.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Journal(JournalError::Broken { .. }))
    }
}

impl Ledger {
    /// Interval between attempts to repair the filter.
    const MENDING: Duration = Duration::from_secs(1);
    /// How often a batch is repeated without the requests whose changes were rejected.
    const MOST_REPEATS: usize = 2;
    /// Cost of a rejected batch, in units of about a nanosecond: the kernel waits for a grace period.
    const ATTEMPT: u64 = 5_000_000;
    /// How long the journal's mark may be behind. A turn that syncs it waits for the disk once more.
    const MARKING: Duration = Duration::from_secs(1);
    /// Interval between attempts to compact the journal that fail.
    const TIDYING: Duration = Duration::from_secs(60);
    /// Interval between checks for others' changes to it.
    const LOOKING: Duration = Duration::from_secs(1);

    pub fn new(clock: Clock, filter: Box<dyn PacketFilter>, journal: Option<Journal>) -> Self {
        let look_at = if filter.is_guarded() { Time::MAX } else { Time::ZERO };
        Self {
            filter,
            journal,
            owed: Vec::new(),
            clock,
            metrics: Metrics::default(),
            mend_at: Time::MAX,
            go_on_at: Time::MAX,
            look_at,
            unkept: None,
            keep_at: Time::MAX,
            mark_at: Time::MAX,
            tidy_at: Time::ZERO,
            standby: None,
        }
    }

    /// Returns the ledger with a standby that gets every record.
    pub fn with_standby(self, standby: Option<Shipper>) -> Self {
        Self { standby, ..self }
    }

    /// Returns the standby, if there is to be one.
    pub fn standby(&mut self) -> Option<&mut Shipper> {
        self.standby.as_mut()
    }

    /// Returns the ledger with ends of rules to record, and a directory for the clock, which a full disk did not take.
    pub fn with_debts(self, owed: Vec<Change>, unkept: Option<PathBuf>) -> Self {
        let keep_at = if unkept.is_some() { Time::ZERO } else { Time::MAX };
        Self { owed, unkept, keep_at, ..self }
    }

    /// Returns its counters.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Applies the changes of a batch together. If some of them are rejected, it refuses the requests that caused
    /// these, and applies the others together; after a few attempts, or if all are rejected, it refuses all
    /// requests that change anything. So nobody waits long for what others ask in vain. Returns the reasons.
    pub fn commit(&mut self, now: Time, middlebox: &mut Middlebox, batch: &mut Batch) -> Vec<LedgerError> {
        let mut failures: Vec<LedgerError> = Vec::new();
        while let Err(failure) = self.make(now, batch.changes(), middlebox.policy()) {
            self.metrics.numbers().failures += 1;
            batch.count(Self::ATTEMPT);
            let changes = failure.changes(batch.changes()).filter(|_| failures.len() < Self::MOST_REPEATS);
            // For want of a standby the filter was not asked, or was put back.
            if changes.is_none() && !matches!(failure, LedgerError::Standby) {
                self.doubt(now);
            }
            let mut refuse =
                |changes: Option<&[usize]>| refuse(now, middlebox, batch, changes, failure.refusal());
            let is_less = changes.is_some_and(|changes| refuse(Some(&changes))) || refuse(None);
            failures.push(failure);
            if !is_less {
                // Rules that have ended stay ended, even if the filter cannot remove them.
                self.owe(batch.changes());
                self.doubt(now);
                break;
            }
        }
        failures
    }

    /// Applies all of the changes, or none.
    fn make(&mut self, now: Time, changes: &[Change], policy: &Policy) -> Result<(), LedgerError> {
        if changes.is_empty() {
            return Ok(());
        }
        let begin = self.clock.now();
        if self.is_refused() {
            return self.end_without_standby(now, changes);
        }
        self.filter.apply(now, changes)?;
        let filtered = self.clock.now();
        if let Err(failure) = self.record(changes, policy) {
            let inverses: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
            if self.filter.apply(now, &inverses).is_err() {
                self.doubt(now);
            }
            return Err(failure);
        }
        if self.is_mark_behind() {
            self.mark_at = self.mark_at.min(now + Self::MARKING);
        }
        let spans = (filtered.since(begin), self.clock.now().since(filtered));
        self.metrics.numbers().count_batch(changes, spans);
        Ok(())
    }

    /// Returns true if nothing may be recorded.
    fn is_refused(&self) -> bool {
        self.journal.is_some() && self.standby.as_ref().is_some_and(Shipper::refuses)
    }

    /// Ends rules whose lifetimes are over, which is nobody's decision, and refuses everything else.
    fn end_without_standby(&mut self, now: Time, changes: &[Change]) -> Result<(), LedgerError> {
        let is_over = |change: &Change| {
            change.after.is_none() && change.before.is_some_and(|rule| !rule.is_in_force(now))
        };
        if !changes.iter().all(is_over) {
            return Err(LedgerError::Standby);
        }
        self.filter.apply(now, changes)?;
        self.owe(changes);
        Ok(())
    }

    fn owe(&mut self, ends: &[Change]) {
        if self.journal.is_some() {
            self.owed.extend_from_slice(ends);
        }
    }

    /// Records the changes, after those still owed.
    fn record(&mut self, changes: &[Change], policy: &Policy) -> Result<(), LedgerError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let name = |agent| policy.name(agent);
        if self.owed.is_empty() {
            journal.record(changes, name)?;
        } else {
            journal.record(&[&self.owed, changes].concat(), name)?;
            self.owed.clear();
        }
        let Some(standby) = &self.standby else { return Ok(()) };
        if !standby.ship(journal.last_entries()) {
            // It may have them or not, as with a reply that was not sent. Here they are taken back.
            let inverses: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
            if let Err(failure) = journal.record(&inverses, name) {
                self.owed.extend(inverses);
                return Err(failure.into());
            }
            // Another standby may have begun meanwhile. If not, this one begins with the journal.
            standby.ship(journal.last_entries());
            return Err(LedgerError::Standby);
        }
        Ok(())
    }

    fn doubt(&mut self, now: Time) {
        self.mend_at = self.mend_at.min(now + Self::MENDING);
    }

    /// Returns when to [`look`](Self::look), to [`mend`](Self::mend) or to [continue](Self::go_on);
    /// [`Time::MAX`] if the filter is correct.
    pub fn wake_at(&self) -> Time {
        self.mend_at.min(self.look_at).min(self.go_on_at).min(self.keep_at).min(self.mark_at)
    }

    /// Returns true if it is time to [`mend`](Self::mend).
    pub fn is_doubtful(&self, now: Time) -> bool {
        self.mend_at <= now
    }

    /// Returns true if the check is due and somebody else has changed the filter, which makes a repair due.
    pub fn look(&mut self, now: Time) -> bool {
        if self.look_at > now {
            return false;
        }
        self.look_at = now + Self::LOOKING;
        let is_touched = self.filter.is_touched();
        if is_touched {
            self.mend_at = now;
        }
        is_touched
    }

    /// Makes the filter contain exactly the rules of the middlebox.
    pub fn mend(&mut self, now: Time, middlebox: &Middlebox) -> Result<Corrections, LedgerError> {
        self.mend_at = now + Self::MENDING;
        let rules: Vec<Rule> = middlebox.rules(now).copied().collect();
        let mended = self.filter.reconcile(now, &rules)?;
        self.mend_at = Time::MAX;
        self.go_on_at = Time::ZERO;
        Ok(mended)
    }

    /// Continues the repair in a small step; returns true if it is finished.
    pub fn go_on(&mut self, now: Time) -> Result<bool, LedgerError> {
        if self.go_on_at > now {
            return Ok(false);
        }
        self.go_on_at = Time::MAX;
        match self.filter.go_on(now) {
            Ok(Progress::GoesOn) => self.go_on_at = Time::ZERO,
            Ok(Progress::Waits) => self.go_on_at = now + Self::MENDING,
            Ok(Progress::Done) => return Ok(true),
            Err(failure) => {
                self.doubt(now);
                return Err(failure.into());
            }
        }
        Ok(false)
    }

    /// Tries to store the clock, if that is due; returns true if it is stored at last.
    pub fn keep_clock(&mut self, now: Time) -> bool {
        let Some(directory) = self.unkept.as_deref().filter(|_| self.keep_at <= now) else { return false };
        let is_kept = self.clock.keep(directory).is_ok();
        self.keep_at = if is_kept { Time::MAX } else { now + Self::MENDING };
        is_kept
    }

    /// Returns true if the journal's mark is not synced.
    pub fn is_mark_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_mark_behind)
    }

    /// Syncs the journal's mark when that is due.
    pub fn sync_mark(&mut self, now: Time) -> Result<(), LedgerError> {
        let Some(journal) = self.journal.as_mut().filter(|_| self.mark_at <= now) else { return Ok(()) };
        let synced = journal.sync_mark();
        self.mark_at = if synced.is_ok() { Time::MAX } else { now + Self::MENDING };
        Ok(synced?)
    }

    /// Lets the journal drop superseded entries, if there are many. After a failure it waits a while.
    pub fn tidy(&mut self, now: Time) -> Result<(), LedgerError> {
        let Some(journal) = self.journal.as_mut().filter(|_| self.tidy_at <= now) else { return Ok(()) };
        let tidied = journal.tidy();
        if tidied.is_err() {
            self.tidy_at = now + Self::TIDYING;
        }
        Ok(tidied?)
    }
}

/// Repeats a batch without the requests that caused these changes, or without all that change anything, which are
/// refused. Returns false if there are none.
fn refuse(
    now: Time,
    middlebox: &mut Middlebox,
    batch: &mut Batch,
    changes: Option<&[usize]>,
    refusal: Refusal,
) -> bool {
    let to_refuse: Option<BTreeSet<usize>> =
        changes.map(|changes| changes.iter().map(|change| batch.step_of(*change)).collect());
    let mut is_less = false;
    middlebox.undo(batch);
    for step in 0.. {
        if !middlebox.redo(now, batch) {
            break;
        }
        let is_named = to_refuse.as_ref().is_none_or(|steps| steps.contains(&step));
        if is_named && !batch.last_step().is_empty() {
            is_less |= middlebox.refuse(refusal, batch);
        }
    }
    is_less
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("mend_at", &self.mend_at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
