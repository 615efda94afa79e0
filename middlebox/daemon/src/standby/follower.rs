//! The standby's side: records on its own disk all changes that the active middlebox records.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use hol_agent::Server;
use hol_base::{Duration, Time};
use hol_journal::{JournalError, Replica};
use rustls::{ClientConnection, StreamOwned};

use super::wire::{
    HEARTBEAT_INTERVAL, LONG_SILENCE_TIMEOUT, MessageKind, SILENCE_TIMEOUT, receive, receive_version, time_of,
};
use crate::clock::Clock;
use crate::log::{Field, Level, Log};

/// Interval at which the standby syncs the high-water mark of its journal and compacts the journal if necessary.
const COMPACTION_INTERVAL: Duration = Duration::from_secs(1);
/// Time after a failed sync or compaction until the next attempt.
const COMPACTION_RETRY: Duration = Duration::from_secs(60);
/// Maximum difference between the stored clock and the clock of the active daemon.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(50);

/// Why copying the journal ended.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("{0}")]
    Network(#[from] io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Copies the journal of the middlebox `server` over TLS into a directory, with which `simcod serve` can continue.
/// Reconnects after failures; returns only if the directory cannot be used.
pub fn follow(server: &Server, state: &Path, mut log: Log) -> JournalError {
    let mut replica = match Replica::open(state) {
        Ok(replica) => replica,
        Err(error) => return error,
    };
    let clock = Clock::start();
    loop {
        let mut follower = Follower::new(&mut replica, &mut log, clock);
        let Err(end) = copy(server, &mut follower);
        // The last line of the log shows the current state, so every change is logged.
        let was_synchronized = follower.is_synchronized;
        if was_synchronized {
            log.write(clock.now(), Level::Warn, "disconnected", &[("reason", &end)]);
        } else {
            log.write_limited(clock.now(), Level::Warn, "disconnected", &[("reason", &end)]);
        }
        if let CopyError::Journal(error @ JournalError::Broken { .. }) = end {
            return error;
        }
        thread::park_timeout(HEARTBEAT_INTERVAL);
    }
}

fn copy(server: &Server, follower: &mut Follower<'_>) -> Result<Infallible, CopyError> {
    let mut stream = connect(server)?;
    receive_version(&mut stream)?;
    follower.replica.begin();
    loop {
        let (kind, number, content) = receive(&mut stream)?;
        follower.handle(kind, number, &content, &mut stream)?;
        if kind == MessageKind::Complete {
            // From now on the active side sends a heartbeat every second.
            stream.sock.set_read_timeout(Some(SILENCE_TIMEOUT))?;
        }
    }
}

/// The state of the standby during a connection to the active daemon.
struct Follower<'a> {
    replica: &'a mut Replica,
    log: &'a mut Log,
    clock: Clock,
    /// Whether the standby has every acknowledged rule.
    is_synchronized: bool,
    /// The clock stored during this connection; `None` if none has been stored.
    stored_clock: Option<Clock>,
    /// When to compact the standby's journal again.
    compact_at: Time,
}

impl<'a> Follower<'a> {
    fn new(replica: &'a mut Replica, log: &'a mut Log, clock: Clock) -> Self {
        Self { replica, log, clock, is_synchronized: false, stored_clock: None, compact_at: clock.now() }
    }

    /// Records a message from the active daemon, and acknowledges it.
    fn handle(
        &mut self,
        kind: MessageKind,
        number: u64,
        content: &[u8],
        out: &mut impl Write,
    ) -> Result<(), CopyError> {
        self.take(kind, content)?;
        if kind != MessageKind::Snapshot {
            out.write_all(&number.to_be_bytes())?;
            out.flush()?;
            // This comes after the acknowledgement, because agents wait for that.
            self.compact();
        }
        Ok(())
    }

    /// Records a message from the active daemon. On return its content is on the disk, except for parts of a snapshot,
    /// which wait in memory until it is complete.
    fn take(&mut self, kind: MessageKind, content: &[u8]) -> Result<(), CopyError> {
        match kind {
            MessageKind::Snapshot => self.replica.add(content),
            MessageKind::Complete => {
                self.replica.finish()?;
                self.save_clock(time_of(content)?);
            }
            MessageKind::Batch => self.replica.record(content)?,
            MessageKind::Heartbeat => {
                self.save_clock(time_of(content)?);
                if !self.is_synchronized {
                    self.is_synchronized = true;
                    let rules = self.replica.len();
                    self.log.write(self.clock.now(), Level::Info, "synchronized", &[("rules", &rules)]);
                }
            }
        }
        Ok(())
    }

    /// Stores the clock of the active daemon, by which rules expire. A daemon that takes over continues this clock,
    /// because this host's own clock may differ.
    fn save_clock(&mut self, now: Time) {
        let clock = Clock::starting_at(now);
        // The delay of messages varies, so a small difference is ignored.
        if self.stored_clock.is_some_and(|stored_clock| stored_clock.abs_diff(clock) < CLOCK_TOLERANCE) {
            return;
        }
        match clock.save(self.replica.directory()) {
            Ok(()) => self.stored_clock = Some(clock),
            Err(error) => {
                let fields: [Field<'_>; 1] = [("reason", &error)];
                self.log.write_limited(self.clock.now(), Level::Error, "clock-not-kept", &fields);
            }
        }
    }

    /// Syncs the high-water mark and compacts the journal, at most once a second. A failure loses no record.
    fn compact(&mut self) {
        let now = self.clock.now();
        if now < self.compact_at {
            return;
        }
        self.compact_at = now + COMPACTION_INTERVAL;
        if let Err(error) = self.replica.compact_if_due() {
            self.compact_at = now + COMPACTION_RETRY;
            self.log.write_limited(now, Level::Error, "journal-grows", &[("reason", &error)]);
        }
    }
}

fn connect(server: &Server) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let tls = server.tls.as_ref().ok_or_else(|| io::Error::other("a standby needs TLS"))?;
    let addresses = server.resolve_addresses().map_err(io::Error::other)?;
    let mut result = Err(io::ErrorKind::NotFound.into());
    for address in addresses {
        result = TcpStream::connect_timeout(&address, SILENCE_TIMEOUT);
        if result.is_ok() {
            break;
        }
    }
    let socket = result?;
    socket.set_nodelay(true)?;
    // The active side reads its journal first.
    socket.set_read_timeout(Some(LONG_SILENCE_TIMEOUT))?;
    socket.set_write_timeout(Some(SILENCE_TIMEOUT))?;
    Ok(StreamOwned::new(tls.client(&server.host)?, socket))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hol_journal::{RecordedRule, write_entry};
    use hol_simco::{Action, AddressTuple, AgentId, Location, Pid, Rule};

    use super::*;

    /// Appends the entry of a disable rule; the rules of all calls differ only in their PIDs.
    fn entry(pid: u32, out: &mut Vec<u8>) {
        let end = |location| AddressTuple::of_host(location, 17, "10.0.0.5:5004".parse().unwrap());
        let action = Action::Disable { internal: end(Location::Internal), external: end(Location::External) };
        let expires = Time::from_millis(1_800_000_000_000);
        let rule = Rule { pid: Pid(pid), owner: AgentId::NOBODY, expires, action };
        write_entry(&RecordedRule { rule, owner: "call-server".to_owned() }, out);
    }

    /// A copy is compacted even under continuous load, when the active daemon sends no heartbeats because there is
    /// always something to record.
    #[test]
    fn a_copy_is_compacted_under_continuous_load() {
        let directory = tempfile::tempdir().unwrap();
        let mut replica = Replica::open(directory.path()).unwrap();
        let mut log = Log::new(Level::Error, Box::new(io::sink()));
        let mut follower = Follower::new(&mut replica, &mut log, Clock::start());
        let now = follower.clock.now().as_nanos().to_be_bytes();
        let mut answers = Vec::new();
        follower.handle(MessageKind::Complete, 1, &now, &mut answers).unwrap();
        let mut changes = Vec::new();
        (0..200_000).for_each(|_| entry(7, &mut changes));
        follower.handle(MessageKind::Batch, 2, &changes, &mut answers).unwrap();
        assert_eq!(answers, [1_u64, 2].map(u64::to_be_bytes).concat());
        let size = || -> u64 {
            let files = fs::read_dir(directory.path()).unwrap();
            files.map(|file| file.unwrap().metadata().map_or(0, |metadata| metadata.len())).sum()
        };
        assert!(size() > 8 << 20);
        let mut one = Vec::new();
        entry(7, &mut one);
        // A thread compacts meanwhile.
        let is_small = (0..10_000).any(|_| {
            follower.clock.skip(Duration::from_secs(1));
            follower.handle(MessageKind::Batch, 3, &one, &mut answers).unwrap();
            size() < 2 << 20
        });
        assert!(is_small, "{} octets of one rule", size());
    }
}
