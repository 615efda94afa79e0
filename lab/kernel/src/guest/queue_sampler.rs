//! Samples the queues of links at a fixed interval, from the statistics of the kernel's queueing
//! disciplines. tc(8)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration as StdDuration;

use hol_base::{Duration, Time};
use hol_scenario::{QueueSample, Sample, SampleValue};
use hol_sockets::RunStart;
use hol_traffic::{Discipline, DropFilter, Emulator, Stage, discipline};

use super::GuestError;
use super::clock::wait;
use super::handle;
use super::netlink::RoutingSocket;

/// Length of an Ethernet header in octets.
const ETHERNET_HEADER: u64 = 14;

/// The queueing disciplines from which the statistics of a link's queue are read.
#[derive(Debug)]
pub(super) struct LinkQueueStatistics {
    routing: RoutingSocket,
    /// The disciplines that contain the waiting packets and the packet in transmission.
    backlogged: Vec<QdiscPosition>,
    /// The discipline that drops packets when the queue is full.
    dropping: QdiscPosition,
    /// The first discipline after the transmitter, which drops the packets that the link loses. If it is on the same
    /// interface as `dropping`, the kernel's count for `dropping` includes these drops.
    losing: Option<QdiscPosition>,
    /// Number of packets that the queue has dropped.
    dropped: MonotonicCount,
    /// Number of packets that the link has lost.
    lost: MonotonicCount,
}

/// The position of a discipline: its interface, its index in the chain, and the octets by which its length of a packet
/// exceeds the IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QdiscPosition {
    interface: u32,
    /// Index of the discipline in the chain of the link's stages.
    place: usize,
    octets_beyond_ip: u64,
}

/// A counter that keeps counting when the kernel's counter restarts at zero. That happens when a link comes up
/// again, because its disciplines are then new.
#[derive(Debug, Default)]
struct MonotonicCount {
    /// The kernel's counter when it was last read.
    last_value: u64,
    /// The total count since the start, even if the kernel's counter has restarted.
    total: u64,
}

impl MonotonicCount {
    fn update(&mut self, now: u64) -> u64 {
        self.total += if now < self.last_value { now } else { now - self.last_value };
        self.last_value = now;
        self.total
    }
}

impl LinkQueueStatistics {
    /// Creates the statistics of a link with these `stages`. If the link has a detour, the stages before
    /// `Stage::Transit` are on the detour's interface, and the others on the link's own interface. On the detour,
    /// which has a size table (tc-stab(8)), the link-layer header of a packet counts as `overhead` octets. On the
    /// link's own interface it counts as an Ethernet header.
    pub(super) fn new(
        routing: RoutingSocket,
        stages: &[Stage],
        (detour, own): (Option<u32>, u32),
        overhead: u64,
    ) -> Self {
        let transit = stages.iter().position(|stage| *stage == Stage::Transit);
        let position = |place: usize| match (detour, transit) {
            (Some(interface), Some(transit)) if place < transit => {
                QdiscPosition { interface, place, octets_beyond_ip: overhead }
            }
            _ => QdiscPosition { interface: own, place, octets_beyond_ip: ETHERNET_HEADER },
        };
        let is_transmitter = |stage: &Stage| {
            matches!(stage, Stage::Emulator(Emulator { rate: 1.., delay: Duration::ZERO, .. }))
        };
        let place = |of: &dyn Fn(&Stage) -> bool| stages.iter().position(of);
        let transmitter = stages.iter().rposition(is_transmitter).unwrap_or(0);
        let (queue, admits) = (
            place(&|stage| matches!(stage, Stage::Queue(_))),
            place(&|stage| matches!(stage, Stage::Filter(DropFilter::Admit(_)))),
        );
        let dropping = queue.or(admits).unwrap_or(transmitter);
        // The queue's count includes the drops of its child disciplines.
        let within = stages.iter().enumerate().skip(dropping + 1);
        let behind = within.filter(|(_, stage)| !matches!(stage, Stage::Queue(_)));
        let behind = behind.map(|(place, _)| place).find(|place| *place > transmitter);
        let backlogged = queue.into_iter().chain([transmitter]).map(position).collect();
        Self {
            routing,
            backlogged,
            dropping: position(dropping),
            losing: behind.map(position),
            dropped: MonotonicCount::default(),
            lost: MonotonicCount::default(),
        }
    }

    fn sample(&mut self, line: u32) -> Result<QueueSample, GuestError> {
        let mut all = BTreeMap::new();
        self.routing
            .list(discipline::list(), |entry| all.extend(Discipline::read(entry).and_then(positioned)))?;
        let none = Discipline::default();
        let of = |position: &QdiscPosition| all.get(&(position.interface, position.place)).unwrap_or(&none);
        let held = self.backlogged.iter().map(|position| {
            let Discipline { packets, octets, .. } = of(position);
            (*packets, octets.saturating_sub(packets * position.octets_beyond_ip))
        });
        let (packets, octets) = held.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let lost = self.losing.as_ref().map_or(0, |position| of(position).drops);
        let beside =
            self.losing.filter(|losing| losing.interface == self.dropping.interface).map_or(0, |_| lost);
        let dropped = of(&self.dropping).drops.saturating_sub(beside);
        let (dropped, lost) = (self.dropped.update(dropped), self.lost.update(lost));
        Ok(QueueSample { queue: line, packets, octets, dropped, lost: Some(lost) })
    }
}

/// Returns the position of a discipline and the discipline itself; `None` for the default disciplines of an
/// interface.
fn positioned(discipline: Discipline) -> Option<((u32, usize), Discipline)> {
    let Discipline { interface, handle, .. } = discipline;
    (handle >> 16 > 0 && handle >> 16 < 0xffff)
        .then(|| ((interface, handle::stage_index(handle)), discipline))
}

/// The samples taken by the thread that reads queue statistics.
#[derive(Debug)]
pub(super) struct QueueSampler(Arc<Mutex<Vec<Sample>>>);

impl QueueSampler {
    /// Starts a thread that takes samples at multiples of `interval` since `beginning`. The thread ends with the
    /// virtual machine.
    pub(super) fn start(
        mut links: Vec<LinkQueueStatistics>,
        interval: Duration,
        beginning: RunStart,
    ) -> Result<Self, GuestError> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        let follow = move || {
            let mut step = Ok(());
            while step.is_ok() {
                let now = beginning.wait().as_nanos();
                let left = StdDuration::from_nanos(interval.as_nanos() - now % interval.as_nanos());
                step = wait(left).map_err(GuestError::from);
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                if all.len() as u64 > Sample::MAX_PER_RUN {
                    return;
                }
                step = step.and_then(|()| sample_all(&mut links, beginning.wait(), &mut all));
            }
            // An error here does not invalidate the run.
            if let Err(problem) = step {
                eprintln!("hol: {problem}; the rest of the time series contains no queues");
            }
        };
        thread::Builder::new().name("queues".to_owned()).spawn(follow)?;
        Ok(Self(seen))
    }

    /// Removes and returns the samples taken so far.
    pub(super) fn take_samples(&self) -> Vec<Sample> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn sample_all(
    links: &mut [LinkQueueStatistics],
    at: Time,
    samples: &mut Vec<Sample>,
) -> Result<(), GuestError> {
    for (line, queues) in (0..).zip(links) {
        samples.push(Sample { at, value: SampleValue::Queue(queues.sample(line)?) });
    }
    Ok(())
}
