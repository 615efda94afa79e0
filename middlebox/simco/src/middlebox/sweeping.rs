//! What a disable rule overrules ends: a little at a time, however much it is. RFC 4540 section 8.8.
//!
//! The disable rule blocks at once, so nothing passes by a rule that has not been come upon yet; and none that a sweep
//! is about can begin before it is over. Whoever asked for it is heard again when it is over: so what an agent has from
//! the next answer on is what was so before this one, too, and the notifications of what has ended come before it.

use hol_base::Time;

use super::Middlebox;
use crate::batch::Cause;
use crate::overlaps::Sweep;
use crate::{Action, Batch, Change, Rule, SessionId, work};

impl Middlebox {
    /// Sweeps that may be under way: more disable rules are refused.
    pub(super) const MOST_SWEEPS: usize = 16;
    /// Rules that are looked at before others are heard, if nothing else bounds it.
    const MOST_LOOKS: usize = 1024;

    /// Ends the first of the rules that the disable rule overrules. The rest follows when the changes are made.
    pub(super) fn begin_sweep(
        &mut self,
        now: Time,
        asked_by: SessionId,
        mut sweep: Sweep,
        batch: &mut Batch,
    ) {
        for rule in self.come_upon(now, &mut sweep, self.most_ends(), batch) {
            self.change(Change::end(rule), batch);
        }
        if !sweep.is_over() {
            self.sweeps.push_back((asked_by, sweep));
        }
    }

    /// True if what a request of this session has overruled has not all ended: until then none of its messages is taken.
    /// Octets that come as whole messages are better [received](Self::receive) later.
    pub fn is_sweeping_for(&self, id: SessionId) -> bool {
        self.sweeps.iter().any(|(asked_by, _)| *asked_by == id)
    }

    /// Goes on with sweeps, as far as there is room.
    pub(super) fn sweep(&mut self, now: Time, batch: &mut Batch) {
        let mut looks = 0;
        while looks < Self::MOST_LOOKS
            && batch.has_room()
            && let Some((asked_by, mut sweep)) = self.sweeps.pop_front()
        {
            let most = self.most_ends();
            for Rule { pid, .. } in self.come_upon(now, &mut sweep, most, batch) {
                self.end(pid, Cause::Ended(pid), batch);
            }
            looks += most;
            if !sweep.is_over() {
                self.sweeps.push_front((asked_by, sweep));
            }
        }
    }

    fn come_upon(&mut self, now: Time, sweep: &mut Sweep, most: usize, batch: &mut Batch) -> Vec<Rule> {
        batch.count(work::LOOK * most as u64);
        self.rules.sweep(now, sweep, most)
    }

    /// The disable rule has been taken back.
    pub(super) fn forget_sweep(&mut self, change: &Change) {
        if let Some(Rule { pid, action: Action::Disable { .. }, .. }) = change.after
            && change.before.is_none()
        {
            self.sweeps.retain(|(_, sweep)| sweep.pid != pid);
        }
    }

    /// Ends the rules that disable rules overrule, and whose ends were under way when the middlebox stopped: after all
    /// have been [restored](Self::restore), and before agents connect.
    pub fn end_overruled(&mut self, now: Time) -> Vec<Rule> {
        let is_overruled = |rule: &&Rule| {
            matches!(rule.action, Action::Enable { .. })
                && rule
                    .ends()
                    .is_some_and(|(internal, external)| self.rules.are_disabled(now, &internal, &external).0)
        };
        let overruled: Vec<Rule> = self.rules.in_force(now).filter(is_overruled).copied().collect();
        for rule in &overruled {
            self.apply(&Change::end(*rule));
        }
        overruled
    }
}
