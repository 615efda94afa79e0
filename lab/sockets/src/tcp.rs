//! TCP: one byte stream with framed messages.

use std::net::IpAddr;

use hol_base::Duration;
use hol_tcp::{Algorithm, Nagle};
use hol_transport::PathState;
use hol_workloads::FramingFn;
use socket2::{Protocol, Socket, TcpKeepalive, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::host_addresses::AddressChange;
use crate::receive_timestamps;
use crate::stream::{Connection, Stream, StreamKind};
use crate::transceiver::{
    self, ConnectionFault, Opener, SenderState, SocketProtocol, Transceiver, failed_to,
};
use hol_system::{self as system, u32_at};

/// Opens TCP connections.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) family: SocketProtocol,
    pub(crate) config: hol_tcp::Config,
    pub(crate) framing_fn: FramingFn,
    /// Whether messages that become due together are sent with one system call.
    pub(crate) is_batching: bool,
    /// Whether the kernel reports when it received data.
    pub(crate) reports_receive_time: bool,
}

impl Tcp {
    pub(crate) const PROTOCOL: SocketProtocol = SocketProtocol {
        name: "TCP",
        kind: Type::STREAM,
        protocol: Protocol::TCP,
        cure: "use a kernel with IPv4",
    };
    /// Backlog of a listener, which is larger than any number of parallel connections.
    pub(crate) const BACKLOG: i32 = 1024;

    /// Sets the options of a bound socket; accepted sockets inherit them.
    fn prepare(&self, socket: Socket) -> Result<Socket, SocketsError> {
        let nodelay = self.config.nagle == Nagle::Off;
        socket.set_tcp_nodelay(nodelay).map_err(failed_to("set TCP_NODELAY"))?;
        let congestion = match self.config.congestion {
            Algorithm::Reno => "reno",
            Algorithm::Cubic => "cubic",
            Algorithm::Bbr => "bbr",
            Algorithm::Bbr3 => "bbr3",
            Algorithm::Dctcp => "dctcp",
            Algorithm::Prague => "prague",
        };
        socket
            .set_tcp_congestion(congestion.as_bytes())
            .map_err(failed_to(format!("set TCP_CONGESTION to {congestion}")))?;
        if self.config.mss != hol_tcp::ETHERNET_MSS {
            socket.set_tcp_mss(self.config.mss.into()).map_err(failed_to("set TCP_MAXSEG"))?;
        }
        if !self.config.user_timeout.is_zero() {
            socket
                .set_tcp_user_timeout(Some(to_std(self.config.user_timeout)))
                .map_err(failed_to("set TCP_USER_TIMEOUT"))?;
        }
        if !self.config.keepalive.is_zero() {
            let keepalive = TcpKeepalive::new()
                .with_time(to_std(self.config.keepalive))
                .with_interval(to_std(self.config.keepalive_interval))
                .with_retries(self.config.keepalive_probes);
            socket.set_tcp_keepalive(&keepalive).map_err(failed_to("set SO_KEEPALIVE"))?;
        }
        if self.reports_receive_time {
            receive_timestamps::enable(&socket);
        }
        Ok(socket)
    }

    /// Creates the framed stream of a socket.
    pub(crate) fn stream(&self, socket: Socket) -> Stream {
        Stream::new(socket, self.framing_fn, self.is_batching, self.reports_receive_time)
    }
}

impl Opener for Tcp {
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.prepare(self.family.open_wildcard_socket(server)?)?;
        socket.listen(Self::BACKLOG).map_err(failed_to("listen"))?;
        Ok(socket)
    }

    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.prepare(self.family.open_socket(client)?)?;
        transceiver::check_connecting(socket.connect(&transceiver::address(server)), server)?;
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, _peer: &EndAddresses) -> Box<dyn Transceiver> {
        let ends_if_address_is_removed = self.config.address_loss_aborts;
        let is_paced = matches!(self.config.congestion, Algorithm::Bbr | Algorithm::Bbr3 | Algorithm::Prague);
        Box::new(Connection {
            stream: self.stream(socket),
            kind: Kind { ends_if_address_is_removed, is_paced },
        })
    }
}

/// Converts a duration to the standard library's type.
const fn to_std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

/// How TCP differs from other stream sockets.
#[derive(Debug)]
struct Kind {
    /// Whether the connection ends if its local address is removed.
    ends_if_address_is_removed: bool,
    /// Whether the congestion control paces; otherwise the kernel's pacing rate has no meaning.
    is_paced: bool,
}

impl StreamKind for Kind {
    /// Fails if the connection's local address was removed, because Linux leaves it to the application to end such a
    /// connection. The socket is then closed with a RST, which cannot leave the host but frees the connection's state
    /// at once.
    fn change_address(&self, socket: &Socket, change: AddressChange) -> Result<(), ConnectionFault> {
        let own = socket.local_addr()?.as_socket().map(|own| own.ip());
        if !self.ends_if_address_is_removed || own.map(AddressChange::Removed) != Some(change) {
            return Ok(());
        }
        socket.set_linger(Some(std::time::Duration::ZERO))?;
        Err(ConnectionFault::Protocol("the local address is gone"))
    }

    fn counts(&self, socket: &Socket) -> SocketCounters {
        let mut info = [0; INFO_LENGTH];
        match system::read_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info) {
            Ok(length) => info_counts(&info[..length]),
            Err(_) => SocketCounters::default(),
        }
    }

    fn sending(&self, socket: &Socket) -> Option<SenderState> {
        let mut info = [0; INFO_LENGTH];
        let length = system::read_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
        let peer = socket.peer_addr().ok()?.as_socket()?.ip();
        let (path, retransmissions) = sender_state(&info[..length], peer, self.is_paced)?;
        Some(SenderState { paths: vec![path], retransmissions })
    }
}

/// Length of the part of `struct tcp_info` that is used, in octets.
pub(crate) const INFO_LENGTH: usize = 160;

/// Returns the state of the sender and the number of retransmissions from `struct tcp_info`; `None` if it has not sent
/// data. linux/tcp.h
pub(crate) fn sender_state(info: &[u8], peer: IpAddr, is_paced: bool) -> Option<(PathState, u64)> {
    /// The value of ssthresh that means "infinite": TCP_INFINITE_SSTHRESH, include/net/tcp.h
    const INFINITE: u32 = 0x7fff_ffff;
    const DATA_SEGMENTS_OUT: usize = 156;
    let at = |offset| u32_at(info, offset);
    // Kernels before 4.6 do not count segments: their number is zero.
    at(DATA_SEGMENTS_OUT).filter(|segments| *segments > 0)?;
    let (mss, [unacked, sacked, lost, retransmissions]) = (at(16)?, [at(24)?, at(28)?, at(32)?, at(36)?]);
    let octets = |segments: u32| u64::from(segments) * u64::from(mss);
    // tcp_packets_in_flight, include/net/tcp.h
    let in_flight = (unacked + retransmissions).saturating_sub(sacked + lost);
    let rate = info.get(104..112)?.first_chunk().map(|octets| u64::from_ne_bytes(*octets));
    let path = PathState {
        peer,
        cwnd: Some(octets(at(80)?)),
        ssthresh: at(76).filter(|segments| *segments < INFINITE).map(octets),
        srtt: at(68).filter(|micros| *micros > 0).map(|micros| Duration::from_micros(micros.into())),
        pacing_rate: rate.filter(|rate| is_paced && *rate < u64::MAX),
        in_flight: Some(octets(in_flight)),
    };
    Some((path, at(100)?.into()))
}

/// Returns the counters in `struct tcp_info`.
pub(crate) fn info_counts(info: &[u8]) -> SocketCounters {
    let at = |offset| u32_at(info, offset).unwrap_or(0).into();
    SocketCounters { retransmissions: at(100), packets_sent: at(136), packets_received: at(140) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a `struct tcp_info` with these 32-bit numbers, each at its offset.
    fn info(numbers: &[(usize, u32)]) -> Vec<u8> {
        let mut info = vec![0; INFO_LENGTH];
        for (at, number) in numbers {
            info[*at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        info
    }

    #[test]
    fn the_state_of_a_sender_is_in_octets_and_unreported_fields_are_empty() {
        let peer = IpAddr::from([10, 0, 1, 2]);
        let fields =
            [(16, 1448), (24, 20), (28, 3), (32, 2), (36, 1), (68, 40_123), (76, 0x7fff_ffff), (80, 30)];
        let info =
            |more: &[(usize, u32)]| info(&[&fields[..], &[(100, 5), (104, 7), (156, 100)], more].concat());
        let (path, retransmissions) = sender_state(&info(&[]), peer, false).unwrap();
        let expected = PathState {
            peer,
            cwnd: Some(30 * 1448),
            ssthresh: None,
            srtt: Some(Duration::from_micros(40_123)),
            pacing_rate: None,
            in_flight: Some((20 + 1 - 3 - 2) * 1448),
        };
        assert_eq!((path, retransmissions), (expected, 5));
        let (path, _) = sender_state(&info(&[(68, 0), (76, 15)]), peer, true).unwrap();
        assert_eq!((path.srtt, path.ssthresh, path.pacing_rate), (None, Some(15 * 1448), Some(7)));
        // If more segments are reported as acknowledged or lost than were sent, as may happen between two
        // acknowledgments, none is in flight.
        let (path, _) = sender_state(&info(&[(28, 25)]), peer, false).unwrap();
        assert_eq!(path.in_flight, Some(0));
        assert_eq!(sender_state(&info(&[(156, 0)]), peer, false), None, "the sender has sent no data");
        assert!(
            (0..INFO_LENGTH).all(|end| sender_state(&info(&[])[..end], peer, false).is_none()),
            "an older kernel"
        );
    }
}
