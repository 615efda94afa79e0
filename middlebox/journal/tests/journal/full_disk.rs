//! A full disk. A limit on the size of files simulates it: a write fails in the same way, after a part of it.

use std::thread;
use std::time::Duration;

use crate::limit::{is_own_process, limit_files};
use crate::world::{Store, begin, record, rule, try_record};
use hol_journal::JournalError;
use hol_simco::Change;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

#[test]
fn a_batch_without_space_is_refused_and_a_later_one_is_recorded() {
    if !is_own_process("full_disk::a_batch_without_space_is_refused_and_a_later_one_is_recorded") {
        return;
    }
    let store = Store::new();
    let (mut journal, _) = store.open();
    let batch: Vec<_> = (0..1000).map(|pid| begin(rule(pid, 0))).collect();
    record(&mut journal, &batch[..10]);

    limit_files(Some(20_000));
    let error = try_record(&mut journal, &batch[10..]).unwrap_err();
    assert!(matches!(error, JournalError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("no change was recorded"), "{error}");
    record(&mut journal, &batch[10..20]);
    drop(journal);
    let (mut journal, held) = store.open();
    assert_eq!(held.0.len(), 20);

    try_record(&mut journal, &batch[20..]).unwrap_err();
    limit_files(None);
    record(&mut journal, &batch[20..]);
    drop(journal);
    assert_eq!(store.open().1.0.len(), 1000);
}

/// The first segment begins with the first record for which there is space.
#[test]
fn a_journal_begins_on_a_full_disk() {
    if !is_own_process("full_disk::a_journal_begins_on_a_full_disk") {
        return;
    }
    let store = Store::new();
    limit_files(Some(0));
    let (mut journal, held) = store.open();
    assert!(held.0.is_empty());
    let error = try_record(&mut journal, &[begin(rule(1, 0))]).unwrap_err();
    assert!(matches!(error, JournalError::Refused { .. }), "{error}");
    journal.compact_if_due().unwrap();
    drop(journal);
    let (mut journal, _) = store.open();
    limit_files(None);
    record(&mut journal, &[begin(rule(2, 0))]);
    drop(journal);
    assert_eq!(store.open().1.0.into_keys().collect::<Vec<_>>(), [hol_simco::Pid(2)]);
}

/// Compaction looks at the free space: 1,523 rules whose lifetimes change do not fill a disk of 4 MB, which they did when
/// it waited for 100,000 entries.
#[test]
#[ignore = "needs root"]
fn changes_of_rules_do_not_fill_a_small_disk() {
    // The limit applies to this thread and those that it starts.
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let (none, all) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    mount(none, "/", none, all, none).unwrap();
    let store = Store::new();
    mount(Some("none"), store.path(), Some("tmpfs"), MsFlags::empty(), Some("size=4m")).unwrap();

    let rules: Vec<u32> = (0..1523).collect();
    let (mut journal, _) = store.open();
    record(&mut journal, &rules.iter().map(|pid| begin(rule(*pid, 0))).collect::<Vec<_>>());
    for version in 1..100 {
        for pids in rules.chunks(50) {
            let change = |pid: &u32| Change {
                before: Some(rule(*pid, version - 1)),
                after: Some(rule(*pid, version)),
            };
            record(&mut journal, &pids.iter().map(change).collect::<Vec<_>>());
            journal.compact_if_due().unwrap();
            // The sync of a real disk would take about this long, and compaction continues during it.
            thread::park_timeout(Duration::from_millis(1));
        }
    }
    drop(journal);
    let held: Vec<_> = store.open().1.0.into_values().collect();
    assert_eq!(held, rules.iter().map(|pid| rule(*pid, 99)).collect::<Vec<_>>());
}
