//! Changes of the elements of sets.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::Time;

use super::kernel::{Abilities, EEXIST, ENOENT, RejectedMessage};
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

/// A step: the change of one element. From Linux 6.12 on the kernel can change the timeout of an element; otherwise the
/// element is deleted and added again.
#[derive(Debug)]
pub(super) struct Step {
    pub shape: Shape,
    pub key: Vec<u8>,
    /// Whether the step deletes the element before it adds one.
    pub deletes_first: bool,
    pub add: Option<ElementState>,
    /// Whether the added element differs from the deleted one only in its timeout.
    is_update: bool,
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
                let is_update = deletes_first
                    && before.zip(add).is_some_and(|(before, after)| before.target == after.target);
                (deletes_first || add.is_some())
                    .then(|| Step { is_update, ..Step::new(element, deletes_first, add, changed.change) })
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

    /// Adds the steps' messages to a transaction.
    pub fn add_to(
        &mut self,
        now: Time,
        sets: &Sets,
        abilities: Abilities,
        transaction: &mut Transaction<'_>,
    ) {
        self.messages.clear();
        self.first_sequence = transaction.next_sequence();
        for (index, step) in self.steps.iter().enumerate() {
            let Some(set) = sets.name(&step.shape) else { continue };
            if let Some(state) = step.add.as_ref().filter(|_| step.is_update && abilities.update_timeout) {
                transaction.update_element(now, set, &step.key, state);
                self.messages.push((index, true));
                continue;
            }
            if step.deletes_first {
                if abilities.destroy {
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
        for &refusal in refusals {
            let message = self.message(refusal.sequence);
            if let Some((index, _)) = message
                && self.steps[index].is_update
            {
                // Another program has changed the target.
                self.steps[index].is_update = false;
                continue;
            }
            if refusal.is_transient() {
                continue;
            }
            let (index, adds) = message.ok_or(refusal)?;
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
        Self {
            shape: Shape::of(element),
            key: shape::key(element),
            deletes_first,
            add,
            is_update: false,
            change,
        }
    }

    /// Returns the step that deletes the element with this key.
    pub fn deletion(shape: Shape, key: Vec<u8>) -> Self {
        Self { shape, key, deletes_first: true, add: None, is_update: false, change: 0 }
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }
}
