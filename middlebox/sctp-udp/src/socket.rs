//! The UDP sockets of a port.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo, sock_filter, sock_fprog};
use nix::sys::socket::sockopt::{AttachReusePortCbpf, Ipv4PacketInfo, Ipv6RecvPacketInfo, RcvBufForce};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::path::UdpPath;
use crate::random;

/// A non-blocking UDP socket that determines to which address of this host a datagram was sent, and answers from this
/// address.
///
/// A port has several sockets, each with its own queue in the kernel. The datagrams of one host are always in the same
/// two queues, one for INITs and one for all others. A flood of INITs therefore does not delay associations, and any
/// other flood delays only the associations of hosts that use the same queue: stochastic fairness queueing (McKenney,
/// INFOCOM 1990).
#[derive(Debug)]
pub struct PortSocket {
    socket: Socket,
}

/// A received datagram, whose octets are in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// The addresses between which the datagram was sent.
    pub path: UdpPath,
    /// The length of the datagram in octets.
    pub length: usize,
}

impl PortSocket {
    /// Number of sockets per port.
    pub const QUEUES: usize = 2 * Self::HOST_QUEUES;
    /// Number of queues over which hosts are distributed.
    const HOST_QUEUES: usize = 1 << Self::HOST_BITS;
    const HOST_BITS: u32 = 5;
    /// Size of a queue in octets: room for at least five hundred small datagrams.
    const QUEUE_OCTETS: usize = 512 << 10;

    /// Opens the sockets of a port. If `interface` is given, they accept only datagrams that arrive over this
    /// interface.
    pub fn open_port(address: SocketAddr, interface: Option<&str>) -> io::Result<Vec<Self>> {
        // The first socket takes the port for itself, so that no other program has it.
        let first = Self::open(address, interface, false)?;
        first.socket.set_reuse_port(true)?;
        let address = first.address()?;
        let mut sockets = vec![first];
        for _ in 1..Self::QUEUES {
            sockets.push(Self::open(address, interface, true)?);
        }
        sockets[0].select_queues(address.is_ipv6())?;
        Ok(sockets)
    }

    fn open(address: SocketAddr, interface: Option<&str>, shares_port: bool) -> io::Result<Self> {
        let kind = Type::DGRAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
        socket.set_reuse_port(shares_port)?;
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
        if setsockopt(&socket, RcvBufForce, &Self::QUEUE_OCTETS).is_err() {
            socket.set_recv_buffer_size(Self::QUEUE_OCTETS)?;
        }
        socket.bind(&address.into())?;
        Ok(Self { socket })
    }

    /// Makes the kernel select the socket for each datagram with a BPF program. socket(7), SO_ATTACH_REUSEPORT_CBPF.
    fn select_queues(&self, is_ipv6: bool) -> io::Result<()> {
        let mut program = selection(is_ipv6, Self::HOST_BITS);
        let filter = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        Ok(setsockopt(&self.socket, AttachReusePortCbpf, &filter)?)
    }

    /// Returns the socket's address, with the actual port.
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
                return Ok(Some(ReceivedDatagram { path: UdpPath { peer, local }, length }));
            }
        }
    }

    /// Sends a datagram. If the socket has no room, the datagram is lost, as in a full queue on the path, and SCTP
    /// sends its data again.
    pub fn send(&self, octets: &[u8], path: UdpPath) {
        let (parts, peer) = ([IoSlice::new(octets)], SockaddrStorage::from(path.peer));
        let send = |source: ControlMessage<'_>| {
            sendmsg(self.socket.as_raw_fd(), &parts, &[source], MsgFlags::empty(), Some(&peer))
        };
        // An error is about this datagram or an earlier one; that datagram is lost.
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

/// Returns a classic BPF program that selects one of 2^`host_bits` queues by a hash of the sender's address, or for an
/// INIT one of equally many further queues. Of an IPv6 address only the first 64 bits count, because a single host may
/// have all addresses of such a network. The hash has random factors, so that nobody can choose an address for a
/// certain queue. linux/filter.h, linux/bpf_common.h
fn selection(is_ipv6: bool, host_bits: u32) -> Vec<sock_filter> {
    /// Offsets from this number on are relative to the IP header (SKF_NET_OFF); all lower ones are relative to the SCTP
    /// packet.
    const IP_HEADER: u32 = 0xfff0_0000;
    const VERIFICATION_TAG: u32 = 4;
    let [load, add, multiply, shift, xor_x] = [0x20, 0x04, 0x24, 0x74, 0xac];
    let [to_x, from_x, jump_if_equal, answer] = [0x07, 0x87, 0x15, 0x16];
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let mut rng = random::secure_rng();
    let mut factor = || rng.next_u32() | 1;
    let source = if is_ipv6 {
        vec![step(load, IP_HEADER + 8), step(to_x, 0), step(load, IP_HEADER + 12), step(xor_x, 0)]
    } else {
        vec![step(load, IP_HEADER + 12)]
    };
    let hash =
        [step(multiply, factor()), step(to_x, 0), step(shift, 16), step(xor_x, 0), step(multiply, factor())];
    let queue = [step(shift, 32 - host_bits), step(to_x, 0)];
    // The tag of an INIT is zero: RFC 9260 section 8.5.1. Other packets leave the program at the first `answer`.
    let is_init = sock_filter { jt: 2, ..step(jump_if_equal, 0) };
    let others = [step(load, VERIFICATION_TAG), is_init, step(from_x, 0), step(answer, 0)];
    let inits = [step(from_x, 0), step(add, 1 << host_bits), step(answer, 0)];
    [&source[..], &hash, &queue, &others, &inits].concat()
}
