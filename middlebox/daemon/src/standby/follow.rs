//! The standby's side: it has what the active middlebox has recorded on its own disk.

use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use hol_agent::Server;
use hol_journal::{JournalError, Replica};
use rustls::{ClientConnection, StreamOwned};

use super::wire::{BEAT, Kind, LONG_PATIENCE, PATIENCE, receive};
use crate::clock::Clock;
use crate::log::{Level, Log};

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
    let clock = Clock::start();
    let mut replica = match Replica::open(state) {
        Ok(replica) => replica,
        Err(error) => return error,
    };
    loop {
        let Err(end) = copy(server, &mut replica, clock, &mut log);
        log.write_seldom(clock.now(), Level::Warn, "disconnected", &[("reason", &end)]);
        if let End::Journal(error @ JournalError::Broken { .. }) = end {
            return error;
        }
        thread::park_timeout(BEAT);
    }
}

fn copy(
    server: &Server,
    replica: &mut Replica,
    clock: Clock,
    log: &mut Log,
) -> Result<std::convert::Infallible, End> {
    let mut stream = connect(server)?;
    replica.begin();
    loop {
        let (kind, number, entries) = receive(&mut stream)?;
        match kind {
            Kind::Whole => {
                replica.add(&entries);
                continue;
            }
            Kind::Complete => {
                replica.finish()?;
                // From now on it beats once a second.
                stream.sock.set_read_timeout(Some(PATIENCE))?;
                log.write(clock.now(), Level::Info, "synchronized", &[("rules", &replica.len())]);
            }
            Kind::Batch => replica.record(&entries)?,
            Kind::Beat => replica.tidy()?,
        }
        stream.write_all(&number.to_be_bytes())?;
        stream.flush()?;
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
