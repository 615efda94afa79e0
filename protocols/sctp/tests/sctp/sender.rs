//! Compares our stacks `dcsctp` and `usrsctp` with the libraries that they describe: the same load from
//! either sender over the same lossy path to the same receiver.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_sctp::{Config, Endpoint as Ours};
use hol_transport::{Command, Endpoint, Event, Input, Message, Output, Reliability, drain};
use hol_wire::{Packet, Transport, sctp};

use crate::talks::{HERE, Side};

/// The performance of a sender on a path.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Goodput in Mbit/s of messages that are always available.
    pub goodput: f64,
    /// The 99th percentile of the delivery time in ms, with one message every 10 ms: the median of the runs,
    /// because a T3-rtx of a second may or may not affect one per cent of a run.
    pub p99: f64,
    /// Number of runs whose 99th percentile is that of a timeout.
    pub runs_with_timeout: usize,
}

/// Shares of lost packets in the direction of the data. Without loss, the only losses of a bulk transfer are
/// those of slow start in the queue, hundreds of packets at once, and only their repair is compared.
const LOSSES: [f64; 3] = [0.005, 0.01, 0.03];
const SEEDS: u64 = 12;
const SIZE: usize = 1000;
const BULK: usize = 4000;
const PACED: usize = 2000;
/// Delays above this are timeouts: it is shorter than either stack's RTO.Min, and no fast retransmission takes that long.
const TIMEOUT_MS: f64 = 400.0;
const INTERVAL: Duration = Duration::from_millis(10);

/// A path of 10 Mbit/s and 2 x 20 ms, with a queue of 100 packets.
struct Direction {
    loss: f64,
    chance: Rng,
    free: Time,
}

impl Direction {
    const OCTET: Duration = Duration::from_nanos(800);
    const DELAY: Duration = Duration::from_millis(20);
    const QUEUE: Duration = Duration::from_millis(100 * 1200 * 8 / 10_000);
    /// Octets of a header, the same for all senders, instead of those of IP, UDP and DTLS.
    const HEADER_LENGTH: usize = 20;

    /// Returns when a packet arrives; `None` if it is lost.
    fn carry(&mut self, now: Time, octets: &Bytes) -> Option<Time> {
        let begins = now.max(self.free);
        if self.chance.chance(self.loss) || begins.saturating_since(now) > Self::QUEUE {
            return None;
        }
        self.free = begins + Self::OCTET * (octets.len() + Self::HEADER_LENGTH) as u64;
        Some(self.free + Self::DELAY)
    }
}

/// Transfers the messages; returns the delay of each in ms, and the total time.
fn carry(
    sender: &mut impl Endpoint,
    receiver: &mut impl Endpoint,
    (loss, seed): (f64, Seed),
    due: impl Fn(usize) -> Duration,
    count: usize,
) -> (Vec<f64>, Duration) {
    let direction = |name: &str, loss| Direction { loss, chance: seed.derive(name).rng(), free: Time::ZERO };
    let mut directions = [direction("data", loss), direction("sacks", 0.0)];
    let mut under_way: BTreeMap<(Time, u64), (usize, Bytes)> = BTreeMap::new();
    let (mut now, mut packets, mut sent, mut begun) = (Time::ZERO, 0, 0, None);
    let mut took: Vec<f64> = Vec::new();
    sender.handle(now, Input::Command(Command::Connect));
    while took.len() < count {
        while let Some(begun) = begun
            && sent < count
            && now >= begun + due(sent)
            && sender.can_send(SIZE)
        {
            let mut payload = vec![0; SIZE];
            payload[..8].copy_from_slice(&(sent as u64).to_be_bytes());
            let reliability = Reliability::Full;
            let message =
                Message { stream: 0, unordered: false, reliability, ppid: 0, payload: payload.into() };
            sender.handle(now, Input::Command(Command::Send(message)));
            sent += 1;
        }
        let mut events = [Vec::new(), Vec::new()];
        let mut outputs = [Vec::new(), Vec::new()];
        let mut split = |end: usize, output| match output {
            Output::Transmit(packet) => outputs[end].push(packet),
            Output::Event(event) => events[end].push(event),
            Output::Wait(_) => {}
        };
        let waits = [drain(sender, now, |_, o| split(0, o)), drain(receiver, now, |_, o| split(1, o))];
        for (end, packets_of_end) in outputs.into_iter().enumerate() {
            for packet in packets_of_end {
                let Transport::Sctp(packet) = packet.transport else { panic!("{packet} is no SCTP") };
                let octets = packet.to_bytes();
                // The handshake is not part of the comparison.
                directions[0].loss = if begun.is_some() { loss } else { 0.0 };
                if let Some(at) = directions[end].carry(now, &octets) {
                    packets += 1;
                    under_way.insert((at, packets), (1 - end, octets));
                }
            }
        }
        for event in events.into_iter().flatten() {
            match event {
                Event::Connected => begun = begun.or(Some(now)),
                Event::Received(message) => {
                    let number = u64::from_be_bytes(*message.payload.first_chunk().unwrap()) as usize;
                    let since = now.since(begun.unwrap() + due(number));
                    took.push(since.as_millis_f64());
                }
                Event::Failed { reason } => panic!("{reason:?} at {now}"),
                _ => {}
            }
        }
        let next_message =
            begun.filter(|_| sent < count).map(|begun| begun + due(sent)).filter(|at| *at > now);
        let arrival = under_way.first_key_value().map(|((at, _), _)| *at);
        now = Time::earliest([waits[0], waits[1], arrival, next_message]).expect("something is to happen");
        while let Some(entry) = under_way.first_entry()
            && entry.key().0 <= now
        {
            let (to, octets) = entry.remove();
            let packet = Packet::new(HERE, HERE, sctp::Packet::parse(octets).unwrap());
            if to == 0 {
                sender.handle(now, Input::Packet(packet));
            } else {
                receiver.handle(now, Input::Packet(packet));
            }
        }
    }
    (took, now.since(begun.unwrap()))
}

fn ours(config: &Config, side: Side, seed: Seed) -> Ours {
    let rng = seed.derive(side.name()).rng();
    match side {
        Side::Client => {
            Ours::connect(config.clone(), vec![HERE], side.port(), vec![HERE], side.other().port(), rng)
        }
        Side::Server => Ours::listen(config.clone(), vec![HERE], side.port(), rng),
    }
}

/// Returns the outcome over several seeds.
fn outcome<E: Endpoint>(config: &Config, loss: f64, sender: impl Fn(Seed) -> E) -> Outcome {
    let (mut goodput, mut p99) = (0.0, Vec::new());
    for seed in (0..SEEDS).map(Seed) {
        let receiver = || ours(config, Side::Server, seed);
        let bulk = |_| Duration::ZERO;
        let (_, whole) = carry(&mut sender(seed), &mut receiver(), (loss, seed), bulk, BULK);
        goodput += (BULK * SIZE * 8) as f64 / 1e6 / whole.as_secs_f64();
        let paced = |number: usize| INTERVAL * number as u64;
        let (mut took, _) = carry(&mut sender(seed), &mut receiver(), (loss, seed), paced, PACED);
        took.sort_by(f64::total_cmp);
        p99.push(took[PACED * 99 / 100]);
    }
    p99.sort_by(f64::total_cmp);
    let runs_with_timeout = p99.iter().filter(|p99| **p99 > TIMEOUT_MS).count();
    Outcome { goodput: goodput / SEEDS as f64, p99: p99[p99.len() / 2], runs_with_timeout }
}

/// Compares a stack with its library, whose goodput must be within a tenth of ours and whose delay within a quarter.
pub fn compare<E: Endpoint>(name: &str, config: &Config, library: impl Fn(Seed) -> E) {
    let mut problems = Vec::new();
    for loss in LOSSES {
        let own = outcome(config, loss, |seed| ours(config, Side::Client, seed));
        let theirs = outcome(config, loss, &library);
        let ratios = (own.goodput / theirs.goodput, own.p99 / theirs.p99);
        let text = format!(
            "| {name} | {:.1} % | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.2} | {} | {} |",
            100.0 * loss,
            own.goodput,
            theirs.goodput,
            ratios.0,
            own.p99,
            theirs.p99,
            ratios.1,
            own.runs_with_timeout,
            theirs.runs_with_timeout
        );
        println!("{text}");
        if (ratios.0 - 1.0).abs() > 0.1 || (ratios.1 - 1.0).abs() > 0.25 {
            problems.push(text);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
