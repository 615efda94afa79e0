//! A look for elements of a large table that no rule wants, while others work.
//!
//! The kernel walks a set from its beginning for every piece of its list, so a million elements take it two minutes. A
//! thread listens to that; what is added meanwhile is remembered, for it is not what is looked for.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread::{self, JoinHandle};

use super::kernel::Kernel;
use crate::FilterError;

/// An element as the kernel names it: its set and its key.
pub(super) type Named = (String, Vec<u8>);

/// A look that is under way.
#[derive(Debug)]
pub(super) struct Survey {
    listing: JoinHandle<Result<Vec<Named>, FilterError>>,
    added: BTreeSet<Named>,
}

impl Survey {
    /// Begins to look for what is not wanted now.
    pub fn begin(table: &str, wanted: Wanted) -> Result<Self, FilterError> {
        let (table, wanted) = (table.to_owned(), wanted.0);
        let look = move || {
            let mut strange = Vec::new();
            Kernel::open()?.each_key(&table, |set, key| {
                if wanted.binary_search(&digest(set, &key)).is_err() {
                    strange.push((set.to_owned(), key));
                }
            })?;
            Ok(strange)
        };
        let listing = thread::Builder::new().name("survey".into()).spawn(look)?;
        Ok(Self { listing, added: BTreeSet::new() })
    }

    /// An element was added meanwhile.
    pub fn note_added(&mut self, set: &str, key: &[u8]) {
        self.added.insert((set.to_owned(), key.to_owned()));
    }

    pub fn is_finished(&self) -> bool {
        self.listing.is_finished()
    }

    /// What nobody wants.
    pub fn finish(self) -> Result<Vec<Named>, FilterError> {
        let mut strange = self.listing.join().expect("listening does not panic")?;
        strange.retain(|named| !self.added.contains(named));
        Ok(strange)
    }
}

/// What rules want, as digests in order: eight octets an element. Two that are the same would hide a surplus element, which
/// ends with its lifetime nevertheless.
#[derive(Debug)]
pub(super) struct Wanted(Vec<u64>);

impl Wanted {
    pub fn of<'a>(elements: impl Iterator<Item = (&'a str, Vec<u8>)>) -> Self {
        let mut digests: Vec<u64> = elements.map(|(set, key)| digest(set, &key)).collect();
        digests.sort_unstable();
        Self(digests)
    }
}

fn digest(set: &str, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (set, key).hash(&mut hasher);
    hasher.finish()
}
