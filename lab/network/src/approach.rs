//! A delay before the queue: that of a link whose delay changes during the run.
//!
//! Packets arrive at the same times whether a constant delay comes before or after the queue; after it costs an event
//! less. A delay that changes comes before it, as in Linux, where netem delays packets on their arrival
//! (`netem_enqueue`): packets in the queue keep the delay that they met, and a queue absorbs a longer one.

use std::collections::VecDeque;

use hol_base::{Duration, Time};

use crate::link_change::LinkChange;
use crate::propagation::Propagation;
use crate::topology::ScheduledChange;
use crate::transit::Transit;

/// Returns the changes at the times at which they meet the packets that are sent then: for the rate and the loss, which
/// packets reach after the delay, just before one delay has passed. `delays` has the delay of each link at the start of
/// the run; `None` if the link has no approach.
pub fn changes_after_approach(
    changes: Vec<ScheduledChange>,
    mut delays: Vec<Option<Duration>>,
) -> Vec<ScheduledChange> {
    let mut later = changes;
    for ScheduledChange { at, link, change } in &mut later {
        let Some(delay) = &mut delays[usize::from(link.0)] else { continue };
        match change {
            LinkChange::Down | LinkChange::Up => {}
            LinkChange::Delay(new) => *delay = *new,
            LinkChange::Rate(_) | LinkChange::Loss(_) => {
                *at += delay.saturating_sub(Duration::from_nanos(1));
            }
        }
    }
    later.sort_by_key(|change| change.at);
    later
}

/// The packets on their way to the queue, in order.
#[derive(Debug)]
pub(crate) struct Approach {
    propagation: Propagation,
    under_way: VecDeque<(Time, Transit)>,
}

impl Approach {
    /// Creates an approach of this delay and jitter.
    pub(crate) fn new(propagation: Propagation) -> Self {
        Self { propagation, under_way: VecDeque::new() }
    }

    /// Accepts a packet from a node.
    pub(crate) fn push(&mut self, now: Time, transit: Transit) {
        self.under_way.push_back((self.propagation.arrival(now), transit));
    }

    /// Returns when the next packet reaches the queue; [`Time::MAX`] if none is under way.
    pub(crate) fn next_at(&self) -> Time {
        self.under_way.front().map_or(Time::MAX, |(at, _)| *at)
    }

    /// Returns the next packet, with the time at which it reaches the queue.
    pub(crate) fn pop(&mut self) -> Option<(Time, Transit)> {
        self.under_way.pop_front()
    }

    /// Removes all packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Transit> {
        self.under_way.drain(..).map(|(_, transit)| transit)
    }

    /// Changes the delay of packets that are sent from now on.
    pub(crate) fn change(&mut self, delay: Duration) {
        self.propagation.change(delay);
    }
}
