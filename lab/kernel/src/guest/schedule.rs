//! Performs the changes of links, addresses and routes at their times during the run.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use hol_base::{Duration as Span, Time};
use hol_network::ScheduledChange;
use hol_sockets::RunStart;

use super::GuestError;
use super::attachment::AttachmentChange;
use super::clock::wait;
use super::qdisc_chain::Chain;
use super::reroute::Reroute;

/// An event of the run at a scheduled time.
#[derive(Debug)]
enum Event {
    Change(ScheduledChange),
    Move(AttachmentChange),
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

    /// Returns the rank of this event among events at the same time. Changes of links come first, as in the model.
    /// Removals of addresses come before additions, because Linux's SCTP pauses while it waits for the peer to
    /// accept the last change. Changes of routes come last, as in the model.
    fn rank(&self) -> u8 {
        match self {
            Self::Change(_) => 0,
            Self::Move(node) if !node.is_added => 1,
            Self::Move(_) => 2,
            Self::Reroute(_) => 3,
        }
    }
}

/// The pending events in order of time, and the links that they change.
#[derive(Debug)]
pub(super) struct Schedule {
    beginning: RunStart,
    events: VecDeque<Event>,
    chains: Vec<Chain>,
    /// The number of link changes made so far.
    link_changes: usize,
}

impl Schedule {
    /// Creates a schedule; the times of its events count from the beginning of the run.
    pub(super) fn new(
        beginning: RunStart,
        changes: Vec<ScheduledChange>,
        chains: Vec<Chain>,
        moves: Vec<AttachmentChange>,
        reroutes: Vec<Reroute>,
    ) -> Self {
        let mut schedule = Self { beginning, events: VecDeque::new(), chains, link_changes: 0 };
        schedule.insert(changes.into_iter().map(Event::Change));
        schedule.insert(moves.into_iter().map(Event::Move));
        schedule.insert(reroutes.into_iter().map(Event::Reroute));
        schedule
    }

    /// Starts a thread that performs the events at their times, until the virtual machine ends.
    pub(super) fn spawn_thread(self) -> Result<(), GuestError> {
        if !self.events.is_empty() {
            thread::Builder::new().name("schedule".to_owned()).spawn(move || follow(self))?;
        }
        Ok(())
    }

    /// Performs the events that are due. Returns the time until the next event; if the run has not begun, the event
    /// will come at least this much later.
    pub(super) fn perform_due(&mut self) -> Result<Option<Duration>, GuestError> {
        while let Some(event) = self.events.front() {
            let left = event.at().saturating_since(self.beginning.elapsed().unwrap_or_default());
            if left > Span::ZERO {
                return Ok(Some(Duration::from_nanos(left.as_nanos())));
            }
            match self.events.pop_front() {
                Some(Event::Change(ScheduledChange { link, change, .. })) => {
                    self.link_changes += 1;
                    self.chains[usize::from(link.0)].change(&change)?;
                }
                Some(Event::Move(node)) => node.apply()?,
                Some(Event::Reroute(route)) => route.apply()?,
                None => {}
            }
        }
        Ok(None)
    }

    /// Replaces all link changes of the run by `changes`. The first of these are skipped, as many as have already
    /// happened.
    pub(super) fn replace_changes(&mut self, changes: Vec<ScheduledChange>) {
        self.events.retain(|event| !matches!(event, Event::Change(_)));
        let left = self.link_changes;
        self.insert(changes.into_iter().skip(left).map(Event::Change));
    }

    fn insert(&mut self, events: impl Iterator<Item = Event>) {
        self.events.extend(events);
        self.events.make_contiguous().sort_by_key(|event| (event.at(), event.rank()));
    }
}

fn follow(mut schedule: Schedule) {
    let mut step = schedule.perform_due();
    while let Ok(Some(left)) = step {
        step = wait(left).map_err(GuestError::from).and_then(|()| schedule.perform_due());
    }
    if let Err(problem) = step {
        // A run in which the network differs from the requested one is invalid.
        eprintln!("hol: {problem}");
        std::process::abort();
    }
}
