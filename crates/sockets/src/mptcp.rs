//! Multipath TCP (RFC 8684): TCP's framing over a socket that may have several subflows. Which addresses the
//! subflows use is a setting of the network namespace (`ip mptcp endpoint`), not of the socket.

use std::io;

use hol_workloads::Outgoing;
use socket2::{Protocol, Socket, Type};

use crate::assignment::{Counts, Site, SocketsError};
use crate::tcp::{self, Tcp};
use crate::transceiver::{Family, Fault, Heard, Opener, Sent, Transceiver};
use hol_system::{self as system, u32_at};

/// Opens Multipath TCP connections.
#[derive(Debug)]
pub(crate) struct Mptcp(pub(crate) Tcp);

impl Mptcp {
    pub(crate) const FAMILY: Family = Family {
        name: "MPTCP",
        kind: Type::STREAM,
        protocol: Protocol::MPTCP,
        cure: "use Linux 5.6 or later with CONFIG_MPTCP and sysctl net.mptcp.enabled=1, or the kernel world \
               (--world kernel)",
    };
}

impl Opener for Mptcp {
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError> {
        self.0.listen(server)
    }

    fn connect(&self, client: &Site, server: &Site) -> Result<Socket, SocketsError> {
        self.0.connect(client, server)
    }

    fn transceiver(&self, socket: Socket, _peer: &Site) -> Box<dyn Transceiver> {
        Box::new(Connection(tcp::Connection::new(socket, self.0.length_of)))
    }
}

/// One end of a Multipath TCP connection.
#[derive(Debug)]
struct Connection(tcp::Connection);

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
/// In `mptcpi_flags` of `struct mptcp_info`.
const FALLBACK: u32 = 1;

impl Transceiver for Connection {
    fn socket(&self) -> &Socket {
        self.0.socket()
    }

    /// A connection that fell back to TCP would be measured under a wrong name.
    fn opened(&mut self) -> Result<(), Fault> {
        let mut info = [0; 12];
        system::option(self.socket(), SOL_MPTCP, MPTCP_INFO, &mut info)
            .map_err(|_| Fault::Protocol("fell back to TCP"))?;
        match u32_at(&info, 8) {
            Some(flags) if flags & FALLBACK == 0 => Ok(()),
            _ => Err(Fault::Protocol("fell back to TCP")),
        }
    }

    fn send(&mut self, message: &Outgoing) -> io::Result<Sent> {
        self.0.send(message)
    }

    fn receive(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        self.0.receive(buffer, take)
    }

    /// All subflows together: `struct mptcp_subflow_data`, then a `struct tcp_info` for each.
    fn counts(&self) -> Counts {
        const HEADER: usize = 16;
        const SUBFLOWS: usize = 8;
        let mut data = [0; HEADER + SUBFLOWS * tcp::INFO_LENGTH];
        data[..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
        data[12..16].copy_from_slice(&(tcp::INFO_LENGTH as u32).to_ne_bytes());
        let Ok(length) = system::option(self.socket(), SOL_MPTCP, MPTCP_TCPINFO, &mut data) else {
            return Counts::default();
        };
        let subflows = data[..length].get(HEADER..).unwrap_or_default().chunks(tcp::INFO_LENGTH);
        subflows.map(tcp::info_counts).sum()
    }
}
