//! Reconciliation: compares the kernel's table with the required elements, and corrects both surplus and
//! missing ones.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};

use super::Nftables;
use super::kernel::{Found, Tables};
use super::ruleset;
use super::sets::Sets;
use super::steps::{Step, Steps};
use super::survey::{Survey, Wanted};
use super::transaction::{GRACE, Transaction};
use crate::element::Element;
use crate::holds::{Holds, Standing};
use crate::shape::{self, Shape};
use crate::{Corrections, FilterError};

/// Ends closer together than this count as equal: clocks are adjusted, and listing takes time.
const TOLERANCE: Duration = Duration::from_secs(2);
/// Maximum steps of a transaction: a million in one would need hundreds of megabytes.
const AT_ONCE: usize = 16_384;
/// Tables with more elements are not listed first, because the kernel's time per element grows with their
/// number.
const LARGE: usize = 1 << 16;
/// Maximum steps while others wait.
const A_FEW: usize = 512;

impl Nftables {
    /// Makes the table match `holds`. Chains and sets come first; then surplus elements are removed, and
    /// missing ones added, a first part at once and the rest by [`go_on`](Self::go_on). A table that cannot
    /// be corrected or owned is replaced.
    pub(super) fn mend(&mut self, now: Time, holds: Holds) -> Result<Corrections, FilterError> {
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

    /// Lists the table and compares. Also returns foreign sets.
    fn look(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let mut found = self.kernel.elements(self.config.table())?;
        let difference = compare(now, &self.holds, sets, &mut found);
        Ok((difference, found.into_keys().collect()))
    }

    /// For a large table: adds the required elements again in place of existing ones without listing, while a
    /// thread searches for surplus ones.
    fn presume(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let wanted = self.holds.all().filter(|(_, standing)| standing.end > now);
        let missing = wanted.map(|(element, _)| Missing { element, is_wrong: true }).collect();
        let strange = |set: &String| !sets.all().any(|(_, ours)| ours == set);
        let strange = self.kernel.sets(self.config.table())?.into_iter().filter(strange).collect();
        Ok((Difference { mended: Corrections::default(), surplus: Vec::new(), missing }, strange))
    }

    /// Removes the surplus elements found by the thread; returns true if it has finished.
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

    /// Removes surplus elements and adds the first missing ones, this many at once, after the messages of
    /// `begin`. Returns those still missing.
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

    /// Adds more of the missing elements in their current form, since rules may have changed.
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

/// An element that is missing or wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    element: Element,
    is_wrong: bool,
}

/// The steps from the found to the required state.
struct Difference {
    mended: Corrections,
    surplus: Vec<Step>,
    missing: Vec<Missing>,
}

/// Compares the found elements with the required ones, and removes known ones from `found`.
fn compare(now: Time, holds: &Holds, sets: &Sets, found: &mut Tables) -> Difference {
    let (mut mended, mut surplus, mut missing) = (Corrections::default(), Vec::new(), Vec::new());
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
    let lasts = wanted.end.saturating_since(now) + GRACE;
    remaining(found).is_some_and(|left| left.abs_diff(lasts) <= TOLERANCE) && found.data == wanted_data
}
