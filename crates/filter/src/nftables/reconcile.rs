//! Reconciliation: the kernel's table is held against what rules want, and mended both ways.

use hol_base::{Duration, Time};

use super::Nftables;
use super::kernel::{Found, Tables};
use super::ruleset;
use super::sets::Sets;
use super::shape::{self, Shape};
use super::steps::Step;
use super::transaction::Transaction;
use crate::holds::{Holds, Standing};
use crate::{FilterError, Mended};

/// Ends that lie closer together are the same: clocks are set, and looking takes time.
const TOLERANCE: Duration = Duration::from_secs(2);
/// Steps of a transaction: a million of them in one would need hundreds of megabytes.
const AT_ONCE: usize = 16_384;

impl Nftables {
    /// Makes the table as `holds` wants it. Chains and sets come first; then what is surplus goes, and what is missing
    /// comes. A table that cannot be mended, or not be owned as it is, is replaced.
    pub(super) fn mend(&mut self, now: Time, holds: Holds) -> Result<Mended, FilterError> {
        self.is_known = false;
        self.holds = holds;
        let sets = Sets::for_all(&self.holds)?;
        let mut found = self.kernel.elements(self.config.table())?;
        let (mended, steps) = compare(now, &self.holds, &sets, &mut found);
        let strange: Vec<String> = found.into_keys().collect();
        let chains = self.kernel.chains(self.config.table())?;
        let mend = |transaction: &mut Transaction<'_>| {
            transaction.create_table(self.ownership.flags());
            transaction.flush(None);
            strange.iter().for_each(|set| transaction.delete_set(set));
            let strange = chains.iter().filter(|chain| !ruleset::is_known(chain, &self.config));
            strange.for_each(|chain| transaction.delete_chain(chain));
            sets.create(transaction, &self.config);
        };
        if self.carry_out(now, &sets, steps, mend).is_err() {
            let (_, steps) = compare(now, &self.holds, &sets, &mut Tables::new());
            let replace = |transaction: &mut Transaction<'_>| {
                transaction.ensure_table();
                transaction.delete_table();
                transaction.create_table(self.ownership.flags());
                sets.create(transaction, &self.config);
            };
            self.carry_out(now, &sets, steps, replace)?;
        }
        self.sets = sets;
        self.is_known = true;
        Ok(mended)
    }

    /// Takes the steps, so many at once, behind what `begin` does.
    fn carry_out(
        &self,
        now: Time,
        sets: &Sets,
        steps: Vec<Step>,
        begin: impl Fn(&mut Transaction<'_>),
    ) -> Result<(), FilterError> {
        let mut steps = steps.into_iter().peekable();
        self.commit(now, sets, steps.by_ref().take(AT_ONCE).collect(), begin)?;
        while steps.peek().is_some() {
            self.commit(now, sets, steps.by_ref().take(AT_ONCE).collect(), |_| {})?;
        }
        Ok(())
    }
}

/// The steps from what is found to what is wanted. What is known of it is taken out of `found`.
fn compare(now: Time, holds: &Holds, sets: &Sets, found: &mut Tables) -> (Mended, Vec<Step>) {
    let mut mended = Mended::default();
    let mut steps = Vec::new();
    for (element, standing) in holds.all().filter(|(_, standing)| standing.end > now) {
        let (shape, key) = (Shape::of(&element), shape::key(&element));
        let found = sets.name(&shape).and_then(|set| found.get_mut(set)?.remove(&key));
        if found.as_ref().is_some_and(|found| is_right(now, found, &standing)) {
            continue;
        }
        mended.missing += 1;
        mended.surplus += usize::from(found.is_some());
        steps.push(Step { shape, key, delete: found.is_some(), add: Some(standing), change: 0 });
    }
    for (shape, set) in sets.all() {
        for (key, _) in found.remove(set).unwrap_or_default() {
            mended.surplus += 1;
            steps.push(Step { shape: *shape, key, delete: true, add: None, change: 0 });
        }
    }
    mended.surplus += found.values().map(|elements| elements.len()).sum::<usize>();
    // What is too much goes first.
    steps.sort_by_key(|step| step.add.is_some());
    (mended, steps)
}

fn is_right(now: Time, found: &Found, wanted: &Standing) -> bool {
    let remaining = |found: &Found| found.remaining.map(Duration::from_millis);
    let wanted_data = wanted.target.as_ref().map(shape::data);
    remaining(found).is_some_and(|left| left.abs_diff(wanted.end.saturating_since(now)) <= TOLERANCE)
        && found.data == wanted_data
}
