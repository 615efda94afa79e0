//! A journal whose standby is silent, absent, or has just connected.

#[path = "../../../journal/tests/limit/mod.rs"]
mod limit;

use std::path::Path;

use hol_filter::NullFilter;
use hol_simco::{Action, AddressTuple, Location, Pid};

use self::limit::{is_own_process, limit_files};
use super::*;

fn rule(pid: u32, expires: Time) -> Rule {
    let policy = Policy::permissive();
    let owner = policy.anonymous().unwrap();
    let end = |location| AddressTuple::of_host(location, 17, "10.0.0.5:5004".parse().unwrap());
    let action = Action::Disable { internal: end(Location::Internal), external: end(Location::External) };
    Rule { pid: Pid(pid), owner, expires, action }
}

fn begin(rule: Rule) -> Change {
    Change { before: None, after: Some(rule) }
}

fn recorded(directory: &Path) -> Vec<u32> {
    hol_journal::read(directory).unwrap().iter().map(|recorded| recorded.rule.pid.0).collect()
}

fn rule_store(directory: &Path, standby: Replicator) -> RuleStore {
    let (journal, _) = Journal::open(directory).unwrap();
    RuleStore::new(Clock::start(), Box::new(NullFilter), Some(journal)).with_standby(Some(standby))
}

/// A change that the standby does not record is reversed even if the disk has space for the change, but not for its
/// reversal.
#[test]
fn a_change_refused_without_a_standby_is_reversed_despite_a_full_disk() {
    const TEST: &str = "rule_store::tests::\
                        a_change_refused_without_a_standby_is_reversed_despite_a_full_disk";
    if !is_own_process(TEST) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (policy, now) = (Policy::permissive(), Time::from_millis(1_700_000_000_000));
    let later = now + Duration::from_secs(60);
    let mut rule_store = rule_store(directory.path(), Replicator::silent());
    let size = || std::fs::metadata(directory.path().join("journal.0000000001")).unwrap().len();
    let before = size();
    let failure = rule_store.apply(now, &[begin(rule(7, later))], &policy).unwrap_err();
    assert!(matches!(failure, RuleStoreError::Standby), "{failure}");
    assert!(recorded(directory.path()).is_empty());
    // The sizes of a change and its reversal: of the first rule, and a part of the second.
    let both = size() - before;
    rule_store.standby = Some(Replicator::silent());
    limit_files(Some(size() + both - 1));
    let failure = rule_store.apply(now, &[begin(rule(8, later))], &policy).unwrap_err();
    assert!(matches!(failure, RuleStoreError::Journal(_)), "{failure}");
    limit_files(None);
    assert_eq!(recorded(directory.path()), [8], "the reversal is not recorded yet");
    rule_store.standby = None;
    rule_store.apply(now, &[begin(rule(9, later))], &policy).unwrap();
    assert_eq!(recorded(directory.path()), [9]);
}

/// A standby that connects while a change is recorded, after the previous standby was lost, gets the reversal of the
/// change.
#[test]
fn a_newly_connected_standby_gets_the_reversal() {
    let directory = tempfile::tempdir().unwrap();
    let (policy, now) = (Policy::permissive(), Time::from_millis(1_700_000_000_000));
    let mut rule_store = rule_store(directory.path(), Replicator::copying());
    let change = begin(rule(7, now + Duration::from_secs(60)));
    let failure = rule_store.record(&[change], &policy).unwrap_err();
    assert!(matches!(failure, RuleStoreError::Standby), "{failure}");
    let shipped = rule_store.standby.as_ref().unwrap().queued();
    let mut replica = hol_journal::Replica::open(&directory.path().join("copy")).unwrap();
    assert_eq!(shipped.len(), 2, "begun and taken back");
    shipped.iter().for_each(|entries| replica.record(entries).unwrap());
    assert!(replica.is_empty());
}

/// Rules expire without the required standby, and their ends are recorded later. This is not a failure, after which the
/// whole packet filter would be repaired.
#[test]
fn rules_expire_without_the_required_standby() {
    let directory = tempfile::tempdir().unwrap();
    let (policy, now) = (Policy::permissive(), Time::from_millis(1_700_000_000_000));
    let [over, held, next] =
        [(7, 0), (8, 60), (9, 60)].map(|(pid, left)| rule(pid, now + Duration::from_secs(left)));
    let mut rule_store = rule_store(directory.path(), Replicator::absent());
    let standby = rule_store.standby.take();
    rule_store.apply(now, &[begin(over), begin(held)], &policy).unwrap();
    rule_store.standby = standby;
    let [over, held] = [over, held].map(|rule| Change { before: Some(rule), after: None });
    rule_store.apply(now, &[over], &policy).unwrap();
    for refused in [&[held][..], &[over, held], &[begin(next)]] {
        let failure = rule_store.apply(now, refused, &policy).unwrap_err();
        assert!(matches!(failure, RuleStoreError::Standby), "{failure}");
    }
    assert_eq!(rule_store.repair_at, Time::MAX);
    assert_eq!(recorded(directory.path()), [7, 8]);
    rule_store.standby = None;
    rule_store.apply(now, &[begin(next)], &policy).unwrap();
    assert_eq!(recorded(directory.path()), [8, 9]);
}
