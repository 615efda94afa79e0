//! The delay before the queue of a link whose delay changes during the run.
//!
//! A constant delay may come before or after the queue: packets arrive at the same times, and a delay after the queue
//! costs one event less. A delay that changes comes before the queue, as in Linux, where netem delays packets on
//! their arrival (`netem_enqueue`): packets in the queue keep the delay that they had, and while the delay grows, the
//! link still sends what is queued.

use std::collections::VecDeque;

use hol_base::{Duration, Time};

use crate::link_change::LinkChange;
use crate::propagation::Propagation;
use crate::topology::ScheduledChange;
use crate::transit::PacketInTransit;

/// Postpones each change of a link's rate or loss by the link's delay less 1 ns, because packets meet the rate and
/// the loss only after the delay. A change then applies to the packets that were sent at its original time or
/// later. The changes of a link stay in order, even if its delay becomes shorter. `delays` contains the delay of
/// each link at the start of the run; `None` for a link whose changes are not postponed.
pub fn changes_after_propagation(
    changes: Vec<ScheduledChange>,
    mut delays: Vec<Option<Duration>>,
) -> Vec<ScheduledChange> {
    // For each link: time of the last change of its rate, and of its loss.
    let mut latest = vec![[Time::ZERO; 2]; delays.len()];
    let mut later = changes;
    for ScheduledChange { at, link, change } in &mut later {
        let link = usize::from(link.0);
        let Some(delay) = &mut delays[link] else { continue };
        let latest = match change {
            LinkChange::Rate(_) => &mut latest[link][0],
            LinkChange::Loss(_) => &mut latest[link][1],
            LinkChange::Delay(new) => {
                *delay = *new;
                continue;
            }
            LinkChange::Down | LinkChange::Up => continue,
        };
        *at = (*at + delay.saturating_sub(Duration::from_nanos(1))).max(*latest);
        *latest = *at;
    }
    later.sort_by_key(|change| change.at);
    later
}

/// The packets on their way to the queue of a link, in order: the propagation delay precedes the queue.
#[derive(Debug)]
pub(crate) struct DelayLine {
    propagation: Propagation,
    under_way: VecDeque<(Time, PacketInTransit)>,
}

impl DelayLine {
    /// Creates a delay line with the delay and jitter of `propagation`.
    pub(crate) fn new(propagation: Propagation) -> Self {
        Self { propagation, under_way: VecDeque::new() }
    }

    /// Accepts a packet from a node.
    pub(crate) fn push(&mut self, now: Time, transit: PacketInTransit) {
        self.under_way.push_back((self.propagation.arrival(now), transit));
    }

    /// Returns when the next packet reaches the queue; [`Time::MAX`] if no packet is on its way.
    pub(crate) fn next_at(&self) -> Time {
        self.under_way.front().map_or(Time::MAX, |(at, _)| *at)
    }

    /// Removes and returns the next packet, and the time at which it reaches the queue.
    pub(crate) fn pop(&mut self) -> Option<(Time, PacketInTransit)> {
        self.under_way.pop_front()
    }

    /// Removes and returns all packets on their way.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        self.under_way.drain(..).map(|(_, transit)| transit)
    }

    /// Changes the delay of packets that are sent from now on.
    pub(crate) fn change(&mut self, delay: Duration) {
        self.propagation.change(delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_rate::EventRate;
    use crate::identifier::LinkId;
    use crate::loss::LossSpec;

    /// A later rate must not be replaced by an earlier one that is still on its way.
    #[test]
    fn changes_keep_their_order_if_the_delay_becomes_shorter() {
        let loss = |text: &str| LossSpec::Independent(text.parse().unwrap());
        let change = |at, change| ScheduledChange { at: Time::from_millis(at), link: LinkId(0), change };
        let rate = |text: &str| LinkChange::Rate(text.parse::<EventRate>().unwrap());
        let changes = vec![
            change(1000, rate("1Mbit")),
            change(1000, LinkChange::Loss(loss("5%"))),
            change(1010, LinkChange::Delay(Duration::from_millis(10))),
            change(1020, rate("9Mbit")),
            change(1020, LinkChange::Loss(loss("0%"))),
            change(1200, rate("2Mbit")),
        ];
        let order = |changes: &[ScheduledChange]| {
            let lasting = changes.iter().filter(|one| !matches!(one.change, LinkChange::Delay(_)));
            lasting.map(|one| format!("{:?}", one.change)).collect::<Vec<_>>()
        };
        let before = order(&changes);
        let later = changes_after_propagation(changes, vec![Some(Duration::from_millis(100))]);
        assert_eq!(order(&later), before);
        let times: Vec<u64> = later.iter().map(|one| one.at.as_nanos().div_ceil(1_000_000)).collect();
        assert_eq!(times, [1010, 1100, 1100, 1100, 1100, 1210]);
    }
}
