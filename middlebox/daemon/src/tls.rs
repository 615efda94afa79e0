//! TLS over TCP: an encrypted byte stream, and a certificate that identifies the agent. RFC 8446.
//!
//! A handshake is much work for few octets, so each of its steps is counted as work.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use hol_simco::{Framing, Message};
use rustls::{ServerConfig, ServerConnection};
use socket2::Socket;

use crate::line::{Heard, Line};
use crate::outbox::Outbox;
use crate::tcp;

/// A TLS session.
pub(crate) struct Tls {
    socket: Socket,
    session: ServerConnection,
    outbox: Outbox,
    /// Octets of the outbox in the record being sent.
    under_way: usize,
    /// Decrypted octets that have not been read.
    rest: usize,
    /// The agent's names have been reported.
    is_told: bool,
}

impl Tls {
    /// Cost of a handshake step, in units of about a nanosecond: a signature and two verifications of ECDSA,
    /// or one of RSA, and the key exchange.
    const STEP: u64 = 1_000_000;
    /// Cost of an octet without content: a record may have only 22 of them, and request new keys.
    const EMPTY_OCTET: u64 = 200;
    /// Octets of a record. RFC 8446 section 5.1.
    const RECORD: usize = 1 << 14;

    pub fn new(socket: Socket, config: Arc<ServerConfig>) -> io::Result<Self> {
        tcp::prepare(&socket)?;
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Self { socket, session, outbox: Outbox::default(), under_way: 0, rest: 0, is_told: false })
    }

    /// Reads octets from the socket and decrypts complete records; `None` if there is something to read.
    fn open(&mut self) -> io::Result<Option<Heard>> {
        let was_handshaking = self.session.is_handshaking();
        let taken = match self.session.read_tls(&mut self.socket) {
            Ok(0) => return Ok(Some(Heard::End)),
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(Heard::Nothing)),
            Err(error) => return Err(error),
        };
        let opened = self.session.process_new_packets();
        let says_something = self.session.wants_write();
        // The answer of a handshake, or its failure: sent now, or with the next data.
        let sent = self.send_records();
        self.rest = opened
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?
            .plaintext_bytes_to_read();
        sent?;
        if was_handshaking && (says_something || !self.session.is_handshaking()) {
            return Ok(Some(Heard::Work(Self::STEP)));
        }
        Ok((self.rest == 0).then_some(Heard::Work(Self::EMPTY_OCTET * taken as u64)))
    }

    /// Sends encrypted records; returns false if the kernel does not take all.
    fn send_records(&mut self) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Returns the names in the authenticated certificate of the other side, if it has one.
pub(crate) fn names_of(session: &ServerConnection) -> Option<Vec<String>> {
    let certificate = session.peer_certificates()?.first()?;
    let parsed = webpki::EndEntityCert::try_from(certificate).ok();
    Some(parsed.iter().flat_map(|parsed| parsed.valid_dns_names().map(str::to_owned)).collect())
}

impl Line for Tls {
    fn framing(&self) -> Framing {
        Framing::Stream
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard> {
        if !self.is_told && !self.session.is_handshaking() {
            self.is_told = true;
            return Ok(Heard::Names(names_of(&self.session)));
        }
        match self.session.reader().read(buffer) {
            Ok(0) => return Ok(Heard::End),
            Ok(count) => {
                self.rest -= count;
                return Ok(Heard::Octets(Bytes::copy_from_slice(&buffer[..count])));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // It closed without notice. Its messages are complete, or the session sees that they are not.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Heard::End),
            Err(error) => return Err(error),
        }
        match self.open()? {
            Some(heard) => Ok(heard),
            None => self.read(buffer),
        }
    }

    fn has_rest(&self) -> bool {
        self.rest > 0 || !self.is_told && !self.session.is_handshaking()
    }

    fn push(&mut self, message: &Message) {
        self.outbox.push(message);
    }

    fn waiting(&self) -> usize {
        self.outbox.rest().len()
    }

    fn is_to_write(&self) -> bool {
        self.waiting() > 0 || self.session.wants_write()
    }

    /// One record at a time, so that at most one is stored besides the messages themselves.
    fn flush(&mut self) -> io::Result<usize> {
        let before = self.waiting();
        while self.send_records()? {
            self.outbox.take(self.under_way);
            let rest = self.outbox.rest();
            self.under_way = self.session.writer().write(&rest[..rest.len().min(Self::RECORD)])?;
            if self.under_way == 0 {
                break;
            }
        }
        Ok(before - self.waiting())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.session.send_close_notify();
        self.send_records()?;
        self.socket.shutdown(Shutdown::Write)
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl AsFd for Tls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
