//! A UDP socket below a userspace transport: datagrams to and from one peer, with their ECN marks.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::IpAddr;

use bytes::Bytes;
use hol_system as system;
use hol_wire::Ecn;
use socket2::{MsgHdr, Protocol, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::EndAddresses;
use crate::ip_options::IpOptions;
use crate::transceiver::{self, ConnectionFault, SocketProtocol, failed_to};
use crate::turns::{read_up_to, reads_per_turn};

/// Maximum number of datagrams per send (Linux's UDP_MAX_SEGMENTS), and their octets.
const MAX_TOGETHER: usize = 64;
const MAX_OCTETS: usize = 65_000;

/// A connected socket, and the datagrams that wait for room in it.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    pub(crate) socket: Socket,
    /// Whether several datagrams are read per turn.
    is_batching: bool,
    /// Whether several datagrams can be sent in one call.
    segments: bool,
    /// Number of datagrams at the front of `unsent` that must be sent one by one.
    unbatched: usize,
    options: &'static IpOptions,
    /// The ECN field that the socket currently sends.
    current_ecn: Ecn,
    unsent: VecDeque<(Bytes, Ecn)>,
    /// Datagrams that arrived before the socket existed.
    early: VecDeque<(Bytes, Ecn)>,
}

impl DatagramSocket {
    /// The family of UDP sockets.
    pub(crate) const PROTOCOL: SocketProtocol = SocketProtocol {
        name: "UDP",
        kind: Type::DGRAM,
        protocol: Protocol::UDP,
        cure: "use a kernel with this version of IP",
    };

    /// Opens a socket that never fragments, even if the path MTU is known to be too small: datagrams that are
    /// too long are lost. It reports ECN marks if requested.
    pub(crate) fn open(site: &EndAddresses, reports_ecn: bool) -> Result<Socket, SocketsError> {
        let socket = Self::PROTOCOL.open_socket(site)?;
        let options = IpOptions::of(site.addresses[0]);
        let set =
            |name, value: libc::c_int| system::set_option(&socket, options.level, name, &value.to_ne_bytes());
        set(options.mtu_discover, libc::IP_PMTUDISC_PROBE).map_err(failed_to("set IP_MTU_DISCOVER"))?;
        if reports_ecn {
            set(options.report_service, 1).map_err(failed_to("set IP_RECVTOS"))?;
        }
        Ok(socket)
    }

    /// Connects a client's socket to its server.
    pub(crate) fn connect(socket: Socket, server: &EndAddresses) -> Result<Socket, SocketsError> {
        transceiver::check_connecting(socket.connect(&transceiver::address(server)), server)?;
        Ok(socket)
    }

    /// Wraps a socket that is, or will be, connected to this address.
    pub(crate) fn new(socket: Socket, peer: IpAddr, is_batching: bool) -> Self {
        let set = |name, value: libc::c_int| {
            system::set_option(&socket, libc::SOL_UDP, name, &value.to_ne_bytes()).is_ok()
        };
        if is_batching {
            // A kernel without this option delivers datagrams one by one.
            set(libc::UDP_GRO, 1);
        }
        // A kernel without this option (before Linux 4.18) would send several datagrams as one.
        let segments = is_batching && set(libc::UDP_SEGMENT, 0);
        let (options, current_ecn) = (IpOptions::of(peer), Ecn::NotCapable);
        Self {
            socket,
            is_batching,
            segments,
            unbatched: 0,
            options,
            current_ecn,
            unsent: VecDeque::new(),
            early: VecDeque::new(),
        }
    }

    /// Sends a datagram after the datagrams that wait.
    pub(crate) fn push(&mut self, octets: Bytes, ecn: Ecn) {
        self.unsent.push_back((octets, ecn));
    }

    /// Returns whether datagrams wait for room.
    pub(crate) fn is_full(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends as many datagrams as there is room for.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while let Some((_, ecn)) = self.unsent.front() {
            if *ecn != self.current_ecn {
                let octet = libc::c_int::from(ecn.bits()).to_ne_bytes();
                system::set_option(&self.socket, self.options.level, self.options.service, &octet)?;
                self.current_ecn = *ecn;
            }
            let together = self.batch_length();
            let mut sent = self.send(together);
            if sent.as_ref().is_err_and(is_path_error) {
                // The error belongs to an earlier datagram; this one has not been sent yet.
                sent = self.send(together);
            }
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if together > 1 && is_too_long(&error) => self.unbatched = together,
                Err(error) if together > 1 && is_segmentation_error(&error) => self.segments = false,
                Err(error) if !is_path_error(&error) => return Err(error),
                _ => {
                    self.unsent.drain(..together);
                    self.unbatched = self.unbatched.saturating_sub(together);
                }
            }
        }
        Ok(())
    }

    /// Returns how many datagrams at the front can be sent in one call: they have the same mark and the same length,
    /// except that the last may be shorter.
    fn batch_length(&self) -> usize {
        if !self.segments || self.unbatched > 0 {
            return 1;
        }
        let (first, mark) = &self.unsent[0];
        let (mut number, mut octets, mut ends) = (0, 0, false);
        for (datagram, its) in self.unsent.iter().take(MAX_TOGETHER) {
            octets += datagram.len();
            if ends || its != mark || datagram.len() > first.len() || octets > MAX_OCTETS {
                break;
            }
            number += 1;
            ends = datagram.len() < first.len();
        }
        number.max(1)
    }

    /// Sends the first `together` datagrams. udp(7), UDP_SEGMENT
    fn send(&self, together: usize) -> io::Result<usize> {
        let (first, _) = &self.unsent[0];
        if together == 1 {
            return self.socket.send(first);
        }
        let mut control = Vec::new();
        system::push_item(
            &mut control,
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            &(first.len() as u16).to_ne_bytes(),
        );
        let all: Vec<IoSlice<'_>> =
            self.unsent.iter().take(together).map(|(octets, _)| IoSlice::new(octets)).collect();
        self.socket.sendmsg(&MsgHdr::new().with_buffers(&all).with_control(&control), 0)
    }

    /// Handles a datagram that arrived before the socket existed.
    pub(crate) fn handle_early_datagram(&mut self, octets: Bytes, ecn: Ecn) {
        self.early.push_back((octets, ecn));
    }

    /// Passes the datagrams that have arrived to `take`, up to the limit of one turn.
    pub(crate) fn receive_all(
        &mut self,
        buffer: &mut [u8],
        mut take: impl FnMut(&[u8], Ecn),
    ) -> Result<(), ConnectionFault> {
        read_up_to(reads_per_turn(self.is_batching), || {
            if let Some(DatagramBatch { octets, ecn, datagram_length }) = self.receive(buffer)? {
                octets.chunks(datagram_length).for_each(|octets| take(octets, ecn));
            }
            Ok(())
        })
    }

    /// Reads into `buffer`; returns `None` for an ICMP error of the path, which is ignored (RFC 9000 section
    /// 14.2.1).
    fn receive<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<DatagramBatch<'b>>> {
        if let Some((octets, ecn)) = self.early.pop_front() {
            let place = &mut buffer[..octets.len()];
            place.copy_from_slice(&octets);
            return Ok(Some(DatagramBatch { datagram_length: place.len().max(1), octets: place, ecn }));
        }
        match read(&self.socket, buffer) {
            Err(error) if is_path_error(&error) => Ok(None),
            read => read.map(Some),
        }
    }
}

/// The datagrams of one read.
pub(crate) struct DatagramBatch<'b> {
    pub(crate) octets: &'b [u8],
    /// ECN codepoint of all datagrams.
    pub(crate) ecn: Ecn,
    /// Length of each datagram; the last one may be shorter.
    pub(crate) datagram_length: usize,
}

/// Reads from a socket into `buffer`.
pub(crate) fn read<'b>(socket: &Socket, buffer: &'b mut [u8]) -> io::Result<DatagramBatch<'b>> {
    // Room for two numbers: the Type of Service or traffic class, and the length of each. ip(7), ipv6(7),
    // udp(7)
    let mut control = [0; 64];
    let read = system::receive(socket, buffer, &mut control)?;
    let control = &control[..read.control_length];
    let datagram_length = system::items(control).find_map(length_of_each).unwrap_or(read.length);
    Ok(DatagramBatch {
        octets: &buffer[..read.length],
        ecn: ecn_of(control),
        datagram_length: datagram_length.max(1),
    })
}

/// Returns the length of each datagram, if the item of ancillary data is that of UDP_GRO.
fn length_of_each((level, kind, value): (libc::c_int, libc::c_int, &[u8])) -> Option<usize> {
    let is_it = (level, kind) == (libc::SOL_UDP, libc::UDP_GRO);
    let length = is_it.then(|| value.first_chunk()).flatten()?;
    usize::try_from(libc::c_int::from_ne_bytes(*length)).ok()
}

/// Returns the ECN field of the IP header, if the kernel reports it.
fn ecn_of(control: &[u8]) -> Ecn {
    let of_service = |(level, kind, value)| IpOptions::ecn_octet(level, kind, value);
    system::items(control).find_map(of_service).map_or(Ecn::NotCapable, Ecn::from_bits)
}

/// Returns whether the error means that a datagram of the call is too long; the kernel does not report which one.
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Returns whether the error means that the route cannot segment datagrams, so that later calls would fail too.
fn is_segmentation_error(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP))
}

/// Returns whether the error means that the path or the interface rejected a datagram. Such a datagram counts as lost,
/// like one that is lost silently.
fn is_path_error(error: &io::Error) -> bool {
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::turns::BUFFER_SIZE;

    /// Returns two connected sockets over loopback.
    fn pair(is_batching: bool) -> [DatagramSocket; 2] {
        let here = EndAddresses { addresses: vec![Ipv4Addr::LOCALHOST.into()], port: 0 };
        let sockets = [(); 2].map(|()| DatagramSocket::open(&here, true).unwrap());
        for (one, other) in [(0, 1), (1, 0)] {
            sockets[one].connect(&sockets[other].local_addr().unwrap()).unwrap();
        }
        sockets.map(|socket| DatagramSocket::new(socket, here.addresses[0], is_batching))
    }

    /// Returns datagrams of these lengths and marks, all different.
    fn datagrams(of: &[(usize, Ecn)]) -> Vec<(Bytes, Ecn)> {
        (0u8..).zip(of).map(|(number, (length, ecn))| (vec![number; *length].into(), *ecn)).collect()
    }

    const MIXED: [(usize, Ecn); 9] = [
        (1000, Ecn::NotCapable),
        (1000, Ecn::NotCapable),
        (1000, Ecn::Capable),
        (1000, Ecn::Capable),
        (400, Ecn::Capable),
        (400, Ecn::Capable),
        (1200, Ecn::Capable),
        (1200, Ecn::Capable),
        (1, Ecn::Capable),
    ];

    #[test]
    fn batched_datagrams_arrive_unchanged_with_their_ecn_marks() {
        for is_batching in [false, true] {
            let [mut one, mut other] = pair(is_batching);
            let sent = datagrams(&MIXED);
            sent.iter().for_each(|(octets, ecn)| one.push(octets.clone(), *ecn));
            one.flush().unwrap();
            assert!(!one.is_full());
            let (mut received, mut buffer) = (Vec::new(), vec![0; BUFFER_SIZE]);
            while received.len() < sent.len() {
                let take = |octets: &[u8], ecn| received.push((Bytes::copy_from_slice(octets), ecn));
                match other.receive_all(&mut buffer, take) {
                    Err(fault) if !fault.is_would_block() => panic!("{fault:?}"),
                    _ => {}
                }
            }
            assert_eq!(received, sent);
        }
    }

    #[test]
    fn datagrams_of_one_call_share_mark_and_length_except_a_shorter_last_one() {
        let [mut one, _] = pair(true);
        let mut calls = Vec::new();
        datagrams(&MIXED).into_iter().for_each(|(octets, ecn)| one.push(octets, ecn));
        while one.is_full() {
            let together = one.batch_length();
            calls.push(together);
            one.unsent.drain(..together);
        }
        assert_eq!(calls, [2, 3, 1, 3]);
        datagrams(&[(60_000, Ecn::NotCapable); 2])
            .into_iter()
            .for_each(|(octets, ecn)| one.push(octets, ecn));
        assert_eq!(one.batch_length(), 1, "no more than IP takes");
        one.unsent.clear();
        datagrams(&[(9, Ecn::NotCapable); 100]).into_iter().for_each(|(octets, ecn)| one.push(octets, ecn));
        assert_eq!(one.batch_length(), MAX_TOGETHER);
        // The kernel refused to send the first two datagrams in one call.
        one.unbatched = 2;
        assert_eq!(one.batch_length(), 1);
    }
}
