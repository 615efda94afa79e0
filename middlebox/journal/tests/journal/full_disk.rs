//! A disk without room. A limit on the size of files stands for it: a write fails in the same way, with a part of it done.

use crate::limit::{is_alone, limit_files};
use crate::world::{Store, begin, record, rule, try_record};
use hol_journal::JournalError;

#[test]
fn a_batch_without_room_is_refused_whole_and_the_next_with_room_is_not() {
    if !is_alone("full_disk::a_batch_without_room_is_refused_whole_and_the_next_with_room_is_not") {
        return;
    }
    let store = Store::new();
    let (mut journal, _) = store.open();
    let batch: Vec<_> = (0..1000).map(|pid| begin(rule(pid, 0))).collect();
    record(&mut journal, &batch[..10]);

    limit_files(Some(20_000));
    let error = try_record(&mut journal, &batch[10..]).unwrap_err();
    assert!(matches!(error, JournalError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("nothing was recorded"), "{error}");
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
