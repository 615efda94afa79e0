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

use crate::message_transport::{MessageTransport, ReadOutcome};
use crate::outbox::Outbox;
use crate::tcp;

/// An agent's TLS session.
pub(crate) struct Tls {
    socket: Socket,
    session: ServerConnection,
    outbox: Outbox,
    /// Number of octets of the outbox that are in the record being sent.
    octets_in_record: usize,
    /// Number of decrypted octets that have not been returned yet.
    decrypted: usize,
    /// Whether the names in the agent's certificate have been returned.
    has_reported_names: bool,
}

impl Tls {
    /// Cost of a handshake step, in units of about a nanosecond of processor time: the key exchange, and either a
    /// signature and two verifications with ECDSA, or one operation with RSA.
    const HANDSHAKE_STEP_COST: u64 = 1_000_000;
    /// Cost per octet of a record without content, in units of about a nanosecond of processor time. Such a record may
    /// have only 22 octets, and yet request new keys.
    const EMPTY_OCTET: u64 = 200;
    /// Maximum number of octets of content in a record. RFC 8446 section 5.1.
    const RECORD_OCTETS: usize = 1 << 14;

    pub fn new(socket: Socket, config: Arc<ServerConfig>) -> io::Result<Self> {
        tcp::set_socket_options(&socket)?;
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Self {
            socket,
            session,
            outbox: Outbox::default(),
            octets_in_record: 0,
            decrypted: 0,
            has_reported_names: false,
        })
    }

    /// Reads octets from the socket and decrypts complete records. Returns the result of the read; `None` if there are
    /// decrypted octets to return.
    fn decrypt(&mut self) -> io::Result<Option<ReadOutcome>> {
        let was_handshaking = self.session.is_handshaking();
        let taken = match self.session.read_tls(&mut self.socket) {
            Ok(0) => return Ok(Some(ReadOutcome::End)),
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(ReadOutcome::Nothing)),
            Err(error) => return Err(error),
        };
        let processed = self.session.process_new_packets();
        let has_output = self.session.wants_write();
        // The answer of a handshake, or the alert about its failure, is sent now, or with the next data.
        let sent = self.send_records();
        self.decrypted = processed
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?
            .plaintext_bytes_to_read();
        sent?;
        if was_handshaking && (has_output || !self.session.is_handshaking()) {
            return Ok(Some(ReadOutcome::Work(Self::HANDSHAKE_STEP_COST)));
        }
        Ok((self.decrypted == 0).then_some(ReadOutcome::Work(Self::EMPTY_OCTET * taken as u64)))
    }

    /// Sends encrypted records; returns false if the kernel does not accept all of them.
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

/// Returns the DNS names in the peer's authenticated certificate; `None` if the peer has no certificate.
pub(crate) fn peer_dns_names(session: &ServerConnection) -> Option<Vec<String>> {
    let certificate = session.peer_certificates()?.first()?;
    let parsed = webpki::EndEntityCert::try_from(certificate).ok();
    Some(parsed.iter().flat_map(|parsed| parsed.valid_dns_names().map(str::to_owned)).collect())
}

impl MessageTransport for Tls {
    fn framing(&self) -> Framing {
        Framing::Stream
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        if !self.has_reported_names && !self.session.is_handshaking() {
            self.has_reported_names = true;
            return Ok(ReadOutcome::Names(peer_dns_names(&self.session)));
        }
        match self.session.reader().read(buffer) {
            Ok(0) => return Ok(ReadOutcome::End),
            Ok(count) => {
                self.decrypted -= count;
                return Ok(ReadOutcome::Octets(Bytes::copy_from_slice(&buffer[..count])));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The peer closed without a TLS alert. SIMCO's lengths show whether its messages are complete.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(ReadOutcome::End),
            Err(error) => return Err(error),
        }
        match self.decrypt()? {
            Some(outcome) => Ok(outcome),
            None => self.read(buffer),
        }
    }

    fn has_buffered_data(&self) -> bool {
        self.decrypted > 0 || !self.has_reported_names && !self.session.is_handshaking()
    }

    fn push(&mut self, message: &Message) {
        self.outbox.push(message);
    }

    fn unsent_octets(&self) -> usize {
        self.outbox.unsent().len()
    }

    fn needs_write(&self) -> bool {
        self.unsent_octets() > 0 || self.session.wants_write()
    }

    /// Sends the queued messages, one record at a time, so that at most one record is in memory in addition to the
    /// messages.
    fn flush(&mut self) -> io::Result<usize> {
        let before = self.unsent_octets();
        while self.send_records()? {
            self.outbox.consume(self.octets_in_record);
            let unsent = self.outbox.unsent();
            self.octets_in_record =
                self.session.writer().write(&unsent[..unsent.len().min(Self::RECORD_OCTETS)])?;
            if self.octets_in_record == 0 {
                break;
            }
        }
        Ok(before - self.unsent_octets())
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
