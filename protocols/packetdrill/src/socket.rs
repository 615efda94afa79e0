//! Emulates the socket between a script's calls and the endpoint.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::{Command, Failure, Input, Message, Reconfiguration, Reliability};

use crate::call::{Call, Outcome};
use crate::options::{self, SocketOption};
use crate::player::{Player, StepError, format_seconds, format_time_range, unexpected_result};
use crate::protocol::{self, ArrivedMessage, MAX_OCTETS};
use crate::tokens::{integer, number, split};

/// Constant of Linux' include/uapi/asm-generic/fcntl.h.
const O_RDWR: usize = 0o2;
const O_NONBLOCK: usize = 0o4000;

/// The state of the script's socket as the application sees it.
pub(crate) struct Socket {
    /// Name of the protocol: `tcp` or `sctp`.
    pub(crate) protocol: &'static str,
    /// The file descriptor of the listening socket; `None` if the script has none.
    listener: Option<i64>,
    connection: Option<i64>,
    /// Whether calls block; otherwise the socket is non-blocking.
    is_blocking: bool,
    pub(crate) connected: bool,
    pub(crate) peer_closed: bool,
    /// Whether the connection was closed without a reset.
    pub(crate) closed: bool,
    /// Whether the connection failed. The next call then returns `error`.
    pub(crate) failed: bool,
    pub(crate) error: Option<&'static str>,
    /// Whether shutdown() has closed the direction for writing.
    shut_for_writing: bool,
    shut_for_reading: bool,
    /// Whether the last re-configuration was refused or failed.
    pub(crate) reconfiguration_refused: bool,
    /// Whether close() resets the connection: `SO_LINGER` with a time of 0.
    abortive: bool,
    /// Received octets that the application has not read.
    pub(crate) unread: VecDeque<u8>,
    /// Received messages that the application has not read.
    pub(crate) messages: VecDeque<ArrivedMessage>,
    read: usize,
    /// Number of octets that the script has written so far.
    written: usize,
}

/// A call that has not returned yet.
pub(crate) struct BlockedCall<'a> {
    pub(crate) call: &'a Call,
    /// Line number of the call in the script.
    pub(crate) line: usize,
    /// The time at which the call starts.
    first: Time,
    /// The time by which the call must return.
    last: Time,
    /// Number of octets that a write has passed to the endpoint so far.
    octets_done: usize,
}

/// The outcome of a call.
enum Answer {
    Returns(Outcome),
    /// The call blocks; if the socket is non-blocking, the call fails with this error.
    Blocks(&'static str),
}

impl Answer {
    fn value(value: usize) -> Self {
        Self::Returns(Outcome::value(value))
    }

    fn error(name: &str) -> Self {
        Self::Returns(Outcome::error(name))
    }
}

const SUPPORTED_CALLS: &str = "socket, bind, listen, connect, accept, setsockopt, getsockopt, fcntl, write, send, sendto, sendmsg, writev, \
    sctp_sendmsg, sctp_sendv, read, recv, recvmsg, readv, sctp_recvmsg, shutdown and close";

/// Checks that the player supports a call of this name.
pub(crate) fn check(call: &Call) -> Result<(), String> {
    let is_known = SUPPORTED_CALLS.replace(" and ", ", ").split(", ").any(|name| name == call.name);
    if is_known {
        Ok(())
    } else {
        Err(format!("{}() is not supported; supported are {SUPPORTED_CALLS}", call.name))
    }
}

impl Socket {
    pub(crate) fn new(protocol: &'static str, strict: bool) -> Self {
        Self {
            protocol,
            listener: None,
            connection: None,
            is_blocking: !strict,
            connected: false,
            peer_closed: false,
            closed: false,
            failed: false,
            error: None,
            shut_for_writing: false,
            shut_for_reading: false,
            reconfiguration_refused: false,
            abortive: false,
            unread: VecDeque::new(),
            messages: VecDeque::new(),
            read: 0,
            written: 0,
        }
    }
}

impl<'a> Player<'a> {
    /// Performs a call of the script. With `range` the call may block, and must return at the end of that time
    /// range.
    pub(crate) fn call(
        &mut self,
        call: &'a Call,
        line: usize,
        range: Option<(Time, Time)>,
    ) -> Result<(), StepError> {
        if self.blocked.is_some() && range.is_some() {
            return Err(
                "this call may block, but another one is already blocked; only one blocked call is supported at a time".into()
            );
        }
        match self.answer(call, 0)? {
            (Answer::Returns(outcome), _) => compare(call, &outcome),
            (Answer::Blocks(error), 0) if !self.socket.is_blocking => compare(call, &Outcome::error(error)),
            (Answer::Blocks(_), done) if !self.socket.is_blocking => compare(call, &Outcome::value(done)),
            (Answer::Blocks(_), done) => {
                let (first, last) = range.ok_or_else(|| {
                    StepError::Deviates(format!(
                        "{}() blocks, but the script gives no time at which it returns: write START...END",
                        call.name
                    ))
                })?;
                self.blocked = Some(BlockedCall { call, line, first, last, octets_done: done });
                Ok(())
            }
        }
    }

    /// Completes the blocked call if it can return now.
    pub(crate) fn resume(&mut self) -> Result<(), StepError> {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        let (answer, done) = self.retry(blocked.call, blocked.octets_done)?;
        blocked.octets_done = done;
        let Answer::Returns(outcome) = answer else {
            self.blocked = Some(blocked);
            return Ok(());
        };
        let tolerance = self.script.tolerance;
        if self.now > blocked.last + tolerance || self.now + tolerance < blocked.last {
            let BlockedCall { call, line, first, last, .. } = blocked;
            return Err(StepError::Deviates(format!(
                "{}() of line {line} returns at {}, not at the end of {}",
                call.name,
                format_seconds(self.now),
                format_time_range(first, last)
            )));
        }
        compare(blocked.call, &outcome)
    }

    /// Retries a blocked call.
    fn retry(&mut self, call: &Call, done: usize) -> Result<(Answer, usize), StepError> {
        if call.name == "connect" { Ok((self.connected(), 0)) } else { self.answer(call, done) }
    }

    /// Performs a call. Returns its outcome, and the total number of octets that a write has passed to the
    /// endpoint, including the `done` octets of earlier attempts.
    fn answer(&mut self, call: &Call, done: usize) -> Result<(Answer, usize), StepError> {
        let answer = match call.name.as_str() {
            "socket" => self.make_socket(call)?,
            "bind" => Answer::value(0),
            "listen" => self.listen(call)?,
            "connect" => {
                self.socket.connection = Some(descriptor(call)?);
                self.input(Input::Command(Command::Connect))?;
                self.connected()
            }
            "accept" => self.accept(call)?,
            "fcntl" => self.fcntl(call)?,
            "setsockopt" => self.set_option(call)?,
            "getsockopt" => self.get_option(call)?,
            "shutdown" => self.shutdown(call)?,
            "close" => self.close(call)?,
            "read" | "recv" | "readv" | "recvmsg" | "sctp_recvmsg" => self.read(call)?,
            "sctp_sendmsg" => return self.write(call, call.count(2)?, sctp_message(call)?, done),
            "sctp_sendv" => {
                let (length, parameters) = (vector(call.argument(1)?)?, sendv_message(call)?);
                return self.write(call, length, parameters, done);
            }
            _ => return self.write(call, written(call)?, SendParameters::default(), done),
        };
        Ok((answer, 0))
    }

    fn make_socket(&mut self, call: &Call) -> Result<Answer, StepError> {
        if self.socket.listener.is_some() || self.socket.connection.is_some() {
            return Err("the script opens a second socket, but only one connection is supported".into());
        }
        let name = protocol::protocol_name(call.argument(2)?)?;
        let kind = call.argument(1)?;
        if !kind.starts_with("SOCK_STREAM") {
            return Err(format!("socket() requests {kind}; write SOCK_STREAM").into());
        }
        self.open(name)?;
        self.socket.is_blocking &= !kind.contains("SOCK_NONBLOCK");
        self.socket.connection = call.result.value;
        self.input(Input::Command(Command::Read(false)))?;
        Ok(Answer::Returns(Outcome { value: call.result.value.unwrap_or(3), error: String::new() }))
    }

    fn listen(&mut self, call: &Call) -> Result<Answer, StepError> {
        self.protocol()?.listen();
        (self.socket.listener, self.socket.connection) = (Some(descriptor(call)?), None);
        self.input(Input::Command(Command::Read(false)))?;
        Ok(Answer::value(0))
    }

    fn connected(&mut self) -> Answer {
        match self.socket.error.take() {
            Some(error) => Answer::error(error),
            None if self.socket.connected => Answer::value(0),
            None => Answer::Blocks("EINPROGRESS"),
        }
    }

    fn accept(&mut self, call: &Call) -> Result<Answer, StepError> {
        if self.socket.listener != Some(descriptor(call)?) {
            return Ok(Answer::error("EINVAL"));
        }
        if !self.socket.connected || self.socket.connection.is_some() {
            return Ok(Answer::Blocks("EAGAIN"));
        }
        // A new descriptor does not inherit O_NONBLOCK.
        self.socket.is_blocking = !self.strict;
        self.socket.connection = call.result.value;
        Ok(Answer::Returns(Outcome { value: call.result.value.unwrap_or(4), error: String::new() }))
    }

    /// Performs fcntl(), which sets whether the socket blocks.
    fn fcntl(&mut self, call: &Call) -> Result<Answer, StepError> {
        match call.argument(1)? {
            "F_GETFL" => Ok(Answer::value(O_RDWR | if self.socket.is_blocking { 0 } else { O_NONBLOCK })),
            "F_SETFL" => {
                self.socket.is_blocking = !call.flags(2).contains(&"O_NONBLOCK");
                Ok(Answer::value(0))
            }
            other => Err(format!("fcntl() with {other} is not supported; use F_GETFL or F_SETFL").into()),
        }
    }

    fn set_option(&mut self, call: &Call) -> Result<Answer, StepError> {
        match options::parse(call)? {
            SocketOption::Nothing => Ok(Answer::value(0)),
            SocketOption::Settings(settings) => {
                self.configure(&settings)?;
                self.input_nothing()?;
                Ok(Answer::value(0))
            }
            SocketOption::Linger(abortive) => {
                self.socket.abortive = abortive;
                Ok(Answer::value(0))
            }
            SocketOption::Reconfiguration(what) => self.reconfigure(what),
        }
    }

    /// Lets the endpoint act at once on changed options.
    fn input_nothing(&mut self) -> Result<(), StepError> {
        self.input(Input::Command(Command::Read(false)))
    }

    /// Performs getsockopt(). `SO_ERROR` returns and clears the connection's error; it is 0 without an error.
    fn get_option(&mut self, call: &Call) -> Result<Answer, StepError> {
        let expected = call.argument(3)?.trim_matches(['[', ']']).trim();
        let got = match call.argument(2)? {
            "SO_ERROR" => self.socket.error.take().unwrap_or("0").to_owned(),
            option => {
                let variable = options::variable(option).ok_or_else(|| {
                    format!("getsockopt() with {option} is not supported; use SO_ERROR or TCP_MAXSEG")
                })?;
                let value = self.protocol()?.variable(variable);
                value
                    .ok_or_else(|| {
                        format!("getsockopt() with {option} is not supported on this socket; use SO_ERROR")
                    })?
                    .to_string()
            }
        };
        let is_same = expected == got
            || expected == "..."
            || integer(expected).is_some() && integer(expected) == integer(&got);
        if is_same {
            return Ok(Answer::value(0));
        }
        Err(StepError::Deviates(format!("expected {} = {expected}, but got {got}", call.argument(2)?)))
    }

    /// Resets or adds streams. RFC 6525 sections 6.3.2 and 6.3.4.
    fn reconfigure(&mut self, what: Reconfiguration) -> Result<Answer, StepError> {
        self.socket.reconfiguration_refused = false;
        self.input(Input::Command(Command::Reconfigure(what)))?;
        Ok(if self.socket.reconfiguration_refused { Answer::error("EOPNOTSUPP") } else { Answer::value(0) })
    }

    fn shutdown(&mut self, call: &Call) -> Result<Answer, StepError> {
        let how = call.argument(1).unwrap_or("SHUT_WR");
        if self.socket.failed || !self.socket.connected && !self.strict {
            return Ok(Answer::error("ENOTCONN"));
        }
        self.socket.shut_for_reading |= matches!(how, "SHUT_RD" | "SHUT_RDWR");
        if how == "SHUT_RD" {
            return Ok(Answer::value(0));
        }
        self.socket.shut_for_writing = true;
        self.input(Input::Command(Command::Close))?;
        Ok(Answer::value(0))
    }

    fn close(&mut self, call: &Call) -> Result<Answer, StepError> {
        let descriptor = descriptor(call)?;
        if self.socket.listener == Some(descriptor) && self.socket.connection != Some(descriptor) {
            return self.close_listener();
        }
        if self.socket.connection != Some(descriptor) {
            return Ok(Answer::error("EBADF"));
        }
        self.socket.connection = None;
        // Closing a connection with unread data resets it. Linux: net/ipv4/tcp.c __tcp_close and net/sctp/socket.c sctp_close; RFC 9293
        // section 3.6.1 requires it.
        let loses_data = !self.socket.unread.is_empty()
            || !self.socket.messages.is_empty()
            || self.protocol()?.has_unread();
        let aborts = self.socket.abortive || loses_data && !self.strict;
        self.input(Input::Command(if aborts { Command::Abort } else { Command::Close }))?;
        Ok(Answer::value(0))
    }

    /// Closes the listening socket, and resets a connection that was not accepted. Linux:
    /// net/ipv4/inet_connection_sock.c inet_csk_listen_stop.
    fn close_listener(&mut self) -> Result<Answer, StepError> {
        self.socket.listener = None;
        if self.socket.connection.is_none() {
            if self.socket.connected {
                self.input(Input::Command(Command::Abort))?;
            } else {
                self.protocol()?.forget();
            }
        }
        Ok(Answer::value(0))
    }

    fn write(
        &mut self,
        call: &Call,
        length: usize,
        parameters: SendParameters,
        done: usize,
    ) -> Result<(Answer, usize), StepError> {
        if length > MAX_OCTETS {
            return Err(format!("{}() of {length} octets; the maximum is {MAX_OCTETS}", call.name).into());
        }
        if let Some(error) = self.socket.error.take() {
            return Ok((Answer::error(error), 0));
        }
        if self.socket.failed && !self.strict || self.socket.shut_for_writing {
            return Ok((Answer::error("EPIPE"), 0));
        }
        let serves = self.protocol()?.variable("sstat_outstrms");
        if serves
            .is_some_and(|count| count.to_string().parse().is_ok_and(|count: u16| parameters.stream >= count))
        {
            return Ok((Answer::error("EINVAL"), 0));
        }
        let mut done = done;
        while done < length {
            let offset = self.socket.written;
            let protocol = self.protocol()?;
            let taken = protocol.endpoint().accepts(length - done);
            if taken == 0 {
                return Ok((Answer::Blocks("EAGAIN"), done));
            }
            let payload: Bytes =
                (offset..offset + taken).map(|offset| protocol.octet(true, offset)).collect();
            self.socket.written += taken;
            done += taken;
            self.input(Input::Command(Command::Send(parameters.message(payload))))?;
        }
        Ok((Answer::value(length), done))
    }

    /// Performs a read, after the endpoint has delivered all data that it has received.
    fn read(&mut self, call: &Call) -> Result<Answer, StepError> {
        let (max, flags) = (read_size(call)?, call.flags(if call.name == "recvmsg" { 2 } else { 3 }));
        let peeks = call.name == "recv" && flags.contains(&"MSG_PEEK");
        if call.name == "recv" && flags.iter().any(|flag| !matches!(*flag, "MSG_PEEK" | "MSG_DONTWAIT")) {
            return Err(format!(
                "recv() with {} is not supported; use MSG_PEEK or MSG_DONTWAIT",
                flags.join("|")
            )
            .into());
        }
        if self.socket.unread.is_empty() && self.socket.messages.is_empty() {
            let blocked = self.blocked.take();
            self.input(Input::Command(Command::Read(true)))?;
            self.input(Input::Command(Command::Read(false)))?;
            self.blocked = blocked;
        }
        if !self.socket.messages.is_empty() {
            return self.read_message(call, max);
        }
        let length = max.min(self.socket.unread.len());
        if peeks && length > 0 {
            return Ok(Answer::value(length));
        }
        for octet in self.socket.unread.drain(..length).collect::<Vec<_>>() {
            let offset = self.socket.read;
            if octet != self.protocol()?.octet(false, offset) {
                return Err(StepError::Deviates(format!(
                    "octet {offset} read by the application differs from the one received"
                )));
            }
            self.socket.read += 1;
        }
        if length > 0 || max == 0 {
            return Ok(Answer::value(length));
        }
        if let Some(error) = self.socket.error {
            if !self.strict {
                self.socket.error = None;
            }
            return Ok(Answer::error(error));
        }
        let Socket { peer_closed, closed, failed, shut_for_reading, .. } = self.socket;
        let ended = peer_closed || closed || failed || shut_for_reading;
        Ok(if ended { Answer::value(0) } else { Answer::Blocks("EAGAIN") })
    }

    /// Reads one message; if it does not fit into the buffer, reads the part that fits.
    fn read_message(&mut self, call: &Call, max: usize) -> Result<Answer, StepError> {
        let Some(message) = self.socket.messages.pop_front() else { return Ok(Answer::Blocks("EAGAIN")) };
        let length = max.min(message.length);
        if call.name == "sctp_recvmsg" && call.arguments.len() > 5 {
            check_info(call.argument(5)?, &message)?;
            let flags = call.argument(6).unwrap_or("...");
            let got = if length == message.length { "MSG_EOR" } else { "0" };
            if flags != "..." && flags != got {
                return Err(StepError::Deviates(format!("expected the flags {flags}, but got {got}")));
            }
        }
        if length < message.length && !self.strict {
            self.socket.messages.push_front(ArrivedMessage { length: message.length - length, ..message });
        }
        Ok(Answer::value(length))
    }
}

fn compare(call: &Call, got: &Outcome) -> Result<(), StepError> {
    if call.result.admits(got) { Ok(()) } else { Err(unexpected_result(call, got)) }
}

/// Returns the file descriptor in the first argument of a call.
fn descriptor(call: &Call) -> Result<i64, String> {
    number(&format!("the descriptor of {}()", call.name), call.argument(0)?)
}

/// The parameters of a call that sends an SCTP message.
#[derive(Debug, Clone, Copy, Default)]
struct SendParameters {
    stream: u16,
    unordered: bool,
    reliability: Reliability,
    ppid: u32,
}

impl SendParameters {
    fn message(self, payload: Bytes) -> Message {
        let Self { stream, unordered, reliability, ppid } = self;
        Message { stream, unordered, reliability, ppid, payload }
    }
}

/// Returns the number of octets that `write(3, ..., 1000)`, `send(3, ..., 1000, 0)` and their vector variants
/// send.
fn written(call: &Call) -> Result<usize, String> {
    let (length, flags) = match call.name.as_str() {
        "sendmsg" => (message_size(call.argument(1)?)?, call.flags(2)),
        "writev" => (vector(call.argument(1)?)?, Vec::new()),
        "write" => (call.count(2)?, Vec::new()),
        _ => (call.count(2)?, call.flags(3)),
    };
    match flags.iter().find(|flag| !matches!(**flag, "MSG_NOSIGNAL" | "MSG_DONTWAIT")) {
        Some(flag) => {
            Err(format!("{}() with {flag} is not supported; use MSG_NOSIGNAL or MSG_DONTWAIT", call.name))
        }
        None => Ok(length),
    }
}

fn read_size(call: &Call) -> Result<usize, String> {
    match call.name.as_str() {
        "recvmsg" => message_size(call.argument(1)?),
        "readv" => vector(call.argument(1)?),
        _ => call.count(2),
    }
}

/// Returns the number of octets in the vector of `{msg_name(...)=..., msg_iov(1)=[{..., 1000}], msg_flags=0}`; no other
/// member is supported.
fn message_size(text: &str) -> Result<usize, String> {
    let inside = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inside = inside.ok_or_else(|| {
        format!("{text} is not a message; write {{msg_name(...)=..., msg_iov(1)=[{{..., 1000}}]}}")
    })?;
    let mut size = 0;
    for part in split(inside, ',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match (name.split('(').next().unwrap_or_default().trim(), value.trim()) {
            ("msg_iov", list) => size += vector(list)?,
            ("msg_name" | "msg_flags", "..." | "0" | "MSG_EOR") => {}
            (name, _) => {
                return Err(format!("msghdr: {name} is not supported; use msg_name, msg_iov or msg_flags"));
            }
        }
    }
    Ok(size)
}

/// Returns the number of octets of all parts of `[{..., 1000}, {..., 10}]`.
fn vector(text: &str) -> Result<usize, String> {
    let form = || format!("{text} is not a vector; write [{{..., 1000}}]");
    let inside = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(form)?;
    let part = |part: &str| {
        let length = part.trim_matches(['{', '}']).rsplit(',').next()?.trim();
        let length = integer(length.strip_prefix("iov_len=").unwrap_or(length))?;
        usize::try_from(length).ok().filter(|length| *length <= MAX_OCTETS)
    };
    let lengths: Option<Vec<usize>> = split(inside, ',').into_iter().map(part).collect();
    Ok(lengths.ok_or_else(form)?.into_iter().sum())
}

/// Parses `sctp_sendmsg(3, ..., 1000, ..., ..., htonl(0), SCTP_UNORDERED, 1, 0, 0)`. Its arguments are descriptor,
/// data, length, address, address length, PPID, flags, stream, lifetime in ms and context. RFC 6458 section 9.12.
fn sctp_message(call: &Call) -> Result<SendParameters, String> {
    let ppid = integer(call.argument(5)?).and_then(|ppid| u32::try_from(ppid).ok());
    let ppid =
        ppid.ok_or("the payload protocol identifier of sctp_sendmsg() is not a number; write htonl(1)")?;
    let (stream, lifetime) = (number("the stream", call.argument(7)?)?, call.count(8)?);
    let reliability = match lifetime {
        0 => Reliability::Full,
        millis => {
            let millis =
                u32::try_from(millis).map_err(|_| format!("a lifetime of {millis} ms is too long"))?;
            Reliability::Lifetime(Duration::from_millis(millis.into()))
        }
    };
    Ok(SendParameters { stream, unordered: unordered(&call.flags(6))?, reliability, ppid })
}

fn unordered(flags: &[&str]) -> Result<bool, String> {
    match flags.iter().find(|flag| **flag != "SCTP_UNORDERED") {
        Some(flag) => Err(format!("unsupported message flag {flag}; use SCTP_UNORDERED")),
        None => Ok(!flags.is_empty()),
    }
}

/// Parses `sctp_sendv(3, [{..., 1000}], 1, ..., 1, {...}, 32, SCTP_SENDV_SPA, 0)`. RFC 6458 section 9.7.
fn sendv_message(call: &Call) -> Result<SendParameters, String> {
    let info = call.argument(5)?;
    let named = |name: &str| options::member(info, name);
    let (has_info, has_policy) = match call.argument(7)? {
        "SCTP_SENDV_NOINFO" => (false, false),
        "SCTP_SENDV_SNDINFO" => (true, false),
        "SCTP_SENDV_PRINFO" => (false, true),
        "SCTP_SENDV_SPA" => {
            let flags: Vec<&str> = named("sendv_flags")?.split('|').map(str::trim).collect();
            if flags.contains(&"SCTP_SEND_AUTHINFO_VALID") {
                return Err("sctp_sendv() with SCTP_SEND_AUTHINFO_VALID is not supported".to_owned());
            }
            (flags.contains(&"SCTP_SEND_SNDINFO_VALID"), flags.contains(&"SCTP_SEND_PRINFO_VALID"))
        }
        other => return Err(format!("sctp_sendv() with {other} is not supported")),
    };
    let mut parameters = SendParameters::default();
    if has_info {
        parameters.stream = number("snd_sid", named("snd_sid")?)?;
        let ppid = integer(named("snd_ppid")?).and_then(|ppid| u32::try_from(ppid).ok());
        parameters.ppid = ppid.ok_or("snd_ppid is not a number; write htonl(1)")?;
        let flags = named("snd_flags")?;
        let flags: Vec<&str> =
            flags.split('|').map(str::trim).filter(|flag| integer(flag) != Some(0)).collect();
        parameters.unordered = unordered(&flags)?;
    }
    if has_policy {
        let value: u32 = number("pr_value", named("pr_value")?)?;
        parameters.reliability = match named("pr_policy")? {
            "SCTP_PR_SCTP_NONE" => Reliability::Full,
            "SCTP_PR_SCTP_TTL" => Reliability::Lifetime(Duration::from_millis(value.into())),
            "SCTP_PR_SCTP_RTX" => Reliability::Retransmissions(value),
            other => {
                return Err(format!(
                    "unknown pr_policy {other}; use SCTP_PR_SCTP_TTL, SCTP_PR_SCTP_RTX or SCTP_PR_SCTP_NONE"
                ));
            }
        };
    }
    Ok(parameters)
}

/// Compares the attributes in `{sinfo_stream=1, sinfo_ssn=0, ...}` with those of the received message. RFC 6458
/// section 5.3.2.
fn check_info(info: &str, message: &ArrivedMessage) -> Result<(), StepError> {
    if info == "..." || info == "NULL" {
        return Ok(());
    }
    let inside = info.trim_matches(['{', '}']);
    for part in split(inside, ',') {
        let (name, expected) =
            part.split_once('=').ok_or_else(|| format!("{part} has no value; write name=value"))?;
        let (name, expected) = (name.trim(), expected.trim());
        let got = match name {
            _ if expected == "..." => continue,
            "sinfo_stream" => Some(message.stream.into()),
            "sinfo_ssn" => message.number,
            "sinfo_flags" => {
                let got = if message.unordered { "SCTP_UNORDERED" } else { "0" };
                if expected == got {
                    continue;
                }
                return Err(StepError::Deviates(format!("expected {name}={expected}, but got {got}")));
            }
            "sinfo_ppid" => Some(message.ppid),
            "sinfo_tsn" => message.tsn,
            // These apply to sending only.
            "sinfo_context" | "sinfo_timetolive" => Some(0),
            _ => None,
        };
        let got = got.ok_or_else(|| {
            format!(
                "cannot check {name}: the received message has no such value; write {name}=... to accept any"
            )
        })?;
        if integer(expected) != Some(got.into()) {
            return Err(StepError::Deviates(format!("expected {name}={expected}, but got {got}")));
        }
    }
    Ok(())
}

/// Returns the errno that a program gets after its connection has failed for this reason.
pub(crate) const fn errno(reason: Failure) -> &'static str {
    match reason {
        Failure::Refused => "ECONNREFUSED",
        Failure::Reset | Failure::AbortedByPeer => "ECONNRESET",
        Failure::Aborted => "ECONNABORTED",
        _ => "ETIMEDOUT",
    }
}
