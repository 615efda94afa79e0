//! Reconciliation: the kernel's table is held against what rules want, and mended both ways.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};

use super::Nftables;
use super::kernel::{Found, Tables};
use super::ruleset;
use super::sets::Sets;
use super::steps::{Step, Steps};
use super::survey::{Survey, Wanted};
use super::transaction::Transaction;
use crate::element::Element;
use crate::holds::{Holds, Standing};
use crate::shape::{self, Shape};
use crate::{FilterError, Mended};

/// Ends that lie closer together are the same: clocks are set, and looking takes time.
const TOLERANCE: Duration = Duration::from_secs(2);
/// Steps of a transaction: a million of them in one would need hundreds of megabytes.
const AT_ONCE: usize = 16_384;
/// Elements of a table that is not listed before it is mended: that takes the kernel the longer for each, the more there are.
const LARGE: usize = 1 << 16;
/// Steps when somebody waits meanwhile.
const A_FEW: usize = 512;

impl Nftables {
    /// Makes the table as `holds` wants it. Chains and sets come first; then what is surplus goes, and what is missing
    /// comes, the first of it at once and the rest as [`go_on`](Self::go_on) is called. A table that cannot be mended, or
    /// not be owned as it is, is replaced.
    pub(super) fn mend(&mut self, now: Time, holds: Holds) -> Result<Mended, FilterError> {
        self.is_known = false;
        self.holds = holds;
        let sets = Sets::for_all(&self.holds)?;
        self.survey = None;
        let is_large = self.holds.len() > LARGE && self.kernel.has_table(self.config.table())?;
        let (difference, strange) = if is_large { self.presume(now, &sets)? } else { self.look(now, &sets)? };
        let mended = difference.mended;
        let chains = self.kernel.chains(self.config.table())?;
        let mend = |transaction: &mut Transaction<'_>| {
            transaction.create_table(self.ownership.flags());
            transaction.flush(None);
            strange.iter().for_each(|set| transaction.delete_set(set));
            let strange = chains.iter().filter(|chain| !ruleset::is_known(chain, &self.config));
            strange.for_each(|chain| transaction.delete_chain(chain));
            sets.create(transaction, &self.config);
        };
        self.missing = match self.carry_out(now, &sets, difference, mend) {
            Ok(missing) => missing,
            Err(_) => {
                let difference = compare(now, &self.holds, &sets, &mut Tables::new());
                let replace = |transaction: &mut Transaction<'_>| {
                    transaction.ensure_table();
                    transaction.delete_table();
                    transaction.create_table(self.ownership.flags());
                    sets.create(transaction, &self.config);
                };
                self.carry_out(now, &sets, difference, replace)?
            }
        };
        if is_large {
            let named = |(element, _)| Some((sets.name(&Shape::of(&element))?, shape::key(&element)));
            self.survey =
                Some(Survey::begin(self.config.table(), Wanted::of(self.holds.all().filter_map(named)))?);
        }
        self.sets = sets;
        self.is_known = true;
        Ok(mended)
    }

    /// Lists the table and compares. Says which sets are not ours, too.
    fn look(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let mut found = self.kernel.elements(self.config.table())?;
        let difference = compare(now, &self.holds, sets, &mut found);
        Ok((difference, found.into_keys().collect()))
    }

    /// A large table is not listed: what rules want is put in anew in the place of what is there, and a thread looks for what
    /// is surplus.
    fn presume(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let wanted = self.holds.all().filter(|(_, standing)| standing.end > now);
        let missing = wanted.map(|(element, _)| Missing { element, is_wrong: true }).collect();
        let strange = |set: &String| !sets.all().any(|(_, ours)| ours == set);
        let strange = self.kernel.sets(self.config.table())?.into_iter().filter(strange).collect();
        Ok((Difference { mended: Mended::default(), surplus: Vec::new(), missing }, strange))
    }

    /// Removes what the thread has found that nobody wants. True if it has been done.
    pub(super) fn finish_survey(&mut self, now: Time) -> Result<bool, FilterError> {
        let Some(survey) = self.survey.take_if(|survey| survey.is_finished()) else { return Ok(false) };
        let shapes: BTreeMap<&str, &Shape> = self.sets.all().map(|(shape, name)| (name, shape)).collect();
        let step = |(set, key): (String, Vec<u8>)| {
            let shape = **shapes.get(&set[..])?;
            Some(Step { shape, key, delete: true, add: None, change: 0 })
        };
        let mut surplus = survey.finish()?.into_iter().filter_map(step).peekable();
        while surplus.peek().is_some() {
            let steps = surplus.by_ref().take(AT_ONCE).collect();
            self.commit(now, &self.sets, steps, |_| {}).inspect_err(|_| self.is_known = false)?;
        }
        Ok(true)
    }

    /// Removes what is surplus and adds the first of what is missing, so many at once, behind what `begin` does. Returns
    /// what is missing still.
    fn carry_out(
        &self,
        now: Time,
        sets: &Sets,
        Difference { surplus, mut missing, .. }: Difference,
        begin: impl Fn(&mut Transaction<'_>),
    ) -> Result<Vec<Missing>, FilterError> {
        let mut surplus = surplus.into_iter().peekable();
        let mut steps: Vec<Step> = surplus.by_ref().take(AT_ONCE).collect();
        let first = missing.split_off(missing.len().saturating_sub(AT_ONCE - steps.len()));
        steps.extend(self.additions(now, &first));
        self.commit(now, sets, steps.into_iter().collect(), begin)?;
        while surplus.peek().is_some() {
            self.commit(now, sets, surplus.by_ref().take(AT_ONCE).collect(), |_| {})?;
        }
        Ok(missing)
    }

    /// Adds more of what is missing: as rules want it now, for they may have changed since it was found so.
    pub(super) fn add_missing(&mut self, now: Time) -> Result<(), FilterError> {
        let next = self.missing.split_off(self.missing.len().saturating_sub(A_FEW));
        let steps: Steps = self.additions(now, &next).collect();
        if steps.is_empty() {
            return Ok(());
        }
        self.commit(now, &self.sets, steps, |_| {}).inspect_err(|_| self.is_known = false)
    }

    fn additions(&self, now: Time, missing: &[Missing]) -> impl Iterator<Item = Step> {
        missing.iter().filter_map(move |Missing { element, is_wrong }| {
            let standing = self.holds.standing(element).filter(|standing| standing.end > now)?;
            Some(Step::new(element, *is_wrong, Some(standing), 0))
        })
    }
}

/// An element that is not there, or not as it should be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    element: Element,
    is_wrong: bool,
}

/// What it takes from what is found to what is wanted.
struct Difference {
    mended: Mended,
    surplus: Vec<Step>,
    missing: Vec<Missing>,
}

/// Holds what is found against what is wanted. What is known of it is taken out of `found`.
fn compare(now: Time, holds: &Holds, sets: &Sets, found: &mut Tables) -> Difference {
    let (mut mended, mut surplus, mut missing) = (Mended::default(), Vec::new(), Vec::new());
    for (element, standing) in holds.all().filter(|(_, standing)| standing.end > now) {
        let (shape, key) = (Shape::of(&element), shape::key(&element));
        let found = sets.name(&shape).and_then(|set| found.get_mut(set)?.remove(&key));
        if found.as_ref().is_some_and(|found| is_right(now, found, &standing)) {
            continue;
        }
        mended.missing += 1;
        mended.surplus += usize::from(found.is_some());
        missing.push(Missing { element, is_wrong: found.is_some() });
    }
    for (shape, set) in sets.all() {
        for (key, _) in found.remove(set).unwrap_or_default() {
            mended.surplus += 1;
            surplus.push(Step { shape: *shape, key, delete: true, add: None, change: 0 });
        }
    }
    mended.surplus += found.values().map(|elements| elements.len()).sum::<usize>();
    Difference { mended, surplus, missing }
}

fn is_right(now: Time, found: &Found, wanted: &Standing) -> bool {
    let remaining = |found: &Found| found.remaining.map(Duration::from_millis);
    let wanted_data = wanted.target.as_ref().map(shape::data);
    remaining(found).is_some_and(|left| left.abs_diff(wanted.end.saturating_since(now)) <= TOLERANCE)
        && found.data == wanted_data
}
