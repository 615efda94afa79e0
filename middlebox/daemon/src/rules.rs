//! The rules that a daemon has recorded, whether it runs or not.

use std::path::Path;

use hol_journal::{JournalError, Recorded};
use hol_simco::{Owner, Reply};

use crate::clock::Clock;

/// The rules in force as recorded in this directory, by PID, each as the reply to PRS tells it. However many they are:
/// the reply to PRL has 8,191 at most (RFC 4540 section 8.7).
///
/// A daemon that runs does not notice. The lifetimes are counted by its clock.
pub fn recorded_rules(state: &Path) -> Result<Vec<Reply>, JournalError> {
    let now = Clock::of(state).now();
    let recorded = hol_journal::read(state)?.into_iter();
    let in_force = recorded.filter(|recorded| recorded.rule.is_in_force(now));
    Ok(in_force.map(|Recorded { rule, owner }| rule.status(now, Owner::new(owner))).collect())
}
