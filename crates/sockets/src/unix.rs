//! UNIX sockets between two programs of one host: one stream of octets, framed as TCP's, and no network under it.

use std::sync::atomic::{AtomicU16, Ordering};
use std::{io, process};

use hol_base::Time;
use hol_workloads::{LengthOf, Outgoing};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::assignment::{Counts, Site, SocketsError};
use crate::stream::Stream;
use crate::tcp::Tcp;
use crate::transceiver::{self, Fault, Heard, Opener, Sent, Transceiver, refused};

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
        Box::new(Connection(Stream::new(socket, self.length_of, self.gathers)))
    }

    fn holds_back(&self) -> bool {
        self.gathers
    }
}

/// One end of a pair.
#[derive(Debug)]
struct Connection(Stream);

impl Transceiver for Connection {
    fn socket(&self) -> &Socket {
        self.0.socket()
    }

    fn opened(&mut self) -> Result<(), Fault> {
        let peer = self.socket().peer_addr();
        peer.map(|_| ()).map_err(|_| Fault::Protocol("connection refused"))
    }

    fn send(&mut self, message: &Outgoing, _now: Time) -> io::Result<Sent> {
        self.0.send(&message.payload)
    }

    fn send_all(&mut self, _now: Time) -> io::Result<()> {
        self.0.send_all()
    }

    fn waits_for_room(&self) -> bool {
        self.0.waits_for_room()
    }

    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        self.0.shutdown()
    }

    fn receive(&mut self, buffer: &mut [u8], _now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        self.0.receive(buffer, take)
    }

    /// The kernel counts none.
    fn counts(&self) -> Counts {
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
