//! Limits on the work of a script, so that no script uses up time or memory: servers read scripts of strangers.

use super::WordError;
use super::interpreter::Stop;

/// The longest text in a variable, in octets; a script with a longer one is rejected.
pub(super) const MAX_TEXT_OCTETS: usize = 1 << 20;

/// Number of octets charged for each variable, parameter or name in a scope, in addition to its text.
pub(super) const ENTRY_OCTETS: usize = 128;

/// Maximum number of loop iterations and procedure calls of a script.
const MAX_TURNS: u64 = 100_000;
/// Maximum number of commands that a script executes.
const MAX_COMMANDS: u64 = 2_000_000;
/// Maximum number of octets that a script copies, parses or searches. All data that a script stores are counted here,
/// so this also limits memory.
const MAX_OCTETS: u64 = 1 << 29;

/// The work that a script has caused so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Number of loop iterations and procedure calls so far.
    turns: u64,
    /// Number of executed commands.
    commands: u64,
    /// Number of octets copied, parsed or searched so far.
    octets: u64,
}

impl Budget {
    /// Counts a loop iteration or a procedure call.
    pub fn charge_turn(&mut self, at: usize) -> Result<(), Stop> {
        self.turns += 1;
        check(self.turns <= MAX_TURNS, at, || {
            format!(
                "this has not ended after {MAX_TURNS} iterations and calls; does the loop change the variables of its condition?"
            )
        })
    }

    /// Counts `count` commands; returns an error if the script has executed too many.
    pub fn charge_commands(&mut self, at: usize, count: u64) -> Result<(), Stop> {
        self.commands += count;
        check(self.commands <= MAX_COMMANDS, at, || {
            format!("the script has not ended after {MAX_COMMANDS} commands; make its loops shorter")
        })
    }

    /// Counts `count` octets; returns an error if the script has handled too many.
    pub fn charge_octets(&mut self, at: usize, count: usize) -> Result<(), Stop> {
        self.octets = self.octets.saturating_add(count as u64);
        check(self.octets <= MAX_OCTETS, at, || {
            format!("the script handles more than {MAX_OCTETS} octets; make its texts and lists shorter")
        })
    }
}

/// Returns an error if a text that a script creates is too long.
pub(super) fn check_length(at: usize, length: usize) -> Result<(), Stop> {
    check(length <= MAX_TEXT_OCTETS, at, || {
        format!("this text grows beyond {MAX_TEXT_OCTETS} octets; end the loop that makes it grow")
    })
}

fn check(holds: bool, at: usize, problem: impl Fn() -> String) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(Stop::Limit(WordError { at, problem: problem() })) }
}
