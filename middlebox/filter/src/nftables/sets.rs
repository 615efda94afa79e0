//! The sets of the table.

use std::collections::BTreeMap;

use super::element_changes::Steps;
use super::endpoint_mappings;
use super::ruleset::{self, Chain};
use super::transaction::Transaction;
use crate::required_elements::RequiredElements;
use crate::shape::Shape;
use crate::{Config, FilterError, MAX_SHAPES};

/// The sets that exist in the table, and their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sets(BTreeMap<Shape, String>);

impl Sets {
    /// Returns one set for each shape of these elements.
    pub fn for_all(required: &RequiredElements) -> Result<Self, FilterError> {
        let sets: BTreeMap<Shape, String> = required.shapes().map(|shape| (shape, shape.name())).collect();
        if sets.len() > MAX_SHAPES { Err(FilterError::TooManyShapes(sets.len())) } else { Ok(Self(sets)) }
    }

    /// Returns these sets and those that the steps need. Empty sets stay, because creating a set is costly, until there
    /// would be more than [`MAX_SHAPES`] sets.
    pub fn with_sets_for(&self, steps: &Steps, required: &RequiredElements) -> Result<Self, FilterError> {
        let mut sets = self.clone();
        for shape in steps.added() {
            sets.0.entry(*shape).or_insert_with(|| shape.name());
        }
        if sets.0.len() <= MAX_SHAPES { Ok(sets) } else { Self::for_all(required) }
    }

    /// Returns the name of the set of a shape; `None` if it does not exist.
    pub fn name(&self, shape: &Shape) -> Option<&str> {
        self.0.get(shape).map(String::as_str)
    }

    /// Returns all sets with their names.
    pub fn all(&self) -> impl Iterator<Item = (&Shape, &str)> {
        self.0.iter().map(|(shape, name)| (shape, name.as_str()))
    }

    /// Creates all sets and all chains.
    pub fn create(&self, transaction: &mut Transaction<'_>, config: &Config) {
        self.0.keys().for_each(|shape| transaction.create_set(shape));
        endpoint_mappings::maps(config.masquerade()).into_iter().for_each(|map| map.create(transaction));
        let chains = ruleset::chains(config);
        let needed = || chains.iter().filter(|chain| chain.is_needed(&self.shapes_used_by(chain)));
        needed().for_each(|chain| chain.create(transaction));
        needed().for_each(|chain| chain.fill(transaction, &self.shapes_used_by(chain)));
    }

    /// Creates and removes sets so that the sets become `others`, and rebuilds the chains that look up packets in them.
    pub fn change(&self, others: &Self, transaction: &mut Transaction<'_>, config: &Config) {
        if self == others {
            return;
        }
        let chains = ruleset::chains(config);
        let changed =
            || chains.iter().filter(|chain| self.shapes_used_by(chain) != others.shapes_used_by(chain));
        for chain in changed() {
            chain.create(transaction);
            chain.flush(transaction);
        }
        for (_, set) in self.0.iter().filter(|(shape, _)| !others.0.contains_key(shape)) {
            transaction.delete_set(set);
        }
        for shape in others.0.keys().filter(|shape| !self.0.contains_key(shape)) {
            transaction.create_set(shape);
        }
        changed().for_each(|chain| chain.fill(transaction, &others.shapes_used_by(chain)));
    }

    /// Returns the shapes of the sets in which a chain looks up packets.
    fn shapes_used_by(&self, chain: &Chain<'_>) -> Vec<&Shape> {
        self.0.keys().filter(|shape| chain.uses(shape.role)).collect()
    }
}
