//! What happens to lines and to addresses during the run, at its time.

use std::thread;
use std::time::Duration;

use hol_base::Time;
use hol_network::ScheduledChange;
use nix::sys::prctl::set_timerslack;

use super::Trouble;
use super::attachment::Move;
use super::chain::Chain;

/// Something that happens at a time.
enum Event {
    Change(ScheduledChange),
    Move(Move),
}

impl Event {
    fn at(&self) -> Time {
        match self {
            Self::Change(change) => change.at,
            Self::Move(node) => node.at,
        }
    }

    /// At one time lines come first, as in the model, and what goes before what comes: Linux' SCTP takes no step while it waits
    /// for the peer to agree to the last one.
    fn rank(&self) -> u8 {
        match self {
            Self::Change(_) => 0,
            Self::Move(node) if !node.comes => 1,
            Self::Move(_) => 2,
        }
    }
}

/// Begins now; the machine's end ends it.
pub(super) fn start(
    changes: Vec<ScheduledChange>,
    chains: Vec<Chain>,
    moves: Vec<Move>,
) -> Result<(), Trouble> {
    let start = Clock::now();
    let mut events: Vec<Event> = changes.into_iter().map(Event::Change).collect();
    events.extend(moves.into_iter().map(Event::Move));
    events.sort_by_key(|event| (event.at(), event.rank()));
    if !events.is_empty() {
        thread::Builder::new().name("schedule".to_owned()).spawn(move || follow(start, &events, chains))?;
    }
    Ok(())
}

fn follow(start: Clock, events: &[Event], mut chains: Vec<Chain>) {
    // Wake-ups may otherwise come 50 µs late.
    let exact = set_timerslack(1).map_err(Trouble::from);
    let all = events.iter().try_for_each(|event| {
        let due = Duration::from_nanos(event.at().since(Time::ZERO).as_nanos());
        wait(due.saturating_sub(start.elapsed()));
        match event {
            Event::Change(scheduled) => chains[usize::from(scheduled.line.0)].change(&scheduled.change),
            Event::Move(node) => node.take_place(),
        }
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
