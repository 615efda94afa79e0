//! A UDP port with any number of associations. RFC 6951.

use std::sync::Arc;

use hol_base::Time;
use hol_sctp_udp::{Association, Packet, Port, PortOutput, PortSocket, ReceivedDatagram, UdpPath, parse};
use hol_simco::{PORT, SessionId};

use crate::listeners::NewConnection;
use crate::sctp_over_udp::SctpOverUdp;
use crate::{DaemonError, ListenAddress, Transport};

/// A UDP port for SCTP over UDP, with its associations.
#[derive(Debug)]
pub(crate) struct SctpPort {
    listen: ListenAddress,
    /// The sockets of the port; each receives the datagrams of some hosts.
    sockets: Vec<Arc<PortSocket>>,
    port: Port<SessionId>,
    buffer: Box<[u8]>,
    /// Number of packets without an association that may still be handled in this turn of the queue.
    strangers_left: usize,
}

/// The content of a received datagram.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A packet for this session, and the addresses that it was sent between.
    Packet(SessionId, UdpPath, Packet),
    /// A packet that establishes a new association.
    Association(Box<Association>, UdpPath),
    /// Nothing that concerns a session: the datagram was answered already, or it was invalid or unwanted.
    None,
}

impl SctpPort {
    /// Number of sockets per port.
    pub const QUEUES: usize = PortSocket::QUEUES;
    /// Maximum number of datagrams read from a queue per turn; the others wait in the kernel.
    pub const MAX_DATAGRAMS: usize = 64;
    /// Maximum number of packets without an association that are handled per queue and turn.
    const MAX_STRANGERS: usize = 16;
    /// Length of the longest datagram, in octets.
    const LONGEST_DATAGRAM: usize = 1 << 16;

    /// Opens a port for each of these addresses that is for SCTP over UDP; protected sockets are bound to the
    /// interface.
    pub fn open_all(all: &[ListenAddress], interface: Option<&str>) -> Result<Vec<Self>, DaemonError> {
        let open = |listen: &ListenAddress| {
            let interface = interface.filter(|_| listen.is_protected);
            let sockets = PortSocket::open_port(listen.address, interface);
            let opened = sockets.and_then(|sockets| Ok((sockets[0].address()?, sockets)));
            let (address, sockets) = opened.map_err(|source| DaemonError::Listen { at: *listen, source })?;
            Ok(Self {
                listen: ListenAddress { address, ..*listen },
                sockets: sockets.into_iter().map(Arc::new).collect(),
                port: Port::new(address.ip(), PORT),
                buffer: vec![0; Self::LONGEST_DATAGRAM].into(),
                strangers_left: Self::MAX_STRANGERS,
            })
        };
        over_udp(all).map(open).collect()
    }

    /// Returns the number of UDP sockets that the ports of these addresses need.
    pub fn sockets_for(all: &[ListenAddress]) -> usize {
        over_udp(all).count() * Self::QUEUES
    }

    /// Returns the address of the port, with the actual port number.
    pub fn address(&self) -> ListenAddress {
        self.listen
    }

    /// Returns the sockets of the port.
    pub fn sockets(&self) -> impl Iterator<Item = &PortSocket> {
        self.sockets.iter().map(Arc::as_ref)
    }

    /// Begins a turn, in which a queue is read.
    pub fn begin_turn(&mut self) {
        self.strangers_left = Self::MAX_STRANGERS;
    }

    /// Reads a datagram from a queue and handles it. `None` if there is none, or if enough packets without an
    /// association have been handled in this turn. `accepts` says whether there is room for another association.
    pub fn receive(&mut self, now: Time, queue: usize, accepts: bool) -> Option<Outcome> {
        let strangers_left = self.strangers_left.checked_sub(1)?;
        // An error belongs to an earlier datagram, or memory is short; the poller reports the socket again.
        let ReceivedDatagram { path, length } = self.sockets[queue].receive(&mut self.buffer).ok()??;
        let octets = &self.buffer[..length];
        if let Some(id) = self.port.association_of(path, octets) {
            let Some(packet) = parse(octets) else { return Some(Outcome::None) };
            self.port.note_path(id, path);
            return Some(Outcome::Packet(id, path, packet));
        }
        self.strangers_left = strangers_left;
        Some(match self.port.answer(now, path, octets, accepts) {
            PortOutput::Association(association) => Outcome::Association(association, path),
            PortOutput::Datagram(datagram) => {
                self.sockets[queue].send(&datagram, path);
                Outcome::None
            }
            PortOutput::None => Outcome::None,
        })
    }

    /// Returns a connection for the agent at the other end of a new association.
    pub fn new_connection(&self, association: Association, path: UdpPath) -> NewConnection {
        let line = Box::new(SctpOverUdp::new(association, Arc::clone(&self.sockets[0]), path));
        NewConnection { listen: self.listen, line, peer: path.peer }
    }

    /// Adds the association of a session. `peer_port` is the agent's SCTP port, `tag` the daemon's verification tag.
    /// Returns the session that the new association replaces, if there is one.
    pub fn add(&mut self, id: SessionId, path: UdpPath, peer_port: u16, tag: u32) -> Option<SessionId> {
        self.port.add(id, path, peer_port, tag)
    }

    /// Removes the association of a session that has ended.
    pub fn remove(&mut self, id: SessionId) {
        self.port.remove(id);
    }

    /// Returns the number of associations.
    #[cfg(test)]
    pub fn associations(&self) -> usize {
        self.port.len()
    }
}

fn over_udp(all: &[ListenAddress]) -> impl Iterator<Item = &ListenAddress> {
    all.iter().filter(|listen| listen.transport == Transport::SctpOverUdp)
}
