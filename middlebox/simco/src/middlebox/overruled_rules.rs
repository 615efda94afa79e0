//! Ends the rules that a disable rule overrules, a few at a time. RFC 4540 section 8.8.
//!
//! The disable rule blocks at once: a rule that the sweep has not reached yet lets no packet pass, and new
//! conflicting rules are refused at least until the sweep ends. Until then the requesting session waits, so its
//! next answer reflects the result, and notifications of ended rules precede it.

use hol_base::Time;

use super::Middlebox;
use crate::overlap_index::Sweep;
use crate::{Action, Batch, Change, Rule, SessionId, work};

impl Middlebox {
    /// Maximum number of sweeps in progress; further disable rules are refused.
    pub(super) const MAX_SWEEPS: usize = 16;
    /// Maximum number of rules that a sweep examines before other sessions get their turn.
    const MAX_EXAMINED: usize = 1024;

    /// Begins a sweep and ends the first overruled rules. The others end after these changes have been applied.
    pub(super) fn begin_sweep(
        &mut self,
        now: Time,
        requester: SessionId,
        mut sweep: Sweep,
        batch: &mut Batch,
    ) {
        self.sweep_step(now, &mut sweep, batch, |middlebox, rule, batch| {
            middlebox.change(Change::end(rule), batch);
        });
        if !sweep.is_finished() {
            self.sweeps.push_back((requester, sweep));
        }
    }

    /// Returns true until the sweep for this session's last request has ended. Until then the middlebox holds back the
    /// messages of a stream. With [`Framing::Messages`](crate::Framing::Messages) the caller must hold them back, and
    /// call [`receive`](Self::receive) later.
    pub fn is_sweeping_for(&self, id: SessionId) -> bool {
        self.sweeps.iter().any(|(requester, _)| *requester == id)
    }

    /// Continues all sweeps until they are complete or the batch is full, because no session needs the batch.
    pub fn sweep_without_share(&mut self, now: Time, batch: &mut Batch) {
        batch.lift_share();
        self.sweep(now, batch);
    }

    /// Continues all sweeps until they are complete or the share of the batch is used up.
    pub(super) fn sweep(&mut self, now: Time, batch: &mut Batch) {
        let mut examined = 0;
        while examined < Self::MAX_EXAMINED
            && batch.has_room()
            && let Some((requester, mut sweep)) = self.sweeps.pop_front()
        {
            self.sweep_step(now, &mut sweep, batch, |middlebox, rule, batch| middlebox.end(rule.pid, batch));
            examined += self.max_ends();
            if !sweep.is_finished() {
                self.sweeps.push_front((requester, sweep));
            }
        }
    }

    /// Calls `end` with the next overruled rules while the batch has room. The other rules are found again by the next
    /// step.
    fn sweep_step(
        &mut self,
        now: Time,
        sweep: &mut Sweep,
        batch: &mut Batch,
        mut end: impl FnMut(&mut Self, Rule, &mut Batch),
    ) {
        let start = sweep.clone();
        for rule in self.find_overruled(now, sweep, self.max_ends(), batch) {
            if !batch.has_room() {
                *sweep = start;
                return;
            }
            end(self, rule, batch);
        }
    }

    fn find_overruled(&mut self, now: Time, sweep: &mut Sweep, max: usize, batch: &mut Batch) -> Vec<Rule> {
        batch.add_work(work::EXAMINATION * max as u64);
        self.rules.sweep(now, sweep, max)
    }

    /// Cancels the sweep of a disable rule whose change was undone.
    pub(super) fn cancel_sweep(&mut self, change: &Change) {
        if let Some(Rule { pid, action: Action::Disable { .. }, .. }) = change.after
            && change.before.is_none()
        {
            self.sweeps.retain(|(_, sweep)| sweep.pid != pid);
        }
    }

    /// Ends the overruled rules that a sweep had not ended when the middlebox stopped, and returns them. Must be called
    /// after all rules have been [restored](Self::restore), and before agents connect.
    pub fn end_overruled(&mut self, now: Time) -> Vec<Rule> {
        let is_overruled = |rule: &&Rule| {
            matches!(rule.action, Action::Enable { .. })
                && rule
                    .address_tuples()
                    .is_some_and(|(internal, external)| self.rules.are_disabled(now, &internal, &external).0)
        };
        let overruled: Vec<Rule> = self.rules.in_force(now).filter(is_overruled).copied().collect();
        for rule in &overruled {
            self.apply(&Change::end(*rule));
        }
        overruled
    }
}
