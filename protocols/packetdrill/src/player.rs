//! Performs the steps of a script, and compares the endpoint's packets and results with the script.

use std::collections::VecDeque;

use hol_base::Time;
use hol_transport::{Event, Input, Output, drain};
use hol_wire::Packet;

use crate::call::Call;
use crate::protocol::{self, Protocol};
use crate::python::{self, EvaluationError, Value, Variables};
use crate::script::{Action, Script, Step};
use crate::socket::{self, BlockedCall, Socket};
use crate::sysctl::Setting;
use crate::{PlayError, PlayRules, ecn, options};

/// Maximum number of timers that may expire in one script, so that a script with long waits terminates.
const MAX_EXPIRIES: u32 = 1_000_000;

/// Maximum duration of a script: 31 years.
const MAX_DURATION: Time = Time::from_nanos(1_000_000_000_000_000_000);

/// The reason why a step fails.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The script uses a feature that the player does not support.
    Unsupported(String),
    /// The endpoint deviates from the script.
    Deviates(String),
}

impl From<String> for StepError {
    fn from(problem: String) -> Self {
        Self::Unsupported(problem)
    }
}

impl From<&str> for StepError {
    fn from(problem: &str) -> Self {
        Self::Unsupported(problem.to_owned())
    }
}

impl From<EvaluationError> for StepError {
    fn from(stop: EvaluationError) -> Self {
        match stop {
            EvaluationError::Unsupported(problem) => Self::Unsupported(problem),
            EvaluationError::Fails(problem) => Self::Deviates(problem),
        }
    }
}

impl StepError {
    fn at_line(self, line: usize) -> PlayError {
        match self {
            Self::Unsupported(problem) => PlayError::new(problem).at_line(line),
            Self::Deviates(problem) => PlayError::deviation(problem).at_line(line),
        }
    }
}

/// Checks that the player supports every step of the script, before it performs any.
pub(crate) fn check(script: &Script) -> Result<(), PlayError> {
    let mut protocol = None;
    let mut variables = Variables::new();
    for step in &script.steps {
        let checked = match &step.action {
            Action::Call(call) if call.name == "socket" => {
                call.argument(2).and_then(protocol::protocol_name).map(|named| protocol = Some(named))
            }
            Action::Call(call) => socket::check(call).and_then(|()| options::check(call)),
            Action::Inbound(line) => check_packet(protocol, line, true),
            Action::Outbound(line) => check_packet(protocol, line, false),
            Action::Code(code) => python::check(code, &mut variables, &|name| {
                protocol.is_some_and(|protocol| protocol::has_variable(protocol, name))
            }),
            Action::Silence | Action::Configure(_) => Ok(()),
        };
        checked.map_err(|problem| PlayError::new(problem).at_line(step.line))?;
    }
    Ok(())
}

fn check_packet(protocol: Option<&str>, line: &str, is_inbound: bool) -> Result<(), String> {
    let (_, line) = ecn::split_ecn_field(line)?;
    protocol.map_or(Ok(()), |protocol| protocol::check(protocol, line, is_inbound))
}

/// Plays `script` with the configuration of `stack`.
pub(crate) fn play(script: &Script, stack: &str, rules: &PlayRules) -> Result<(), PlayError> {
    let mut player = Player::new(script, stack, rules);
    for step in &script.steps {
        player.step(step).map_err(|problem| problem.at_line(step.line))?;
    }
    let last = script.steps.last().map_or(0, |step| step.line);
    if let Some(BlockedCall { call, line, .. }) = &player.blocked {
        return Err(PlayError::deviation(format!(
            "{}() is still blocked at the end of the script",
            call.name
        ))
        .at_line(*line));
    }
    if rules.strict { player.expect_no_packet().map_err(|problem| problem.at_line(last)) } else { Ok(()) }
}

/// Plays a script against an endpoint.
pub(crate) struct Player<'a> {
    pub(crate) script: &'a Script,
    stack: &'a str,
    /// Whether the script must contain every outbound packet.
    pub(crate) strict: bool,
    protocol: Option<Box<dyn Protocol>>,
    /// The settings of sysctls and socket options, in the order in which the script sets them.
    settings: Vec<Setting>,
    /// The virtual time.
    pub(crate) now: Time,
    /// The time of the previous step, to which the time of the next step is relative.
    previous_time: Time,
    deadline: Option<Time>,
    expiries: u32,
    sent: VecDeque<(Time, Packet)>,
    pub(crate) socket: Socket,
    /// The call that has not returned yet; `None` if no call blocks.
    pub(crate) blocked: Option<BlockedCall<'a>>,
    variables: Variables,
}

impl<'a> Player<'a> {
    fn new(script: &'a Script, stack: &'a str, rules: &PlayRules) -> Self {
        Self {
            script,
            stack,
            strict: rules.strict,
            protocol: None,
            settings: if rules.strict { Vec::new() } else { script.defaults() },
            now: Time::ZERO,
            previous_time: Time::ZERO,
            deadline: None,
            expiries: 0,
            sent: VecDeque::new(),
            socket: Socket::new("", rules.strict),
            blocked: None,
            variables: Variables::new(),
        }
    }

    fn step(&mut self, step: &'a Step) -> Result<(), StepError> {
        let (first, last) = step.time.bounds(self.previous_time);
        if last > MAX_DURATION {
            return Err("the script lasts longer than 1e9 seconds; use shorter times".into());
        }
        if let Action::Outbound(line) = &step.action {
            return self.expect_outbound(line, first, last);
        }
        let may_block = step.time.is_range() && matches!(step.action, Action::Call(_));
        let at = if may_block || matches!(step.action, Action::Code(_)) { first } else { last };
        self.advance(at)?;
        self.previous_time = at;
        // Scripts in packetdrill's syntax may list a packet after it was sent.
        if matches!(step.action, Action::Silence) || self.strict && !matches!(step.action, Action::Code(_)) {
            self.expect_no_packet()?;
        }
        match &step.action {
            Action::Call(call) => self.call(call, step.line, may_block.then_some((first, last)))?,
            Action::Inbound(line) => {
                let (ecn, line) = ecn::split_ecn_field(line)?;
                let packet = self.protocol()?.packet(line)?;
                self.input(Input::Packet(Packet { ecn: ecn.unwrap_or_default(), ..packet }))?;
            }
            Action::Code(code) => self.code(code)?,
            Action::Configure(settings) => self.configure(settings)?,
            Action::Silence | Action::Outbound(_) => {}
        }
        Ok(())
    }

    pub(crate) fn protocol(&mut self) -> Result<&mut dyn Protocol, String> {
        match &mut self.protocol {
            Some(protocol) => Ok(&mut **protocol),
            None => {
                Err("the script has no socket; begin with \"0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\""
                    .to_owned())
            }
        }
    }

    /// Creates a new socket of the protocol called `name`, for a socket() call.
    pub(crate) fn open(&mut self, name: &'static str) -> Result<(), StepError> {
        let specification = self.script.specification(name, self.stack, &self.settings);
        let mut protocol = protocol::create_endpoint(&specification)?;
        if !self.strict {
            let tick = self.script.timestamp_tick.filter(|tick| !tick.is_zero());
            protocol.tolerate_stamps(
                tick.map(|tick| (self.script.tolerance.as_nanos() / tick.as_nanos()) as u32),
            );
        }
        self.protocol = Some(protocol);
        self.socket = Socket::new(name, self.strict);
        Ok(())
    }

    /// Applies settings of sysctls and socket options to the endpoint from now on.
    pub(crate) fn configure(&mut self, settings: &[Setting]) -> Result<(), StepError> {
        self.settings.extend_from_slice(settings);
        let name = self.socket.protocol;
        if let Some(protocol) = &mut self.protocol
            && settings.iter().any(|setting| setting.protocol == name)
        {
            protocol.apply_specification(&self.script.specification(name, self.stack, &self.settings))?;
        }
        Ok(())
    }

    pub(crate) fn input(&mut self, input: Input) -> Result<(), StepError> {
        let now = self.now;
        self.protocol()?.endpoint().handle(now, input);
        self.collect_outputs()?;
        self.resume()
    }

    /// Collects what the endpoint outputs at the current time.
    fn collect_outputs(&mut self) -> Result<(), StepError> {
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

    fn event(&mut self, event: Event) -> Result<(), StepError> {
        match event {
            Event::Connected => self.socket.connected = true,
            Event::PeerClosed => self.socket.peer_closed = true,
            Event::Failed { reason } => {
                (self.socket.failed, self.socket.error) = (true, Some(socket::errno(reason)));
            }
            Event::Received(received) => match self.protocol()?.message(&received) {
                Some(message) => self.socket.messages.push_back(message.map_err(StepError::Deviates)?),
                None => self.socket.unread.extend(received.payload),
            },
            Event::Reconfigured { done, .. } => self.socket.reconfiguration_refused |= !done,
            Event::Closed => self.socket.closed = true,
            Event::Writable | Event::Abandoned { .. } | Event::Path { .. } => {}
        }
        Ok(())
    }

    /// Advances the time to `end`, and lets the timers that are due before it expire.
    fn advance(&mut self, end: Time) -> Result<(), StepError> {
        while let Some(at) = self.deadline.filter(|at| *at <= end) {
            self.expiries += 1;
            if self.expiries > MAX_EXPIRIES {
                return Err(format!("the script does not end: {MAX_EXPIRIES} timers have expired").into());
            }
            self.now = at;
            self.collect_outputs()?;
            self.resume()?;
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Checks that the endpoint sends the packet in `line` between `first` and `last`.
    fn expect_outbound(&mut self, line: &str, first: Time, last: Time) -> Result<(), StepError> {
        let latest = last + self.script.tolerance;
        let (wanted, line) = ecn::split_ecn_field(line)?;
        while self.is_short(line)?
            && let Some(at) = self.deadline.filter(|at| *at <= latest)
        {
            self.advance(at)?;
        }
        let Some((at, packet)) = self.sent.pop_front() else {
            let problem =
                format!("expected > {line}\n    by {}, but no packet was sent", format_seconds(latest));
            return Err(StepError::Deviates(problem));
        };
        if wanted.is_some_and(|ecn| ecn != packet.ecn) {
            let problem = format!("expected > {line}\n    but it was sent as {}", ecn::name(packet.ecn));
            return Err(StepError::Deviates(problem));
        }
        if let Some(got) = self.protocol()?.differs(line, &packet)? {
            let problem = format!("expected > {line}\n    but got > {got} at {}", format_seconds(at));
            return Err(StepError::Deviates(problem));
        }
        if at > latest || at + self.script.tolerance < first {
            let problem = format!(
                "> {line} was sent at {}, not at {}",
                format_seconds(at),
                format_time_range(first, last)
            );
            return Err(StepError::Deviates(problem));
        }
        // In packetdrill the next step is relative to the time at which the packet was seen: run.c adjust_relative_event_times.
        let exact = if first == last { first } else { at };
        self.previous_time = if self.strict { exact } else { self.now };
        Ok(())
    }

    /// Returns whether the endpoint must send more packets before they can match `line`, which may describe
    /// several packets as one.
    fn is_short(&mut self, line: &str) -> Result<bool, StepError> {
        let exact = self.strict || self.script.strict_segments;
        let Some(protocol) = &mut self.protocol else { return Ok(false) };
        Ok(self.sent.is_empty() || protocol.merge_packets(line, &mut self.sent, exact)?)
    }

    fn expect_no_packet(&mut self) -> Result<(), StepError> {
        let Some((at, packet)) = self.sent.pop_front() else { return Ok(()) };
        let got = self.protocol()?.show(&packet);
        let problem = format!("unexpected > {got}, sent at {} before this step", format_seconds(at));
        Err(StepError::Deviates(problem))
    }

    fn code(&mut self, code: &str) -> Result<(), StepError> {
        let protocol = self.protocol.as_deref().ok_or("the assertion comes before the first socket()")?;
        let lookup = |name: &str| -> Option<Value> { protocol.variable(name) };
        Ok(python::run(code, &mut self.variables, &lookup)?)
    }
}

/// Creates the error of a call with an unexpected result.
pub(crate) fn unexpected_result(call: &Call, got: &dyn std::fmt::Display) -> StepError {
    StepError::Deviates(format!("expected {}() = {}, but got {got}", call.name, call.result))
}

pub(crate) fn format_seconds(at: Time) -> String {
    format!("{:.6}", at.as_secs_f64())
}

pub(crate) fn format_time_range(first: Time, last: Time) -> String {
    if first == last {
        format_seconds(first)
    } else {
        format!("{} to {}", format_seconds(first), format_seconds(last))
    }
}
