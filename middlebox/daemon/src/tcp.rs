//! TCP: consecutive messages in a byte stream.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use hol_simco::{Framing, Message};
use socket2::{Socket, TcpKeepalive};

use crate::message_transport::{MessageTransport, ReadOutcome};
use crate::outbox::Outbox;

/// An agent's TCP connection.
#[derive(Debug)]
pub(crate) struct Tcp {
    socket: Socket,
    outbox: Outbox,
}

impl Tcp {
    pub fn new(socket: Socket) -> io::Result<Self> {
        set_socket_options(&socket)?;
        Ok(Self { socket, outbox: Outbox::default() })
    }
}

/// Sets the options of a socket: replies to pipelined requests are not delayed, and agents that have vanished are
/// detected after four minutes, instead of more than two hours as by default.
pub(crate) fn set_socket_options(socket: &Socket) -> io::Result<()> {
    let seconds = std::time::Duration::from_secs;
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(seconds(120)).with_interval(seconds(30)).with_retries(4);
    socket.set_tcp_keepalive(&keepalive)
}

impl MessageTransport for Tcp {
    fn framing(&self) -> Framing {
        Framing::Stream
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        match self.socket.read(buffer) {
            Ok(0) => Ok(ReadOutcome::End),
            Ok(count) => Ok(ReadOutcome::Octets(Bytes::copy_from_slice(&buffer[..count]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ReadOutcome::Nothing),
            Err(error) => Err(error),
        }
    }

    fn push(&mut self, message: &Message) {
        self.outbox.push(message);
    }

    fn unsent_octets(&self) -> usize {
        self.outbox.unsent().len()
    }

    fn flush(&mut self) -> io::Result<usize> {
        let before = self.unsent_octets();
        while self.unsent_octets() > 0 {
            match self.socket.write(self.outbox.unsent()) {
                Ok(octets) => self.outbox.consume(octets),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(before - self.unsent_octets())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
