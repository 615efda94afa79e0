//! One endpoint whose peer is the test, which sees every packet and decides the answers.

use bytes::Bytes;
use hol_base::{Duration, Seed, Time};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability, drain};
use hol_wire::sctp::{
    Chunk, Data, DataFlags, GapAckBlock, IData, IForwardTsn, Init, Packet, Parameter, Sack, Ssn, Tsn,
};
use hol_wire::{Address, SendTimes, Transport};
use smallvec::SmallVec;

use crate::{Config, Endpoint};

/// The tag of the scripted peer.
pub(super) const PEER_TAG: u32 = 0x5eed;
/// The first TSN of the scripted peer.
pub(super) const PEER_TSN: Tsn = Tsn(u32::MAX - 2);
pub(super) const LOCAL: [Address; 2] = [hol_wire::ipv4(10, 0, 0, 1), hol_wire::ipv4(10, 1, 0, 1)];
pub(super) const REMOTE: [Address; 2] = [hol_wire::ipv4(10, 0, 0, 2), hol_wire::ipv4(10, 1, 0, 2)];
pub(super) const LOCAL_PORT: u16 = 1000;
pub(super) const REMOTE_PORT: u16 = 2000;

/// An active endpoint and its outputs.
pub(super) struct Script {
    pub(super) endpoint: Endpoint,
    pub(super) now: Time,
    /// Packets that the script has not examined, with their time and destination.
    pub(super) packets: Vec<(Time, Address, Packet)>,
    pub(super) events: Vec<Event>,
    pub(super) deadline: Option<Time>,
    /// The endpoint's first TSN.
    pub(super) first: Tsn,
    /// Index of the source address of injected packets.
    pub(super) from: usize,
}

pub(super) fn message(stream: u16, length: usize) -> Message {
    let payload = Bytes::from(vec![stream as u8; length]);
    Message { stream, unordered: false, reliability: Reliability::Full, ppid: 0, payload }
}

/// Returns the peer's INIT ACK.
pub(super) fn init_ack(streams: u16, addresses: &[Address]) -> Chunk {
    let mut parameters: Vec<Parameter> = addresses.iter().copied().map(Parameter::of_address).collect();
    parameters.push(Parameter::ForwardTsnSupported);
    parameters.push(Parameter::StateCookie(Bytes::from_static(b"cookie")));
    Chunk::InitAck(Box::new(Init {
        initiate_tag: PEER_TAG,
        a_rwnd: 100_000,
        outbound_streams: streams,
        inbound_streams: streams,
        initial_tsn: PEER_TSN,
        parameters,
    }))
}

impl Script {
    /// Returns an endpoint without any input so far.
    pub(super) fn closed(config: Config, paths: usize) -> Self {
        let endpoint = Endpoint::connect(
            config,
            LOCAL[..paths].to_vec(),
            LOCAL_PORT,
            REMOTE[..paths].to_vec(),
            REMOTE_PORT,
            Seed(7).rng(),
        );
        let (packets, events) = (Vec::new(), Vec::new());
        let mut script = Self {
            endpoint,
            now: Time::from_millis(1000),
            packets,
            events,
            deadline: None,
            first: Tsn(0),
            from: 0,
        };
        script.drain();
        script
    }

    /// Returns an endpoint in the state ESTABLISHED.
    pub(super) fn established(config: Config) -> Self {
        Self::established_over(config, 1)
    }

    /// Returns an endpoint in the state ESTABLISHED with several paths, of which only the first is confirmed.
    pub(super) fn established_over(config: Config, paths: usize) -> Self {
        let mut script = Self::closed(config, paths);
        script.command(Command::Connect);
        let init = script.take_one();
        let Chunk::Init(init) = &init.chunks[0] else { panic!("{init:?}") };
        script.first = init.initial_tsn;
        let addresses = if paths > 1 { &REMOTE[..paths] } else { &[] };
        let mut answer = init_ack(64, addresses);
        if let Chunk::InitAck(answer) = &mut answer
            && script.endpoint.config.interleaving
        {
            let kinds = vec![IData::KIND, IForwardTsn::KIND];
            answer.parameters.push(Parameter::SupportedExtensions(kinds));
        }
        script.inject([answer]);
        assert!(matches!(script.take_one().chunks[0], Chunk::CookieEcho(_)));
        script.inject([Chunk::CookieAck]);
        assert_eq!(script.events, [Event::Connected]);
        script.events.clear();
        script
    }

    pub(super) fn command(&mut self, command: Command) {
        self.input(Input::Command(command));
    }

    pub(super) fn input(&mut self, input: Input) {
        self.endpoint.handle(self.now, input);
        self.drain();
    }

    pub(super) fn send(&mut self, stream: u16, length: usize) {
        self.command(Command::Send(message(stream, length)));
    }

    pub(super) fn inject<const N: usize>(&mut self, chunks: [Chunk; N]) {
        self.inject_with_tag(self.endpoint.local_tag, chunks.into_iter().collect());
    }

    pub(super) fn inject_with_tag(&mut self, verification_tag: u32, chunks: SmallVec<[Chunk; 2]>) {
        let packet = Packet {
            source_port: REMOTE_PORT,
            destination_port: LOCAL_PORT,
            verification_tag,
            zero_checksum: false,
            chunks,
        };
        let packet = hol_wire::Packet::new(REMOTE[self.from], LOCAL[self.from], packet);
        self.endpoint.handle(self.now, Input::Packet(packet));
        self.drain();
    }

    /// Acknowledges the first `cumulative` chunks and those in `gaps`, numbered from 1.
    pub(super) fn sack(&mut self, cumulative: u32, gaps: &[(u32, u32)]) {
        let sack = self.make_sack(cumulative, gaps, 100_000);
        self.inject([sack]);
    }

    pub(super) fn make_sack(&self, cumulative: u32, gaps: &[(u32, u32)], a_rwnd: u32) -> Chunk {
        let block = |(first, last): &(u32, u32)| GapAckBlock {
            start: (first - cumulative) as u16,
            end: (last - cumulative) as u16,
        };
        Chunk::Sack(Sack {
            cumulative_tsn: self.first - 1 + cumulative,
            a_rwnd,
            gaps: gaps.iter().map(block).collect(),
            duplicates: SmallVec::new(),
        })
    }

    /// Runs the clock to `millis` after the handshake.
    pub(super) fn run_to(&mut self, millis: u64) {
        let until = Time::from_millis(1000 + millis);
        while let Some(at) = self.deadline
            && at <= until
        {
            self.now = at;
            self.drain();
        }
        self.now = until;
        self.drain();
    }

    pub(super) fn drain(&mut self) {
        let Self { endpoint, now, packets, events, .. } = self;
        self.deadline = drain(endpoint, *now, |_, output| match output {
            Output::Transmit(packet) => {
                let length = packet.length();
                assert!(length <= 1500, "a packet of {length} octets");
                let Transport::Sctp(sctp) = packet.transport else { panic!("a TCP segment") };
                packets.push((*now, packet.destination, *sctp));
            }
            Output::Event(event) => events.push(event),
            Output::Wait(_) => unreachable!("drain ends there"),
        });
    }

    /// Returns the only packet that was sent.
    pub(super) fn take_one(&mut self) -> Packet {
        let mut packets = std::mem::take(&mut self.packets);
        assert_eq!(packets.len(), 1, "{packets:#?}");
        packets.remove(0).2
    }

    /// Returns for each packet its time in ms, and its chunks in flight, numbered from 1.
    pub(super) fn take_data(&mut self) -> Vec<(u64, Vec<u32>)> {
        let first = self.first;
        let numbers = |packet: &Packet| {
            packet
                .chunks
                .iter()
                .filter_map(|chunk| chunk.user_data().map(|data| data.tsn.distance_from(first) + 1))
                .collect::<Vec<u32>>()
        };
        let taken = std::mem::take(&mut self.packets);
        let data = taken.iter().map(|(at, _, packet)| (at.as_millis() - 1000, numbers(packet)));
        data.filter(|(_, numbers)| !numbers.is_empty()).collect()
    }

    /// Returns the SACKs that were sent: cumulative TSN, numbered from 1, and gaps.
    pub(super) fn take_sacks(&mut self) -> Vec<Sack> {
        let packets = std::mem::take(&mut self.packets);
        let chunks = packets.into_iter().flat_map(|(_, _, packet)| packet.chunks);
        chunks.filter_map(|chunk| if let Chunk::Sack(sack) = chunk { Some(sack) } else { None }).collect()
    }

    pub(super) fn flight_size(&self) -> u64 {
        self.endpoint.paths()[0].flight_size()
    }
}

/// Returns the peer's `number`-th chunk, from 1: an ordered message of stream 0.
pub(super) fn data(number: u32) -> Chunk {
    data_with(number, 0, number - 1, DataFlags::BEGIN | DataFlags::END)
}

pub(super) fn data_with(number: u32, stream: u16, ssn: u32, flags: DataFlags) -> Chunk {
    let payload = Bytes::from(vec![number as u8; 10]);
    let tsn = PEER_TSN + (number - 1);
    Chunk::Data(Data {
        flags,
        tsn,
        stream,
        ssn: Ssn(ssn as u16),
        ppid: 0,
        payload,
        stamp: SendTimes::default(),
    })
}

/// Returns the first octet of each delivered message.
pub(super) fn delivered(events: &[Event]) -> Vec<u8> {
    let message = |event: &Event| match event {
        Event::Received(received) => Some(received.payload[0]),
        _ => None,
    };
    events.iter().filter_map(message).collect()
}

/// Returns a configuration with exact timers and without Nagle's algorithm.
pub(super) fn config() -> Config {
    Config { nagle: false, ..crate::fixtures::rfc() }
}

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
