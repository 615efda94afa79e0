//! The active side: a thread that copies the journal to the standby, and the event loop that waits for the
//! copy.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hol_journal::{read, write_entry};
use hol_simco::SessionId;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::handshake::{Handshakes, perform_handshake};
use super::wire::{
    HEARTBEAT_INTERVAL, LONG_SILENCE_TIMEOUT, MessageKind, SILENCE_TIMEOUT, send, send_time, send_version,
};
use crate::clock::Clock;
use crate::tls::peer_dns_names;

/// Maximum number of octets queued for a standby while it receives the copy of all rules.
const MAX_QUEUED: usize = 64 << 20;
/// Number of octets after which a message with rules ends and the next one begins.
const PART_OCTETS: usize = 1 << 20;
/// Maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: hol_base::Duration = hol_base::Duration::from_secs(5);
/// Maximum number of queued events; it is limited because unauthenticated peers can cause events.
const MAX_EVENTS: usize = 64;
/// The panic message if a lock is poisoned, which cannot happen.
const NOT_POISONED: &str = "no thread panics while it holds the lock";

/// The phase of the replication to the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No standby is connected.
    Absent,
    /// The standby receives the copy of all rules.
    Copying,
    /// The standby has received all batches.
    Synchronized,
}

/// The state of the replication, which the event loop and the replication thread share.
#[derive(Debug)]
struct State {
    phase: Phase,
    /// The number of the last batch.
    last: u64,
    /// The number of the last batch that is on the standby's disk.
    acknowledged: u64,
    /// Batches that have not been sent yet, with their numbers.
    queue: VecDeque<(u64, Vec<u8>)>,
    queued_octets: usize,
    /// Events to be logged.
    events: Vec<Event>,
}

/// A change of the standby's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The standby at this address has received all batches.
    Synchronized(SocketAddr),
    /// The connection to the standby was lost.
    Lost {
        reason: String,
        /// Whether the standby had received all batches.
        was_synchronized: bool,
    },
    /// This peer could not authenticate as the standby, for this reason.
    Refused { peer: IpAddr, reason: String },
}

/// The state that the daemon shares with the replication thread.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The messages to send to the standby next.
#[derive(Debug)]
struct NextMessages {
    /// Whether a heartbeat comes first. It tells the standby that it has received all batches.
    sends_heartbeat: bool,
    /// Batches to send, with their numbers.
    batches: Vec<(u64, Vec<u8>)>,
}

/// The part of the replication that the event loop uses.
#[derive(Debug)]
pub(crate) struct Replicator {
    shared: Arc<Shared>,
    /// How long a reply waits for the standby, which afterwards counts as lost.
    patience: Duration,
    /// Whether changes of rules need a standby.
    is_required: bool,
    /// The part that runs in the thread; `None` once the thread has been started.
    thread_part: Option<ReplicationThread>,
}

/// The part of the replication that runs in its own thread.
#[derive(Debug)]
pub(crate) struct ReplicationThread {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    /// The DNS name that the standby's certificate must contain.
    name: String,
    /// The directory of the journal that is copied.
    directory: PathBuf,
    /// The clock by which rules expire.
    clock: Clock,
    handshakes: Mutex<Handshakes>,
    /// A lock that is held while a standby is served, so that there is only one.
    turn: Mutex<()>,
}

impl ReplicationThread {
    /// Opens the socket at `address`, to which the standby connects.
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

    /// Accepts connections, and serves one standby at a time.
    fn run(self: &Arc<Self>, shared: &Arc<Shared>) {
        loop {
            let (ours, theirs) = (Arc::clone(self), Arc::clone(shared));
            let admitted = self.listener.accept().and_then(|(socket, peer)| {
                let id = self.handshakes().add(socket.try_clone()?, peer.ip());
                let name = "standby".into();
                thread::Builder::new().name(name).spawn(move || ours.admit(id, socket, peer, &theirs))
            });
            if admitted.is_err() {
                // There are too many files or threads, or no memory; an immediate retry would fail.
                thread::park_timeout(HEARTBEAT_INTERVAL);
            }
        }
    }

    fn handshakes(&self) -> MutexGuard<'_, Handshakes> {
        self.handshakes.lock().expect(NOT_POISONED)
    }

    /// Authenticates a peer, and serves it as the standby once no other standby is served.
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
        perform_handshake(&mut session, &mut socket, self.clock, HANDSHAKE_TIMEOUT)?;
        let names = peer_dns_names(&session).unwrap_or_default();
        if !names.contains(&self.name) {
            let problem = format!(
                "the certificate of {peer} does not name {}, as `name` in [standby] requires",
                self.name
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        socket.set_read_timeout(Some(SILENCE_TIMEOUT))?;
        socket.set_write_timeout(Some(SILENCE_TIMEOUT))?;
        Ok(StreamOwned::new(session, socket))
    }

    fn serve(
        &self,
        stream: &mut StreamOwned<ServerConnection, TcpStream>,
        peer: SocketAddr,
        shared: &Shared,
    ) -> io::Result<()> {
        // Batches recorded from here on are queued; earlier ones are read from the journal. It is harmless if
        // some are in both.
        let mut number = shared.begin();
        self.copy(stream, number)?;
        shared.acknowledge(number);
        let mut heartbeat_at = self.clock.now();
        while let Some(next) = shared.take(peer) {
            let now = self.clock.now();
            if next.sends_heartbeat || shared.is_synchronized() && heartbeat_at <= now {
                send_time(stream, MessageKind::Heartbeat, number, now)?;
                heartbeat_at = now + hol_base::Duration::from_secs(1);
            }
            for (number, entries) in &next.batches {
                send(stream, MessageKind::Batch, *number, entries)?;
            }
            stream.flush()?;
            number = next.batches.last().map_or(number, |(number, _)| *number);
            await_number(stream, number)?;
            shared.acknowledge(number);
        }
        Err(io::Error::other("the standby did not acknowledge in time"))
    }

    /// Sends all rules to the standby, and waits until they are on its disk.
    fn copy(&self, stream: &mut StreamOwned<ServerConnection, TcpStream>, number: u64) -> io::Result<()> {
        send_version(stream)?;
        let mut entries = Vec::with_capacity(PART_OCTETS + 1024);
        for rule in read(&self.directory).map_err(io::Error::other)? {
            write_entry(&rule, &mut entries);
            if entries.len() >= PART_OCTETS {
                send(stream, MessageKind::Snapshot, number, &entries)?;
                entries.clear();
            }
        }
        send(stream, MessageKind::Snapshot, number, &entries)?;
        send_time(stream, MessageKind::Complete, number, self.clock.now())?;
        stream.flush()?;
        stream.sock.set_read_timeout(Some(LONG_SILENCE_TIMEOUT))?;
        await_number(stream, number)?;
        stream.sock.set_read_timeout(Some(SILENCE_TIMEOUT))
    }
}

/// Waits until the standby has acknowledged the batch with this number.
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
        self.state.lock().expect(NOT_POISONED)
    }

    fn is_synchronized(&self) -> bool {
        self.lock().phase == Phase::Synchronized
    }

    /// Queues all batches from now on for a standby. Returns the number of the last batch before this call.
    fn begin(&self) -> u64 {
        let mut state = self.lock();
        state.phase = Phase::Copying;
        state.queue.clear();
        state.queued_octets = 0;
        state.last
    }

    /// Returns the next messages to send: queued batches, or a heartbeat if nothing has been queued for some time;
    /// `None` if the standby is lost.
    fn take(&self, peer: SocketAddr) -> Option<NextMessages> {
        let mut state = self.lock();
        // Under load the queue is never empty. From here on the event loop waits for each batch, so the queue
        // cannot grow.
        let catches_up = state.phase == Phase::Copying && state.queued_octets <= PART_OCTETS;
        if catches_up {
            state.phase = Phase::Synchronized;
            state.events.push(Event::Synchronized(peer));
        } else {
            let is_idle = |state: &mut State| state.queue.is_empty() && state.phase != Phase::Absent;
            state =
                self.changed.wait_timeout_while(state, HEARTBEAT_INTERVAL, is_idle).expect(NOT_POISONED).0;
        }
        state.queued_octets = 0;
        let batches: Vec<_> = state.queue.drain(..).collect();
        let sends_heartbeat = catches_up || batches.is_empty();
        (state.phase != Phase::Absent).then_some(NextMessages { sends_heartbeat, batches })
    }

    fn acknowledge(&self, number: u64) {
        self.lock().acknowledged = number;
        self.changed.notify_all();
    }

    fn refuse(&self, peer: IpAddr, reason: &io::Error) {
        let mut state = self.lock();
        if state.events.len() < MAX_EVENTS {
            state.events.push(Event::Refused { peer, reason: reason.to_string() });
        }
    }

    fn lose(&self, reason: &str) {
        self.lock().lose(reason);
        self.changed.notify_all();
    }
}

impl State {
    fn lose(&mut self, reason: &str) {
        // If the event loop has given up the standby already, it has reported the reason.
        if self.phase != Phase::Absent {
            let was_synchronized = self.phase == Phase::Synchronized;
            self.events.push(Event::Lost { reason: reason.to_owned(), was_synchronized });
        }
        self.phase = Phase::Absent;
        self.queue.clear();
        self.queued_octets = 0;
    }
}

impl Replicator {
    pub fn new(thread_part: ReplicationThread, patience: Duration, is_required: bool) -> Self {
        Self::with_thread_part(Some(thread_part), patience, is_required)
    }

    fn with_thread_part(
        thread_part: Option<ReplicationThread>,
        patience: Duration,
        is_required: bool,
    ) -> Self {
        let (queue, events) = (VecDeque::new(), Vec::new());
        let state = State { phase: Phase::Absent, last: 0, acknowledged: 0, queue, queued_octets: 0, events };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        Self { shared, patience, is_required, thread_part }
    }

    /// Starts the replication thread; returns the address of its socket.
    pub fn begin(&mut self) -> io::Result<Option<SocketAddr>> {
        let Some(thread_part) = self.thread_part.take() else { return Ok(None) };
        let (thread_part, shared) = (Arc::new(thread_part), Arc::clone(&self.shared));
        let address = thread_part.listener.local_addr()?;
        thread::Builder::new().name("standby".into()).spawn(move || thread_part.run(&shared))?;
        Ok(Some(address))
    }

    /// Returns true if the standby has received all batches.
    pub fn is_synchronized(&self) -> bool {
        self.shared.is_synchronized()
    }

    /// Returns true if changes are refused because the required standby is missing.
    pub fn refuses(&self) -> bool {
        self.is_required && !self.is_synchronized()
    }

    /// Sends the entries of a batch to the standby. If the standby has received all batches before, waits until this
    /// one is on its disk. Returns false if a standby is required but does not have the entries.
    pub fn replicate(&self, entries: &[u8]) -> bool {
        let mut state = self.shared.lock();
        if state.phase == Phase::Absent {
            return !self.is_required;
        }
        state.last += 1;
        let number = state.last;
        state.queue.push_back((number, entries.to_vec()));
        state.queued_octets += entries.len();
        if state.queued_octets > MAX_QUEUED {
            state.lose("the queue of changes for the standby is full");
        }
        self.shared.changed.notify_all();
        if state.phase == Phase::Synchronized {
            let is_waiting =
                |state: &mut State| state.acknowledged < number && state.phase == Phase::Synchronized;
            state = self
                .shared
                .changed
                .wait_timeout_while(state, self.patience, is_waiting)
                .expect(NOT_POISONED)
                .0;
            if is_waiting(&mut state) {
                state.lose("the standby did not acknowledge in time");
                self.shared.changed.notify_all();
            }
        }
        state.acknowledged >= number || !self.is_required
    }

    /// Returns the events since the last call, to be logged.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.shared.lock().events)
    }
}

#[cfg(test)]
impl Replicator {
    /// Returns a replicator for tests that requires a standby, with a standby that sends nothing.
    pub fn silent() -> Self {
        Self::in_phase(Phase::Synchronized)
    }

    /// Returns a replicator for tests that requires a standby, with a standby that still receives the copy of all
    /// rules.
    pub fn copying() -> Self {
        Self::in_phase(Phase::Copying)
    }

    /// Returns a replicator for tests that requires a standby but has none.
    pub fn absent() -> Self {
        Self::in_phase(Phase::Absent)
    }

    fn in_phase(phase: Phase) -> Self {
        let replicator = Self::with_thread_part(None, Duration::from_millis(1), true);
        replicator.shared.lock().phase = phase;
        replicator
    }

    /// Returns the batches that wait to be sent.
    pub fn queued(&self) -> Vec<Vec<u8>> {
        self.shared.lock().queue.iter().map(|(_, entries)| entries.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicator() -> Replicator {
        Replicator::with_thread_part(None, Duration::ZERO, false)
    }

    /// A standby becomes synchronized even if the middlebox always records the next batch while the previous one is
    /// being sent.
    #[test]
    fn a_standby_is_synchronized_under_continuous_load() {
        let replicator = replicator();
        let peer = "192.0.2.2:40000".parse().unwrap();
        assert_eq!(replicator.shared.begin(), 0);
        let large = vec![0; PART_OCTETS + 1];
        assert!(replicator.replicate(&large));
        let next = replicator.shared.take(peer).unwrap();
        assert!(!replicator.is_synchronized(), "the copy is not complete while the queue is long");
        assert!(!next.sends_heartbeat, "a heartbeat would report that the standby is synchronized");
        assert!(replicator.replicate(&[1]));
        let next = replicator.shared.take(peer).unwrap();
        assert!(replicator.is_synchronized() && next.sends_heartbeat);
        assert_eq!(next.batches, [(2, vec![1])]);
        assert_eq!(replicator.take_events(), [Event::Synchronized(peer)]);
    }

    #[test]
    fn failed_authentications_do_not_disconnect_the_standby() {
        let replicator = replicator();
        let peer = "192.0.2.2:40000".parse().unwrap();
        replicator.shared.begin();
        replicator.shared.take(peer).unwrap();
        for _ in 0..1000 {
            replicator.shared.refuse(peer.ip(), &io::ErrorKind::TimedOut.into());
        }
        assert!(replicator.is_synchronized());
        replicator.shared.lose("the standby is gone");
        replicator.shared.lose("no standby is connected");
        let events = replicator.take_events();
        assert_eq!(events.len(), MAX_EVENTS + 1);
        let lost = Event::Lost { reason: "the standby is gone".to_owned(), was_synchronized: true };
        assert_eq!(events.last(), Some(&lost));
    }
}
