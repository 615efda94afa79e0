//! The high-water mark: a missing end of a journal is distinguished from a record that was never complete.

use std::fs;

use crate::directory::{frames, message, supersede};
use crate::world::{CurrentRules, Store, begin, record, rule};
use hol_journal::{Durability, Journal, JournalError};

fn open(store: &Store) -> Result<(Journal, CurrentRules), JournalError> {
    Journal::open(store.path()).map(|(journal, rules)| (journal, rules.into()))
}

/// Returns four acknowledged records, the octets of the segment, and the offset of the last record.
fn four_records() -> (Store, Vec<u8>, usize) {
    let store = Store::new();
    let (mut journal, _) = open(&store).unwrap();
    (1..=4).for_each(|pid| record(&mut journal, &[begin(rule(pid, 0))]));
    drop(journal);
    let octets = fs::read(store.segment(1)).unwrap();
    let last = octets.len() - frames(&octets)[3].len();
    (store, octets, last)
}

#[test]
fn a_cut_or_zeroed_acknowledged_record_is_missing() {
    let (store, whole, last) = four_records();
    let missing = |octets: &[u8], expected: &str| {
        fs::write(store.segment(1), octets).unwrap();
        for error in [message(open(&store)), message(hol_journal::read(store.path()))] {
            assert!(error.contains(&format!("journal.0000000001: octet {last}: {expected}")), "{error}");
            assert!(error.contains("/mark to continue without"), "{error}");
        }
    };
    for end in last + 1..whole.len() {
        missing(&whole[..end], "an acknowledged record is incomplete or overwritten");
    }
    missing(&whole[..last], "the file ends here, but more records had been acknowledged");
    let mut zeroed = whole.clone();
    zeroed[whole.len() - 8..].fill(0);
    missing(&zeroed, "an acknowledged record is incomplete or overwritten");

    // The operator accepts the loss by removing the mark.
    fs::remove_file(store.path().join("mark")).unwrap();
    let (journal, held) = open(&store).unwrap();
    assert_eq!(held.0.len(), 3);
    let truncated_tail = journal.truncated_tail().unwrap().to_string();
    assert!(truncated_tail.contains("which may have been acknowledged"), "{truncated_tail}");
}

#[test]
fn a_record_after_the_mark_was_never_acknowledged() {
    let (store, whole, last) = four_records();
    fs::write(store.segment(1), [&whole[..], &whole[last..whole.len() - 1]].concat()).unwrap();
    let (journal, held) = open(&store).unwrap();
    assert_eq!(held.0.len(), 4);
    let truncated_tail = journal.truncated_tail().unwrap();
    assert_eq!(truncated_tail.offset, whole.len() as u64);
    assert!(truncated_tail.to_string().ends_with("which was never acknowledged"), "{truncated_tail}");
}

/// The journal has the same number of records, but of another history.
#[test]
fn the_end_of_another_journal_is_detected() {
    let (store, ..) = four_records();
    let other = Store::new();
    let (mut journal, _) = open(&other).unwrap();
    (5..=8).for_each(|pid| record(&mut journal, &[begin(rule(pid, 0))]));
    fs::copy(other.segment(1), store.segment(1)).unwrap();
    let error = message(open(&store));
    assert!(error.contains("the last record differs from the one that was acknowledged"), "{error}");
}

#[test]
fn a_missing_last_or_only_segment_is_detected() {
    let store = Store::new();
    let (journal, mut held) = open(&store).unwrap();
    let mut journal = journal.with_durability(Durability::Buffered);
    supersede(&mut journal, &mut held);
    journal.compact_if_due().unwrap();
    drop(journal);
    assert_eq!(open(&store).unwrap().1, held);
    fs::remove_file(store.segment(2)).unwrap();
    let expected =
        "journal.0000000002: octet 0: this segment, in which records were acknowledged, is missing";
    assert!(message(open(&store)).contains(expected));
    assert!(message(hol_journal::read(store.path())).contains(expected));
    fs::remove_file(store.segment(1)).unwrap();
    assert!(message(open(&store)).contains(expected));
    assert!(message(hol_journal::read(store.path())).contains(expected));
}

/// Without sync the mark only counts what an earlier sync has covered.
#[test]
fn without_sync_a_lost_end_is_a_warning() {
    let store = Store::new();
    let (mut journal, _) = store.open();
    record(&mut journal, &[begin(rule(1, 0))]);
    journal.sync().unwrap();
    record(&mut journal, &[begin(rule(2, 0))]);
    drop(journal);
    let octets = fs::read(store.segment(1)).unwrap();
    fs::write(store.segment(1), &octets[..octets.len() - 1]).unwrap();
    let (journal, held) = store.open();
    assert_eq!(held.0.len(), 1);
    assert!(journal.truncated_tail().unwrap().to_string().contains("which may have been acknowledged"));
    drop(journal);
    let synced = octets.len() - frames(&octets)[1].len();
    fs::write(store.segment(1), &octets[..synced - 1]).unwrap();
    assert!(message(store.try_open()).contains("an acknowledged record is incomplete"));
}

/// The state after a failed write, or a crash of the machine.
#[test]
fn a_mark_behind_the_journal_is_advanced() {
    let (store, ..) = four_records();
    let following = fs::read(store.path().join("mark")).unwrap();
    let (mut journal, mut held) = open(&store).unwrap();
    record(&mut journal, &[held.change(5, 0, false)]);
    assert!(journal.needs_mark_sync());
    journal.sync_mark().unwrap();
    assert!(!journal.needs_mark_sync());
    drop(journal);
    fs::write(store.path().join("mark"), following).unwrap();
    assert_eq!(open(&store).unwrap().1, held);
    let octets = fs::read(store.segment(1)).unwrap();
    fs::write(store.segment(1), &octets[..octets.len() - 1]).unwrap();
    assert!(message(open(&store)).contains("an acknowledged record is incomplete"));
}
