//! The active side: a thread that copies the journal to the standby, and the event loop that waits for it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use hol_journal::{entry_of, read};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::wire::{BEAT, Kind, LONG_PATIENCE, PATIENCE, send, send_time, send_version};
use crate::clock::Clock;
use crate::tls::names_of;

/// Octets that may wait for a standby that is still being copied to.
const MOST_WAITING: usize = 64 << 20;
/// Octets of a message with rules.
const PART: usize = 1 << 20;
/// Nobody panics with it in hand.
const WHOLE: &str = "the state of shipping is whole";

/// How far the copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no standby.
    Absent,
    /// It is being copied to.
    Copying,
    /// It has everything.
    InStep,
}

/// What the event loop and the thread share.
#[derive(Debug)]
struct State {
    phase: Phase,
    /// The number of the last batch, and of the last one on the standby's disk.
    last: u64,
    done: u64,
    /// Batches that have not been sent.
    queue: VecDeque<(u64, Vec<u8>)>,
    waiting: usize,
    /// What has happened, for the log.
    events: Vec<(bool, String)>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What to send to the standby.
#[derive(Debug)]
struct Next {
    /// The standby gets a beat first: it is synchronized.
    is_beat: bool,
    /// Batches with their numbers.
    batches: Vec<(u64, Vec<u8>)>,
}

/// The event loop's end.
#[derive(Debug)]
pub(crate) struct Shipper {
    shared: Arc<Shared>,
    /// How long a reply waits for the standby, before that counts as lost.
    patience: Duration,
    /// True if nothing may change without a standby.
    is_required: bool,
    /// The other end, until it runs.
    shipping: Option<Shipping>,
}

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Shipping {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    /// The name in the standby's certificate.
    name: String,
    /// The directory of the journal.
    directory: PathBuf,
    /// By which its rules end.
    clock: Clock,
}

impl Shipping {
    /// Listens for the standby.
    pub fn open(
        address: SocketAddr,
        tls: Arc<ServerConfig>,
        name: String,
        directory: PathBuf,
        clock: Clock,
    ) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address)?, tls, name, directory, clock })
    }

    /// Serves one standby after the other.
    fn run(&self, shared: &Shared) {
        loop {
            let ended = match self.listener.accept() {
                Ok((socket, peer)) => self.serve(socket, peer, shared),
                Err(error) => {
                    thread::park_timeout(BEAT);
                    Err(error)
                }
            };
            if let Err(error) = ended {
                shared.lose(&error.to_string());
            }
        }
    }

    fn serve(&self, socket: TcpStream, peer: SocketAddr, shared: &Shared) -> io::Result<()> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let session = ServerConnection::new(self.tls.clone()).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        let names = names_of(&stream.conn).unwrap_or_default();
        if !names.contains(&self.name) {
            let problem = format!("the certificate of {peer} is not for {}", self.name);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        // What is recorded from here on waits; what was before is read. What is in both does not matter.
        let mut number = shared.begin();
        self.copy(&mut stream, number)?;
        shared.done(number);
        let mut beat_at = self.clock.now();
        while let Some(next) = shared.take(peer) {
            let now = self.clock.now();
            if next.is_beat || shared.is_synchronized() && beat_at <= now {
                send_time(&mut stream, Kind::Beat, number, now)?;
                beat_at = now + hol_base::Duration::from_secs(1);
            }
            for (number, entries) in &next.batches {
                send(&mut stream, Kind::Batch, *number, entries)?;
            }
            stream.flush()?;
            number = next.batches.last().map_or(number, |(number, _)| *number);
            await_number(&mut stream, number)?;
            shared.done(number);
        }
        Err(io::Error::other("it takes too long"))
    }

    /// Sends all rules.
    fn copy(&self, stream: &mut StreamOwned<ServerConnection, TcpStream>, number: u64) -> io::Result<()> {
        send_version(stream)?;
        let mut entries = Vec::with_capacity(PART + 1024);
        for rule in read(&self.directory).map_err(io::Error::other)? {
            entry_of(&rule, &mut entries);
            if entries.len() >= PART {
                send(stream, Kind::Whole, number, &entries)?;
                entries.clear();
            }
        }
        send(stream, Kind::Whole, number, &entries)?;
        send_time(stream, Kind::Complete, number, self.clock.now())?;
        stream.flush()?;
        stream.sock.set_read_timeout(Some(LONG_PATIENCE))?;
        await_number(stream, number)?;
        stream.sock.set_read_timeout(Some(PATIENCE))
    }
}

/// Waits until the standby has everything up to this number.
fn await_number(from: &mut impl Read, number: u64) -> io::Result<()> {
    let mut octets = [0; 8];
    loop {
        from.read_exact(&mut octets)?;
        if u64::from_be_bytes(octets) >= number {
            return Ok(());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(WHOLE)
    }

    fn is_synchronized(&self) -> bool {
        self.lock().phase == Phase::InStep
    }

    /// Keeps batches from now on; returns the number of the last one before.
    fn begin(&self) -> u64 {
        let mut state = self.lock();
        state.phase = Phase::Copying;
        state.queue.clear();
        state.waiting = 0;
        state.last
    }

    /// Returns what to send next, a beat after a while; `None` if the standby was given up.
    fn take(&self, peer: SocketAddr) -> Option<Next> {
        let mut state = self.lock();
        // Under load some batch always waits. From here on the event loop waits for each of them, so no more do.
        let catches_up = state.phase == Phase::Copying && state.waiting <= PART;
        if catches_up {
            state.phase = Phase::InStep;
            state.events.push((true, peer.to_string()));
        } else {
            let is_idle = |state: &mut State| state.queue.is_empty() && state.phase != Phase::Absent;
            state = self.changed.wait_timeout_while(state, BEAT, is_idle).expect(WHOLE).0;
        }
        state.waiting = 0;
        let batches: Vec<_> = state.queue.drain(..).collect();
        let is_beat = catches_up || batches.is_empty();
        (state.phase != Phase::Absent).then_some(Next { is_beat, batches })
    }

    fn done(&self, number: u64) {
        self.lock().done = number;
        self.changed.notify_all();
    }

    fn lose(&self, why: &str) {
        self.lock().lose(why);
        self.changed.notify_all();
    }
}

impl State {
    fn lose(&mut self, why: &str) {
        // The event loop may have given it up already, and knows why.
        if self.phase != Phase::Absent || self.events.is_empty() {
            self.events.push((false, why.to_owned()));
        }
        self.phase = Phase::Absent;
        self.queue.clear();
        self.waiting = 0;
    }
}

impl Shipper {
    pub fn new(shipping: Shipping, patience: Duration, is_required: bool) -> Self {
        Self::of(Some(shipping), patience, is_required)
    }

    fn of(shipping: Option<Shipping>, patience: Duration, is_required: bool) -> Self {
        let (queue, events) = (VecDeque::new(), Vec::new());
        let state = State { phase: Phase::Absent, last: 0, done: 0, queue, waiting: 0, events };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        Self { shared, patience, is_required, shipping }
    }

    /// Starts the thread, and returns where it listens.
    pub fn begin(&mut self) -> io::Result<Option<SocketAddr>> {
        let Some(shipping) = self.shipping.take() else { return Ok(None) };
        let (address, shared) = (shipping.listener.local_addr()?, Arc::clone(&self.shared));
        thread::Builder::new().name("standby".into()).spawn(move || shipping.run(&shared))?;
        Ok(Some(address))
    }

    /// Returns true if the standby has everything.
    pub fn is_synchronized(&self) -> bool {
        self.shared.is_synchronized()
    }

    /// Returns true if nothing may change, because there is no standby.
    pub fn refuses(&self) -> bool {
        self.is_required && !self.is_synchronized()
    }

    /// Ships the entries of a batch, and waits until the standby has them. Returns false if it has not, though it has to.
    pub fn ship(&self, entries: &[u8]) -> bool {
        let mut state = self.shared.lock();
        if state.phase == Phase::Absent {
            return !self.is_required;
        }
        state.last += 1;
        let number = state.last;
        state.queue.push_back((number, entries.to_vec()));
        state.waiting += entries.len();
        if state.waiting > MOST_WAITING {
            state.lose("more waits for it than there is room for");
        }
        self.shared.changed.notify_all();
        if state.phase == Phase::InStep {
            let is_waiting = |state: &mut State| state.done < number && state.phase == Phase::InStep;
            state = self.shared.changed.wait_timeout_while(state, self.patience, is_waiting).expect(WHOLE).0;
            if is_waiting(&mut state) {
                state.lose("it takes too long");
                self.shared.changed.notify_all();
            }
        }
        state.done >= number || !self.is_required
    }

    /// Returns what has happened: true with the address of a standby that now has everything, false with the reason why
    /// there is none.
    pub fn take_events(&self) -> Vec<(bool, String)> {
        std::mem::take(&mut self.shared.lock().events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipper() -> Shipper {
        Shipper::of(None, Duration::ZERO, false)
    }

    /// A middlebox that is never idle records a batch while the one before is sent.
    #[test]
    fn a_standby_catches_up_although_something_always_waits() {
        let shipper = shipper();
        let peer = "192.0.2.2:40000".parse().unwrap();
        assert_eq!(shipper.shared.begin(), 0);
        let large = vec![0; PART + 1];
        assert!(shipper.ship(&large));
        let next = shipper.shared.take(peer).unwrap();
        assert!(!shipper.is_synchronized(), "too much waits for the event loop to wait for it");
        assert!(!next.is_beat, "a beat says that it is synchronized");
        assert!(shipper.ship(&[1]));
        let next = shipper.shared.take(peer).unwrap();
        assert!(shipper.is_synchronized() && next.is_beat);
        assert_eq!(next.batches, [(2, vec![1])]);
        assert_eq!(shipper.take_events().len(), 1);
    }
}
