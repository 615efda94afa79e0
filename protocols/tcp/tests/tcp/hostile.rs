//! Tests a peer that sends anything: no segment, command or time makes an endpoint panic, loop or send forever.

use crate::endpoint::{message, stack};
use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_tcp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Input, Output, drain};
use hol_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNum, Timestamps};
use hol_wire::{Address, Packet, SendTimes, Transport};
use proptest::prelude::*;

const LOCAL: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 1000);
const PEER: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 80);

/// The peer, which records the endpoint's segments, so that most of its own are nearly valid.
struct Hostile {
    rng: Rng,
    /// The sequence numbers that the peer assumes for its own octets and for the endpoint's.
    own: SeqNum,
    theirs: SeqNum,
}

impl Hostile {
    /// Returns `number` plus a mostly small, sometimes arbitrary offset.
    fn about(&mut self, number: SeqNum) -> SeqNum {
        match self.rng.below(8) {
            0 => SeqNum(self.rng.next_u32()),
            1..=4 => number,
            _ => number - 3000 + self.rng.below(6000) as u32,
        }
    }

    fn flags(&mut self) -> Flags {
        match self.rng.below(24) {
            0 => Flags(self.rng.next_u32() as u16 & 0x1f),
            1 => Flags::SYN | Flags::ACK,
            2 => Flags::SYN,
            3 | 4 => Flags::ACK | Flags::FIN,
            _ => Flags::ACK,
        }
    }

    fn options(&mut self, syn: bool) -> Options {
        let mut options = Options::default();
        if syn {
            options.mss = self.rng.chance(0.7).then(|| self.rng.below(1600) as u16);
            options.window_scale = self.rng.chance(0.5).then(|| self.rng.below(20) as u8);
            options.sack_permitted = self.rng.chance(0.7);
        }
        if self.rng.chance(0.6) {
            options.timestamps =
                Some(Timestamps { value: self.rng.below(3000) as u32, echo: self.rng.next_u32() });
        }
        for _ in 0..self.rng.below(4) {
            let (left, theirs) = (self.rng.below(4000) as u32, self.theirs);
            let left = self.about(theirs) - 2000 + left;
            options.sack.push(SackBlock { left, right: left + self.rng.below(3000) as u32 });
        }
        options
    }

    fn segment(&mut self) -> Segment {
        let flags = self.flags();
        let length = if self.rng.chance(0.5) { 0 } else { self.rng.below(1500) as usize };
        let windows = [0, 0, 1, 100, 700, 3000, 65535];
        let segment = Segment {
            source_port: PEER.1,
            destination_port: LOCAL.1,
            seq: self.about(self.own),
            ack: self.about(self.theirs),
            flags,
            window: windows[self.rng.below(windows.len() as u64) as usize],
            options: self.options(flags.contains(Flags::SYN)),
            payload: Bytes::from(vec![7; length]),
            stamp: SendTimes::default(),
        };
        if self.rng.chance(0.5) {
            self.own = segment.seq + segment.sequence_length();
        }
        segment
    }

    fn command(&mut self) -> Command {
        match self.rng.below(12) {
            0 => Command::Close,
            1 if self.rng.chance(0.1) => Command::Abort,
            2 => Command::Connect,
            3 | 4 => Command::Read(self.rng.chance(0.7)),
            _ => message(vec![5; 1 + self.rng.below(5000) as usize]),
        }
    }

    /// Records the endpoint's segments, which must not continue forever without an input.
    fn watch(&mut self, endpoint: &mut Endpoint, now: Time) -> Option<Time> {
        let mut packets = 0;
        let deadline = drain(endpoint, now, |_, output| {
            if let Output::Transmit(Packet { transport: Transport::Tcp(segment), .. }) = output {
                packets += 1;
                self.theirs = segment.seq + segment.sequence_length();
                self.own = segment.ack;
            }
        });
        assert!(packets < 4000, "{packets} packets at {now}");
        deadline
    }
}

fn run_with_hostile_peer(config: Config, seed: u64, listens: bool) {
    let mut peer = Hostile { rng: Seed(seed).rng(), own: SeqNum::default(), theirs: SeqNum::default() };
    let rng = Seed(seed).derive("endpoint").rng();
    let mut endpoint = match listens {
        true => Endpoint::listen(config, LOCAL, rng),
        false => Endpoint::connect(config, LOCAL, PEER, rng),
    };
    let mut now = Time::ZERO;
    if !listens {
        endpoint.handle(now, Input::Command(Command::Connect));
    }
    for _ in 0..200 {
        let deadline = peer.watch(&mut endpoint, now);
        let later = now + Duration::from_micros(peer.rng.below(100_000));
        match peer.rng.below(8) {
            0 | 1 if deadline.is_some() => now = deadline.unwrap_or(later),
            2 => now = deadline.map_or(later, |at| at.min(later)),
            3 => {
                let command = peer.command();
                let fits =
                    !matches!(&command, Command::Send(message) if !endpoint.can_send(message.payload.len()));
                if fits {
                    endpoint.handle(now, Input::Command(command));
                }
            }
            _ => {
                let packet = Packet::new(PEER.0, LOCAL.0, peer.segment());
                endpoint.handle(now, Input::Packet(packet));
            }
        }
    }
    peer.watch(&mut endpoint, now);
}

proptest! {
    #[test]
    fn random_segments_never_break_an_endpoint(seed: u64, listens: bool, name in 0..3usize) {
        run_with_hostile_peer(stack(["linux-6.12", "linux-2.6.16", "rfc"][name]), seed, listens);
    }
}
