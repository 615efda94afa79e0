//! A socket of UDP under a transport of this program: datagrams to and from one peer, and what IP's header says of marks.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;

use bytes::Bytes;
use hol_system as system;
use hol_wire::Ecn;
use socket2::{Protocol, Socket, Type};

use crate::assignment::{Site, SocketsError};
use crate::ip_options::IpOptions;
use crate::transceiver::{self, Family, Fault, read_up_to, refused};

/// A connected socket, and what it has no room for.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) socket: Socket,
    /// So many are read before others have their turn.
    reads: usize,
    options: &'static IpOptions,
    /// What the headers say as long as nothing else is set.
    says: Ecn,
    unsent: VecDeque<(Bytes, Ecn)>,
    /// What came before it was there.
    early: VecDeque<(Bytes, Ecn)>,
}

impl Datagrams {
    /// Sockets of UDP.
    pub(crate) const FAMILY: Family = Family {
        name: "UDP",
        kind: Type::DGRAM,
        protocol: Protocol::UDP,
        cure: "use a kernel with this version of IP",
    };

    /// A socket that sends no fragments, not even where the path is known to be too narrow: what is too long is lost. It tells how
    /// what comes is marked if somebody wants to know.
    pub(crate) fn open(site: &Site, tells_marks: bool) -> Result<Socket, SocketsError> {
        let socket = Self::FAMILY.socket(site)?;
        let options = IpOptions::of(site.addresses[0]);
        let set =
            |name, value: libc::c_int| system::set_option(&socket, options.level, name, &value.to_ne_bytes());
        set(options.mtu_discover, libc::IP_PMTUDISC_PROBE).map_err(refused("set IP_MTU_DISCOVER"))?;
        if tells_marks {
            set(options.tells_service, 1).map_err(refused("set IP_RECVTOS"))?;
        }
        Ok(socket)
    }

    /// Has a client's socket know its server.
    pub(crate) fn connect(socket: Socket, server: &Site) -> Result<Socket, SocketsError> {
        transceiver::begin(socket.connect(&transceiver::address(server)), server)?;
        Ok(socket)
    }

    /// Over a socket that is connected to such an address, or is going to be.
    pub(crate) fn over(socket: Socket, peer: IpAddr, reads: usize) -> Self {
        let (options, says) = (IpOptions::of(peer), Ecn::NotCapable);
        Self { socket, reads, options, says, unsent: VecDeque::new(), early: VecDeque::new() }
    }

    /// Sends this after all that waits.
    pub(crate) fn push(&mut self, octets: Bytes, ecn: Ecn) {
        self.unsent.push_back((octets, ecn));
    }

    /// Whether there is something for which there was no room.
    pub(crate) fn is_full(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what there is room for.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while let Some((octets, ecn)) = self.unsent.front() {
            if *ecn != self.says {
                let octet = libc::c_int::from(ecn.bits()).to_ne_bytes();
                system::set_option(&self.socket, self.options.level, self.options.service, &octet)?;
                self.says = *ecn;
            }
            let mut sent = self.socket.send(octets);
            if sent.as_ref().is_err_and(is_of_the_path) {
                // That was the news of an earlier one; this one has not been sent yet.
                sent = self.socket.send(octets);
            }
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if !is_of_the_path(&error) => return Err(error),
                _ => drop(self.unsent.pop_front()),
            }
        }
        Ok(())
    }

    /// Takes a datagram that came before the socket was there.
    pub(crate) fn hear_early(&mut self, octets: Bytes, ecn: Ecn) {
        self.early.push_back((octets, ecn));
    }

    /// Gives what has come to `take`, until others are to have their turn.
    pub(crate) fn receive_all(
        &mut self,
        buffer: &mut [u8],
        mut take: impl FnMut(&[u8], Ecn),
    ) -> Result<(), Fault> {
        read_up_to(self.reads, || {
            self.receive(buffer)?.into_iter().for_each(|(octets, ecn)| take(octets, ecn));
            Ok(())
        })
    }

    /// The next datagram, in `buffer`, and its mark; `None`: news of the path, which are left alone (RFC 9000 section 14.2.1).
    fn receive<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<(&'b [u8], Ecn)>> {
        if let Some((octets, ecn)) = self.early.pop_front() {
            let place = &mut buffer[..octets.len()];
            place.copy_from_slice(&octets);
            return Ok(Some((place, ecn)));
        }
        match read(&self.socket, buffer) {
            Err(error) if is_of_the_path(&error) => Ok(None),
            read => read.map(Some),
        }
    }
}

/// The next datagram of a socket, in `buffer`, and its mark.
pub(crate) fn read<'b>(socket: &Socket, buffer: &'b mut [u8]) -> io::Result<(&'b [u8], Ecn)> {
    // Room for one number, the Type of Service or traffic class as it came. ip(7), ipv6(7)
    let mut control = [0; 32];
    let read = system::receive(socket, buffer, &mut control)?;
    Ok((&buffer[..read.length], marks(&control[..read.control_length])))
}

/// What the header of IP said of marks, if the kernel tells.
fn marks(control: &[u8]) -> Ecn {
    let of_service = |(level, kind, value)| IpOptions::service_in(level, kind, value);
    system::items(control).find_map(of_service).map_or(Ecn::NotCapable, Ecn::of)
}

/// Something on the way, or the interface, did not take a datagram: it is lost, as others are that nobody tells of.
fn is_of_the_path(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::EMSGSIZE
                | libc::EPERM
                | libc::ENOBUFS
        )
    )
}
