//! Histories of changes, cut and damaged anywhere.

use std::fs;

use crate::world::{CurrentRules, Store, begin, record, rule};
use hol_journal::JournalError;
use hol_simco::Change;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Generates batches of changes to a few rules.
fn batches() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let drawn = vec(vec((0..8u32, any::<u32>(), any::<bool>()), 1..5), 1..12);
    drawn.prop_map(|batches| {
        let mut held = CurrentRules::default();
        let mut change = |(pid, version, is_end)| held.change(pid, version, is_end);
        batches.into_iter().map(|batch| batch.into_iter().map(&mut change).collect()).collect()
    })
}

/// Records all batches; returns the rules and the length of the file before the first batch and after each.
fn write(store: &Store, batches: &[Vec<Change>]) -> Vec<(CurrentRules, u64)> {
    let (mut journal, mut held) = store.open();
    let length = || fs::metadata(store.segment(1)).unwrap().len();
    let mut states = vec![(held.clone(), length())];
    for batch in batches {
        record(&mut journal, batch);
        held.apply(batch);
        states.push((held.clone(), length()));
    }
    states
}

/// Returns a configuration with few cases, because each opens several files and waits for the disk.
/// `PROPTEST_CASES` overrides their number.
fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig::with_cases(asked.unwrap_or(64))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn recorded_rules_are_recovered_and_the_journal_continues(first in batches(), second in batches()) {
        let store = Store::new();
        let (held, _) = write(&store, &first).pop().unwrap();
        let (mut journal, mut again) = store.open();
        prop_assert_eq!(&again, &held);
        // The second history assumes no rules, so all rules end first.
        let ends: Vec<_> = held.0.values().map(|rule| Change { before: Some(*rule), after: None }).collect();
        for batch in std::iter::once(&ends).chain(&second) {
            record(&mut journal, batch);
            again.apply(batch);
        }
        drop(journal);
        prop_assert_eq!(store.open().1, again);
    }

    /// Any prefix of the file contains a prefix of the history, batch by batch, and can be continued.
    #[test]
    fn a_cut_file_contains_every_complete_batch(batches in batches(), cut: Index) {
        let store = Store::new();
        let states = write(&store, &batches);
        let (header, length) = (states[0].1, states[states.len() - 1].1);
        let cut = header + cut.index((length - header) as usize + 1) as u64;
        fs::File::options().write(true).open(store.segment(1)).unwrap().set_len(cut).unwrap();

        let (expected, whole) = states.iter().rev().find(|(_, end)| *end <= cut).unwrap();
        let (mut journal, held) = store.open();
        prop_assert_eq!(&held, expected);
        let truncated_tail = journal.truncated_tail().map(|truncated_tail| (truncated_tail.offset, truncated_tail.octets));
        prop_assert_eq!(truncated_tail, (cut > *whole).then_some((*whole, cut - whole)));

        let more = [begin(rule(99, 1))];
        record(&mut journal, &more);
        drop(journal);
        let (journal, held) = store.open();
        prop_assert!(journal.truncated_tail().is_none());
        prop_assert_eq!(held.0.len(), expected.0.len() + 1);
    }

    /// The last batch may be lost, as if it had been torn; damage to any other octet is an error that names its
    /// position.
    #[test]
    fn a_flipped_bit_is_an_error_or_loses_only_the_last_batch(batches in batches(), bit: Index) {
        let store = Store::new();
        let states = write(&store, &batches);
        let mut octets = fs::read(store.segment(1)).unwrap();
        let bit = bit.index(octets.len() * 8);
        octets[bit / 8] ^= 1 << (bit % 8);
        fs::write(store.segment(1), &octets).unwrap();

        let (at, before_last) = (bit as u64 / 8, &states[states.len() - 2]);
        match store.try_open() {
            Ok((_, held)) => {
                prop_assert!(at >= before_last.1, "octet {} is before the last batch", at);
                prop_assert_eq!(&held, &before_last.0);
            }
            Err(JournalError::Damaged { path, offset, .. }) => {
                prop_assert_eq!(path, store.segment(1));
                let frame = states.iter().rev().map(|(_, end)| *end).find(|end| *end <= at).unwrap_or(0);
                prop_assert_eq!(offset, frame);
            }
            Err(error) => prop_assert!(matches!(error, JournalError::Version { .. }), "{}", error),
        }
    }
}
