//! Sends segments of a real connection to both of its ends, with a few octets of their headers changed and a valid checksum.
//!
//! `HOL_MUTATIONS=100000000 cargo test --release -p hol-tcp --test mutated` sets their number.
//! The allocator counts the memory of the whole process, so these endpoints have a process to themselves.

#[path = "tcp/endpoint.rs"]
mod endpoint;

use std::alloc::System;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cap::Cap;
use endpoint::{message, stack};
use hol_base::{ByteCount, Duration, Rng, Seed, Time};
use hol_tcp::{Algorithm, Config, CongestionUnit, Endpoint, LossDetection, Nagle, RateHalving};
use hol_transport::{Command, Endpoint as _, Event, Input, Output, drain};
use hol_wire::tcp::Segment;
use hol_wire::{Address, Ecn, Packet, Transport};

/// The address of both ends, whose ports are 1 and 2.
const HERE: Address = hol_wire::ipv4(10, 0, 0, 1);
/// Send buffer of an end, in octets.
const SEND_BUFFER: u64 = 20_000;
/// Maximum number of octets of a segment.
const MAX_PAYLOAD: usize = 1460;
/// Maximum number of segments that one input may trigger: more than the send buffer contains if each segment
/// carries only the octets that the peer's MSS, SACK blocks and timestamps leave room for.
const MAX_SEGMENTS: usize = 3000;
/// Maximum number of segments that the ends may exchange without waiting for a timer: those of both send
/// buffers, some of them several times, and their acknowledgments.
const MAX_EXCHANGE: usize = 12_000;
/// Maximum memory allocated at a time, by both ends and for the segments in transit.
const MAX_MEMORY: usize = 4 << 20;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// One end, and its limits.
struct End {
    endpoint: Endpoint,
    config: Config,
    wait: Option<Time>,
}

/// Two connected ends, whose segments are recorded.
struct Talk {
    ends: [End; 2],
    now: Time,
    rng: Rng,
    under_way: VecDeque<Packet>,
    /// The latest segments.
    seen: VecDeque<Segment>,
}

/// Returns one of `choices` at random.
fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// Returns the configuration of a stack file with many options changed.
fn config(rng: &mut Rng, shipped: &[Config]) -> Config {
    let shipped = shipped[rng.below(shipped.len() as u64) as usize].clone();
    let mss = one_of(rng, &[88, 536, MAX_PAYLOAD as u16]);
    let halvings = [RateHalving::Off, RateHalving::Off, RateHalving::ToSsthresh, RateHalving::ToHalfSsthresh];
    let rate_halving = one_of(rng, &halvings);
    let config = Config {
        mss,
        sack: rng.chance(0.8),
        dsack: rng.chance(0.7),
        timestamps: rng.chance(0.6),
        window_scale: rng.below(15) as u8,
        wakeup: Duration::from_micros(one_of(rng, &[0, 25])),
        send_buffer: ByteCount(SEND_BUFFER),
        receive_buffer: ByteCount(u64::from(mss) + rng.below(30_000)),
        receive_buffer_max: ByteCount(rng.below(60_000)),
        nagle: one_of(rng, &[Nagle::Off, Nagle::Classic, Nagle::Minshall]),
        congestion: one_of(
            rng,
            &[Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Bbr3, Algorithm::Dctcp],
        ),
        congestion_unit: one_of(rng, &[CongestionUnit::Packets, CongestionUnit::Bytes]),
        ecn: rng.chance(0.5),
        cwnd_validation: rng.chance(0.7),
        recovery: one_of(
            rng,
            &[LossDetection::Rack, LossDetection::Sack, LossDetection::Fack, LossDetection::NewReno],
        ),
        limited_transmit: rng.chance(0.7),
        prr: rate_halving == RateHalving::Off && rng.chance(0.7),
        rate_halving,
        byte_counting: rng.chance(0.3),
        grows_when_full: rng.chance(0.3),
        cwnd_moderation: one_of(rng, &[0, 3]),
        collapse_limit: one_of(rng, &[0, 1]),
        tlp: rng.chance(0.7),
        frto: rng.chance(0.7),
        undo: rng.chance(0.7),
        collapse_on_retransmit: rng.chance(0.5),
        ..shipped
    };
    assert_eq!(config.check(), Ok(()));
    config
}

impl End {
    /// Returns the number of octets that may be delivered at once: the buffer, rounded up to a value that a window can
    /// express, and a segment that extends beyond it. An application that takes time to wake up reads
    /// everything that has arrived meanwhile.
    fn room(&self) -> usize {
        let Config { receive_buffer, receive_buffer_max, window_scale, wakeup, .. } = self.config;
        let buffer = receive_buffer.max(receive_buffer_max).0 as usize + (1 << window_scale) + MAX_PAYLOAD;
        if wakeup.is_zero() { buffer } else { usize::MAX }
    }
}

impl Talk {
    fn new(seed: u64, shipped: &[Config]) -> Self {
        let mut rng = Seed(seed).rng();
        let both_open = rng.chance(0.2);
        let mut end = |port: u16, opens: bool| {
            let (config, rng) = (config(&mut rng, shipped), Seed(seed).derive_for_index(port.into()).rng());
            let endpoint = match opens {
                true => Endpoint::connect(config.clone(), (HERE, port), (HERE, 3 - port), rng),
                false => Endpoint::listen(config.clone(), (HERE, port), rng),
            };
            End { endpoint, config, wait: None }
        };
        let ends = [end(1, true), end(2, both_open)];
        let mut talk = Self { ends, now: Time::ZERO, rng, under_way: VecDeque::new(), seen: VecDeque::new() };
        (0..=usize::from(both_open)).for_each(|end| talk.input(end, Input::Command(Command::Connect)));
        talk
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].endpoint.handle(self.now, input);
        self.settle(end);
    }

    /// Records the segments that an end sends, and puts them in transit.
    fn settle(&mut self, end: usize) {
        let (mut sent, mut delivered) = (0, 0);
        let End { endpoint, wait, .. } = &mut self.ends[end];
        *wait = drain(endpoint, self.now, |_, output| match output {
            Output::Transmit(packet) => {
                sent += 1;
                if let Transport::Tcp(segment) = &packet.transport {
                    self.seen.truncate(31);
                    self.seen.push_front((**segment).clone());
                }
                self.under_way.push_back(packet);
            }
            Output::Event(Event::Received(piece)) => delivered += piece.payload.len(),
            Output::Event(_) | Output::Wait(_) => {}
        });
        assert!(sent <= MAX_SEGMENTS, "{sent} segments");
        let room = self.ends[end].room();
        assert!(delivered <= room, "{delivered} octets of {room}");
        let held = MEMORY.allocated();
        assert!(held <= MAX_MEMORY, "{held} octets are allocated");
    }

    fn command(&mut self) {
        let end = self.rng.below(2) as usize;
        let command = match self.rng.below(20) {
            0 if self.rng.chance(0.3) => Command::Close,
            1 if self.rng.chance(0.05) => Command::Abort,
            2..5 => Command::Read(self.rng.chance(0.6)),
            _ => {
                let length = one_of(&mut self.rng, &[1, 100, MAX_PAYLOAD, 4000]);
                if !self.ends[end].endpoint.can_send(length) {
                    return;
                }
                message(vec![7; length])
            }
        };
        self.input(end, Input::Command(command));
    }

    /// Delivers the segments in transit, mostly in order; some are lost, some are marked.
    fn arrive(&mut self) {
        let at = if self.rng.chance(0.9) { 0 } else { self.rng.below(8) as usize };
        let Some(mut packet) = self.under_way.remove(at) else { return };
        if self.rng.chance(0.05) {
            return;
        }
        if packet.ecn == Ecn::Capable && self.rng.chance(0.1) {
            packet.ecn = Ecn::Congested;
        }
        self.take(packet);
    }

    fn take(&mut self, packet: Packet) {
        let end = usize::from(packet.ports().1 != 1);
        self.input(end, Input::Packet(packet));
    }

    /// Advances the time to the next timer, or a little, regardless of the timers.
    fn pass(&mut self) {
        let next = self.ends.iter().filter_map(|end| end.wait).min();
        let later = self.now + Duration::from_micros(self.rng.below(50_000));
        self.now = next.filter(|_| self.rng.chance(0.5)).unwrap_or(later);
        (0..2).for_each(|end| self.settle(end));
    }

    /// Changes and sends a recorded segment; returns whether the result was still a segment.
    fn mutate(&mut self) -> bool {
        let seen = &self.seen[self.rng.below(self.seen.len() as u64) as usize];
        let mut octets = seen.to_bytes(HERE, HERE).to_vec();
        // The ports mostly stay: a segment with other ports belongs to no connection.
        let first = if self.rng.chance(0.98) { 4 } else { 0 };
        let header = usize::from(octets[12] >> 4) * 4;
        for _ in 0..=self.rng.below(3) {
            let at = first + self.rng.below((header - first) as u64) as usize;
            octets[at] = match self.rng.below(4) {
                0 => 0,
                1 => 0xff,
                2 => octets[at] ^ (1 << self.rng.below(8)),
                _ => self.rng.next_u64() as u8,
            };
        }
        put_checksum(&mut octets);
        let Ok(segment) = Segment::parse(octets.into(), HERE, HERE) else { return false };
        self.take(Packet::new(HERE, HERE, segment));
        true
    }

    /// Stops the disturbance: the exchange must end, whichever timer started it.
    fn rest(&mut self) {
        (0..2).for_each(|end| self.input(end, Input::Command(Command::Read(true))));
        for _ in 0..20 {
            let mut talk = 0;
            while let Some(packet) = self.under_way.pop_front() {
                talk += 1;
                assert!(talk <= MAX_EXCHANGE, "the ends exchange segments without end: {packet}");
                // One after the other: if all are sent at once, the times do not show which was retransmitted.
                self.now += Duration::from_micros(1);
                self.take(packet);
            }
            let Some(next) = self.ends.iter().filter_map(|end| end.wait).min() else { return };
            self.now = self.now.max(next);
            (0..2).for_each(|end| self.settle(end));
        }
    }

    fn is_over(&self) -> bool {
        self.ends.iter().any(|end| end.endpoint.is_closed())
    }
}

/// RFC 9293 section 3.1: the one's complement sum over pseudo header and segment.
fn put_checksum(octets: &mut [u8]) {
    octets[16..18].fill(0);
    let pseudo_header = [0x0a00, 0x0001, 0x0a00, 0x0001, Transport::TCP.into(), octets.len() as u32];
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let sum: u32 = pseudo_header.into_iter().chain(octets.chunks(2).map(word)).sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    let checksum = !((folded >> 16) + folded) as u16;
    octets[16..18].copy_from_slice(&checksum.to_be_bytes());
}

/// Runs a connection until it is over or 300 segments were sent to it; returns how many were, and how many of them were parsed.
fn run_mutated(seed: u64, shipped: &[Config]) -> (u64, u64) {
    let mut talk = Talk::new(seed, shipped);
    let (mut thrown, mut read) = (0, 0);
    while thrown < 300 && !talk.is_over() {
        match talk.rng.below(12) {
            0..5 => {
                thrown += 1;
                read += u64::from(talk.mutate());
            }
            5..9 => talk.arrive(),
            9..11 => talk.command(),
            _ => talk.pass(),
        }
    }
    talk.rest();
    (thrown, read)
}

/// RFC 9293 section 3.2 (MUST-7): whatever arrives, an endpoint does not panic, does not loop, and holds no more than its buffers.
#[test]
fn mutated_segments_never_break_an_endpoint() {
    let asked = std::env::var("HOL_MUTATIONS").ok().and_then(|count| count.parse().ok());
    let wanted: u64 = asked.unwrap_or(200_000);
    let shipped = ["linux-6.12", "linux-2.6.16", "rfc"].map(stack);
    let (mut thrown, mut read, mut seed) = (0, 0, 0);
    while thrown < wanted {
        seed += 1;
        let talk = catch_unwind(AssertUnwindSafe(|| run_mutated(seed, &shipped)));
        let Ok((more, of_them)) = talk else { panic!("the connection of seed {seed}") };
        (thrown, read) = (thrown + more, read + of_them);
    }
    println!("{thrown} segments thrown, {read} of them read, {seed} connections");
    assert!(read > thrown / 4, "{read} of {thrown} were segments");
}
