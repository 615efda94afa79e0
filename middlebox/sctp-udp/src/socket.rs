//! The UDP socket of a port.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo, RcvBufForce};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::path::Path;

/// A non-blocking UDP socket that knows to which address of this host a datagram was sent, and answers from it.
#[derive(Debug)]
pub struct PortSocket {
    socket: Socket,
}

/// A datagram in the buffer of its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// Its addresses.
    pub path: Path,
    /// Its octets.
    pub length: usize,
}

impl PortSocket {
    /// Octets of datagrams for which the kernel has room: a burst of ten thousand small ones.
    const RECEIVE_BUFFER: usize = 8 << 20;

    /// Opens a socket, which accepts only datagrams that arrive at `interface`, if there is one.
    pub fn open(address: SocketAddr, interface: Option<&str>) -> io::Result<Self> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
        } else {
            setsockopt(&socket, Ipv4PacketInfo, &true)?;
        }
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        // Beyond net.core.rmem_max this needs CAP_NET_ADMIN.
        if setsockopt(&socket, RcvBufForce, &Self::RECEIVE_BUFFER).is_err() {
            socket.set_recv_buffer_size(Self::RECEIVE_BUFFER)?;
        }
        socket.bind(&address.into())?;
        Ok(Self { socket })
    }

    /// Returns its address, with the actual port.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads a datagram; `None` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<ReceivedDatagram>> {
        let mut control = cmsg_space!(in6_pktinfo);
        loop {
            let mut parts = [IoSliceMut::new(buffer)];
            let flags = MsgFlags::empty();
            let received =
                recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags);
            let received = match received.map_err(io::Error::from) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let peer = received.address.and_then(|address| socket_address(&address));
            let local = received.cmsgs()?.find_map(|message| destination(&message));
            let length = received.bytes;
            if let Some((peer, local)) = peer.zip(local) {
                return Ok(Some(ReceivedDatagram { path: Path { peer, local }, length }));
            }
        }
    }

    /// Sends a datagram. If there is no room, it is lost, as in a full queue on the path; SCTP sends it again.
    pub fn send(&self, octets: &[u8], path: Path) {
        let (parts, peer) = ([IoSlice::new(octets)], SockaddrStorage::from(path.peer));
        let send = |source: ControlMessage<'_>| {
            sendmsg(self.socket.as_raw_fd(), &parts, &[source], MsgFlags::empty(), Some(&peer))
        };
        // An error belongs to this datagram or an earlier one, which are lost.
        let _ = match path.local {
            IpAddr::V4(local) => send(ControlMessage::Ipv4PacketInfo(&in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: in_addr { s_addr: u32::from_ne_bytes(local.octets()) },
                ipi_addr: in_addr { s_addr: 0 },
            })),
            IpAddr::V6(local) => send(ControlMessage::Ipv6PacketInfo(&in6_pktinfo {
                ipi6_addr: in6_addr { s6_addr: local.octets() },
                ipi6_ifindex: 0,
            })),
        };
    }
}

impl AsFd for PortSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::from(*address));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::from(*address)))
}

/// Returns the address of this host to which a datagram was sent. ip(7), IP_PKTINFO.
fn destination(message: &ControlMessageOwned) -> Option<IpAddr> {
    match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into()),
        _ => None,
    }
}
