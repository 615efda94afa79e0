//! The SCTP port of a middlebox behind one UDP port: finds the association of a datagram, and accepts new ones. RFC 6951 section 5.4.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use hol_base::Time;
use hol_sctp::Listener;
use hol_sctp::wire::sctp::Chunk;
use hol_sctp::wire::{Address, Transport};

use crate::association::Association;
use crate::datagram::{Header, parse};
use crate::path::{UdpPath, loopback};
use crate::{Role, random};

/// A listening port for SCTP over UDP. `Id` identifies an association for the caller.
///
/// A packet's association is found by the verification tag, so that the association continues when a NAT gives its peer
/// another UDP port (RFC 6951 section 5.4). An INIT always goes to the listener, even if the peer already has an
/// association, and so does a COOKIE ECHO with a new tag: if it comes from the same addresses and ports, the peer has
/// restarted, and the new association replaces the old one (RFC 9260 section 5.2.4 A). Nobody else can restart it, not
/// even another host behind the same NAT.
#[derive(Debug)]
pub struct Port<Id> {
    listener: Listener,
    associations: BTreeMap<Id, Location>,
    by_tag: BTreeMap<Tag, Id>,
    by_path: BTreeMap<(UdpPath, u16), Id>,
}

/// The addresses and ports from which the packets of an association come, and its tag.
#[derive(Debug, Clone, Copy)]
struct Location {
    path: UdpPath,
    tag: Tag,
}

/// The key of an association: a verification tag, which is unique among the associations with the same addresses and
/// the same SCTP port of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tag {
    number: u32,
    peer: IpAddr,
    local: IpAddr,
    peer_port: u16,
}

impl Tag {
    fn new(path: UdpPath, peer_port: u16, number: u32) -> Self {
        Self { number, peer: path.peer.ip(), local: path.local, peer_port }
    }
}

/// The reaction to a datagram that belongs to no association.
#[derive(Debug)]
pub enum PortOutput {
    /// This datagram must be sent back.
    Datagram(Bytes),
    /// A COOKIE ECHO has established this association.
    Association(Box<Association>),
    /// Nothing must be sent, and no association was established.
    None,
}

impl<Id: Copy + Ord> Port<Id> {
    /// Creates a port with the number `number`, whose UDP socket has an address of the same IP version as `address`.
    pub fn new(address: IpAddr, number: u16) -> Self {
        let config = Role::Middlebox.config();
        let local: Vec<Address> = vec![loopback(address)];
        let listener = Listener::new(config, local, number, random::secure_rng());
        Self { listener, associations: BTreeMap::new(), by_tag: BTreeMap::new(), by_path: BTreeMap::new() }
    }

    /// Returns the association to which a datagram belongs, according to the header of its packet. The rest of the
    /// packet may still be invalid.
    pub fn association_of(&self, path: UdpPath, octets: &[u8]) -> Option<Id> {
        let header = Header::of(octets)?;
        if header.is_reflected {
            // The tag is the peer's.
            return self.by_path.get(&(path, header.source_port)).copied();
        }
        self.by_tag.get(&Tag::new(path, header.source_port, header.verification_tag)).copied()
    }

    /// Handles a datagram that belongs to no association. `accepts` says whether there is room for another association;
    /// if not, INIT and COOKIE ECHO are ignored, and the peer will repeat them.
    pub fn answer(&mut self, now: Time, path: UdpPath, octets: &[u8], accepts: bool) -> PortOutput {
        let Some(packet) = parse(octets) else { return PortOutput::None };
        let is_handshake = matches!(packet.chunks[0], Chunk::Init(_) | Chunk::CookieEcho(_));
        if is_handshake && !accepts {
            return PortOutput::None;
        }
        let peer_port = packet.source_port;
        let packet = hol_sctp::wire::Packet::new(path.peer.ip(), path.local, packet);
        if let Some(endpoint) = self.listener.handle(now, packet) {
            // The cookie names the host that sent INIT. Otherwise the owner of a cookie could direct our data to another host.
            let is_owner = endpoint.primary() == Some(path.peer.ip());
            let association = Association::new(now, path, peer_port, endpoint);
            return if is_owner { PortOutput::Association(Box::new(association)) } else { PortOutput::None };
        }
        match self.listener.poll_transmit().map(|packet| packet.transport) {
            Some(Transport::Sctp(packet)) => PortOutput::Datagram(packet.to_bytes()),
            _ => PortOutput::None,
        }
    }

    /// Adds an association with the peer's SCTP port and this end's verification tag. Returns the association that it
    /// replaces if the peer has restarted.
    pub fn add(&mut self, id: Id, path: UdpPath, peer_port: u16, verification_tag: u32) -> Option<Id> {
        let tag = Tag::new(path, peer_port, verification_tag);
        self.associations.insert(id, Location { path, tag });
        self.by_tag.insert(tag, id);
        self.by_path.insert((path, peer_port), id)
    }

    /// Records that a valid packet of an association has come over `path`, over which packets are sent to the peer from
    /// now on. RFC 6951 section 5.4.
    pub fn note_path(&mut self, id: Id, path: UdpPath) {
        let Some(location) = self.associations.get_mut(&id).filter(|location| location.path != path) else {
            return;
        };
        let peer_port = location.tag.peer_port;
        self.by_path.remove(&(location.path, peer_port));
        location.path = path;
        self.by_path.insert((path, peer_port), id);
    }

    /// Removes an association that has ended.
    pub fn remove(&mut self, id: Id) {
        let Some(Location { path, tag }) = self.associations.remove(&id) else { return };
        self.by_tag.remove(&tag);
        // The place of an association that was replaced belongs to the new one.
        if self.by_path.get(&(path, tag.peer_port)) == Some(&id) {
            self.by_path.remove(&(path, tag.peer_port));
        }
    }

    /// Returns the number of associations.
    pub fn len(&self) -> usize {
        self.associations.len()
    }

    /// Returns whether there is no association.
    pub fn is_empty(&self) -> bool {
        self.associations.is_empty()
    }
}
