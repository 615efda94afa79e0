//! Reconciliation: compares the kernel's table with the required elements, and corrects both surplus and
//! missing ones.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};

use super::Nftables;
use super::element_changes::{Step, Steps};
use super::kernel::{KernelElement, TableContent};
use super::ruleset;
use super::sets::Sets;
use super::surplus_search::{RequiredDigests, SurplusSearch};
use super::transaction::{GRACE_TIME, Transaction};
use crate::element::Element;
use crate::required_elements::{ElementState, RequiredElements};
use crate::shape::{self, Shape};
use crate::{Corrections, FilterError};

/// Ends of lifetimes that differ by less count as equal: clocks are adjusted, and listing takes time.
const END_TOLERANCE: Duration = Duration::from_secs(2);
/// Maximum number of steps of a transaction: a million in one would need hundreds of megabytes.
const MAX_STEPS: usize = 16_384;
/// A table with more elements is not listed first, because listing takes the kernel time quadratic in their
/// number.
const MAX_LISTED_ELEMENTS: usize = 1 << 16;
/// Maximum number of steps per call of [`add_missing`](Nftables::add_missing), while agents wait.
const MAX_STEPS_PER_CALL: usize = 512;

impl Nftables {
    /// Makes the table match `required`. Chains and sets come first; then surplus elements are removed, and
    /// missing ones added, a first part at once and the rest by
    /// [`continue_reconciliation`](Self::continue_reconciliation). A table that cannot be corrected or owned
    /// is replaced.
    pub(super) fn repair(
        &mut self,
        now: Time,
        required: RequiredElements,
    ) -> Result<Corrections, FilterError> {
        self.is_known = false;
        self.required = required;
        let sets = Sets::for_all(&self.required)?;
        self.survey = None;
        let is_large =
            self.required.len() > MAX_LISTED_ELEMENTS && self.kernel.has_table(self.config.table())?;
        let (difference, unknown) =
            if is_large { self.assume_all_missing(now, &sets)? } else { self.list_difference(now, &sets)? };
        let corrections = difference.corrections;
        let chains = self.kernel.chains(self.config.table())?;
        let repair = |transaction: &mut Transaction<'_>| {
            transaction.create_table(self.ownership.flags());
            transaction.flush(None);
            unknown.iter().for_each(|set| transaction.delete_set(set));
            let unknown = chains.iter().filter(|chain| !ruleset::is_known(chain, &self.config));
            unknown.for_each(|chain| transaction.delete_chain(chain));
            sets.create(transaction, &self.config);
        };
        self.missing = match self.correct(now, &sets, difference, repair) {
            Ok(missing) => missing,
            Err(_) => {
                let difference = compare(now, &self.required, &sets, &mut TableContent::new());
                let replace = |transaction: &mut Transaction<'_>| {
                    transaction.ensure_table();
                    transaction.delete_table();
                    transaction.create_table(self.ownership.flags());
                    sets.create(transaction, &self.config);
                };
                self.correct(now, &sets, difference, replace)?
            }
        };
        if is_large {
            let named = |(element, _)| Some((sets.name(&Shape::of(&element))?, shape::key(&element)));
            self.survey = Some(SurplusSearch::begin(
                self.config.table(),
                RequiredDigests::of(self.required.all().filter_map(named)),
            )?);
        }
        self.sets = sets;
        self.is_known = true;
        Ok(corrections)
    }

    /// Lists the table and compares it with the required elements. Also returns unknown sets.
    fn list_difference(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let mut found = self.kernel.elements(self.config.table())?;
        let difference = compare(now, &self.required, sets, &mut found);
        Ok((difference, found.into_keys().collect()))
    }

    /// Returns the difference for a large table without listing it: all required elements are to be added again,
    /// in place of existing ones. A thread searches for surplus elements meanwhile.
    fn assume_all_missing(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let required = self.required.all().filter(|(_, state)| state.end > now);
        let missing = required.map(|(element, _)| PendingAddition { element, is_wrong: true }).collect();
        let unknown = |set: &String| !sets.all().any(|(_, ours)| ours == set);
        let unknown = self.kernel.sets(self.config.table())?.into_iter().filter(unknown).collect();
        Ok((Difference { corrections: Corrections::default(), surplus: Vec::new(), missing }, unknown))
    }

    /// Removes the surplus elements found by the thread; returns true if it has finished.
    pub(super) fn finish_surplus_search(&mut self, now: Time) -> Result<bool, FilterError> {
        let Some(survey) = self.survey.take_if(|survey| survey.is_finished()) else { return Ok(false) };
        let shapes: BTreeMap<&str, &Shape> = self.sets.all().map(|(shape, name)| (name, shape)).collect();
        let step = |(set, key): (String, Vec<u8>)| {
            let shape = **shapes.get(&set[..])?;
            Some(Step { shape, key, deletes_first: true, add: None, change: 0 })
        };
        let mut surplus = survey.finish()?.into_iter().filter_map(step).peekable();
        while surplus.peek().is_some() {
            let steps = surplus.by_ref().take(MAX_STEPS).collect();
            self.commit(now, &self.sets, steps, |_| {}).inspect_err(|_| self.is_known = false)?;
        }
        Ok(true)
    }

    /// Removes surplus elements and adds the first missing ones, at most [`MAX_STEPS`] per transaction, after the
    /// messages that `begin` adds. Returns the elements that are still missing.
    fn correct(
        &self,
        now: Time,
        sets: &Sets,
        Difference { surplus, mut missing, .. }: Difference,
        begin: impl Fn(&mut Transaction<'_>),
    ) -> Result<Vec<PendingAddition>, FilterError> {
        let mut surplus = surplus.into_iter().peekable();
        let mut steps: Vec<Step> = surplus.by_ref().take(MAX_STEPS).collect();
        let first = missing.split_off(missing.len().saturating_sub(MAX_STEPS - steps.len()));
        steps.extend(self.additions(now, &first));
        self.commit(now, sets, steps.into_iter().collect(), begin)?;
        while surplus.peek().is_some() {
            self.commit(now, sets, surplus.by_ref().take(MAX_STEPS).collect(), |_| {})?;
        }
        Ok(missing)
    }

    /// Adds more of the missing elements, with their current state, since rules may have changed.
    pub(super) fn add_missing(&mut self, now: Time) -> Result<(), FilterError> {
        let next = self.missing.split_off(self.missing.len().saturating_sub(MAX_STEPS_PER_CALL));
        let steps: Steps = self.additions(now, &next).collect();
        if steps.is_empty() {
            return Ok(());
        }
        self.commit(now, &self.sets, steps, |_| {}).inspect_err(|_| self.is_known = false)
    }

    fn additions(&self, now: Time, missing: &[PendingAddition]) -> impl Iterator<Item = Step> {
        missing.iter().filter_map(move |PendingAddition { element, is_wrong }| {
            let state = self.required.state(element).filter(|state| state.end > now)?;
            Some(Step::new(element, *is_wrong, Some(state), 0))
        })
    }
}

/// An element that must be added, because it is missing or may be wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingAddition {
    element: Element,
    /// True if the kernel may have the element, perhaps with a wrong end of its lifetime or a wrong translation.
    /// The element must then be deleted before it is added.
    is_wrong: bool,
}

/// The steps from the found to the required state.
struct Difference {
    corrections: Corrections,
    surplus: Vec<Step>,
    missing: Vec<PendingAddition>,
}

/// Compares the found elements with the required ones. Only unknown sets remain in `found`.
fn compare(now: Time, required: &RequiredElements, sets: &Sets, found: &mut TableContent) -> Difference {
    let (mut corrections, mut surplus, mut missing) = (Corrections::default(), Vec::new(), Vec::new());
    for (element, state) in required.all().filter(|(_, state)| state.end > now) {
        let (shape, key) = (Shape::of(&element), shape::key(&element));
        let found = sets.name(&shape).and_then(|set| found.get_mut(set)?.remove(&key));
        if found.as_ref().is_some_and(|found| is_right(now, found, &state)) {
            continue;
        }
        corrections.missing += 1;
        corrections.surplus += usize::from(found.is_some());
        missing.push(PendingAddition { element, is_wrong: found.is_some() });
    }
    for (shape, set) in sets.all() {
        for (key, _) in found.remove(set).unwrap_or_default() {
            corrections.surplus += 1;
            surplus.push(Step { shape: *shape, key, deletes_first: true, add: None, change: 0 });
        }
    }
    corrections.surplus += found.values().map(|elements| elements.len()).sum::<usize>();
    Difference { corrections, surplus, missing }
}

fn is_right(now: Time, found: &KernelElement, required: &ElementState) -> bool {
    let remaining = |found: &KernelElement| found.remaining.map(Duration::from_millis);
    let required_data = required.target.as_ref().map(shape::data);
    let lasts = required.end.saturating_since(now) + GRACE_TIME;
    remaining(found).is_some_and(|left| left.abs_diff(lasts) <= END_TOLERANCE) && found.data == required_data
}
