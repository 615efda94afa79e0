//! SCTP: each user message is one SIMCO message, whose stream follows from its TID.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use hol_simco::{Framing, Header, Message, PAYLOAD_PROTOCOL};
use hol_system::Association;
use socket2::Socket;

use crate::message_transport::{MessageTransport, ReadOutcome};

/// An agent's SCTP association.
#[derive(Debug)]
pub(crate) struct Sctp {
    association: Association,
    streams: u16,
    waiting: VecDeque<(u16, Bytes)>,
    octets: usize,
}

impl Sctp {
    pub fn new(socket: Socket) -> io::Result<Self> {
        let association = Association::new(socket)?;
        let streams = association.streams()?.max(1);
        Ok(Self { association, streams, waiting: VecDeque::new(), octets: 0 })
    }
}

impl MessageTransport for Sctp {
    fn framing(&self) -> Framing {
        Framing::Messages
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        match self.association.receive(buffer) {
            Ok(Some(message)) => Ok(ReadOutcome::Octets(message)),
            // An endless message is passed on as an empty one: both are invalid.
            Ok(None) if self.association.partial_length() > Header::LONGEST_REQUEST => {
                Ok(ReadOutcome::Octets(Bytes::new()))
            }
            Ok(None) => Ok(ReadOutcome::Nothing),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ReadOutcome::Nothing),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(ReadOutcome::End),
            Err(error) => Err(error),
        }
    }

    fn push(&mut self, message: &Message) {
        let octets = message.to_bytes();
        self.octets += octets.len();
        let stream = message.tid.0 % u32::from(self.streams);
        self.waiting.push_back((stream as u16, octets));
    }

    fn unsent_octets(&self) -> usize {
        self.octets
    }

    fn flush(&mut self) -> io::Result<usize> {
        let before = self.octets;
        while let Some((stream, octets)) = self.waiting.front() {
            match self.association.send(octets, *stream, PAYLOAD_PROTOCOL) {
                Ok(()) => {
                    self.octets -= octets.len();
                    self.waiting.pop_front();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(before - self.octets)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.association.socket().shutdown(Shutdown::Write)
    }
}

impl AsFd for Sctp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.association.socket().as_fd()
    }
}
