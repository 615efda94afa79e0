//! Reads arbitrary octets as a segment of a journal: unchanged, and as a frame with correct length, position
//! and checksum; in the current and in the previous format.
#![no_main]

use std::fs;
use std::path::PathBuf;

use hol_journal::{Durability, Journal, RecordedRule};
use hol_simco::{Change, Owner};
use libfuzzer_sys::fuzz_target;

const HEADERS: [&[u8]; 2] = [b"hol:rule\x01\x00\x00\x00", b"hol:rule\x02\x00\x00\x00"];

/// Returns a directory of this process, in memory if possible.
fn directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    base.join(format!("hol-fuzz-journal-{}", std::process::id()))
}

fn with_checksum(octets: &[u8]) -> Vec<u8> {
    [octets, &crc32c::crc32c(octets).to_be_bytes()].concat()
}

/// Returns the first frame of the first segment.
fn frame(entries: &[u8], is_chained: bool) -> Vec<u8> {
    let before = crc32c::crc32c(&1_u64.to_be_bytes()).to_be_bytes();
    let place = if is_chained { [&1_u64.to_be_bytes()[..], &before].concat() } else { Vec::new() };
    let checked = [&(entries.len() as u32).to_be_bytes()[..], &place, entries].concat();
    [b"\xF5hol", &crc32c::crc32c(&checked).to_be_bytes()[..], &checked].concat()
}

/// Returns the rules in a segment, if the journal can be opened.
fn open(segment: &[u8]) -> Option<(Journal, Vec<RecordedRule>)> {
    let dir = directory();
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("journal.0000000001"), segment).unwrap();
    let (journal, rules) = Journal::open(&dir).ok()?;
    Some((journal.with_durability(Durability::Buffered), rules))
}

fuzz_target!(|octets: &[u8]| {
    open(octets);
    HEADERS
        .iter()
        .zip([false, true])
        .for_each(|(header, is_chained)| check_extension(header, octets, is_chained));
});

/// Checks that a journal of one segment can be extended, and then contains the same rules.
fn check_extension(header: &[u8], octets: &[u8], is_chained: bool) {
    let header = with_checksum(header);
    open(&[&header, octets].concat());
    let frame = frame(octets, is_chained);
    let Some((mut journal, rules)) = open(&[&header[..], &frame].concat()) else { return };
    for RecordedRule { rule, owner } in &rules {
        let change = Change { before: Some(*rule), after: Some(*rule) };
        journal.record(&[change], |_| Owner::new(owner.clone())).unwrap();
    }
    drop(journal);
    assert_eq!(Journal::open(&directory()).unwrap().1, rules);
}
