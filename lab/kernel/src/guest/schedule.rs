//! What happens to lines, addresses and routes during the run, at its time.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use hol_base::{Duration as Span, Time};
use hol_network::ScheduledChange;
use hol_sockets::Beginning;
use nix::sys::prctl::set_timerslack;

use super::GuestError;
use super::attachment::Move;
use super::chain::Chain;
use super::clock::wait;
use super::reroute::Reroute;

/// Something that happens at a time.
#[derive(Debug)]
enum Event {
    Change(ScheduledChange),
    Move(Move),
    Reroute(Reroute),
}

impl Event {
    fn at(&self) -> Time {
        match self {
            Self::Change(change) => change.at,
            Self::Move(node) => node.at,
            Self::Reroute(route) => route.at,
        }
    }

    /// At one time lines come first, as in the model, and what goes before what comes: Linux' SCTP takes no step while it waits
    /// for the peer to agree to the last one. Routes are last, as in the model.
    fn rank(&self) -> u8 {
        match self {
            Self::Change(_) => 0,
            Self::Move(node) if !node.comes => 1,
            Self::Move(_) => 2,
            Self::Reroute(_) => 3,
        }
    }
}

/// What is yet to happen, in its order, and the lines that it happens to.
#[derive(Debug)]
pub(super) struct Schedule {
    beginning: Beginning,
    events: VecDeque<Event>,
    chains: Vec<Chain>,
    /// Changes of lines that have happened.
    changed: usize,
}

impl Schedule {
    /// Times count from the beginning of the run.
    pub(super) fn new(
        beginning: Beginning,
        changes: Vec<ScheduledChange>,
        chains: Vec<Chain>,
        moves: Vec<Move>,
        reroutes: Vec<Reroute>,
    ) -> Self {
        let mut schedule = Self { beginning, events: VecDeque::new(), chains, changed: 0 };
        schedule.put(changes.into_iter().map(Event::Change));
        schedule.put(moves.into_iter().map(Event::Move));
        schedule.put(reroutes.into_iter().map(Event::Reroute));
        schedule
    }

    /// Has all happen at its time, on a thread of its own; the machine's end ends it.
    pub(super) fn follow(self) -> Result<(), GuestError> {
        if !self.events.is_empty() {
            thread::Builder::new().name("schedule".to_owned()).spawn(move || follow(self))?;
        }
        Ok(())
    }

    /// Does what is due; returns how long it is until the next, or may be as long as the run has not begun.
    pub(super) fn attend(&mut self) -> Result<Option<Duration>, GuestError> {
        while let Some(event) = self.events.front() {
            let left = event.at().saturating_since(self.beginning.time().unwrap_or_default());
            if left > Span::ZERO {
                return Ok(Some(Duration::from_nanos(left.as_nanos())));
            }
            match self.events.pop_front() {
                Some(Event::Change(ScheduledChange { link, change, .. })) => {
                    self.changed += 1;
                    self.chains[usize::from(link.0)].change(&change)?;
                }
                Some(Event::Move(node)) => node.take_place()?,
                Some(Event::Reroute(route)) => route.take_place()?,
                None => {}
            }
        }
        Ok(None)
    }

    /// Has these changes of lines happen in the place of those that were to; they begin with those that have happened.
    pub(super) fn change(&mut self, changes: Vec<ScheduledChange>) {
        self.events.retain(|event| !matches!(event, Event::Change(_)));
        let left = self.changed;
        self.put(changes.into_iter().skip(left).map(Event::Change));
    }

    fn put(&mut self, events: impl Iterator<Item = Event>) {
        self.events.extend(events);
        self.events.make_contiguous().sort_by_key(|event| (event.at(), event.rank()));
    }
}

fn follow(mut schedule: Schedule) {
    // Wake-ups may otherwise come 50 µs late.
    let mut step = set_timerslack(1).map_err(GuestError::from).and_then(|()| schedule.attend());
    while let Ok(Some(left)) = step {
        wait(left);
        step = schedule.attend();
    }
    if let Err(problem) = step {
        // A run on a network other than what was asked for is no run.
        eprintln!("hol: {problem}");
        std::process::abort();
    }
}
