//! The active side: a thread that copies the journal to the standby, and the event loop that waits for it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hol_journal::{entry_of, read};
use hol_simco::SessionId;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::handshake::{Handshakes, shake_hands};
use super::wire::{BEAT, Kind, LONG_PATIENCE, PATIENCE, send, send_time, send_version};
use crate::clock::Clock;
use crate::tls::names_of;

/// Octets that may wait for a standby that is still being copied to.
const MOST_WAITING: usize = 64 << 20;
/// Octets of a message with rules.
const PART: usize = 1 << 20;
/// How long a handshake may take.
const HANDSHAKE: hol_base::Duration = hol_base::Duration::from_secs(5);
/// Events that may wait for the log while strangers bring them about.
const MOST_EVENTS: usize = 64;
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
    Synchronized,
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
    events: Vec<Event>,
}

/// What has happened to the standby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The one at this address has everything.
    Synchronized(SocketAddr),
    /// There is none any more.
    Lost {
        why: String,
        /// True if it had everything.
        was_synchronized: bool,
    },
    /// Somebody has not proved to be one.
    Refused { peer: IpAddr, why: String },
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
    handshakes: Mutex<Handshakes>,
    /// Held while a standby is served.
    turn: Mutex<()>,
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
        let (listener, handshakes, turn) = (TcpListener::bind(address)?, Mutex::default(), Mutex::default());
        Ok(Self { listener, tls, name, directory, clock, handshakes, turn })
    }

    /// Accepts whoever connects, and serves one standby after the other.
    fn run(self: &Arc<Self>, shared: &Arc<Shared>) {
        loop {
            let (ours, theirs) = (Arc::clone(self), Arc::clone(shared));
            let admitted = self.listener.accept().and_then(|(socket, peer)| {
                let id = self.handshakes().add(socket.try_clone()?, peer.ip());
                let name = "standby".into();
                thread::Builder::new().name(name).spawn(move || ours.admit(id, socket, peer, &theirs))
            });
            if admitted.is_err() {
                // Too many files or threads, or no memory: retrying at once would fail.
                thread::park_timeout(BEAT);
            }
        }
    }

    fn handshakes(&self) -> MutexGuard<'_, Handshakes> {
        self.handshakes.lock().expect(WHOLE)
    }

    /// Serves a standby that has proved that it is one, when no other is served.
    fn admit(&self, id: SessionId, socket: TcpStream, peer: SocketAddr, shared: &Shared) {
        let stream = self.authenticate(socket, peer);
        self.handshakes().remove(id);
        match stream {
            Err(error) => shared.refuse(peer.ip(), &error),
            Ok(mut stream) => {
                let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = self.serve(&mut stream, peer, shared) {
                    shared.lose(&error.to_string());
                }
            }
        }
    }

    fn authenticate(
        &self,
        mut socket: TcpStream,
        peer: SocketAddr,
    ) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
        socket.set_nodelay(true)?;
        let mut session = ServerConnection::new(self.tls.clone()).map_err(io::Error::other)?;
        shake_hands(&mut session, &mut socket, self.clock, HANDSHAKE)?;
        let names = names_of(&session).unwrap_or_default();
        if !names.contains(&self.name) {
            let problem = format!("the certificate of {peer} is not for {}", self.name);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(StreamOwned::new(session, socket))
    }

    fn serve(
        &self,
        stream: &mut StreamOwned<ServerConnection, TcpStream>,
        peer: SocketAddr,
        shared: &Shared,
    ) -> io::Result<()> {
        // What is recorded from here on waits; what was before is read. What is in both does not matter.
        let mut number = shared.begin();
        self.copy(stream, number)?;
        shared.done(number);
        let mut beat_at = self.clock.now();
        while let Some(next) = shared.take(peer) {
            let now = self.clock.now();
            if next.is_beat || shared.is_synchronized() && beat_at <= now {
                send_time(stream, Kind::Beat, number, now)?;
                beat_at = now + hol_base::Duration::from_secs(1);
            }
            for (number, entries) in &next.batches {
                send(stream, Kind::Batch, *number, entries)?;
            }
            stream.flush()?;
            number = next.batches.last().map_or(number, |(number, _)| *number);
            await_number(stream, number)?;
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
        self.lock().phase == Phase::Synchronized
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
            state.phase = Phase::Synchronized;
            state.events.push(Event::Synchronized(peer));
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

    fn refuse(&self, peer: IpAddr, why: &io::Error) {
        let mut state = self.lock();
        if state.events.len() < MOST_EVENTS {
            state.events.push(Event::Refused { peer, why: why.to_string() });
        }
    }

    fn lose(&self, why: &str) {
        self.lock().lose(why);
        self.changed.notify_all();
    }
}

impl State {
    fn lose(&mut self, why: &str) {
        // The event loop may have given it up already, and knows why.
        if self.phase != Phase::Absent {
            let was_synchronized = self.phase == Phase::Synchronized;
            self.events.push(Event::Lost { why: why.to_owned(), was_synchronized });
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
        let (shipping, shared) = (Arc::new(shipping), Arc::clone(&self.shared));
        let address = shipping.listener.local_addr()?;
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
        if state.phase == Phase::Synchronized {
            let is_waiting = |state: &mut State| state.done < number && state.phase == Phase::Synchronized;
            state = self.shared.changed.wait_timeout_while(state, self.patience, is_waiting).expect(WHOLE).0;
            if is_waiting(&mut state) {
                state.lose("it takes too long");
                self.shared.changed.notify_all();
            }
        }
        state.done >= number || !self.is_required
    }

    /// Returns what has happened since.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.shared.lock().events)
    }
}

#[cfg(test)]
impl Shipper {
    /// One whose standby is required, and says nothing.
    pub fn silent() -> Self {
        Self::in_phase(Phase::Synchronized)
    }

    /// One whose standby is required, and is being copied to.
    pub fn copying() -> Self {
        Self::in_phase(Phase::Copying)
    }

    /// One that requires a standby and has none.
    pub fn absent() -> Self {
        Self::in_phase(Phase::Absent)
    }

    fn in_phase(phase: Phase) -> Self {
        let shipper = Self::of(None, Duration::from_millis(1), true);
        shipper.shared.lock().phase = phase;
        shipper
    }

    /// Returns the batches that wait.
    pub fn queued(&self) -> Vec<Vec<u8>> {
        self.shared.lock().queue.iter().map(|(_, entries)| entries.clone()).collect()
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
        assert_eq!(shipper.take_events(), [Event::Synchronized(peer)]);
    }

    #[test]
    fn strangers_do_not_end_what_a_standby_has_and_their_events_are_few() {
        let shipper = shipper();
        let peer = "192.0.2.2:40000".parse().unwrap();
        shipper.shared.begin();
        shipper.shared.take(peer).unwrap();
        for _ in 0..1000 {
            shipper.shared.refuse(peer.ip(), &io::ErrorKind::TimedOut.into());
        }
        assert!(shipper.is_synchronized());
        shipper.shared.lose("it is gone");
        shipper.shared.lose("nobody is there");
        let events = shipper.take_events();
        assert_eq!(events.len(), MOST_EVENTS + 1);
        let lost = Event::Lost { why: "it is gone".to_owned(), was_synchronized: true };
        assert_eq!(events.last(), Some(&lost));
    }
}
