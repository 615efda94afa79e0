//! A copy of a journal equals the journal, whenever the copy began.

use hol_journal::{Replica, write_entry};
use tempfile::TempDir;

use crate::directory::message;
use crate::world::{CurrentRules, Store, record};

/// Returns the entries of all rules of a journal.
fn snapshot(store: &Store) -> Vec<u8> {
    let mut entries = Vec::new();
    hol_journal::read(store.path()).unwrap().iter().for_each(|rule| write_entry(rule, &mut entries));
    entries
}

fn recorded_rules(dir: &TempDir) -> CurrentRules {
    hol_journal::read(dir.path()).unwrap().into()
}

#[test]
fn a_copy_begun_at_any_batch_equals_the_journal() {
    for (first, taken) in [(0, 0), (3, 5), (20, 20), (10, 39)] {
        let (store, dir) = (Store::new(), tempfile::tempdir().unwrap());
        let (mut journal, mut rules) = store.open();
        let mut replica = Replica::open(dir.path()).unwrap();
        let mut batches: Vec<Vec<u8>> = Vec::new();
        let mut beginning = Vec::new();
        for number in 0..40_u32 {
            if number == taken {
                beginning = snapshot(&store);
            }
            let pids = [number % 7, number % 5, 7 - number % 7];
            let changes = pids.map(|pid| rules.change(pid, number, number % 3 == 1));
            record(&mut journal, &changes);
            batches.push(journal.last_entries().to_vec());
        }
        replica.begin();
        replica.add(&beginning);
        replica.finish().unwrap();
        // These batches are in the copy already, and are sent again.
        batches[first..].iter().for_each(|entries| replica.record(entries).unwrap());
        assert_eq!(replica.len(), rules.0.len());
        assert_eq!(recorded_rules(&dir), rules, "from batch {first}, copied at {taken}");
        drop(replica);
        let again = Replica::open(dir.path()).unwrap();
        assert_eq!(again.len(), rules.0.len());
        assert!(!again.is_empty());
    }
}

#[test]
fn an_incomplete_copy_leaves_the_previous_one() {
    let (store, dir) = (Store::new(), tempfile::tempdir().unwrap());
    let (mut journal, mut rules) = store.open();
    record(&mut journal, &[rules.change(1, 1, false), rules.change(2, 2, false)]);
    let mut replica = Replica::open(dir.path()).unwrap();
    replica.add(&snapshot(&store));
    replica.finish().unwrap();
    let before = recorded_rules(&dir);
    assert_eq!(before, rules);
    record(&mut journal, &[rules.change(3, 3, false)]);
    let whole = snapshot(&store);
    replica.begin();
    replica.add(&whole[..whole.len() - 1]);
    let error = message(replica.finish());
    assert!(error.contains("data that is not a record"), "{error}");
    assert!(!error.contains(dir.path().to_str().unwrap()), "the error does not blame the copy: {error}");
    assert_eq!(recorded_rules(&dir), before);
    assert!(message(replica.record(&whole[1..])).contains("data that is not a record"));
    replica.begin();
    replica.add(&whole);
    replica.finish().unwrap();
    replica.compact_if_due().unwrap();
    drop(replica);
    assert_eq!(recorded_rules(&dir), rules);
}
