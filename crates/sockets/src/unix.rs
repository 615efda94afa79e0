//! UNIX sockets between two programs of one host: one stream of octets, framed as TCP's, and no network under it.

use std::io;

use hol_workloads::LengthOf;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::assignment::{Site, SocketsError};
use crate::tcp::{self, Tcp};
use crate::transceiver::{self, Opener, Transceiver, refused};

/// Opens pairs of UNIX sockets.
#[derive(Debug)]
pub(crate) struct Unix {
    pub(crate) length_of: LengthOf,
}

/// A name of no file, which ends with its socket: unix(7), abstract. Each network namespace has its own.
fn name(server: &Site) -> io::Result<SockAddr> {
    SockAddr::unix(format!("\0headofline-{}", server.port))
}

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
}

impl Opener for Unix {
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError> {
        let listening = socket().and_then(|socket| {
            socket.bind(&name(server)?)?;
            socket.listen(Tcp::BACKLOG)?;
            Ok(socket)
        });
        listening.map_err(refused("listen at a UNIX socket"))
    }

    fn connect(&self, _client: &Site, server: &Site) -> Result<Socket, SocketsError> {
        let make = || socket().and_then(|socket| Ok((socket, name(server)?)));
        let (socket, name) = make().map_err(refused("make a UNIX socket"))?;
        transceiver::begin(socket.connect(&name), server)?;
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, _peer: &Site) -> Box<dyn Transceiver> {
        Box::new(tcp::Connection::new(socket, self.length_of))
    }
}
