//! What waits before lines, as the kernel's queueing disciplines count it, at the multiples of an interval.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration as StdDuration;

use hol_base::{Duration, Time};
use hol_scenario::{Queue, Sample, Sampled};
use hol_sockets::Beginning;
use hol_traffic::{Discipline, Emulator, Filter, Stage, discipline};
use nix::sys::prctl::set_timerslack;

use super::Trouble;
use super::clock::wait;
use super::handle;
use super::netlink::Routing;

/// What a frame has beyond IP.
const ETHERNET: u64 = 14;

/// Where the packets of a line wait: disciplines of the router, by their places in its chain.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    routing: Routing,
    /// Those whose packets wait or are in transmission.
    holding: Vec<Seat>,
    /// The one that drops who finds no room …
    dropping: Seat,
    /// … and counts beside them what those behind it on the same interface drop, the first of which is this.
    losing: Option<Seat>,
    counted: [Growing; 2],
}

/// A discipline: its interface, its place in the chain, and octets that a packet has there beyond IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seat {
    interface: u32,
    place: usize,
    beyond_ip: u64,
}

/// A count that goes on when the kernel's begins anew: a line that has been down has other disciplines.
#[derive(Debug, Default)]
struct Growing {
    before: u64,
    all: u64,
}

impl Growing {
    fn see(&mut self, now: u64) -> u64 {
        self.all += if now < self.before { now } else { now - self.before };
        self.before = now;
        self.all
    }
}

impl WaitingRoom {
    /// Of a line with these `stages`, the first of them on the interface of its detour, if it has one, the others on its own. What a
    /// packet has there beyond IP is its `overhead` on the one, for the kernel is told so, and a frame on the other.
    pub(super) fn new(
        routing: Routing,
        stages: &[Stage],
        (detour, own): (Option<u32>, u32),
        overhead: u64,
    ) -> Self {
        let crossing = stages.iter().position(|stage| *stage == Stage::Crossing);
        let seat = |place: usize| match (detour, crossing) {
            (Some(interface), Some(crossing)) if place < crossing => {
                Seat { interface, place, beyond_ip: overhead }
            }
            _ => Seat { interface: own, place, beyond_ip: ETHERNET },
        };
        let is_transmitter = |stage: &Stage| {
            matches!(stage, Stage::Emulator(Emulator { rate: 1.., delay: Duration::ZERO, .. }))
        };
        let place = |of: &dyn Fn(&Stage) -> bool| stages.iter().position(of);
        let transmitter = stages.iter().rposition(is_transmitter).unwrap_or(0);
        let (queue, admits) = (
            place(&|stage| matches!(stage, Stage::Waiting(_))),
            place(&|stage| matches!(stage, Stage::Filter(Filter::Admit(_)))),
        );
        let dropping = queue.or(admits).unwrap_or(transmitter);
        // The queue counts for those of its own that stand within it.
        let within = stages.iter().enumerate().skip(dropping + 1);
        let behind = within.filter(|(_, stage)| !matches!(stage, Stage::Waiting(_)));
        let behind = behind.map(|(place, _)| place).find(|place| *place > transmitter);
        let holding = queue.into_iter().chain([transmitter]).map(seat).collect();
        Self {
            routing,
            holding,
            dropping: seat(dropping),
            losing: behind.map(seat),
            counted: Default::default(),
        }
    }

    fn look(&mut self, line: u32) -> Result<Queue, Trouble> {
        let mut all = BTreeMap::new();
        self.routing
            .list(discipline::list(), |entry| all.extend(Discipline::read(entry).and_then(seated)))?;
        let none = Discipline::default();
        let of = |seat: &Seat| all.get(&(seat.interface, seat.place)).unwrap_or(&none);
        let held = self.holding.iter().map(|seat| {
            let Discipline { packets, octets, .. } = of(seat);
            (*packets, octets.saturating_sub(packets * seat.beyond_ip))
        });
        let (packets, octets) = held.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let lost = self.losing.as_ref().map_or(0, |seat| of(seat).drops);
        let beside =
            self.losing.filter(|losing| losing.interface == self.dropping.interface).map_or(0, |_| lost);
        let dropped = of(&self.dropping).drops.saturating_sub(beside);
        let [all_dropped, all_lost] = &mut self.counted;
        let (dropped, lost) = (all_dropped.see(dropped), all_lost.see(lost));
        Ok(Queue { line, packets, octets, dropped, lost: Some(lost) })
    }
}

/// A discipline by its interface and its place in a chain; those that an interface has by itself have none.
fn seated(discipline: Discipline) -> Option<((u32, usize), Discipline)> {
    let Discipline { interface, handle, .. } = discipline;
    (handle >> 16 > 0 && handle >> 16 < 0xffff).then(|| ((interface, handle::place_of(handle)), discipline))
}

/// Looks from time to time what waits.
#[derive(Debug)]
pub(super) struct Waiting(Arc<Mutex<Vec<Sample>>>);

impl Waiting {
    /// Looks at the multiples of `interval` of the time since the `beginning`, on a thread of its own; the machine's end ends it.
    pub(super) fn watch(
        mut rooms: Vec<WaitingRoom>,
        interval: Duration,
        beginning: Beginning,
    ) -> Result<Self, Trouble> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        let follow = move || {
            // Wake-ups may otherwise come 50 µs late.
            let mut step = set_timerslack(1).map_err(Trouble::from);
            while let Ok(()) = step {
                let now = beginning.wait().as_nanos();
                wait(StdDuration::from_nanos(interval.as_nanos() - now % interval.as_nanos()));
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                if all.len() as u64 > Sample::MOST {
                    return;
                }
                step = look(&mut rooms, beginning.wait(), &mut all);
            }
            // The run is what it is without that.
            if let Err(problem) = step {
                eprintln!("hol: {problem}; from here on the time series have no queues");
            }
        };
        thread::Builder::new().name("queues".to_owned()).spawn(follow)?;
        Ok(Self(seen))
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Vec<Sample> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn look(rooms: &mut [WaitingRoom], at: Time, samples: &mut Vec<Sample>) -> Result<(), Trouble> {
    for (line, room) in (0..).zip(rooms) {
        samples.push(Sample { at, of: Sampled::Queue(room.look(line)?) });
    }
    Ok(())
}
