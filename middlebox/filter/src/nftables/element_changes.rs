//! Changes of the elements of sets.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::Time;

use super::kernel::{EEXIST, ENOENT, RejectedMessage};
use super::sets::Sets;
use super::transaction::Transaction;
use crate::element::Element;
use crate::required_elements::{ElementChange, ElementState, RequiredElements};
use crate::shape::{self, Shape};

/// The steps of a transaction, in any order; no element occurs twice.
#[derive(Debug, Default)]
pub(super) struct Steps {
    steps: Vec<Step>,
    /// The messages of the last transaction: the index of the step of each message, and whether it adds an element.
    messages: Vec<(usize, bool)>,
    /// The sequence number of the first message in the last transaction.
    first_sequence: u32,
}

/// A step: the change of one element. Before Linux 6.12 the kernel cannot change the timeout of an element, so the
/// element is deleted and added again.
#[derive(Debug)]
pub(super) struct Step {
    pub shape: Shape,
    pub key: Vec<u8>,
    /// Whether the step deletes the element before it adds one.
    pub deletes_first: bool,
    pub add: Option<ElementState>,
    /// The index of the change of a rule that requires the step.
    pub change: usize,
}

impl Steps {
    /// Returns the steps that bring the changed elements into their required states. Expired elements are deleted like
    /// all others.
    pub fn of(now: Time, changed: &BTreeMap<Element, ElementChange>, required: &RequiredElements) -> Self {
        let in_force = |state: &ElementState| state.end > now;
        changed
            .iter()
            .filter_map(|(element, changed)| {
                let (before, after) = (changed.before, required.state(element));
                let add = after.filter(in_force).filter(|_| before != after);
                let deletes_first = before != after && before.is_some();
                (deletes_first || add.is_some())
                    .then(|| Step::new(element, deletes_first, add, changed.change))
            })
            .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the shapes of the elements that the steps add.
    pub fn added(&self) -> impl Iterator<Item = &Shape> {
        self.steps.iter().filter(|step| step.add.is_some()).map(|step| &step.shape)
    }

    /// Returns the shapes and keys of the elements that the steps add.
    pub fn additions(&self) -> impl Iterator<Item = (&Shape, &[u8])> {
        self.steps.iter().filter(|step| step.add.is_some()).map(|step| (&step.shape, &step.key[..]))
    }

    /// Adds the steps' messages to a transaction. `can_destroy` says whether the kernel accepts the deletion of an
    /// element that no longer exists.
    pub fn add_to(&mut self, now: Time, sets: &Sets, can_destroy: bool, transaction: &mut Transaction<'_>) {
        self.messages.clear();
        self.first_sequence = transaction.next_sequence();
        for (index, step) in self.steps.iter().enumerate() {
            let Some(set) = sets.name(&step.shape) else { continue };
            if step.deletes_first {
                if can_destroy {
                    transaction.destroy_element(set, &step.key);
                } else {
                    transaction.delete_element(set, &step.key);
                }
                self.messages.push((index, false));
            }
            if let Some(state) = &step.add {
                transaction.add_element(now, set, &step.key, state);
                self.messages.push((index, true));
            }
        }
    }

    /// Adapts the steps to those rejections that can be avoided in a repetition: an element to be deleted has ended, or
    /// another program has added or deleted an element. Temporary errors need no adaptation. Any other rejection is
    /// returned as an error.
    pub fn adjust(&mut self, refusals: &[RejectedMessage]) -> Result<(), RejectedMessage> {
        for &refusal in refusals.iter().filter(|refusal| !refusal.is_transient()) {
            let (index, adds) = self.message(refusal.sequence).ok_or(refusal)?;
            let step = &mut self.steps[index];
            let is_avoidable = match refusal.error {
                EEXIST => adds && !step.deletes_first,
                ENOENT => !adds,
                _ => false,
            };
            if !is_avoidable {
                return Err(refusal);
            }
            step.deletes_first = adds;
        }
        Ok(())
    }

    /// Returns the indices of the changes whose messages were rejected in the last transaction, in order; `None` if a
    /// rejected message is not about an element.
    pub fn changes_of(&self, refusals: &[RejectedMessage]) -> Option<Vec<usize>> {
        let change = |refusal: &RejectedMessage| Some(self.steps[self.message(refusal.sequence)?.0].change);
        let changes: BTreeSet<usize> = refusals.iter().map(change).collect::<Option<_>>()?;
        Some(changes.into_iter().collect())
    }

    fn message(&self, sequence: u32) -> Option<(usize, bool)> {
        self.messages.get(sequence.checked_sub(self.first_sequence)? as usize).copied()
    }
}

impl Step {
    pub fn new(element: &Element, deletes_first: bool, add: Option<ElementState>, change: usize) -> Self {
        Self { shape: Shape::of(element), key: shape::key(element), deletes_first, add, change }
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }
}
