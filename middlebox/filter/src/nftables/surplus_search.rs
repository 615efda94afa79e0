//! Searches a large table for surplus elements, which no rule requires. The search runs in the background.
//!
//! The kernel walks a set from its beginning for every piece of its list, so a list of a million elements
//! takes two minutes. A thread reads the list, [at least twice](super::listing). It remembers elements that
//! are added during the search, since they are not surplus.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::kernel::Kernel;
use super::listing::list_until_complete;
use crate::FilterError;

/// The name of an element in the kernel: its set and its key.
pub(super) type ElementName = (String, Vec<u8>);

/// The panic message if a lock is poisoned, which cannot happen.
const NOT_POISONED: &str = "no thread panics while it holds the lock";

/// A search for surplus elements, which runs in the background.
#[derive(Debug)]
pub(super) struct SurplusSearch {
    listing: JoinHandle<Result<BTreeSet<ElementName>, FilterError>>,
    added: Arc<Mutex<BTreeSet<ElementName>>>,
}

impl SurplusSearch {
    /// Starts to search for elements that are not in `required`.
    pub fn begin(table: &str, required: RequiredDigests) -> Result<Self, FilterError> {
        let (table, required) = (table.to_owned(), required.0);
        let added = Arc::new(Mutex::new(BTreeSet::new()));
        let also_added = Arc::clone(&added);
        let search = move || {
            let kernel = Kernel::open()?;
            let mut surplus = BTreeSet::new();
            // Elements that no list contains expire with their lifetime.
            list_until_complete(|| {
                let known = surplus.len();
                for set in kernel.sets(&table)? {
                    kernel.list_once(&table, &set, |key, _| {
                        if required.binary_search(&digest(&set, &key)).is_err() {
                            let name = (set.clone(), key);
                            if !also_added.lock().expect(NOT_POISONED).contains(&name) {
                                surplus.insert(name);
                            }
                        }
                    })?;
                }
                Ok(surplus.len() > known)
            })?;
            Ok(surplus)
        };
        let listing = thread::Builder::new().name("survey".into()).spawn(search)?;
        Ok(Self { listing, added })
    }

    /// Records that an element is about to be added, so that it does not count as surplus.
    pub fn note_added(&self, set: &str, key: &[u8]) {
        self.added.lock().expect(NOT_POISONED).insert((set.to_owned(), key.to_owned()));
    }

    pub fn is_finished(&self) -> bool {
        self.listing.is_finished()
    }

    /// Waits for the end of the search and returns the surplus elements.
    pub fn finish(self) -> Result<BTreeSet<ElementName>, FilterError> {
        let mut surplus = self.listing.join().expect("the search does not panic")?;
        let added = self.added.lock().expect(NOT_POISONED);
        surplus.retain(|name| !added.contains(name));
        Ok(surplus)
    }
}

/// The required elements as sorted digests of eight octets each. If digests collide, a surplus element may stay
/// undetected, but it still expires.
#[derive(Debug)]
pub(super) struct RequiredDigests(Vec<u64>);

impl RequiredDigests {
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
