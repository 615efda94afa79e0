//! The directory of a journal: its lock, its segments, what is left behind in it.

mod world;

use std::fs;
use std::path::Path;

use hol_journal::{Journal, JournalError};
use hol_simco::Change;
use world::{Held, Store, begin, record, rule};

fn message<T>(result: Result<T, JournalError>) -> String {
    result.err().expect("this has to fail").to_string()
}

/// Changes one rule until compaction is worth it.
fn supersede(journal: &mut Journal, held: &mut Held) {
    for thousand in 0..110 {
        let batch: Vec<Change> = (0..1000).map(|n| held.change(1, 1000 * thousand + n, false)).collect();
        record(journal, &batch);
    }
}

#[test]
fn a_second_journal_in_the_same_directory_is_refused_until_the_first_is_closed() {
    let store = Store::new();
    let (journal, _) = store.open();
    let refused = message(store.try_open());
    assert!(refused.contains("another process records its rules there"), "{refused}");
    drop(journal);
    store.open();
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = message(Journal::open(Path::new("/dev/null/state")));
    assert!(error.starts_with("/dev/null/state: cannot create"), "{error}");
}

#[test]
fn files_of_others_are_left_alone() {
    let store = Store::new();
    for name in ["journal.txt", "notes", "journal.x.new"] {
        fs::write(store.path().join(name), "mine").unwrap();
    }
    store.open();
    assert_eq!(store.files(), ["journal.0000000001", "journal.txt", "journal.x.new", "notes"]);
}

#[test]
fn an_empty_batch_leaves_nothing_behind() {
    let store = Store::new();
    let (mut journal, _) = store.open();
    let length = || fs::metadata(store.segment(1)).unwrap().len();
    let before = length();
    record(&mut journal, &[]);
    assert_eq!(length(), before);
}

#[test]
fn what_is_superseded_goes_and_what_holds_stays() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    record(&mut journal, &[held.change(7, 7, false), held.change(8, 8, false)]);
    for round in 1..=3 {
        supersede(&mut journal, &mut held);
        journal.tidy().unwrap();
        // Records go on while the thread works.
        record(&mut journal, &[held.change(8, 100 + round, round == 3)]);
        drop(journal);
        journal = store.open().0;
    }
    drop(journal);
    let octets: u64 =
        store.files().iter().map(|name| fs::metadata(store.path().join(name)).unwrap().len()).sum();
    assert!(octets < 2_000, "{octets} octets for two rules");
    assert_eq!(store.files(), ["journal.0000000003", "journal.0000000004"]);
    assert_eq!(store.open().1, held);
}

/// The process can end between any two steps of a compaction.
#[test]
fn what_an_interrupted_compaction_leaves_is_cleared_away() {
    let store = Store::new();
    let mut held = Held::default();
    let old = [1, 2].map(|number| {
        let (mut journal, _) = store.open();
        supersede(&mut journal, &mut held);
        journal.sync().unwrap();
        let copy = fs::read(store.segment(number)).unwrap();
        journal.tidy().unwrap();
        copy
    });
    // Before the rename: the old segments, and an unfinished one.
    let compacted = fs::read(store.segment(2)).unwrap();
    fs::write(store.segment(1), &old[0]).unwrap();
    fs::write(store.segment(2), &old[1]).unwrap();
    fs::write(store.path().join("journal.0000000002.new"), &compacted[..compacted.len() / 2]).unwrap();
    assert_eq!(store.open().1, held);
    assert_eq!(store.files(), ["journal.0000000001", "journal.0000000002", "journal.0000000003"]);
    // Behind it: the one that begins from nothing, and one that it has superseded.
    fs::write(store.segment(2), &compacted).unwrap();
    assert_eq!(store.open().1, held);
    assert_eq!(store.files(), ["journal.0000000002", "journal.0000000003"]);
}

#[test]
fn a_missing_segment_is_an_error_that_says_what_to_do() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    supersede(&mut journal, &mut held);
    journal.tidy().unwrap();
    drop(journal);
    fs::remove_file(store.segment(1)).unwrap();
    let error = message(store.try_open());
    assert!(error.contains("journal.0000000002: octet 0: the segment before this one is missing"), "{error}");
    assert!(error.contains("restore the directory from a copy, or move it away"), "{error}");
}

/// Only what was being written last can be torn.
#[test]
fn a_segment_that_ends_early_before_another_is_damaged() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    supersede(&mut journal, &mut held);
    journal.tidy().unwrap();
    drop(journal);
    let octets = fs::read(store.segment(1)).unwrap();
    fs::write(store.segment(1), &octets[..octets.len() - 1]).unwrap();
    let error = message(store.try_open());
    assert!(error.contains("journal.0000000001: octet 16:"), "{error}");
}

#[test]
fn a_file_that_is_no_journal_is_not_overwritten() {
    let store = Store::new();
    fs::write(store.segment(1), "a letter to somebody").unwrap();
    let error = message(store.try_open());
    assert!(error.contains("octet 0: this is no header of a journal"), "{error}");
    assert_eq!(fs::read(store.segment(1)).unwrap(), b"a letter to somebody");
}

#[test]
fn rules_come_in_the_order_in_which_they_became_what_they_are() {
    let store = Store::new();
    let (mut journal, _) = store.open();
    record(&mut journal, &[9, 3, 5].map(|pid| begin(rule(pid, 0))));
    record(&mut journal, &[Change { before: Some(rule(9, 0)), after: Some(rule(9, 1)) }]);
    drop(journal);
    let (_, rules) = Journal::open(store.path()).unwrap();
    assert_eq!(rules.iter().map(|recorded| recorded.rule.pid.0).collect::<Vec<_>>(), [3, 5, 9]);
}

#[test]
fn whoever_looks_into_a_journal_sees_what_holds_and_leaves_everything_as_it_is() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    let look = || Held::from(hol_journal::read(store.path()).unwrap());
    record(&mut journal, &[held.change(8, 8, false), held.change(7, 7, false)]);
    assert_eq!(look(), held);
    for round in 0..2 {
        supersede(&mut journal, &mut held);
        journal.tidy().unwrap();
        // A thread compacts meanwhile.
        for version in 0..20 {
            record(&mut journal, &[held.change(8, 100 * round + version, version == 13)]);
            assert_eq!(look(), held);
        }
    }
    drop(journal);
    let unfinished = store.path().join("journal.0000000001.new");
    let last = store.files().pop().unwrap();
    let whole = fs::read(store.path().join(&last)).unwrap();
    fs::write(&unfinished, "half").unwrap();
    fs::write(store.path().join(&last), [&whole, &whole[16..30]].concat()).unwrap();
    let files = store.files();
    assert_eq!(look(), held, "half a frame at the end is being written");
    assert_eq!(store.files(), files);
}

#[test]
fn a_directory_without_a_journal_has_no_rules_to_show() {
    let store = Store::new();
    let error = message(hol_journal::read(store.path()));
    assert!(error.contains("no rules are recorded there"), "{error}");
    let error = message(hol_journal::read(&store.path().join("none")));
    assert!(error.contains("none: cannot read: No such file"), "{error}");
}
