//! Reads the recorded rules of a daemon, running or not.

use std::path::Path;

use hol_journal::{JournalError, RecordedRule};
use hol_simco::{Owner, Reply};

use crate::clock::Clock;

/// Returns the rules in the journal of this directory that are in force, in order of PID, each as a reply to PRS. Their
/// number is unlimited, whereas a reply to PRL has at most 8,191 rules (RFC 4540 section 8.7).
///
/// A running daemon is not disturbed. Remaining lifetimes are computed with the daemon's clock.
pub fn recorded_rules(state: &Path) -> Result<Vec<Reply>, JournalError> {
    let now = Clock::stored_in(state).now();
    let recorded = hol_journal::read(state)?.into_iter();
    let in_force = recorded.filter(|recorded| recorded.rule.is_in_force(now));
    Ok(in_force.map(|RecordedRule { rule, owner }| rule.status(now, Owner::new(owner))).collect())
}
