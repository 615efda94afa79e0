//! A passive endpoint whose peer is the test.

use super::script::{LOCAL, LOCAL_PORT, PEER_TAG, PEER_TSN, REMOTE, REMOTE_PORT};
use crate::{Config, Endpoint};
use bytes::Bytes;
use hol_base::{Seed, Time};
use hol_transport::{Command, Endpoint as _, Event, Input, Output, drain};
use hol_wire::sctp::{Chunk, Init, Packet, Parameter};
use hol_wire::{Address, Transport};

/// A listening endpoint, to which the test sends packets.
pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    pub(super) now: Time,
    /// The source address of the peer's packets.
    pub(super) source: Address,
    pub(super) events: Vec<Event>,
    deadline: Option<Time>,
}

/// The packets sent, with their destinations.
pub(super) type Answers = Vec<(Address, Packet)>;

impl Server {
    pub(super) fn new(config: Config) -> Self {
        let endpoint = Endpoint::listen(config, REMOTE[..1].to_vec(), REMOTE_PORT, Seed(3).rng());
        Self { endpoint, now: Time::ZERO, source: LOCAL[0], events: Vec::new(), deadline: None }
    }

    /// Returns a server in the state ESTABLISHED with a peer that lists these parameters.
    pub(super) fn established(config: Config, parameters: Vec<Parameter>) -> Self {
        let mut server = Self::new(config);
        server.open(init(parameters));
        assert_eq!(server.endpoint.state_name(), "ESTABLISHED");
        server.events.clear();
        server
    }

    /// Performs INIT and COOKIE ECHO; returns the answer to the COOKIE ECHO.
    pub(super) fn open(&mut self, init: Chunk) -> Vec<Packet> {
        let (ack, cookie) = self.init_ack(init);
        self.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)])
    }

    pub(super) fn ask(&mut self, verification_tag: u32, chunks: Vec<Chunk>) -> Vec<Packet> {
        self.ask_from(self.source, verification_tag, chunks).into_iter().map(|(_, packet)| packet).collect()
    }

    pub(super) fn ask_from(&mut self, source: Address, verification_tag: u32, chunks: Vec<Chunk>) -> Answers {
        let chunks = chunks.into();
        let packet = Packet {
            source_port: LOCAL_PORT,
            destination_port: REMOTE_PORT,
            verification_tag,
            zero_checksum: false,
            chunks,
        };
        self.endpoint.handle(self.now, Input::Packet(hol_wire::Packet::new(source, REMOTE[0], packet)));
        self.drain()
    }

    pub(super) fn command(&mut self, command: Command) -> Answers {
        self.endpoint.handle(self.now, Input::Command(command));
        self.drain()
    }

    /// Runs the clock until `until`.
    pub(super) fn run_to(&mut self, until: Time) -> Answers {
        let mut answers = Vec::new();
        while let Some(at) = self.deadline.filter(|at| *at <= until) {
            self.now = at;
            answers.extend(self.drain());
        }
        self.now = until;
        answers
    }

    fn drain(&mut self) -> Answers {
        let Self { endpoint, now, events, .. } = self;
        let mut answers = Vec::new();
        self.deadline = drain(endpoint, *now, |_, output| match output {
            Output::Transmit(hol_wire::Packet {
                destination, transport: Transport::Sctp(packet), ..
            }) => {
                answers.push((destination, *packet));
            }
            Output::Event(event) => events.push(event),
            other => unreachable!("{other:?}"),
        });
        answers
    }

    /// Returns the INIT ACK, and the cookie in it.
    pub(super) fn init(&mut self) -> (Init, Bytes) {
        self.init_ack(init(vec![]))
    }

    pub(super) fn init_ack(&mut self, init: Chunk) -> (Init, Bytes) {
        let Chunk::Init(sent) = &init else { panic!("{init:?}") };
        let tag = sent.initiate_tag;
        let answers = self.ask(0, vec![init]);
        let Chunk::InitAck(ack) = &answers[0].chunks[0] else { panic!("{answers:?}") };
        assert_eq!(answers[0].verification_tag, tag);
        let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        ((**ack).clone(), cookie.expect("an INIT ACK has a cookie"))
    }
}

pub(super) fn init(parameters: Vec<Parameter>) -> Chunk {
    init_with(PEER_TAG, parameters)
}

pub(super) fn init_with(initiate_tag: u32, parameters: Vec<Parameter>) -> Chunk {
    Chunk::Init(Box::new(Init {
        initiate_tag,
        a_rwnd: 100_000,
        outbound_streams: 4,
        inbound_streams: 5,
        initial_tsn: PEER_TSN,
        parameters,
    }))
}
