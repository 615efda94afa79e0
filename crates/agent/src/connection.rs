//! A blocking connection that carries whole messages, over TCP or SCTP.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use bytes::Bytes;
use hol_base::Duration;
use hol_simco::{Message, length_of};
use hol_transport::{Framer, Passage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::deadline::{Deadline, standard};
use crate::{Server, SessionError, Transport};

/// Octets that are read at a time.
const PIECE: usize = 1 << 16;
/// A silent middlebox is asked for a sign of life after this time, and again after the next.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(10);

/// A connection to a middlebox.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    framer: Framer,
    piece: Vec<u8>,
}

impl Connection {
    /// Connects to the first address of the server that answers.
    pub fn open(server: &Server) -> Result<Self, SessionError> {
        let mut failure = io::ErrorKind::NotFound.into();
        for address in server.addresses()? {
            match connect(server, address) {
                Ok(socket) => {
                    let framer = Framer::new(|octets| Ok(length_of(octets)));
                    return Ok(Self { socket, framer, piece: vec![0; PIECE] });
                }
                Err(error) if is_missing(&error) => return Err(SessionError::NoSctp),
                Err(error) => failure = error,
            }
        }
        Err(SessionError::Connect { server: Box::new(server.clone()), source: failure })
    }

    /// Sends a whole message.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.socket.write_all(&message.to_bytes())
    }

    /// The next whole message; `None` if there is none by the deadline.
    pub fn receive(&mut self, deadline: Deadline) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(framed) = self.framer.next().map_err(io::Error::other)? {
                return Ok(Some(framed.payload));
            }
            if !self.wait(deadline)? {
                return Ok(None);
            }
            let length = self.socket.read(&mut self.piece)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.framer.push(Bytes::copy_from_slice(&self.piece[..length]), Passage::default());
        }
    }

    /// Waits until there is something to read; false if there is nothing by the deadline.
    fn wait(&self, deadline: Deadline) -> io::Result<bool> {
        loop {
            let remaining = deadline.remaining().and_then(|time| Timespec::try_from(time).ok());
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], remaining.as_ref()) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }
}

/// True if the kernel has no such protocol.
fn is_missing(error: &io::Error) -> bool {
    let number = Errno::from_io_error(error);
    matches!(number, Some(Errno::PROTONOSUPPORT | Errno::SOCKTNOSUPPORT))
}

fn connect(server: &Server, address: SocketAddr) -> io::Result<Socket> {
    let protocol = match server.transport {
        Transport::Tcp => Protocol::TCP,
        Transport::Sctp => Protocol::SCTP,
    };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    let patience = standard(server.patience);
    socket.connect_timeout(&address.into(), patience)?;
    socket.set_write_timeout(Some(patience))?;
    if server.transport == Transport::Tcp {
        socket.set_tcp_nodelay(true)?;
        let keepalive =
            TcpKeepalive::new().with_time(standard(KEEPALIVE)).with_interval(standard(KEEPALIVE_AGAIN));
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(socket)
}
