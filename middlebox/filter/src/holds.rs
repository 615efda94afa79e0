//! Which rules need which elements, and until when.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hol_base::Time;
use hol_simco::{Change, Pid, Rule};

use crate::FilterError;
use crate::element::{Element, Target};
use crate::flow::elements;
use crate::shape::Shape;

/// Every element with the rules that need it. Two rules may need the same one: it stays as long as either
/// does.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    wanted: BTreeMap<(Element, Time, Pid), Option<Target>>,
    /// Number of elements of each shape.
    shapes: BTreeMap<Shape, usize>,
}

/// An element in the filter: that of the rule that ends last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub end: Time,
    pub target: Option<Target>,
}

/// An element affected by changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    /// Its state before them.
    pub before: Option<Standing>,
    /// The last of them.
    pub change: usize,
}

impl Holds {
    /// Returns the elements of these rules.
    pub fn of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Result<Self, FilterError> {
        let mut holds = Self::default();
        for rule in rules {
            holds.take(rule, &wanted(rule)?);
        }
        Ok(holds)
    }

    /// Applies all changes, or none; returns the affected elements.
    pub fn apply(&mut self, changes: &[Change]) -> Result<BTreeMap<Element, Touched>, FilterError> {
        let wanted_by = |rule: &Option<Rule>| rule.as_ref().map_or(Ok(Vec::new()), wanted);
        let pair = |change: &Change| Ok((wanted_by(&change.before)?, wanted_by(&change.after)?));
        let wants = changes.iter().map(pair).collect::<Result<Vec<_>, FilterError>>()?;
        let mut touched = BTreeMap::new();
        for (index, (change, (before, after))) in changes.iter().zip(&wants).enumerate() {
            for (element, _) in before.iter().chain(after) {
                self.touch(&mut touched, *element, index);
            }
            change.before.iter().for_each(|rule| self.give_back(rule, before));
            change.after.iter().for_each(|rule| self.take(rule, after));
        }
        Ok(touched)
    }

    /// Undoes applied changes.
    pub fn undo(&mut self, changes: &[Change]) {
        let inverse: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
        self.apply(&inverse).expect("what was applied can be taken back");
    }

    /// Returns how an element must be in the filter.
    pub fn standing(&self, element: &Element) -> Option<Standing> {
        let first = (*element, Time::ZERO, Pid(0));
        let last = (*element, Time::MAX, Pid(u32::MAX));
        let (&(_, end, _), &target) = self.wanted.range(first..=last).next_back()?;
        Some(Standing { end, target })
    }

    /// Returns every element, and how it must be in the filter.
    pub fn all(&self) -> impl Iterator<Item = (Element, Standing)> {
        let mut holds = self.wanted.iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let (&(element, end, _), &target) = holds.next()?;
                if holds.peek().is_none_or(|((next, ..), _)| *next != element) {
                    return Some((element, Standing { end, target }));
                }
            }
        })
    }

    /// Returns the number of elements, counting shared ones for each rule.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Returns the shapes of all elements.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> {
        self.shapes.keys().copied()
    }

    fn touch(&self, touched: &mut BTreeMap<Element, Touched>, element: Element, change: usize) {
        match touched.entry(element) {
            Entry::Vacant(vacant) => {
                vacant.insert(Touched { before: self.standing(&element), change });
            }
            Entry::Occupied(mut occupied) => occupied.get_mut().change = change,
        }
    }

    fn take(&mut self, rule: &Rule, wanted: &[(Element, Option<Target>)]) {
        for (element, target) in wanted {
            if self.wanted.insert((*element, rule.expires, rule.pid), *target).is_none() {
                *self.shapes.entry(Shape::of(element)).or_default() += 1;
            }
        }
    }

    fn give_back(&mut self, rule: &Rule, wanted: &[(Element, Option<Target>)]) {
        for (element, _) in wanted {
            if self.wanted.remove(&(*element, rule.expires, rule.pid)).is_some() {
                self.forget(Shape::of(element));
            }
        }
    }
}

impl Holds {
    /// Counts one element less of this shape.
    fn forget(&mut self, shape: Shape) {
        let count = self.shapes.get_mut(&shape).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.shapes.remove(&shape);
        }
    }
}

fn wanted(rule: &Rule) -> Result<Vec<(Element, Option<Target>)>, FilterError> {
    elements(rule).map_err(|why| FilterError::Unsupported { pid: rule.pid, why })
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_simco::{
        Action, AddressTuple, AgentId, Binding, Direction, Gid, Location, PerParameters, PortParity,
    };
    use proptest::prelude::*;

    use super::*;

    /// Rules whose PIDs differ by two come to the same element.
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

    /// How the elements stand, by the port that tells them apart.
    fn standings(holds: &Holds) -> BTreeMap<Option<u16>, Time> {
        let all: BTreeMap<_, _> = holds.all().collect();
        assert!(all.iter().all(|(element, standing)| holds.standing(element) == Some(*standing)));
        let port = |element: Element| element.destination.port.map(|port| port.first());
        all.into_iter().map(|(element, standing)| (port(element), standing.end)).collect()
    }

    proptest! {
        #[test]
        fn an_element_stands_as_long_as_the_rule_that_ends_last(
            changes in prop::collection::vec((0_u32..6, prop::option::of(1_u64..5)), 0..40),
        ) {
            let mut rules = BTreeMap::new();
            let mut holds = Holds::default();
            for (pid, seconds) in changes {
                let after = seconds.map(|seconds| rule(pid, seconds));
                let before = rules.remove(&pid);
                rules.extend(after.map(|rule| (pid, rule)));
                let change = Change { before, after };
                let earlier = standings(&holds);
                holds.apply(&[change]).unwrap();
                let later = standings(&holds);
                holds.undo(&[change]);
                prop_assert_eq!(standings(&holds), earlier);
                let touched = holds.apply(&[change]).unwrap();
                prop_assert!(touched.len() <= 1);
                let last = |odd| rules.values().filter(|rule| rule.pid.0 % 2 == odd).map(|rule| rule.expires).max();
                prop_assert_eq!(later.get(&Some(5004)).copied(), last(0));
                prop_assert_eq!(later.get(&Some(5005)).copied(), last(1));
            }
        }
    }

    #[test]
    fn a_batch_with_a_rule_that_cannot_be_is_taken_back_whole() {
        let mut holds = Holds::of([&rule(0, 5)]).unwrap();
        let mut impossible = rule(3, 5);
        let Action::Enable { external, .. } = &mut impossible.action else { unreachable!() };
        *external = AddressTuple::of_host(Location::External, 17, "[2001:db8::1]:6004".parse().unwrap());
        let begin = |rule| Change { before: None, after: Some(rule) };
        let error = holds.apply(&[begin(rule(0, 5)).inverse(), begin(impossible)]).unwrap_err();
        assert!(error.to_string().starts_with("rule 3:"), "{error}");
        assert_eq!(standings(&holds).len(), 1);
    }
}
