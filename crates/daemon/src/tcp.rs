//! TCP: messages one behind the other in a stream of octets.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use hol_simco::{Framing, Message};
use socket2::{Socket, TcpKeepalive};

use crate::line::{Heard, Line};

/// A TCP connection.
#[derive(Debug)]
pub(crate) struct Tcp {
    socket: Socket,
    /// Encoded messages; the first `sent` octets are gone.
    waiting: Vec<u8>,
    sent: usize,
}

impl Tcp {
    /// Room that is kept for the next messages when all are sent: little, for there may be ten thousand connections.
    const KEPT: usize = 4096;

    pub fn new(socket: Socket) -> io::Result<Self> {
        // Replies to pipelined requests are not held back for one another, and who has vanished is found out.
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_keepalive(&keepalive())?;
        Ok(Self { socket, waiting: Vec::new(), sent: 0 })
    }
}

/// Who has vanished is found out after four minutes: the kernel's own default is two hours and more.
fn keepalive() -> TcpKeepalive {
    let seconds = std::time::Duration::from_secs;
    TcpKeepalive::new().with_time(seconds(120)).with_interval(seconds(30)).with_retries(4)
}

impl Line for Tcp {
    fn framing(&self) -> Framing {
        Framing::Stream
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard> {
        match self.socket.read(buffer) {
            Ok(0) => Ok(Heard::End),
            Ok(count) => Ok(Heard::Octets(Bytes::copy_from_slice(&buffer[..count]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Heard::Nothing),
            Err(error) => Err(error),
        }
    }

    fn push(&mut self, message: &Message) {
        if self.sent > self.waiting.len() / 2 {
            self.waiting.drain(..self.sent);
            self.sent = 0;
        }
        message.append_to(&mut self.waiting);
    }

    fn waiting(&self) -> usize {
        self.waiting.len() - self.sent
    }

    fn flush(&mut self) -> io::Result<usize> {
        let before = self.sent;
        while self.waiting() > 0 {
            match self.socket.write(&self.waiting[self.sent..]) {
                Ok(octets) => self.sent += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(self.sent - before),
                Err(error) => return Err(error),
            }
        }
        let flushed = self.sent - before;
        self.waiting.clear();
        self.waiting.shrink_to(Self::KEPT);
        self.sent = 0;
        Ok(flushed)
    }

    fn finish(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
