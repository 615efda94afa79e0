//! A look for elements of a large table that no rule wants, while others work.
//!
//! The kernel walks a set from its beginning for every piece of its list, so a million elements take it two minutes. A
//! thread listens to that, [twice at least](super::listing); what is added meanwhile is remembered, for it is not what is looked for.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::kernel::Kernel;
use super::listing::list_until_known;
use crate::FilterError;

/// An element as the kernel names it: its set and its key.
pub(super) type Named = (String, Vec<u8>);

/// Nobody panics with it in hand.
const WHOLE: &str = "the set of what was added is whole";

/// A look that is under way.
#[derive(Debug)]
pub(super) struct Survey {
    listing: JoinHandle<Result<BTreeSet<Named>, FilterError>>,
    added: Arc<Mutex<BTreeSet<Named>>>,
}

impl Survey {
    /// Begins to look for what is not wanted now.
    pub fn begin(table: &str, wanted: Wanted) -> Result<Self, FilterError> {
        let (table, wanted) = (table.to_owned(), wanted.0);
        let added = Arc::new(Mutex::new(BTreeSet::new()));
        let news = Arc::clone(&added);
        let look = move || {
            let kernel = Kernel::open()?;
            let mut strange = BTreeSet::new();
            // What none of them had ends with its lifetime.
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

    /// An element is about to be added meanwhile.
    pub fn note_added(&self, set: &str, key: &[u8]) {
        self.added.lock().expect(WHOLE).insert((set.to_owned(), key.to_owned()));
    }

    pub fn is_finished(&self) -> bool {
        self.listing.is_finished()
    }

    /// What nobody wants.
    pub fn finish(self) -> Result<BTreeSet<Named>, FilterError> {
        let mut strange = self.listing.join().expect("listening does not panic")?;
        let added = self.added.lock().expect(WHOLE);
        strange.retain(|named| !added.contains(named));
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
