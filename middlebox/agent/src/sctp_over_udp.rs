//! SCTP in UDP datagrams, for kernels without SCTP: a thread runs the association, as the kernel runs other
//! connections. RFC 6951.
//!
//! The thread answers the middlebox's heartbeats and repeats lost packets while the program does something else.
//! The program has one end of a pair of sockets, which preserves the boundaries of messages.

#![expect(clippy::disallowed_types, reason = "an agent waits for its middlebox by the wall clock")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_sctp_udp::{Association, AssociationEnd, UdpPath, parse};
use hol_simco::{PAYLOAD_PROTOCOL, PORT};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::deadline::{Deadline, to_std};

/// An association of SCTP over UDP, as the program uses it. Dropping the value shuts the association down.
#[derive(Debug)]
pub(crate) struct SctpOverUdp {
    program_end: Socket,
    /// The thread that runs the association; it returns how the association ended.
    thread: Option<JoinHandle<Option<AssociationEnd>>>,
}

impl SctpOverUdp {
    /// Opens an association with the middlebox at this address and UDP port.
    pub fn connect(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let mut runner = Runner::connect(address, Deadline::after(timeout))?;
        let (program_end, thread_end) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
        program_end.set_write_timeout(Some(to_std(timeout)))?;
        thread_end.set_nonblocking(true)?;
        let thread = thread::Builder::new().name("sctp-udp".to_owned());
        let thread = Some(thread.spawn(move || runner.run(thread_end))?);
        Ok(Self { program_end, thread })
    }

    /// Returns the socket that becomes readable when a message has arrived.
    pub fn socket(&self) -> &Socket {
        &self.program_end
    }

    /// Sends a message; its stream follows from the message's TID.
    pub fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        (&self.program_end).write_all(octets)
    }

    /// Waits for a message from the middlebox and returns it.
    pub fn receive(&mut self) -> io::Result<Bytes> {
        let mut buffer = vec![0; Runner::LONGEST_MESSAGE];
        let length = (&self.program_end).read(&mut buffer)?;
        if length == 0 {
            return Err(self.end_error());
        }
        buffer.truncate(length);
        Ok(buffer.into())
    }

    /// Returns an error that says why the association has ended.
    fn end_error(&mut self) -> io::Error {
        match self.thread.take().and_then(|thread| thread.join().ok()).flatten() {
            Some(AssociationEnd::Failed(reason)) => io::Error::other(reason.text()),
            Some(AssociationEnd::Closed) | None => io::ErrorKind::UnexpectedEof.into(),
        }
    }
}

impl Drop for SctpOverUdp {
    fn drop(&mut self) {
        // The program's messages are delivered before the association is shut down. The shutdown has a deadline.
        drop(self.program_end.shutdown(Shutdown::Both));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// The state of the thread that runs the association, with its UDP socket.
struct Runner {
    udp: Socket,
    association: Association,
    start: Instant,
    /// A message from the program for which the association's send buffer has no room, and its stream.
    unsent: Option<(u16, Bytes)>,
    /// A message from the middlebox for which the socket to the program has no room.
    undelivered: Option<Bytes>,
    /// The thread's end of the socket pair to the program; `None` before the handshake, and after the program or the
    /// middlebox has closed the association.
    program: Option<Socket>,
    is_closing: bool,
    /// The deadline of the handshake; later the deadline of the shutdown.
    deadline: Deadline,
    buffer: Vec<u8>,
}

impl Runner {
    /// Length of the longest SIMCO message, in octets: a header and its body.
    const LONGEST_MESSAGE: usize = 8 + u16::MAX as usize;
    /// Maximum number of datagrams that are read before the timers and the program are served.
    const MAX_DATAGRAMS: usize = 64;
    /// Maximum time that the shutdown of an association may take.
    const CLOSE_TIME: Duration = Duration::from_secs(1);

    /// Opens the UDP socket and performs the handshake of the association.
    fn connect(address: SocketAddr, deadline: Deadline) -> io::Result<Self> {
        let udp = Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        udp.connect(&address.into())?;
        let local = udp.local_addr()?.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        let path = UdpPath { peer: address, local: local.ip() };
        let mut runner = Self {
            udp,
            association: Association::connect(Time::ZERO, path, PORT),
            start: Instant::now(),
            unsent: None,
            undelivered: None,
            program: None,
            is_closing: false,
            deadline,
            buffer: vec![0; 1 << 16],
        };
        while !runner.association.is_established() {
            runner.transmit();
            if let Some(AssociationEnd::Failed(reason)) = runner.association.end() {
                return Err(io::Error::other(reason.text()));
            }
            if runner.deadline.has_passed() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            runner.wait()?;
            // Before the association exists, ICMP says that nobody listens. RFC 6951 section 5.5.
            runner.receive()?;
        }
        runner.deadline = Deadline::never();
        Ok(runner)
    }

    /// Runs the association until it ends.
    fn run(&mut self, program: Socket) -> Option<AssociationEnd> {
        self.program = Some(program);
        loop {
            if let Some(program) = self.program.take() {
                if self.exchange(&program) {
                    self.program = Some(program);
                } else {
                    self.note_closing();
                    self.association.close();
                }
            }
            if self.deadline.has_passed() {
                self.association.abort();
            }
            self.transmit();
            if self.program.is_none() && self.association.has_ended() || self.deadline.has_passed() {
                return self.association.end();
            }
            self.wait().ok()?;
            // ICMP errors may be forged, and so do not end an association.
            drop(self.receive());
        }
    }

    /// Sets the deadline for the shutdown of the association.
    fn note_closing(&mut self) {
        if !std::mem::replace(&mut self.is_closing, true) {
            self.deadline = Deadline::after(Self::CLOSE_TIME);
        }
    }

    /// Moves messages between the program and the association; returns false if either has closed.
    fn exchange(&mut self, program: &Socket) -> bool {
        let is_open = self.send_messages(program).unwrap_or(false);
        self.association.flush();
        // A program that has closed reads no more.
        is_open && self.deliver_messages(program).unwrap_or(false)
    }

    /// Passes messages from the program to the association while it has room; returns false if the program has closed.
    fn send_messages(&mut self, mut program: &Socket) -> io::Result<bool> {
        loop {
            if let Some((stream, octets)) = self.unsent.take()
                && !self.association.queue(stream, PAYLOAD_PROTOCOL, octets.clone())
            {
                self.unsent = Some((stream, octets));
                return Ok(true);
            }
            match program.read(&mut self.buffer) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    let octets = Bytes::copy_from_slice(&self.buffer[..length]);
                    self.unsent = Some((self.stream_of(&octets), octets));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the stream on which to send a message: its TID modulo the number of streams.
    fn stream_of(&self, message: &[u8]) -> u16 {
        const TID: std::ops::Range<usize> = 4..8;
        let tid = message.get(TID).and_then(|octets| octets.first_chunk()).copied().unwrap_or_default();
        (u32::from_be_bytes(tid) % u32::from(self.association.streams().max(1))) as u16
    }

    /// Passes messages from the middlebox to the program while its socket has room; returns false if the middlebox has
    /// closed.
    fn deliver_messages(&mut self, mut program: &Socket) -> io::Result<bool> {
        while let Some(octets) = self.undelivered.take().or_else(|| self.association.next_message()) {
            match program.write(&octets) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.undelivered = Some(octets);
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self.association.end().is_none() && !self.association.has_peer_closed())
    }

    /// Waits until a socket is ready, a timer of the association expires, or the deadline passes.
    fn wait(&mut self) -> io::Result<()> {
        let timer = self.association.wake_at();
        let timer = (timer < Time::MAX).then(|| to_std(timer.saturating_since(self.now())));
        let timeout = [timer, self.deadline.remaining()].into_iter().flatten().min();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut files = vec![PollFd::new(&self.udp, PollFlags::IN)];
        // A program that has closed is not polled: its end would be reported all the time while its last messages
        // wait for room.
        if let Some(program) = self.program.as_ref().filter(|_| !self.is_closing) {
            let mut interest = PollFlags::empty();
            interest.set(PollFlags::IN, self.unsent.is_none());
            interest.set(PollFlags::OUT, self.undelivered.is_some());
            files.push(PollFd::new(program, interest));
        }
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if files.get(1).is_some_and(|program| program.revents().contains(PollFlags::HUP)) {
            self.note_closing();
        }
        Ok(())
    }

    /// Handles expired timers and received datagrams; returns an error if the UDP socket fails.
    fn receive(&mut self) -> io::Result<()> {
        let now = self.now();
        self.association.advance(now);
        for _ in 0..Self::MAX_DATAGRAMS {
            match (&self.udp).read(&mut self.buffer) {
                Ok(length) => {
                    if let Some(packet) = parse(&self.buffer[..length]) {
                        self.association.receive(now, packet);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends the association's datagrams. If the socket has no room for a datagram, it is lost, and SCTP sends its data
    /// again.
    fn transmit(&mut self) {
        while let Some(datagram) = self.association.next_datagram() {
            drop(self.udp.send(&datagram));
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + Duration::from_nanos(self.start.elapsed().as_nanos() as u64)
    }
}
