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
use crate::standby::Replicator;

/// The packet filter and the journal, to which changes of rules are applied.
pub(crate) struct RuleStore {
    filter: Box<dyn PacketFilter>,
    journal: Option<Journal>,
    /// Changes that the journal has not recorded yet: ends of rules, and reversals of changes. They are recorded before
    /// all further changes, so the journal never contains a new rule before the end of the rule that it replaces.
    unrecorded: Vec<Change>,
    clock: Clock,
    metrics: Metrics,
    /// When to repair the packet filter, whose content may be wrong.
    repair_at: Time,
    /// When to continue the repair of the packet filter; [`Time::MAX`] if no repair is in progress.
    continue_at: Time,
    /// When to check whether another program has changed the packet filter; [`Time::MAX`] if no other program can.
    check_at: Time,
    /// The directory in which the clock could not be stored yet; `None` if it is stored.
    unsaved_clock: Option<PathBuf>,
    /// When to try again to store the clock; [`Time::MAX`] if it is stored.
    save_clock_at: Time,
    /// When to sync the journal's high-water mark (the recorded end of the journal).
    mark_at: Time,
    /// When to try again to compact the journal, if necessary.
    compact_at: Time,
    /// The standby, which gets every record of the journal; `None` if none is configured.
    standby: Option<Replicator>,
    /// The limit [`MAX_REPEAT_TIME`](Self::MAX_REPEAT_TIME), or another value in tests.
    max_repeat_time: Duration,
}

/// Why changes of rules could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum RuleStoreError {
    /// The packet filter failed, so the changes are not in force.
    #[error("the packet filter failed: {0}")]
    Filter(#[from] FilterError),
    /// The journal failed, so the changes are not recorded.
    #[error("journal: {0}")]
    Journal(#[from] JournalError),
    /// The standby, which is required, has not recorded the change.
    #[error(
        "the standby has not recorded the change, which required = true in [standby] demands; start the standby, or set required = false"
    )]
    Standby,
}

impl RuleStoreError {
    /// Returns the level at which the failure is logged. It is low for failures that agents can cause, so that they
    /// cannot fill the log with failing requests.
    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Filter(FilterError::Unsupported { .. } | FilterError::TooManyShapes(_)) => Level::Debug,
            Self::Filter(_) | Self::Journal(_) | Self::Standby => Level::Error,
        }
    }

    /// Returns the indices of the changes that caused the failure; `None` if the failure concerns all changes.
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

    /// Returns the refusal for the requests that caused the failure: for requests that may succeed later, a lack of
    /// resources. RFC 4540 sections 4.2.3 and 8.3.2.
    fn refusal(&self) -> Refusal {
        match self {
            Self::Filter(failure) if failure.is_transient() => Refusal::NoResources,
            _ => Refusal::ConfigurationFailed,
        }
    }

    /// Returns true if the content of the journal is unknown, so that the daemon must be restarted.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Journal(JournalError::Broken { .. }))
    }
}

impl RuleStore {
    /// Interval between attempts to repair the packet filter.
    const REPAIR_INTERVAL: Duration = Duration::from_secs(1);
    /// Maximum number of attempts to apply a batch again without the requests whose changes were rejected.
    const MAX_REPEATS: usize = 2;
    /// Maximum time for applying a batch again without rejected requests; after this time all its remaining requests
    /// are refused.
    const MAX_REPEAT_TIME: Duration = Duration::from_millis(20);
    /// Cost of a batch that the packet filter rejects, in units of about a nanosecond of processor time: the kernel
    /// waits for a grace period.
    const REJECTED_BATCH_COST: u64 = 5_000_000;
    /// Maximum time between a change and the sync of the journal's high-water mark (the recorded end of the journal). A
    /// turn that syncs the mark waits for the disk one more time.
    const MARK_DELAY: Duration = Duration::from_secs(1);
    /// Interval between attempts to compact the journal after a failure.
    const COMPACTION_RETRY: Duration = Duration::from_secs(60);
    /// Interval between checks whether other programs have changed the packet filter.
    const CHECK_INTERVAL: Duration = Duration::from_secs(1);

    pub fn new(clock: Clock, filter: Box<dyn PacketFilter>, journal: Option<Journal>) -> Self {
        let check_at = if filter.is_protected() { Time::MAX } else { Time::ZERO };
        Self {
            filter,
            journal,
            unrecorded: Vec::new(),
            clock,
            metrics: Metrics::default(),
            repair_at: Time::MAX,
            continue_at: Time::MAX,
            check_at,
            unsaved_clock: None,
            save_clock_at: Time::MAX,
            mark_at: Time::MAX,
            compact_at: Time::ZERO,
            standby: None,
            max_repeat_time: Self::MAX_REPEAT_TIME,
        }
    }

    /// Returns the rule store with a standby, which gets every record of the journal.
    pub fn with_standby(self, standby: Option<Replicator>) -> Self {
        Self { standby, ..self }
    }

    /// Returns the standby, if one is configured.
    pub fn standby(&mut self) -> Option<&mut Replicator> {
        self.standby.as_mut()
    }

    /// Returns the rule store with the writes that failed because the disk was full: `unrecorded` are changes to be
    /// recorded, and `unsaved_clock` is the directory in which to store the clock.
    pub fn with_unrecorded_changes(self, unrecorded: Vec<Change>, unsaved_clock: Option<PathBuf>) -> Self {
        let save_clock_at = if unsaved_clock.is_some() { Time::ZERO } else { Time::MAX };
        Self { unrecorded, unsaved_clock, save_clock_at, ..self }
    }

    /// Returns the rule store with `max_repeat_time` instead of [`MAX_REPEAT_TIME`](Self::MAX_REPEAT_TIME).
    #[cfg(test)]
    pub fn with_max_repeat_time(self, max_repeat_time: Duration) -> Self {
        Self { max_repeat_time, ..self }
    }

    /// Returns the counters of the daemon.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Applies the changes of a batch together, and returns the errors that made it refuse requests.
    ///
    /// If some changes are rejected, the requests that caused them are refused, and the others are applied together. If
    /// all changes are rejected, or after a few attempts or some time, all requests that change rules are refused. Thus
    /// agents do not wait long because of other agents' failing requests.
    pub fn commit(&mut self, now: Time, middlebox: &mut Middlebox, batch: &mut Batch) -> Vec<RuleStoreError> {
        let mut failures: Vec<RuleStoreError> = Vec::new();
        let repeat_until = self.clock.now() + self.max_repeat_time;
        while let Err(failure) = self.apply(now, batch.changes(), middlebox.policy()) {
            self.metrics.lock().failures += 1;
            batch.add_work(Self::REJECTED_BATCH_COST);
            let may_repeat = failures.len() < Self::MAX_REPEATS && self.clock.now() < repeat_until;
            let changes = failure.changes(batch.changes());
            // If only the standby is missing, the filter was not changed, or its change was reversed.
            if changes.is_none() && !matches!(failure, RuleStoreError::Standby) {
                self.schedule_repair(now);
            }
            let refusal = failure.refusal();
            // Requests that fail because of others may succeed later.
            let refusal_of_others = if changes.is_some() { Refusal::NoResources } else { refusal };
            let causes: BTreeSet<usize> =
                changes.into_iter().flatten().map(|change| batch.step_of(change)).collect();
            let is_cause = |step: usize| causes.contains(&step);
            let is_less = may_repeat
                && refuse(now, middlebox, batch, |step| is_cause(step).then_some(refusal))
                || refuse(now, middlebox, batch, |step| {
                    Some(if is_cause(step) { refusal } else { refusal_of_others })
                });
            failures.push(failure);
            if !is_less {
                // Rules that have ended stay ended, even if the filter cannot remove them.
                self.defer_record(batch.changes());
                self.schedule_repair(now);
                break;
            }
        }
        failures
    }

    /// Applies all changes to the journal and to the packet filter, or none.
    fn apply(&mut self, now: Time, changes: &[Change], policy: &Policy) -> Result<(), RuleStoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let begin = self.clock.now();
        if self.refuses_changes() {
            return self.end_without_standby(now, changes);
        }
        self.filter.apply(now, changes)?;
        let filtered = self.clock.now();
        if let Err(failure) = self.record(changes, policy) {
            let inverses: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
            if self.filter.apply(now, &inverses).is_err() {
                self.schedule_repair(now);
            }
            return Err(failure);
        }
        if self.needs_mark_sync() {
            self.mark_at = self.mark_at.min(now + Self::MARK_DELAY);
        }
        let spans = (filtered.since(begin), self.clock.now().since(filtered));
        self.metrics.lock().count_batch(changes, spans);
        Ok(())
    }

    /// Returns true if the rule store must not record changes, because the required standby is missing.
    fn refuses_changes(&self) -> bool {
        self.journal.is_some() && self.standby.as_ref().is_some_and(Replicator::refuses)
    }

    /// Applies the changes without the required standby if all are ends of expired rules, which need no decision;
    /// otherwise refuses all changes.
    fn end_without_standby(&mut self, now: Time, changes: &[Change]) -> Result<(), RuleStoreError> {
        let is_over = |change: &Change| {
            change.after.is_none() && change.before.is_some_and(|rule| !rule.is_in_force(now))
        };
        if !changes.iter().all(is_over) {
            return Err(RuleStoreError::Standby);
        }
        self.filter.apply(now, changes)?;
        self.defer_record(changes);
        Ok(())
    }

    fn defer_record(&mut self, ends: &[Change]) {
        if self.journal.is_some() {
            self.unrecorded.extend_from_slice(ends);
        }
    }

    /// Records the changes in the journal, after those that could not be recorded before.
    fn record(&mut self, changes: &[Change], policy: &Policy) -> Result<(), RuleStoreError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let name = |agent| policy.name(agent);
        if self.unrecorded.is_empty() {
            journal.record(changes, name)?;
        } else {
            journal.record(&[&self.unrecorded, changes].concat(), name)?;
            self.unrecorded.clear();
        }
        let Some(standby) = &self.standby else { return Ok(()) };
        if !standby.replicate(journal.last_entries()) {
            // The standby may have recorded the changes or not, as if the connection had broken. This side
            // reverses them.
            let inverses: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
            if let Err(failure) = journal.record(&inverses, name) {
                self.unrecorded.extend(inverses);
                return Err(failure.into());
            }
            // A standby that has connected meanwhile needs these entries. One that connects later begins with
            // a copy of the journal.
            standby.replicate(journal.last_entries());
            return Err(RuleStoreError::Standby);
        }
        Ok(())
    }

    fn schedule_repair(&mut self, now: Time) {
        self.repair_at = self.repair_at.min(now + Self::REPAIR_INTERVAL);
    }

    /// Returns when to [check](Self::check_foreign_changes) the packet filter, to [repair](Self::repair) it, or to
    /// [continue](Self::continue_repair) the repair; [`Time::MAX`] if it is known to be correct.
    pub fn wake_at(&self) -> Time {
        self.repair_at.min(self.check_at).min(self.continue_at).min(self.save_clock_at).min(self.mark_at)
    }

    /// Returns true if it is time to [repair](Self::repair) the packet filter.
    pub fn needs_repair(&self, now: Time) -> bool {
        self.repair_at <= now
    }

    /// Checks the packet filter if it is time. Returns true if another program has changed it, after which it must be
    /// repaired.
    pub fn check_foreign_changes(&mut self, now: Time) -> bool {
        if self.check_at > now {
            return false;
        }
        self.check_at = now + Self::CHECK_INTERVAL;
        let has_foreign_change = self.filter.has_foreign_change();
        if has_foreign_change {
            self.repair_at = now;
        }
        has_foreign_change
    }

    /// Makes the packet filter contain exactly the rules of the middlebox.
    pub fn repair(&mut self, now: Time, middlebox: &Middlebox) -> Result<Corrections, RuleStoreError> {
        self.repair_at = now + Self::REPAIR_INTERVAL;
        let rules: Vec<Rule> = middlebox.rules(now).copied().collect();
        let corrections = self.filter.reconcile(now, &rules)?;
        self.repair_at = Time::MAX;
        self.continue_at = Time::ZERO;
        Ok(corrections)
    }

    /// Continues the repair of the packet filter for a short time; returns true if the repair is complete.
    pub fn continue_repair(&mut self, now: Time) -> Result<bool, RuleStoreError> {
        if self.continue_at > now {
            return Ok(false);
        }
        self.continue_at = Time::MAX;
        match self.filter.continue_reconciliation(now) {
            Ok(Progress::AddingMissing) => self.continue_at = Time::ZERO,
            Ok(Progress::SearchingSurplus) => self.continue_at = now + Self::REPAIR_INTERVAL,
            Ok(Progress::Done) => return Ok(true),
            Err(failure) => {
                self.schedule_repair(now);
                return Err(failure.into());
            }
        }
        Ok(false)
    }

    /// Tries to store the clock if it is time; returns true if it succeeds.
    pub fn save_clock(&mut self, now: Time) -> bool {
        let Some(directory) = self.unsaved_clock.as_deref().filter(|_| self.save_clock_at <= now) else {
            return false;
        };
        let is_saved = self.clock.save(directory).is_ok();
        self.save_clock_at = if is_saved { Time::MAX } else { now + Self::REPAIR_INTERVAL };
        is_saved
    }

    /// Returns true if the journal's high-water mark is not on the disk yet.
    pub fn needs_mark_sync(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::needs_mark_sync)
    }

    /// Syncs the journal's high-water mark to the disk if it is time.
    pub fn sync_mark(&mut self, now: Time) -> Result<(), RuleStoreError> {
        let Some(journal) = self.journal.as_mut().filter(|_| self.mark_at <= now) else { return Ok(()) };
        let synced = journal.sync_mark();
        self.mark_at = if synced.is_ok() { Time::MAX } else { now + Self::REPAIR_INTERVAL };
        Ok(synced?)
    }

    /// Compacts the journal if it contains many superseded entries. After a failure, waits before the next attempt.
    pub fn compact(&mut self, now: Time) -> Result<(), RuleStoreError> {
        let Some(journal) = self.journal.as_mut().filter(|_| self.compact_at <= now) else { return Ok(()) };
        let compacted = journal.compact_if_due();
        if compacted.is_err() {
            self.compact_at = now + Self::COMPACTION_RETRY;
        }
        Ok(compacted?)
    }
}

/// Refuses those requests for which `refusal_of` returns a refusal and that change rules, and prepares the rest of the
/// batch to be applied again. Returns false if there are no such requests.
fn refuse(
    now: Time,
    middlebox: &mut Middlebox,
    batch: &mut Batch,
    refusal_of: impl Fn(usize) -> Option<Refusal>,
) -> bool {
    let mut is_less = false;
    middlebox.undo(batch);
    for step in 0.. {
        if !middlebox.redo(now, batch) {
            break;
        }
        if let Some(refusal) = refusal_of(step).filter(|_| !batch.last_step().is_empty()) {
            is_less |= middlebox.refuse(refusal, batch);
        }
    }
    is_less
}

impl fmt::Debug for RuleStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleStore").field("mend_at", &self.repair_at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
