//! Reconciliation: compares the kernel's table with the required elements, and corrects both surplus and
//! missing ones.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};

use super::Nftables;
use super::element_changes::{Step, Steps};
use super::endpoint_mappings::{self, EndpointMap};
use super::kernel::{KernelElement, TableContent};
use super::ruleset;
use super::sets::Sets;
use super::surplus_search::{RequiredDigests, SurplusSearch};
use super::transaction::{GRACE_TIME, Transaction};
use crate::element::Element;
use crate::required_elements::{ElementState, RequiredElements};
use crate::shape::{self, Shape};
use crate::{Corrections, FilterError};

/// Times at which elements expire count as equal if they differ by less than this, because clocks are adjusted and
/// listing takes time.
const END_TOLERANCE: Duration = Duration::from_secs(2);
/// Maximum number of steps per transaction. A transaction with a million steps would need hundreds of megabytes.
const MAX_STEPS: usize = 16_384;
/// Maximum number of elements of a table that is listed first. For larger tables listing would take the kernel too
/// long: the time is quadratic in the number of elements.
const MAX_LISTED_ELEMENTS: usize = 1 << 16;
/// Maximum number of steps per call of [`add_missing`](Nftables::add_missing), during which agents wait.
const MAX_STEPS_PER_CALL: usize = 512;

impl Nftables {
    /// Makes the table match `required`. First creates chains and sets; then removes surplus elements, and adds missing
    /// ones: some at once, the rest in [`continue_reconciliation`](Self::continue_reconciliation). A table that cannot
    /// be corrected or owned is replaced.
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

    /// Returns the names of the maps that packets fill.
    fn dynamic_maps(&self) -> Vec<String> {
        endpoint_mappings::maps(self.config.masquerade()).into_iter().map(EndpointMap::name).collect()
    }

    /// Lists the table and returns its difference from the required elements, and the names of unknown sets.
    fn list_difference(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let mut found = self.kernel.elements(self.config.table(), &self.dynamic_maps())?;
        let difference = compare(now, &self.required, sets, &mut found);
        Ok((difference, found.into_keys().collect()))
    }

    /// Returns the assumed difference for a large table, which is not listed: all required elements are added again, in
    /// place of existing ones. A thread searches for surplus elements meanwhile.
    fn assume_all_missing(&self, now: Time, sets: &Sets) -> Result<(Difference, Vec<String>), FilterError> {
        let required = self.required.all().filter(|(_, state)| state.end > now);
        let missing = required.map(|(element, _)| PendingAddition { element, is_wrong: true }).collect();
        let dynamic = self.dynamic_maps();
        let unknown = |set: &String| !sets.all().any(|(_, ours)| ours == set) && !dynamic.contains(set);
        let unknown = self.kernel.sets(self.config.table())?.into_iter().filter(unknown).collect();
        Ok((Difference { corrections: Corrections::default(), surplus: Vec::new(), missing }, unknown))
    }

    /// Removes the surplus elements that the thread has found; returns true if the search is complete.
    pub(super) fn finish_surplus_search(&mut self, now: Time) -> Result<bool, FilterError> {
        let Some(survey) = self.survey.take_if(|survey| survey.is_finished()) else { return Ok(false) };
        let shapes: BTreeMap<&str, &Shape> = self.sets.all().map(|(shape, name)| (name, shape)).collect();
        let step = |(set, key): (String, Vec<u8>)| {
            let shape = **shapes.get(&set[..])?;
            Some(Step::deletion(shape, key))
        };
        let mut surplus = survey.finish()?.into_iter().filter_map(step).peekable();
        while surplus.peek().is_some() {
            let steps = surplus.by_ref().take(MAX_STEPS).collect();
            self.commit(now, &self.sets, steps, |_| {}).inspect_err(|_| self.is_known = false)?;
        }
        Ok(true)
    }

    /// Removes surplus elements and adds the first of the missing ones, with at most [`MAX_STEPS`] steps per
    /// transaction; the messages that `begin` adds come first. Returns the elements that are still missing.
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

    /// Adds some of the missing elements in their current state, because rules may have changed meanwhile.
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

/// An element that must be added because it is missing or may be wrong in the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingAddition {
    element: Element,
    /// Whether the kernel may have the element, perhaps with a wrong lifetime or translation, so that the element must
    /// be deleted before it is added.
    is_wrong: bool,
}

/// The difference between the elements found in the kernel and the required elements.
struct Difference {
    corrections: Corrections,
    surplus: Vec<Step>,
    missing: Vec<PendingAddition>,
}

/// Compares the elements found with the required ones. Afterwards `found` contains only the unknown sets.
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
            surplus.push(Step::deletion(*shape, key));
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
