//! UNIX sockets between two programs of one host: one stream of octets, framed as TCP's, and no network under it.

use std::sync::atomic::{AtomicU16, Ordering};
use std::{io, process};

use hol_workloads::LengthOf;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::assignment::{Counts, Site};
use crate::error::SocketsError;
use crate::stream::{Connection, Own, Stream};
use crate::tcp::Tcp;
use crate::transceiver::{self, Fault, Opener, Transceiver, refused};

/// Opens pairs of UNIX sockets.
#[derive(Debug)]
pub(crate) struct Unix {
    pub(crate) length_of: LengthOf,
    /// What waits leaves together.
    pub(crate) gathers: bool,
}

/// A name of no file, which ends with its socket: unix(7), abstract. Each network namespace has its own, and in one of them each
/// process, for both ends are in it.
fn name(server: &Site) -> io::Result<SockAddr> {
    SockAddr::unix(format!("\0headofline-{}-{}", process::id(), server.port))
}

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
}

impl Opener for Unix {
    fn place(&self, server: &Site) -> Site {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        match server.port {
            0 => Site { port: NEXT.fetch_add(1, Ordering::Relaxed), ..server.clone() },
            _ => server.clone(),
        }
    }

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
        match socket.connect(&name) {
            // That nobody listens is known at once, and told when it is looked after.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            connecting => transceiver::begin(connecting, server)?,
        }
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, _peer: &Site) -> Box<dyn Transceiver> {
        Box::new(Connection { stream: Stream::new(socket, self.length_of, self.gathers, false), of: Kind })
    }
}

/// What is a pair's own.
#[derive(Debug)]
struct Kind;

impl Own for Kind {
    fn opened(&self, socket: &Socket) -> Result<(), Fault> {
        let peer = socket.peer_addr();
        peer.map(|_| ()).map_err(|_| Fault::Protocol("connection refused"))
    }

    /// The kernel counts none.
    fn counts(&self, _: &Socket) -> Counts {
        Counts::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hol_workloads::WorkloadSpec;

    use super::*;

    #[test]
    fn who_listens_is_reached_and_who_does_not_refuses() {
        let workload: WorkloadSpec = toml::from_str("kind = 'oneway'").unwrap();
        let unix = Unix { length_of: workload.length_of(), gathers: false };
        let site = Site { addresses: vec![Ipv4Addr::LOCALHOST.into()], port: std::process::id() as u16 };
        let connected = || unix.transceiver(unix.connect(&site, &site).unwrap(), &site).opened();
        assert_eq!(connected().unwrap_err().reason(), "connection refused");
        let listener = unix.listen(&site).unwrap();
        connected().unwrap();
        assert!(unix.accept(&listener, &site, false).is_ok());
    }
}
