//! The directory of a journal: its lock, its segments, and files that remain in it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::world::{CurrentRules, Store, begin, record, rule};
use hol_journal::{Journal, JournalError};
use hol_simco::Change;

pub fn message<T>(result: Result<T, JournalError>) -> String {
    result.err().expect("this has to fail").to_string()
}

/// Changes one rule until compaction is worth it.
pub fn supersede(journal: &mut Journal, held: &mut CurrentRules) {
    for thousand in 0..120 {
        let batch: Vec<Change> = (0..1000).map(|n| held.change(1, 1000 * thousand + n, false)).collect();
        record(journal, &batch);
    }
}

#[test]
fn a_directory_is_locked_until_its_journal_is_closed() {
    let store = Store::new();
    let (journal, _) = store.open();
    let refused = message(store.try_open());
    assert!(refused.contains("another process records its rules in this directory"), "{refused}");
    drop(journal);
    store.open();
}

#[test]
fn a_directory_that_cannot_be_created_is_named() {
    let error = message(Journal::open(Path::new("/dev/null/state")));
    assert!(error.starts_with("/dev/null/state: cannot create"), "{error}");
}

#[test]
fn other_files_stay_unchanged() {
    let store = Store::new();
    for name in ["journal.txt", "notes", "journal.x.new"] {
        fs::write(store.path().join(name), "mine").unwrap();
    }
    store.open();
    assert_eq!(store.files(), ["journal.0000000001", "journal.txt", "journal.x.new", "notes"]);
}

#[test]
fn an_empty_batch_writes_nothing() {
    let store = Store::new();
    let (mut journal, _) = store.open();
    let length = || fs::metadata(store.segment(1)).unwrap().len();
    let before = length();
    record(&mut journal, &[]);
    assert_eq!(length(), before);
}

#[test]
fn compaction_keeps_only_current_rules() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    record(&mut journal, &[held.change(7, 7, false), held.change(8, 8, false)]);
    for round in 1..=3 {
        supersede(&mut journal, &mut held);
        journal.compact_if_due().unwrap();
        // Recording continues while the thread works.
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

/// The obstacle, such as a full disk, is removed later.
#[test]
fn a_failed_compaction_is_repeated() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    supersede(&mut journal, &mut held);
    let obstacle = store.path().join("journal.0000000001.new");
    fs::create_dir(&obstacle).unwrap();
    journal.compact_if_due().unwrap();
    let error = std::iter::repeat_with(|| journal.compact_if_due()).find_map(Result::err).unwrap();
    assert!(error.to_string().contains("journal.0000000001.new"), "{error}");
    fs::remove_dir(&obstacle).unwrap();
    let is_gone = (0..10_000).any(|_| {
        journal.compact_if_due().unwrap();
        // The thread needs some time.
        thread::park_timeout(Duration::from_millis(1));
        !store.segment(1).exists()
    });
    assert!(is_gone, "{:?}", store.files());
    drop(journal);
    let octets: u64 =
        store.files().iter().map(|name| fs::metadata(store.path().join(name)).unwrap().len()).sum();
    assert!(octets < 2_000, "{octets} octets for a rule");
    assert_eq!(store.open().1, held);
}

/// The process can end between any two steps of a compaction.
#[test]
fn files_of_an_interrupted_compaction_are_removed() {
    let store = Store::new();
    let mut held = CurrentRules::default();
    let old = [1, 2].map(|number| {
        let (mut journal, _) = store.open();
        supersede(&mut journal, &mut held);
        journal.sync().unwrap();
        journal.compact_if_due().unwrap();
        // The thread reads this segment, and replaces it at the end.
        fs::read(store.segment(number)).unwrap()
    });
    // The state before the rename: the old segments, and an unfinished one.
    let compacted = fs::read(store.segment(2)).unwrap();
    fs::write(store.segment(1), &old[0]).unwrap();
    fs::write(store.segment(2), &old[1]).unwrap();
    fs::write(store.path().join("journal.0000000002.new"), &compacted[..compacted.len() / 2]).unwrap();
    assert_eq!(store.open().1, held);
    assert_eq!(store.files(), ["journal.0000000001", "journal.0000000002", "journal.0000000003"]);
    // The state after the rename: the segment that contains all rules, and a superseded one.
    fs::write(store.segment(2), &compacted).unwrap();
    assert_eq!(store.open().1, held);
    assert_eq!(store.files(), ["journal.0000000002", "journal.0000000003"]);
}

#[test]
fn a_missing_segment_is_an_error_with_advice() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    supersede(&mut journal, &mut held);
    journal.compact_if_due().unwrap();
    drop(journal);
    fs::remove_file(store.segment(1)).unwrap();
    let error = message(store.try_open());
    assert!(error.contains("journal.0000000002: octet 0: the segment before this one is missing"), "{error}");
    assert!(error.contains("restore the directory from a copy, or move it away"), "{error}");
}

/// Only the data written last can be torn.
#[test]
fn a_segment_without_its_end_is_damaged_if_another_follows() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    supersede(&mut journal, &mut held);
    journal.compact_if_due().unwrap();
    drop(journal);
    let octets = fs::read(store.segment(1)).unwrap();
    fs::write(store.segment(1), &octets[..octets.len() - 1]).unwrap();
    let error = message(store.try_open());
    assert!(error.contains("journal.0000000001: octet"), "{error}");
    fs::write(store.segment(1), &octets[..octets.len() - CLOSING]).unwrap();
    let error = message(store.try_open());
    assert!(error.contains("the end of this segment is missing"), "{error}");
}

/// Octets of the frame that closes a segment.
const CLOSING: usize = 24;

/// Splits a segment into its frames.
pub fn frames(octets: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &octets[16..];
    let mut frames = Vec::new();
    while let Some(length) = rest.get(8..12) {
        let (frame, following) = rest.split_at(24 + u32::from_be_bytes(length.try_into().unwrap()) as usize);
        frames.push(frame.to_vec());
        rest = following;
    }
    frames
}

/// Returns a journal of four records, one of each rule, and the records.
fn four_records() -> (Store, Vec<u8>, Vec<Vec<u8>>) {
    let store = Store::new();
    let (mut journal, _) = store.open();
    (1..=4).for_each(|pid| record(&mut journal, &[begin(rule(pid, 0))]));
    drop(journal);
    let octets = fs::read(store.segment(1)).unwrap();
    let frames = frames(&octets);
    assert_eq!(frames.len(), 4);
    (store, octets[..16].to_vec(), frames)
}

#[test]
fn removed_repeated_or_exchanged_records_are_detected() {
    let (store, header, frames) = four_records();
    for order in [&[0, 2, 3][..], &[1, 2, 3], &[0, 1, 1, 2, 3], &[0, 2, 1, 3], &[3, 2, 1, 0]] {
        let octets: Vec<u8> = order.iter().flat_map(|at| frames[*at].clone()).collect();
        fs::write(store.segment(1), [&header[..], &octets].concat()).unwrap();
        let error = message(store.try_open());
        assert!(error.contains("a record does not follow the previous one"), "{order:?}: {error}");
    }
}

/// A segment has the content of another.
#[test]
fn a_renamed_segment_is_detected() {
    let (store, ..) = four_records();
    fs::rename(store.segment(1), store.segment(2)).unwrap();
    let error = message(store.try_open());
    assert!(
        error.contains("journal.0000000002: octet 16: a record does not follow the previous one"),
        "{error}"
    );
}

/// An acknowledged record never counts as partly written: a changed bit in it is detected anywhere.
#[test]
fn a_flipped_bit_in_the_last_record_is_damage_but_half_a_record_is_not() {
    let (store, header, frames) = four_records();
    let whole = [&header[..], &frames.concat()].concat();
    let last = whole.len() - frames[3].len();
    for bit in (last..whole.len()).map(|octet| octet * 8 + octet % 8) {
        let mut octets = whole.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        fs::write(store.segment(1), &octets).unwrap();
        let error = message(store.try_open());
        assert!(error.contains(&format!("octet {last}: one bit of this record")), "bit {bit}: {error}");
    }
    for end in last + 1..whole.len() {
        fs::write(store.segment(1), &whole[..end]).unwrap();
        let (journal, held) = store.open();
        assert_eq!(
            (held.0.len(), journal.truncated_tail().map(|truncated_tail| truncated_tail.offset)),
            (3, Some(last as u64))
        );
    }
}

/// Version 1 wrote these octets, whose frames do not contain their position.
#[test]
fn a_journal_of_version_1_is_read_and_continued() {
    let (store, _, frames) = four_records();
    let mut header = b"hol:rule\x01\0\0\0".to_vec();
    header.extend(crc32c::crc32c(&header).to_be_bytes());
    let loose = |frame: &Vec<u8>| {
        let checked = [&frame[8..12], &frame[24..]].concat();
        [&frame[..4], &crc32c::crc32c(&checked).to_be_bytes(), &checked].concat()
    };
    let octets: Vec<u8> = frames.iter().flat_map(loose).collect();
    fs::write(store.segment(1), [header, octets].concat()).unwrap();
    let (mut journal, held) = store.open();
    assert_eq!(held.0.len(), 4);
    record(&mut journal, &[begin(rule(5, 0))]);
    drop(journal);
    assert_eq!(store.open().1.0.len(), 5);
    assert_eq!(store.files(), ["journal.0000000001", "journal.0000000002"]);
}

#[test]
fn a_file_that_is_no_journal_is_not_overwritten() {
    let store = Store::new();
    fs::write(store.segment(1), "a letter to somebody").unwrap();
    let error = message(store.try_open());
    assert!(error.contains("octet 0: the file does not begin with the header of a journal"), "{error}");
    assert_eq!(fs::read(store.segment(1)).unwrap(), b"a letter to somebody");
}

#[test]
fn rules_are_returned_in_the_order_of_their_last_change() {
    let store = Store::new();
    let (mut journal, _) = store.open();
    record(&mut journal, &[9, 3, 5].map(|pid| begin(rule(pid, 0))));
    record(&mut journal, &[Change { before: Some(rule(9, 0)), after: Some(rule(9, 1)) }]);
    drop(journal);
    let (_, rules) = Journal::open(store.path()).unwrap();
    assert_eq!(rules.iter().map(|recorded| recorded.rule.pid.0).collect::<Vec<_>>(), [3, 5, 9]);
}

#[test]
fn reading_returns_the_current_rules_and_changes_nothing() {
    let store = Store::new();
    let (mut journal, mut held) = store.open();
    let look = || CurrentRules::from(hol_journal::read(store.path()).unwrap());
    record(&mut journal, &[held.change(8, 8, false), held.change(7, 7, false)]);
    assert_eq!(look(), held);
    for round in 0..2 {
        supersede(&mut journal, &mut held);
        journal.compact_if_due().unwrap();
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
fn reading_a_directory_without_a_journal_is_an_error() {
    let store = Store::new();
    let error = message(hol_journal::read(store.path()));
    assert!(error.contains("contains no journal"), "{error}");
    let error = message(hol_journal::read(&store.path().join("none")));
    assert!(error.contains("none: cannot read: No such file"), "{error}");
}
