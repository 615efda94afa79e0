//! Implements our `Endpoint` trait for usrsctp: a process that executes the frames on its standard input.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::{
    Command, DeliveryTimes, Endpoint, Event, Failure, Input, Message, Output, ReceivedData, Reconfiguration,
    Reliability, Statistics,
};
use hol_wire::{Packet, Transport, sctp};

use crate::talks::{HERE, Side, Talk, Terms};

/// The kind of a frame, as in `peer.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Packet,
    Time,
    Connect,
    Send,
    Reset,
    Close,
    Abort,
    Connected,
    Part,
    ResetOutgoing,
    ResetIncoming,
    Closed,
    Lost,
    Done,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Packet,
        Self::Time,
        Self::Connect,
        Self::Send,
        Self::Reset,
        Self::Close,
        Self::Abort,
        Self::Connected,
        Self::Part,
        Self::ResetOutgoing,
        Self::ResetIncoming,
        Self::Closed,
        Self::Lost,
        Self::Done,
    ];
}

/// A command to the process, or its result.
struct Frame {
    kind: Kind,
    stream: u16,
    unordered: bool,
    retransmissions: Option<u32>,
    flag: bool,
    octets: Vec<u8>,
}

impl Frame {
    const LENGTH: usize = 28;

    const fn new(kind: Kind, octets: Vec<u8>) -> Self {
        Self { kind, stream: 0, unordered: false, retransmissions: None, flag: false, octets }
    }

    fn send(message: &Message) -> Self {
        let retransmissions = match message.reliability {
            Reliability::Full => None,
            Reliability::Retransmissions(max) => Some(max),
            Reliability::Lifetime(_) => panic!("no talk has messages that live for a time"),
        };
        let Message { stream, unordered, ref payload, .. } = *message;
        Self { stream, unordered, retransmissions, ..Self::new(Kind::Send, payload.to_vec()) }
    }

    fn write(&self, now: Time, to: &mut impl Write) {
        let max = self.retransmissions.map_or(-1, |max| max as i32);
        let micros = (now.as_nanos() / 1000) as u32;
        let words = [self.kind as u32, micros, self.stream.into(), self.unordered.into()];
        let words = [&words[..], &[self.octets.len() as u32, max as u32, self.flag.into()]].concat();
        let head: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        to.write_all(&[&head, &self.octets[..]].concat()).unwrap();
    }

    fn read(from: &mut impl Read) -> Self {
        let mut head = [0; Self::LENGTH];
        from.read_exact(&mut head).expect("usrsctp goes on");
        let word = |at: usize| u32::from_ne_bytes(*head[4 * at..].first_chunk().unwrap());
        let mut octets = vec![0; word(4) as usize];
        from.read_exact(&mut octets).expect("usrsctp says it whole");
        let kind = Kind::ALL[word(0) as usize];
        Self { stream: word(2) as u16, flag: word(6) != 0, ..Self::new(kind, octets) }
    }

    fn streams(&self) -> Vec<u16> {
        self.octets.chunks_exact(2).map(|stream| u16::from_ne_bytes([stream[0], stream[1]])).collect()
    }
}

pub struct Theirs {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Commands that could not be executed so far: the send buffer is full, or streams are being reset.
    waiting: VecDeque<Frame>,
    outputs: VecDeque<Output>,
    /// Parts of incomplete messages, by stream.
    parts: BTreeMap<u16, Vec<u8>>,
    connected: bool,
    /// When the process must check its timers.
    due: Time,
    statistics: Statistics,
}

impl Theirs {
    /// `TICK` in `peer.c`.
    const TICK: Duration = Duration::from_millis(10);

    pub fn new(program: &Path, side: Side, talk: &Talk, terms: Terms) -> Self {
        Self::start(program, side, talk.streams, [terms.interleaving, talk.resets.is_some(), false])
    }

    /// Returns an endpoint with the library's default options.
    pub fn with_defaults(program: &Path, side: Side) -> Self {
        Self::start(program, side, 1, [false, false, true])
    }

    fn start(program: &Path, side: Side, streams: u16, choices: [bool; 3]) -> Self {
        let mut process = Process::new(program)
            .args([side.name(), &streams.to_string()])
            .args(choices.map(|is| u8::from(is).to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            to: process.stdin.take().unwrap(),
            from: BufReader::new(process.stdout.take().unwrap()),
            process,
            waiting: VecDeque::new(),
            outputs: VecDeque::new(),
            parts: BTreeMap::new(),
            connected: false,
            due: Time::ZERO + Self::TICK,
            statistics: Statistics::default(),
        }
    }

    /// Returns whether the process could execute `what`.
    fn can_do(&mut self, now: Time, what: &Frame) -> bool {
        what.write(now, &mut self.to);
        loop {
            let said = Frame::read(&mut self.from);
            if said.kind == Kind::Done {
                return !said.flag;
            }
            let output = self.output(said);
            self.outputs.extend(output);
        }
    }

    fn output(&mut self, said: Frame) -> Option<Output> {
        Some(match said.kind {
            Kind::Packet => {
                let packet = sctp::Packet::parse(Bytes::from(said.octets)).unwrap();
                Output::Transmit(Packet::new(HERE, HERE, packet))
            }
            Kind::Part => return self.part(&said).map(Output::Event),
            kind => Output::Event(match kind {
                Kind::Connected => {
                    self.connected = true;
                    Event::Connected
                }
                Kind::ResetOutgoing => reconfigured(Reconfiguration::ResetOutgoing(said.streams())),
                Kind::ResetIncoming => reconfigured(Reconfiguration::ResetIncoming(said.streams())),
                Kind::Closed => Event::Closed,
                Kind::Lost => Event::Failed { reason: Failure::AbortedByPeer },
                _ => panic!("usrsctp says {kind:?}"),
            }),
        })
    }

    /// Returns the message that this part completes.
    fn part(&mut self, said: &Frame) -> Option<Event> {
        let parts = self.parts.entry(said.stream).or_default();
        parts.extend(&said.octets);
        said.flag.then(|| {
            Event::Received(ReceivedData {
                stream: said.stream,
                unordered: false,
                ppid: 0,
                payload: std::mem::take(parts).into(),
                delivery_times: DeliveryTimes::default(),
            })
        })
    }

    /// Executes the waiting commands, as far as possible.
    fn go_on(&mut self, now: Time) {
        while let Some(first) = self.waiting.pop_front() {
            if !self.can_do(now, &first) {
                self.waiting.push_front(first);
                return;
            }
        }
    }
}

fn reconfigured(what: Reconfiguration) -> Event {
    Event::Reconfigured { what, done: true }
}

impl Endpoint for Theirs {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Packet(packet) => {
                let Transport::Sctp(packet) = packet.transport else { return };
                self.can_do(now, &Frame::new(Kind::Packet, packet.to_bytes().to_vec()));
            }
            Input::Command(Command::Abort) => {
                self.waiting.push_back(Frame::new(Kind::Abort, Vec::new()));
                let failed = Event::Failed { reason: Failure::Aborted };
                self.outputs.push_back(Output::Event(failed));
            }
            Input::Command(command) => self.waiting.push_back(match command {
                Command::Connect => Frame::new(Kind::Connect, Vec::new()),
                Command::Send(message) => Frame::send(&message),
                Command::Reconfigure(Reconfiguration::ResetOutgoing(streams)) => {
                    Frame::new(Kind::Reset, streams.into_iter().flat_map(u16::to_ne_bytes).collect())
                }
                Command::Close => Frame::new(Kind::Close, Vec::new()),
                Command::Abort | Command::Reconfigure(_) | Command::Read(_) => return,
            }),
            Input::AddressAdded(_) | Input::AddressRemoved(_) => return,
        }
        self.go_on(now);
    }

    fn poll(&mut self, now: Time) -> Output {
        if now >= self.due {
            self.due = now + Self::TICK;
            self.can_do(now, &Frame::new(Kind::Time, Vec::new()));
            self.go_on(now);
        }
        self.outputs.pop_front().unwrap_or(Output::Wait(Some(self.due)))
    }

    fn can_send(&self, _: usize) -> bool {
        self.connected && self.waiting.is_empty()
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
