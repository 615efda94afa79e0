//! Which rules hold which elements, and until when.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hol_base::Time;
use hol_simco::{Change, Pid, Rule};

use crate::FilterError;
use crate::element::{Element, Target};
use crate::flow::elements;

/// Every element with the rules that want it. Two rules may want the same one: it stands as long as either does.
#[derive(Debug, Default)]
pub(crate) struct Holds(BTreeMap<(Element, Time, Pid), Option<Target>>);

/// How an element stands in the filter: as the rule has it that ends last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub end: Time,
    pub target: Option<Target>,
}

/// An element that changes were about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    /// How it stood before them.
    pub before: Option<Standing>,
    /// The last of them.
    pub change: usize,
}

impl Holds {
    /// What these rules want.
    pub fn of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Result<Self, FilterError> {
        let mut holds = Self::default();
        for rule in rules {
            holds.take(rule, &wanted(rule)?);
        }
        Ok(holds)
    }

    /// Makes all changes, or none, and tells which elements they were about.
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

    /// Takes back changes that were applied.
    pub fn undo(&mut self, changes: &[Change]) {
        let inverse: Vec<Change> = changes.iter().rev().map(|change| change.inverse()).collect();
        self.apply(&inverse).expect("what was applied can be taken back");
    }

    /// How the filter has to have an element.
    pub fn standing(&self, element: &Element) -> Option<Standing> {
        let first = (*element, Time::ZERO, Pid(0));
        let last = (*element, Time::MAX, Pid(u32::MAX));
        let (&(_, end, _), &target) = self.0.range(first..=last).next_back()?;
        Some(Standing { end, target })
    }

    /// Every element, and how the filter has to have it.
    pub fn all(&self) -> impl Iterator<Item = (Element, Standing)> {
        let mut holds = self.0.iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let (&(element, end, _), &target) = holds.next()?;
                if holds.peek().is_none_or(|((next, ..), _)| *next != element) {
                    return Some((element, Standing { end, target }));
                }
            }
        })
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
            self.0.insert((*element, rule.expires, rule.pid), *target);
        }
    }

    fn give_back(&mut self, rule: &Rule, wanted: &[(Element, Option<Target>)]) {
        for (element, _) in wanted {
            self.0.remove(&(*element, rule.expires, rule.pid));
        }
    }
}

fn wanted(rule: &Rule) -> Result<Vec<(Element, Option<Target>)>, FilterError> {
    elements(rule).map_err(|why| FilterError::Unsupported { pid: rule.pid, why })
}
