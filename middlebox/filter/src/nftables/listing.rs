//! Lists the kernel's sets completely, although a single list may lack elements.
//!
//! The kernel lists a set in pieces of 32 KiB. For each piece it walks the hash table from the beginning,
//! skipping as many elements as it has walked before (`nf_tables_dump_set`, `nft_rhash_walk`). Between two pieces
//! its workers may resize the table, which changes the order of elements, or collect expired ones. Then the
//! kernel skips elements that it has not listed, and does not report that: both events happen outside
//! transactions, and lists of elements have no `NLM_F_DUMP_INTR`.
//!
//! Which elements are missing is random, and the next list has them. So a list is trusted if the earlier lists
//! had all of its elements, and no element occurs in it twice.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::kernel::{Kernel, KernelElement, TableContent};
use crate::FilterError;

/// Maximum number of times that a set is listed. A list may be incomplete, because a worker of the kernel rebuilds the
/// hash table whenever the number of elements doubles or halves.
const MAX_LIST_ATTEMPTS: usize = 16;

/// Calls `list` at least twice, until it returns false because a list contained nothing new; then returns true. Returns
/// false after [`MAX_LIST_ATTEMPTS`] calls that all returned true.
pub(super) fn list_until_complete(
    mut list: impl FnMut() -> Result<bool, FilterError>,
) -> Result<bool, FilterError> {
    list()?;
    for _ in 1..MAX_LIST_ATTEMPTS {
        if !list()? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Kernel {
    /// Returns all elements of a table's sets, except of those that packets fill; empty if the table does not exist.
    pub fn elements(&self, table: &str, except: &[String]) -> Result<TableContent, FilterError> {
        let mut sets = TableContent::new();
        for name in self.sets(table)?.into_iter().filter(|name| !except.contains(name)) {
            let list = |take: &mut dyn FnMut(Vec<u8>, KernelElement)| self.list_once(table, &name, take);
            let elements =
                list_completely(list)?.ok_or_else(|| FilterError::TableChanged { table: table.into() })?;
            sets.insert(name, elements);
        }
        Ok(sets)
    }
}

/// Returns all elements of a set, each as it was first listed; `None` if every list contains new elements.
fn list_completely(
    mut list: impl FnMut(&mut dyn FnMut(Vec<u8>, KernelElement)) -> Result<(), FilterError>,
) -> Result<Option<BTreeMap<Vec<u8>, KernelElement>>, FilterError> {
    // Each element with the number of the last list that contained it: a list with an element twice lacks
    // another one.
    let mut elements: BTreeMap<Vec<u8>, (KernelElement, usize)> = BTreeMap::new();
    let mut number = 0;
    let is_complete = list_until_complete(|| {
        number += 1;
        let mut is_incomplete = false;
        list(&mut |key, found| match elements.entry(key) {
            Entry::Vacant(vacant) => {
                is_incomplete = true;
                vacant.insert((found, number));
            }
            Entry::Occupied(mut occupied) => {
                is_incomplete |= std::mem::replace(&mut occupied.get_mut().1, number) == number;
            }
        })?;
        Ok(is_incomplete)
    })?;
    Ok(is_complete.then(|| elements.into_iter().map(|(key, (found, _))| (key, found)).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A simulated set of the kernel: elements in the order of a hash table. Elements that have expired are not listed.
    #[derive(Debug, Clone)]
    struct Set {
        order: Vec<u8>,
        has_ended: fn(u8) -> bool,
    }

    /// What a worker of the kernel does between two pieces of a list.
    #[derive(Debug, Clone, Copy)]
    enum Work {
        Nothing,
        /// The worker changes the order: this many elements move from the front to the back, and the others are
        /// reversed.
        Resize(usize),
        /// The worker removes elements that have expired.
        Collect,
    }

    impl Set {
        fn of(elements: u8, has_ended: fn(u8) -> bool) -> Self {
            Self { order: (0..elements).collect(), has_ended }
        }

        /// Lists the set in pieces, as `nf_tables_dump_set` does: for each piece it starts at the beginning and skips
        /// the number of elements that earlier pieces visited.
        fn list(&mut self, piece: usize, work: &mut impl Iterator<Item = Work>, take: &mut dyn FnMut(u8)) {
            let mut walked = 0;
            while walked < self.order.len() {
                let end = self.order.len().min(walked + piece);
                self.order[walked..end]
                    .iter()
                    .filter(|one| !(self.has_ended)(**one))
                    .for_each(|one| take(*one));
                walked = end;
                self.work(work.next().unwrap_or(Work::Nothing));
            }
        }

        fn work(&mut self, work: Work) {
            match work {
                Work::Nothing => {}
                Work::Resize(by) => {
                    let length = self.order.len().max(1);
                    self.order.rotate_left(by % length);
                    self.order[by % length..].reverse();
                }
                Work::Collect => self.order.retain(|one| !(self.has_ended)(*one)),
            }
        }

        fn living(&self) -> Vec<u8> {
            let mut living: Vec<u8> =
                self.order.iter().copied().filter(|one| !(self.has_ended)(*one)).collect();
            living.sort_unstable();
            living
        }
    }

    fn found() -> KernelElement {
        KernelElement { remaining: Some(1000), data: None }
    }

    /// Returns the listed keys, and the number of lists.
    fn keys(mut set: Set, piece: usize, work: Vec<Work>) -> (Option<Vec<u8>>, usize) {
        let (mut work, mut lists) = (work.into_iter(), 0);
        let list = |take: &mut dyn FnMut(Vec<u8>, KernelElement)| {
            lists += 1;
            set.list(piece, &mut work, &mut |key| take(vec![key], found()));
            Ok(())
        };
        let elements = list_completely(list).unwrap();
        (elements.map(|elements| elements.into_keys().flatten().collect()), lists)
    }

    fn once(mut set: Set, piece: usize, work: Vec<Work>) -> Vec<u8> {
        let mut keys = Vec::new();
        set.list(piece, &mut work.into_iter(), &mut |key| keys.push(key));
        keys.sort_unstable();
        keys
    }

    /// A resized table can hide elements: in one measurement a list of 20,000 elements lacked 3,120.
    #[test]
    fn a_table_that_is_resized_meanwhile_is_listed_again() {
        let set = Set::of(40, |_| false);
        let work = vec![Work::Nothing, Work::Resize(20)];
        let torn = once(set.clone(), 10, work.clone());
        assert_eq!(torn.len(), 40, "the list has the right length …");
        assert_ne!(torn, set.living(), "… but some elements twice");
        assert_eq!(keys(set.clone(), 10, work), (Some(set.living()), 3));
    }

    /// If elements are collected during a list, the list is too short, but no element occurs twice.
    #[test]
    fn a_table_from_which_elements_are_collected_meanwhile_is_listed_again() {
        let set = Set::of(40, |one| one % 4 == 0);
        let work = vec![Work::Nothing, Work::Collect];
        assert_eq!(once(set.clone(), 10, work.clone()).len(), 25);
        assert_eq!(keys(set.clone(), 10, work), (Some(set.living()), 3));
    }

    /// A list in which an element occurs twice lacks another element, which the previous list may have lacked, too.
    #[test]
    fn a_list_with_a_duplicate_element_is_repeated() {
        let mut lists = [vec![0, 1], vec![1, 1], vec![0, 1, 2], vec![2, 1, 0]].into_iter();
        let mut number = 0;
        let elements = list_completely(|take| {
            number += 1;
            lists.next().expect("enough lists").into_iter().for_each(|key| take(vec![key], found()));
            Ok(())
        });
        assert_eq!((elements.unwrap().map(|elements| elements.len()), number), (Some(3), 4));
    }

    #[test]
    fn an_unchanging_table_is_listed_twice() {
        let set = Set::of(40, |_| false);
        assert_eq!(keys(set.clone(), 10, Vec::new()), (Some(set.living()), 2));
        assert_eq!(keys(Set::of(0, |_| false), 10, Vec::new()), (Some(Vec::new()), 2));
    }

    #[test]
    fn lists_that_never_agree_end_at_the_maximum() {
        let mut next = 0;
        let elements = list_completely(|take| {
            next += 1;
            take(vec![next], found());
            Ok(())
        });
        assert_eq!((elements.unwrap(), usize::from(next)), (None, MAX_LIST_ATTEMPTS));
    }

    fn work() -> impl Strategy<Value = Work> {
        prop_oneof![
            6 => Just(Work::Nothing),
            1 => (0_usize..200).prop_map(Work::Resize),
            1 => Just(Work::Collect),
        ]
    }

    proptest! {
        /// Changes of the set during the first list do not hide any element in the result.
        #[test]
        fn changes_during_the_first_list_hide_no_element(
            elements in 0_u8..200,
            piece in 1_usize..50,
            work in proptest::collection::vec(work(), 0..4),
        ) {
            let set = Set::of(elements, |one| one % 5 == 3);
            let pieces = usize::from(elements).div_ceil(piece);
            let work: Vec<Work> = work.into_iter().take(pieces).collect();
            prop_assert_eq!(keys(set.clone(), piece, work).0, Some(set.living()));
        }
    }
}
