//! Sends packets of a real association to both of its ends, with a few octets changed and a valid checksum.
//!
//! `HOL_MUTATIONS=10000000 cargo test --release -p hol-sctp --test mutated` sets their number.
//! The allocator counts the memory of the whole process, so these endpoints have a process to themselves.

use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use cap::Cap;
use hol_base::{Duration, Rng, Seed, Time};
use hol_sctp::{Config, Endpoint};
use hol_transport::{
    Command, Endpoint as _, Event, Input, Message, Output, Reconfiguration, Reliability, drain,
};
use hol_wire::{Address, Packet, Transport, sctp};

const HERE: Address = hol_wire::ipv4(10, 0, 0, 1);
/// Maximum number of packets that one input may trigger.
const MAX_PACKETS: usize = 100;
/// Maximum memory allocated at a time, by both ends and for their recorded packets. A peer may request 65,535 streams.
const MAX_MEMORY: usize = 8 << 20;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Two connected ends, whose packets are recorded.
struct Talk {
    ends: [Endpoint; 2],
    now: Time,
    rng: Rng,
    seen: Vec<Bytes>,
}

impl Talk {
    fn new(seed: u64) -> Self {
        let mut rng = Seed(seed).rng();
        let config = Config {
            streams: 8,
            interleaving: rng.chance(0.5),
            zero_checksum: rng.chance(0.5),
            send_buffer_blocks: rng.chance(0.5),
            auth: true,
            addip: true,
            ecn: true,
            reconfig: true,
            ..Config::rfc9260()
        };
        let end = |name: &str| Seed(seed).derive(name).rng();
        let client = Endpoint::connect(config.clone(), vec![HERE], 1, vec![HERE], 2, end("client"));
        let ends = [client, Endpoint::listen(config, vec![HERE], 2, end("server"))];
        Self { ends, now: Time::ZERO, rng, seen: Vec::new() }
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle(self.now, input);
        self.settle(end);
    }

    /// Records the packets that an end sends, and delivers most of them.
    fn settle(&mut self, end: usize) {
        let mut packets = Vec::new();
        drain(&mut self.ends[end], self.now, |_, output| match output {
            Output::Transmit(Packet { transport: Transport::Sctp(packet), .. }) => packets.push(packet),
            Output::Event(Event::Received(_)) | Output::Transmit(_) | Output::Event(_) | Output::Wait(_) => {}
        });
        assert!(packets.len() <= MAX_PACKETS, "{} packets", packets.len());
        let held = MEMORY.allocated();
        assert!(held <= MAX_MEMORY, "{held} octets are allocated");
        for packet in packets {
            self.seen.push(packet.to_bytes());
            if self.rng.chance(0.9) && self.seen.len() < 400 {
                self.input(1 - end, Input::Packet(Packet::new(HERE, HERE, *packet)));
            }
        }
    }

    fn command(&mut self) {
        let streams = || vec![0, 3];
        let end = self.rng.below(2) as usize;
        let command = match self.rng.below(12) {
            0 => Command::Reconfigure(Reconfiguration::ResetOutgoing(streams())),
            1 => Command::Reconfigure(Reconfiguration::ResetIncoming(streams())),
            2 => Command::Reconfigure(Reconfiguration::AddOutgoing(1)),
            _ => Command::Send(Message {
                stream: self.rng.below(8) as u16,
                unordered: self.rng.chance(0.3),
                reliability: Reliability::Retransmissions(self.rng.below(3) as u32),
                ppid: 0,
                payload: vec![7; 1 + self.rng.below(3000) as usize].into(),
            }),
        };
        self.input(end, Input::Command(command));
    }

    /// Changes and sends a recorded packet; returns whether the result was still a packet.
    fn mutate(&mut self) -> bool {
        let seen = &self.seen[self.rng.below(self.seen.len() as u64) as usize];
        let mut octets = seen.to_vec();
        for _ in 0..=self.rng.below(3) {
            // The tag mostly stays: a packet with a wrong one is dropped.
            let first = if self.rng.chance(0.95) { 12 } else { 0 };
            let at = first + self.rng.below((octets.len() - first) as u64) as usize;
            octets[at] = match self.rng.below(4) {
                0 => 0,
                1 => 0xff,
                2 => octets[at] ^ (1 << self.rng.below(8)),
                _ => self.rng.next_u64() as u8,
            };
        }
        octets[8..12].fill(0);
        let crc = crc32c::crc32c(&octets);
        octets[8..12].copy_from_slice(&crc.to_le_bytes());
        let Ok(packet) = sctp::Packet::parse(octets.into()) else { return false };
        let end = usize::from(packet.destination_port != 1);
        self.input(end, Input::Packet(Packet::new(HERE, HERE, packet)));
        true
    }
}

/// Runs an association until it is over or 300 packets were sent to it; returns how many were, and how many of them were parsed.
fn run_mutated(seed: u64) -> (u64, u64) {
    let mut talk = Talk::new(seed);
    let (mut thrown, mut read) = (0, 0);
    talk.input(0, Input::Command(Command::Connect));
    for _ in 0..10 {
        talk.command();
    }
    while thrown < 300 && !talk.ends.iter().any(Endpoint::is_closed) {
        thrown += 1;
        read += u64::from(talk.mutate());
        if talk.rng.chance(0.1) {
            talk.command();
            talk.now += Duration::from_millis(talk.rng.below(400));
            (0..2).for_each(|end| talk.settle(end));
        }
    }
    (thrown, read)
}

/// RFC 9260 section 12.2: whatever arrives, an endpoint does not panic, does not loop, and holds no more than its buffers.
#[test]
fn mutated_packets_never_break_an_endpoint() {
    let asked = std::env::var("HOL_MUTATIONS").ok().and_then(|count| count.parse().ok());
    let wanted: u64 = asked.unwrap_or(100_000);
    let (mut thrown, mut read, mut seed) = (0, 0, 0);
    while thrown < wanted {
        seed += 1;
        let talk = catch_unwind(AssertUnwindSafe(|| run_mutated(seed)));
        let Ok((more, of_them)) = talk else { panic!("the association of seed {seed}") };
        (thrown, read) = (thrown + more, read + of_them);
    }
    println!("{thrown} packets thrown, {read} of them read, {seed} associations");
    assert!(read > thrown / 4, "{read} of {thrown} were packets");
}
