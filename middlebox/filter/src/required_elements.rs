//! Computes which elements the rules require, and until when.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hol_base::Time;
use hol_simco::{Change, Pid, Rule};

use crate::FilterError;
use crate::element::{Element, Target};
use crate::flow::elements;
use crate::shape::Shape;

/// All elements that the table should contain, and the rules that require them. Several rules may require the same
/// element, which then exists until the last of these rules ends.
#[derive(Debug, Default)]
pub(crate) struct RequiredElements {
    targets: BTreeMap<(Element, Time, Pid), Option<Target>>,
    /// Number of required elements of each shape.
    shapes: BTreeMap<Shape, usize>,
}

/// The required state of an element; of the rules that require it, the one that ends last determines the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementState {
    /// When the element expires.
    pub end: Time,
    /// The address and port to which packets are translated; `None` without translation.
    pub target: Option<Target>,
}

/// An element that is affected by changes of rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementChange {
    /// The element's required state before the changes; `None` if it was not required.
    pub before: Option<ElementState>,
    /// The index of the last change that affects the element.
    pub change: usize,
}

impl RequiredElements {
    /// Returns the elements that these rules require; an error if a rule is not supported.
    pub fn of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Result<Self, FilterError> {
        let mut required = Self::default();
        for rule in rules {
            required.require(rule, &required_by_rule(rule)?);
        }
        Ok(required)
    }

    /// Applies all changes, or none; returns the affected elements. Returns an error if a change is not supported.
    pub fn apply(&mut self, changes: &[Change]) -> Result<BTreeMap<Element, ElementChange>, FilterError> {
        let required_by = |rule: &Option<Rule>| rule.as_ref().map_or(Ok(Vec::new()), required_by_rule);
        let pair = |change: &Change| Ok((required_by(&change.before)?, required_by(&change.after)?));
        let required = changes.iter().map(pair).collect::<Result<Vec<_>, FilterError>>()?;
        let mut changed = BTreeMap::new();
        for (index, (change, (before, after))) in changes.iter().zip(&required).enumerate() {
            for (element, _) in before.iter().chain(after) {
                self.note_change(&mut changed, *element, index);
            }
            change.before.iter().for_each(|rule| self.release(rule, before));
            change.after.iter().for_each(|rule| self.require(rule, after));
        }
        Ok(changed)
    }

    /// Undoes changes that have been applied.
    pub fn undo(&mut self, changes: &[Change]) {
        let inverse: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
        self.apply(&inverse).expect("applied changes can be undone");
    }

    /// Returns the required state of an element; `None` if no rule requires it.
    pub fn state(&self, element: &Element) -> Option<ElementState> {
        let first = (*element, Time::ZERO, Pid(0));
        let last = (*element, Time::MAX, Pid(u32::MAX));
        let (&(_, end, _), &target) = self.targets.range(first..=last).next_back()?;
        Some(ElementState { end, target })
    }

    /// Returns every element and its required state.
    pub fn all(&self) -> impl Iterator<Item = (Element, ElementState)> {
        let mut required = self.targets.iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let (&(element, end, _), &target) = required.next()?;
                if required.peek().is_none_or(|((next, ..), _)| *next != element) {
                    return Some((element, ElementState { end, target }));
                }
            }
        })
    }

    /// Returns the number of elements, where an element that several rules require counts for each of them.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns the different shapes of the elements.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> {
        self.shapes.keys().copied()
    }

    fn note_change(&self, changed: &mut BTreeMap<Element, ElementChange>, element: Element, change: usize) {
        match changed.entry(element) {
            Entry::Vacant(vacant) => {
                vacant.insert(ElementChange { before: self.state(&element), change });
            }
            Entry::Occupied(mut occupied) => occupied.get_mut().change = change,
        }
    }

    fn require(&mut self, rule: &Rule, required: &[(Element, Option<Target>)]) {
        for (element, target) in required {
            if self.targets.insert((*element, rule.expires, rule.pid), *target).is_none() {
                *self.shapes.entry(Shape::of(element)).or_default() += 1;
            }
        }
    }

    fn release(&mut self, rule: &Rule, required: &[(Element, Option<Target>)]) {
        for (element, _) in required {
            if self.targets.remove(&(*element, rule.expires, rule.pid)).is_some() {
                self.release_shape(Shape::of(element));
            }
        }
    }
}

impl RequiredElements {
    /// Decreases the number of elements with this shape by one.
    fn release_shape(&mut self, shape: Shape) {
        let count = self.shapes.get_mut(&shape).expect("each shape in use is counted");
        *count -= 1;
        if *count == 0 {
            self.shapes.remove(&shape);
        }
    }
}

fn required_by_rule(rule: &Rule) -> Result<Vec<(Element, Option<Target>)>, FilterError> {
    elements(rule).map_err(|reason| FilterError::Unsupported { pid: rule.pid, reason })
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_simco::{
        Action, AddressTuple, AgentId, Binding, Direction, Gid, Location, PerParameters, PortParity,
    };
    use proptest::prelude::*;

    use super::*;

    /// Returns a rule; rules whose PIDs differ by two require the same element.
    fn rule(pid: u32, seconds: u64) -> Rule {
        let host = |location, port| AddressTuple::of_host(location, 17, ([192, 0, 2, 1], port).into());
        let action = Action::Enable {
            gid: Gid(pid),
            parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
            internal: host(Location::Internal, 5004 + pid as u16 % 2),
            external: host(Location::External, 6004),
            binding: Binding::default(),
        };
        Rule {
            pid: Pid(pid),
            owner: AgentId::NOBODY,
            expires: Time::ZERO + Duration::from_secs(seconds),
            action,
        }
    }

    /// Returns when each element expires, by the port of the element.
    fn states(required: &RequiredElements) -> BTreeMap<Option<u16>, Time> {
        let all: BTreeMap<_, _> = required.all().collect();
        assert!(all.iter().all(|(element, state)| required.state(element) == Some(*state)));
        let port = |element: Element| element.destination.port.map(|port| port.first());
        all.into_iter().map(|(element, state)| (port(element), state.end)).collect()
    }

    proptest! {
        #[test]
        fn an_element_lasts_until_its_last_rule_ends(
            changes in prop::collection::vec((0_u32..6, prop::option::of(1_u64..5)), 0..40),
        ) {
            let mut rules = BTreeMap::new();
            let mut required = RequiredElements::default();
            for (pid, seconds) in changes {
                let after = seconds.map(|seconds| rule(pid, seconds));
                let before = rules.remove(&pid);
                rules.extend(after.map(|rule| (pid, rule)));
                let change = Change { before, after };
                let earlier = states(&required);
                required.apply(&[change]).unwrap();
                let later = states(&required);
                required.undo(&[change]);
                prop_assert_eq!(states(&required), earlier);
                let changed = required.apply(&[change]).unwrap();
                prop_assert!(changed.len() <= 1);
                let last = |odd| rules.values().filter(|rule| rule.pid.0 % 2 == odd).map(|rule| rule.expires).max();
                prop_assert_eq!(later.get(&Some(5004)).copied(), last(0));
                prop_assert_eq!(later.get(&Some(5005)).copied(), last(1));
            }
        }
    }

    #[test]
    fn a_batch_with_an_unsupported_rule_is_undone() {
        let mut required = RequiredElements::of([&rule(0, 5)]).unwrap();
        let mut impossible = rule(3, 5);
        let Action::Enable { external, .. } = &mut impossible.action else { unreachable!() };
        *external = AddressTuple::of_host(Location::External, 17, "[2001:db8::1]:6004".parse().unwrap());
        let begin = |rule| Change { before: None, after: Some(rule) };
        let error = required.apply(&[begin(rule(0, 5)).inverse(), begin(impossible)]).unwrap_err();
        assert!(error.to_string().starts_with("rule 3:"), "{error}");
        assert_eq!(states(&required).len(), 1);
    }
}
