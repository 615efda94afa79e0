//! Makes the steps of a script happen, and holds what the endpoint does against them.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::{Command, Event, Input, Message, Output, Reconfiguration, Reliability, drain};
use hol_wire::Packet;

use crate::Mistake;
use crate::call::{Call, Outcome};
use crate::ecn;
use crate::protocol::{self, Protocol};
use crate::script::{Act, Script, Step};
use crate::words::{Words, number};

/// Plays `script` with the behaviours of `stack`.
pub(crate) fn play(script: &Script, stack: &str) -> Result<(), Mistake> {
    let mut player = Player::new(script, stack);
    for step in &script.steps {
        player.step(step).map_err(|problem| Mistake::new(problem).at(step.line))?;
    }
    let last = script.steps.last().map_or(0, |step| step.line);
    player.nothing_left().map_err(|problem| Mistake::new(problem).at(last))
}

struct Player<'a> {
    script: &'a Script,
    stack: &'a str,
    protocol: Option<Box<dyn Protocol>>,
    now: Time,
    /// The script's time of the last step.
    before: Time,
    deadline: Option<Time>,
    sent: VecDeque<(Time, Packet)>,
    socket: Socket,
}

/// What the application knows of its socket.
#[derive(Default)]
struct Socket {
    connected: bool,
    peer_closed: bool,
    failed: Option<&'static str>,
    /// A re-configuration that was asked for will not be.
    refused: bool,
    /// `SO_LINGER` with a time of 0: close() resets.
    abortive: bool,
    /// What the endpoint has delivered and read() has not taken.
    unread: VecDeque<u8>,
    /// The same where messages have ends: octets of each.
    messages: VecDeque<usize>,
    read: usize,
    written: usize,
}

impl<'a> Player<'a> {
    fn new(script: &'a Script, stack: &'a str) -> Self {
        Self {
            script,
            stack,
            protocol: None,
            now: Time::ZERO,
            before: Time::ZERO,
            deadline: None,
            sent: VecDeque::new(),
            socket: Socket::default(),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let (first, last) = step.when.bounds(self.before);
        if let Act::Leaves(line) = &step.act {
            return self.leaves(line, first, last);
        }
        if matches!(step.act, Act::Assert(_)) {
            self.before = first;
            self.advance(first)?;
        } else {
            self.advance(last)?;
            self.before = last;
            self.nothing_left()?;
        }
        match &step.act {
            Act::Call(call) => self.call(call),
            Act::Arrives(line) => {
                let (ecn, line) = ecn::split(line)?;
                let packet = self.protocol()?.packet(line)?;
                self.input(Input::Packet(Packet { ecn: ecn.unwrap_or_default(), ..packet }))
            }
            Act::Assert(assertion) => self.assert(assertion),
            Act::Silence | Act::Leaves(_) => Ok(()),
        }
    }

    fn protocol(&mut self) -> Result<&mut dyn Protocol, String> {
        match &mut self.protocol {
            Some(protocol) => Ok(&mut **protocol),
            None => {
                Err("there is no socket; begin with \"0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\""
                    .to_owned())
            }
        }
    }

    fn input(&mut self, input: Input) -> Result<(), String> {
        let now = self.now;
        self.protocol()?.endpoint().handle(now, input);
        self.settle()
    }

    /// Takes everything that the endpoint has to say now.
    fn settle(&mut self) -> Result<(), String> {
        let now = self.now;
        let mut outputs = Vec::new();
        let protocol = self.protocol()?;
        self.deadline = drain(protocol.endpoint(), now, |_, output| outputs.push(output));
        for output in outputs {
            match output {
                Output::Transmit(packet) => self.sent.push_back((now, packet)),
                Output::Event(event) => self.event(event)?,
                Output::Wait(_) => {}
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Connected => self.socket.connected = true,
            Event::PeerClosed => self.socket.peer_closed = true,
            Event::Failed { reason } => self.socket.failed = Some(reason),
            Event::Received(received) if self.protocol()?.keeps_messages() => {
                self.socket.messages.push_back(received.payload.len());
            }
            Event::Received(received) => self.socket.unread.extend(received.payload),
            Event::Reconfigured { done, .. } => self.socket.refused |= !done,
            Event::Writable | Event::Closed | Event::Abandoned { .. } | Event::Path { .. } => {}
        }
        Ok(())
    }

    /// Lets time pass up to `end`, timer by timer.
    fn advance(&mut self, end: Time) -> Result<(), String> {
        while let Some(at) = self.deadline.filter(|at| *at <= end) {
            self.now = at;
            self.settle()?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// A packet has to leave between `first` and `last`.
    fn leaves(&mut self, line: &str, first: Time, last: Time) -> Result<(), String> {
        let latest = last + self.script.tolerance;
        while self.sent.is_empty()
            && let Some(at) = self.deadline.filter(|at| *at <= latest)
        {
            self.advance(at)?;
        }
        let Some((at, packet)) = self.sent.pop_front() else {
            return Err(format!("expected > {line}\n    until {}, but nothing left", seconds(latest)));
        };
        let (wanted, line) = ecn::split(line)?;
        if wanted.is_some_and(|ecn| ecn != packet.ecn) {
            return Err(format!("expected > {line}\n    but it left as {}", ecn::name(packet.ecn)));
        }
        if let Some(got) = self.protocol()?.differs(line, &packet)? {
            return Err(format!("expected > {line}\n    but got > {got} at {}", seconds(at)));
        }
        if at > latest || at + self.script.tolerance < first {
            return Err(format!("> {line} left at {}, not at {}", seconds(at), span(first, last)));
        }
        self.before = if first == last { first } else { at };
        Ok(())
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        let Some((at, packet)) = self.sent.pop_front() else { return Ok(()) };
        let got = self.protocol()?.show(&packet);
        Err(format!("nothing is expected before this, but > {got} left at {}", seconds(at)))
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        let got = self.outcome(call)?;
        if got == call.result {
            return Ok(());
        }
        Err(format!("expected {}() = {}, but got {got}", call.name, call.result))
    }

    fn outcome(&mut self, call: &Call) -> Result<Outcome, String> {
        let same = Ok(call.result.clone());
        match call.name.as_str() {
            "socket" => {
                let name = protocol::named(call.argument(2)?)?;
                let specification = self.script.specification(name, self.stack);
                self.protocol = Some(protocol::make(&specification)?);
                self.input(Input::Command(Command::Read(false)))?;
                same
            }
            "bind" => same,
            "listen" => {
                self.protocol()?.listen();
                self.input(Input::Command(Command::Read(false)))?;
                same
            }
            "connect" => {
                self.input(Input::Command(Command::Connect))?;
                Ok(self
                    .socket
                    .failed
                    .map_or(Outcome::error("EINPROGRESS"), |reason| Outcome::error(errno(reason))))
            }
            "accept" if self.socket.connected => same,
            "accept" => Ok(Outcome::error("EAGAIN")),
            "setsockopt" if call.argument(2)? == "SCTP_RESET_STREAMS" => {
                self.reconfigure(reset_streams(call)?)
            }
            "setsockopt" if call.argument(2)? == "SCTP_ADD_STREAMS" => self.reconfigure(add_streams(call)?),
            "setsockopt" => self.set_option(call).map(|()| Outcome::value(0)),
            "getsockopt" => Ok(self.socket_error(call)),
            "write" | "send" => self.write(call.count(2)?, message),
            "sctp_sendmsg" => self.write(call.count(2)?, sctp_message(call)?),
            "read" | "recv" | "sctp_recvmsg" => self.read(call.count(2)?),
            "shutdown" | "close" => {
                let command = if call.name == "close" && self.socket.abortive {
                    Command::Abort
                } else {
                    Command::Close
                };
                self.input(Input::Command(command))?;
                Ok(Outcome::value(0))
            }
            name => Err(format!(
                "{name}() is not known; there are socket, bind, listen, connect, accept, setsockopt, getsockopt, write, \
                 sctp_sendmsg, read, sctp_recvmsg, shutdown and close"
            )),
        }
    }

    /// `SO_ERROR`: whether connect() has succeeded.
    fn socket_error(&self, call: &Call) -> Outcome {
        let error = self.socket.failed.map_or("0", errno);
        let expected = call.arguments.get(3).map_or("", |argument| argument.trim_matches(['[', ']']));
        if expected == error { Outcome::value(0) } else { Outcome::error(error) }
    }

    fn set_option(&mut self, call: &Call) -> Result<(), String> {
        match call.argument(2)? {
            "SO_REUSEADDR" => Ok(()),
            "SO_LINGER" => {
                self.socket.abortive = call.argument(3)?.replace(' ', "") == "{onoff=1,linger=0}";
                Ok(())
            }
            other => Err(format!(
                "{other} is not set by a call; write a setting such as \"--nagle=off\" above the script"
            )),
        }
    }

    /// RFC 6525 sections 6.3.2 and 6.3.4.
    fn reconfigure(&mut self, what: Reconfiguration) -> Result<Outcome, String> {
        self.socket.refused = false;
        self.input(Input::Command(Command::Reconfigure(what)))?;
        Ok(if self.socket.refused { Outcome::error("EOPNOTSUPP") } else { Outcome::value(0) })
    }

    fn write(&mut self, length: usize, message: impl FnOnce(Bytes) -> Message) -> Result<Outcome, String> {
        if let Some(reason) = self.socket.failed {
            return Ok(Outcome::error(errno(reason)));
        }
        let written = self.socket.written;
        let protocol = self.protocol()?;
        if !protocol.endpoint().can_send(length) {
            return Ok(Outcome::error("EAGAIN"));
        }
        let payload: Bytes = (written..written + length).map(|offset| protocol.octet(true, offset)).collect();
        self.socket.written += length;
        self.input(Input::Command(Command::Send(message(payload))))?;
        Ok(Outcome::value(length))
    }

    /// The application reads: the endpoint gives it all that it has.
    fn read(&mut self, most: usize) -> Result<Outcome, String> {
        if self.socket.unread.is_empty() && self.socket.messages.is_empty() {
            self.input(Input::Command(Command::Read(true)))?;
            self.input(Input::Command(Command::Read(false)))?;
        }
        if let Some(length) = self.socket.messages.pop_front() {
            return Ok(Outcome::value(most.min(length)));
        }
        let length = most.min(self.socket.unread.len());
        for octet in self.socket.unread.drain(..length).collect::<Vec<_>>() {
            let offset = self.socket.read;
            if octet != self.protocol()?.octet(false, offset) {
                return Err(format!("octet {offset} of what is read is another than what came"));
            }
            self.socket.read += 1;
        }
        Ok(match (length, self.socket.peer_closed, self.socket.failed) {
            (0, _, Some(reason)) => Outcome::error(errno(reason)),
            (0, false, None) => Outcome::error("EAGAIN"),
            _ => Outcome::value(length),
        })
    }

    /// `assert name == value`.
    fn assert(&mut self, assertion: &str) -> Result<(), String> {
        const FORM: &str = "write \"assert NAME == VALUE\", with ==, !=, < or >";
        let mut words = Words::new(assertion);
        words.take("assert");
        let (name, relation, expected) = (words.next(), words.next(), words.rest());
        let protocol = self.protocol()?;
        let got = protocol.variable(name).ok_or_else(|| format!("there is no variable {name:?}"))?;
        let numbers = || Some((got.parse::<f64>().ok()?, expected.parse::<f64>().ok()?));
        let holds = match relation {
            "==" => got == expected,
            "!=" => got != expected,
            "<" => numbers().ok_or(FORM)?.0 < numbers().ok_or(FORM)?.1,
            ">" => numbers().ok_or(FORM)?.0 > numbers().ok_or(FORM)?.1,
            _ => return Err(format!("{assertion:?} is no assertion; {FORM}")),
        };
        if holds { Ok(()) } else { Err(format!("expected {name} {relation} {expected}, but it is {got}")) }
    }
}

fn message(payload: Bytes) -> Message {
    Message { stream: 0, unordered: false, reliability: Reliability::Full, ppid: 0, payload }
}

/// What `sctp_sendmsg(3, ..., 1000, ..., ..., htonl(0), SCTP_UNORDERED, 1, 0, 0)` sends: its arguments are descriptor, octets, their
/// number, address, its length, identifier, flags, stream, lifetime in ms and context. RFC 6458 section 9.12.
fn sctp_message(call: &Call) -> Result<impl FnOnce(Bytes) -> Message + use<>, String> {
    let ppid = call.argument(5)?.trim_start_matches("htonl(").trim_end_matches(')');
    let ppid = number("the payload protocol identifier", ppid)?;
    let unordered = call.argument(6)?.contains("SCTP_UNORDERED");
    let (stream, lifetime) = (number("the stream", call.argument(7)?)?, call.count(8)?);
    let reliability = match lifetime {
        0 => Reliability::Full,
        millis => Reliability::Lifetime(Duration::from_millis(millis as u64)),
    };
    Ok(move |payload| Message { stream, unordered, reliability, ppid, payload })
}

/// A member of the structure that a call has as its fourth argument.
fn member<'c>(call: &'c Call, name: &str) -> Result<&'c str, String> {
    let text = call.argument(3)?;
    let from = text.split_once(&format!("{name}=")).map(|(_, rest)| rest);
    let from = from.ok_or_else(|| format!("{text} has no {name}; write {name}=..."))?;
    let end = if from.starts_with('[') { ']' } else { ',' };
    Ok(from.split([end, '}']).next().unwrap_or_default().trim_matches(['[', ' ']))
}

/// `{srs_flags=SCTP_STREAM_RESET_OUTGOING, srs_stream_list=[0,1]}`. RFC 6525 section 6.3.2.
fn reset_streams(call: &Call) -> Result<Reconfiguration, String> {
    let list = member(call, "srs_stream_list")?.split(',').map(str::trim).filter(|text| !text.is_empty());
    let streams = list.map(|text| number("a stream", text)).collect::<Result<_, String>>()?;
    match member(call, "srs_flags")? {
        "SCTP_STREAM_RESET_OUTGOING" => Ok(Reconfiguration::ResetOutgoing(streams)),
        "SCTP_STREAM_RESET_INCOMING" => Ok(Reconfiguration::ResetIncoming(streams)),
        other => Err(format!("{other} is none of SCTP_STREAM_RESET_OUTGOING and SCTP_STREAM_RESET_INCOMING")),
    }
}

/// `{sas_instrms=0, sas_outstrms=2}`. RFC 6525 section 6.3.4.
fn add_streams(call: &Call) -> Result<Reconfiguration, String> {
    let count = |name: &str| number(name, member(call, name)?);
    Ok(match count("sas_outstrms")? {
        0 => Reconfiguration::AddIncoming(count("sas_instrms")?),
        more => Reconfiguration::AddOutgoing(more),
    })
}

/// The name of the error that a program sees.
fn errno(reason: &str) -> &'static str {
    match reason {
        "connection refused" => "ECONNREFUSED",
        "connection reset" | "aborted by the peer" => "ECONNRESET",
        "connection aborted" => "ECONNABORTED",
        _ => "ETIMEDOUT",
    }
}

fn seconds(at: Time) -> String {
    format!("{:.6}", at.as_secs_f64())
}

fn span(first: Time, last: Time) -> String {
    if first == last { seconds(first) } else { format!("{} to {}", seconds(first), seconds(last)) }
}
