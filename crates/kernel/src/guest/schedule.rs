//! What happens to lines during the run, at its time.

use std::thread;
use std::time::Duration;

use hol_base::Time;
use hol_network::ScheduledChange;
use nix::sys::prctl::set_timerslack;

use super::Trouble;
use super::chain::Chain;

/// Begins now; the machine's end ends it.
pub(super) fn start(changes: Vec<ScheduledChange>, chains: Vec<Chain>) -> Result<(), Trouble> {
    let start = Clock::now();
    if !changes.is_empty() {
        thread::Builder::new().name("schedule".to_owned()).spawn(move || follow(start, &changes, chains))?;
    }
    Ok(())
}

fn follow(start: Clock, changes: &[ScheduledChange], mut chains: Vec<Chain>) {
    // Wake-ups may otherwise come 50 µs late.
    let exact = set_timerslack(1).map_err(Trouble::from);
    let all = changes.iter().try_for_each(|scheduled| {
        let due = Duration::from_nanos(scheduled.at.since(Time::ZERO).as_nanos());
        wait(due.saturating_sub(start.elapsed()));
        chains[usize::from(scheduled.line.0)].change(&scheduled.change)
    });
    if let Err(problem) = exact.and(all) {
        // A run on a network other than what was asked for is no run.
        eprintln!("hol: {problem}");
        std::process::abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "in here time is the machine's virtual time")]
fn wait(time: Duration) {
    thread::sleep(time);
}

#[expect(clippy::disallowed_types, reason = "in here the clock is the machine's virtual one")]
type Clock = std::time::Instant;
