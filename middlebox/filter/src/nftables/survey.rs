//! Searches a large table for elements that no rule requires, in the background.
//!
//! The kernel walks a set from its beginning for every piece of its list, so a million elements take it two
//! minutes. A thread reads that, [at least twice](super::listing); elements added meanwhile are remembered,
//! since they are not surplus.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::kernel::Kernel;
use super::listing::list_until_known;
use crate::FilterError;

/// An element as named by the kernel: its set and its key.
pub(super) type Named = (String, Vec<u8>);

/// Nobody panics with it in hand.
const WHOLE: &str = "the set of what was added is whole";

/// A running search.
#[derive(Debug)]
pub(super) struct Survey {
    listing: JoinHandle<Result<BTreeSet<Named>, FilterError>>,
    added: Arc<Mutex<BTreeSet<Named>>>,
}

impl Survey {
    /// Starts to search for elements that are not required now.
    pub fn begin(table: &str, wanted: Wanted) -> Result<Self, FilterError> {
        let (table, wanted) = (table.to_owned(), wanted.0);
        let added = Arc::new(Mutex::new(BTreeSet::new()));
        let news = Arc::clone(&added);
        let look = move || {
            let kernel = Kernel::open()?;
            let mut strange = BTreeSet::new();
            // Elements that no list had expire with their lifetime.
            list_until_known(|| {
                let known = strange.len();
                for set in kernel.sets(&table)? {
                    kernel.list_once(&table, &set, |key, _| {
                        if wanted.binary_search(&digest(&set, &key)).is_err() {
                            let named = (set.clone(), key);
                            if !news.lock().expect(WHOLE).contains(&named) {
                                strange.insert(named);
                            }
                        }
                    })?;
                }
                Ok(strange.len() > known)
            })?;
            Ok(strange)
        };
        let listing = thread::Builder::new().name("survey".into()).spawn(look)?;
        Ok(Self { listing, added })
    }

    /// Notes that an element is about to be added.
    pub fn note_added(&self, set: &str, key: &[u8]) {
        self.added.lock().expect(WHOLE).insert((set.to_owned(), key.to_owned()));
    }

    pub fn is_finished(&self) -> bool {
        self.listing.is_finished()
    }

    /// Returns the surplus elements.
    pub fn finish(self) -> Result<BTreeSet<Named>, FilterError> {
        let mut strange = self.listing.join().expect("listening does not panic")?;
        let added = self.added.lock().expect(WHOLE);
        strange.retain(|named| !added.contains(named));
        Ok(strange)
    }
}

/// The required elements as sorted digests: eight octets each. A collision would hide a surplus element,
/// which still expires with its lifetime.
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
