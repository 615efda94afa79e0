//! UNIX sockets between two programs of one host: a byte stream with framing as in TCP, without a network.

use std::sync::atomic::{AtomicU16, Ordering};
use std::{io, process};

use hol_workloads::FramingFn;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::stream::{Connection, Stream, StreamKind};
use crate::tcp::Tcp;
use crate::transceiver::{self, ConnectionFault, Opener, Transceiver, failed_to};

/// Opens pairs of UNIX sockets.
#[derive(Debug)]
pub(crate) struct Unix {
    pub(crate) framing_fn: FramingFn,
    /// Whether messages that become due together are sent with one system call.
    pub(crate) is_batching: bool,
}

/// Returns an abstract socket name, which exists as long as its socket (unix(7)). It is unique within the process and
/// the network namespace, which suffices because both ends are in this process.
fn name(server: &EndAddresses) -> io::Result<SockAddr> {
    SockAddr::unix(format!("\0headofline-{}-{}", process::id(), server.port))
}

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)
}

impl Opener for Unix {
    fn server_address(&self, server: &EndAddresses) -> EndAddresses {
        static NEXT_NUMBER: AtomicU16 = AtomicU16::new(1);
        match server.port {
            0 => EndAddresses { port: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed), ..server.clone() },
            _ => server.clone(),
        }
    }

    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let listening = socket().and_then(|socket| {
            socket.bind(&name(server)?)?;
            socket.listen(Tcp::BACKLOG)?;
            Ok(socket)
        });
        listening.map_err(failed_to("listen on a UNIX socket"))
    }

    fn connect(&self, _client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let make = || socket().and_then(|socket| Ok((socket, name(server)?)));
        let (socket, name) = make().map_err(failed_to("create a UNIX socket"))?;
        match socket.connect(&name) {
            // A missing listener is known at once, and reported when the connection is handled.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            connecting => transceiver::check_connecting(connecting, server)?,
        }
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, _peer: &EndAddresses) -> Box<dyn Transceiver> {
        Box::new(Connection {
            stream: Stream::new(socket, self.framing_fn, self.is_batching, false),
            kind: Kind,
        })
    }
}

/// How UNIX sockets differ from other stream sockets.
#[derive(Debug)]
struct Kind;

impl StreamKind for Kind {
    fn opened(&self, socket: &Socket) -> Result<(), ConnectionFault> {
        let peer = socket.peer_addr();
        peer.map(|_| ()).map_err(|_| ConnectionFault::Protocol("connection refused"))
    }

    /// Returns zeros, because the kernel has no counters for UNIX sockets.
    fn counts(&self, _: &Socket) -> SocketCounters {
        SocketCounters::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hol_workloads::WorkloadSpec;

    use super::*;

    #[test]
    fn a_listening_server_accepts_and_a_missing_one_refuses() {
        let workload: WorkloadSpec = toml::from_str("kind = 'oneway'").unwrap();
        let unix = Unix { framing_fn: workload.kind.workload().framing_fn(), is_batching: false };
        let site =
            EndAddresses { addresses: vec![Ipv4Addr::LOCALHOST.into()], port: std::process::id() as u16 };
        let connected = || unix.transceiver(unix.connect(&site, &site).unwrap(), &site).opened();
        assert_eq!(connected().unwrap_err().reason(), "connection refused");
        let listener = unix.listen(&site).unwrap();
        connected().unwrap();
        assert!(unix.accept(&listener, &site, false).is_ok());
    }
}
