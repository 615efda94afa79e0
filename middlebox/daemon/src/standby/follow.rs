//! The standby's side: it has what the active middlebox has recorded on its own disk.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use hol_agent::Server;
use hol_base::{Duration, Time};
use hol_journal::{JournalError, Replica};
use rustls::{ClientConnection, StreamOwned};

use super::wire::{BEAT, Kind, LONG_PATIENCE, PATIENCE, receive, receive_version, time_of};
use crate::clock::Clock;
use crate::log::{Field, Level, Log};

/// Interval at which the copy's mark is synced, and its compaction considered.
const TIDYING: Duration = Duration::from_secs(1);
/// The same after a failure.
const TIDYING_AGAIN: Duration = Duration::from_secs(60);
/// How far the stored clock may be from that of the active side.
const LEEWAY: Duration = Duration::from_millis(50);

/// Why a copy ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Network(#[from] io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Copies the journal of this middlebox, which needs TLS, into a directory until the process ends: `simcod serve` goes on
/// from there. Connects again and again; fails only if the directory is unusable.
pub fn follow(server: &Server, state: &Path, mut log: Log) -> JournalError {
    let mut replica = match Replica::open(state) {
        Ok(replica) => replica,
        Err(error) => return error,
    };
    let clock = Clock::start();
    loop {
        let mut follower = Follower::new(&mut replica, &mut log, clock);
        let Err(end) = copy(server, &mut follower);
        // The last line says whether it has everything, so a change is always written.
        let was_synchronized = follower.is_synchronized;
        if was_synchronized {
            log.write(clock.now(), Level::Warn, "disconnected", &[("reason", &end)]);
        } else {
            log.write_seldom(clock.now(), Level::Warn, "disconnected", &[("reason", &end)]);
        }
        if let End::Journal(error @ JournalError::Broken { .. }) = end {
            return error;
        }
        thread::park_timeout(BEAT);
    }
}

fn copy(server: &Server, follower: &mut Follower<'_>) -> Result<Infallible, End> {
    let mut stream = connect(server)?;
    receive_version(&mut stream)?;
    follower.replica.begin();
    loop {
        let (kind, number, content) = receive(&mut stream)?;
        follower.handle(kind, number, &content, &mut stream)?;
        if kind == Kind::Complete {
            // From now on it beats once a second.
            stream.sock.set_read_timeout(Some(PATIENCE))?;
        }
    }
}

/// What is done with the messages of one connection.
struct Follower<'a> {
    replica: &'a mut Replica,
    log: &'a mut Log,
    clock: Clock,
    /// True if it has every rule that is acknowledged.
    is_synchronized: bool,
    /// The clock in the directory, if this connection has stored it.
    kept: Option<Clock>,
    /// When to tidy again.
    tidy_at: Time,
}

impl<'a> Follower<'a> {
    fn new(replica: &'a mut Replica, log: &'a mut Log, clock: Clock) -> Self {
        Self { replica, log, clock, is_synchronized: false, kept: None, tidy_at: clock.now() }
    }

    /// Records a message of the active side, and answers it.
    fn handle(&mut self, kind: Kind, number: u64, content: &[u8], out: &mut impl Write) -> Result<(), End> {
        self.take(kind, content)?;
        if kind != Kind::Whole {
            out.write_all(&number.to_be_bytes())?;
            out.flush()?;
            // After the answer, for which agents wait.
            self.tidy();
        }
        Ok(())
    }

    /// Records what the active side sends; it is on the disk on return.
    fn take(&mut self, kind: Kind, content: &[u8]) -> Result<(), End> {
        match kind {
            Kind::Whole => self.replica.add(content),
            Kind::Complete => {
                self.replica.finish()?;
                self.keep_clock(time_of(content)?);
            }
            Kind::Batch => self.replica.record(content)?,
            Kind::Beat => {
                self.keep_clock(time_of(content)?);
                if !self.is_synchronized {
                    self.is_synchronized = true;
                    let rules = self.replica.len();
                    self.log.write(self.clock.now(), Level::Info, "synchronized", &[("rules", &rules)]);
                }
            }
        }
        Ok(())
    }

    /// Stores the clock of the active side, by which the rules end, so that whoever takes over continues it: that of this
    /// host may be wrong, or right while the other is wrong.
    fn keep_clock(&mut self, now: Time) {
        let clock = Clock::showing(now);
        // Messages take some time, which differs.
        if self.kept.is_some_and(|kept| kept.abs_diff(clock) < LEEWAY) {
            return;
        }
        match clock.keep(self.replica.directory()) {
            Ok(()) => self.kept = Some(clock),
            Err(error) => {
                let fields: [Field<'_>; 1] = [("reason", &error)];
                self.log.write_seldom(self.clock.now(), Level::Error, "clock-not-kept", &fields);
            }
        }
    }

    /// Syncs the mark and compacts once a second, however busy the active side is. A failure costs no record.
    fn tidy(&mut self) {
        let now = self.clock.now();
        if now < self.tidy_at {
            return;
        }
        self.tidy_at = now + TIDYING;
        if let Err(error) = self.replica.tidy() {
            self.tidy_at = now + TIDYING_AGAIN;
            self.log.write_seldom(now, Level::Error, "journal-grows", &[("reason", &error)]);
        }
    }
}

fn connect(server: &Server) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let tls = server.tls.as_ref().ok_or_else(|| io::Error::other("a standby needs TLS"))?;
    let addresses = server.addresses().map_err(io::Error::other)?;
    let mut result = Err(io::ErrorKind::NotFound.into());
    for address in addresses {
        result = TcpStream::connect_timeout(&address, PATIENCE);
        if result.is_ok() {
            break;
        }
    }
    let socket = result?;
    socket.set_nodelay(true)?;
    // It reads its journal first.
    socket.set_read_timeout(Some(LONG_PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(StreamOwned::new(tls.client(&server.host)?, socket))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hol_journal::{Recorded, entry_of};
    use hol_simco::{Action, AddressTuple, AgentId, Location, Pid, Rule};

    use super::*;

    /// A block of this host, of which nothing changes but the lifetime.
    fn entry(pid: u32, out: &mut Vec<u8>) {
        let end = |location| AddressTuple::of_host(location, 17, "10.0.0.5:5004".parse().unwrap());
        let action = Action::Disable { internal: end(Location::Internal), external: end(Location::External) };
        let expires = Time::from_millis(1_800_000_000_000);
        let rule = Rule { pid: Pid(pid), owner: AgentId::NOBODY, expires, action };
        entry_of(&Recorded { rule, owner: "call-server".to_owned() }, out);
    }

    /// Under load no beat comes: something is recorded at any time.
    #[test]
    fn a_copy_is_compacted_though_batches_come_without_a_pause() {
        let directory = tempfile::tempdir().unwrap();
        let mut replica = Replica::open(directory.path()).unwrap();
        let mut log = Log::new(Level::Error, Box::new(io::sink()));
        let mut follower = Follower::new(&mut replica, &mut log, Clock::start());
        let now = follower.clock.now().as_nanos().to_be_bytes();
        let mut answers = Vec::new();
        follower.handle(Kind::Complete, 1, &now, &mut answers).unwrap();
        let mut changes = Vec::new();
        (0..200_000).for_each(|_| entry(7, &mut changes));
        follower.handle(Kind::Batch, 2, &changes, &mut answers).unwrap();
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
            follower.handle(Kind::Batch, 3, &one, &mut answers).unwrap();
            size() < 2 << 20
        });
        assert!(is_small, "{} octets of one rule", size());
    }
}
