//! Encodes and parses the structures of SCTP's socket API: RFC 6458 defines them, `linux/sctp.h` their
//! layout. Times are in ms.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hol_base::Duration;
use hol_sctp::{Config, Scheduler};
use hol_transport::{PathState, PathStatus, Reliability};
use socket2::Socket;

use crate::clock::jiffy;
use crate::error::SocketsError;
use crate::flow_parameters::SocketCounters;
use crate::transceiver::{ConnectionFault, SenderState, SocketEvent, failed_to};
use crate::tuning;
use hol_system::{self as system, u16_at, u32_at};

pub(crate) const SOL_SCTP: i32 = 132;
pub(crate) const BINDX_ADD: i32 = 100;
pub(crate) const BINDX_REM: i32 = 101;
pub(crate) const CONNECTX: i32 = 110;
pub(crate) const PEER_PRIMARY_ADDR: i32 = 5;
pub(crate) const PRIMARY_ADDR: i32 = 6;
const GET_PEER_ADDR_INFO: i32 = 15;
const GET_PEER_ADDRS: i32 = 108;
const GET_LOCAL_ADDRS: i32 = 109;
const GET_ASSOC_STATS: i32 = 112;
/// Flag of `recvmsg` which says that the kernel delivered a notification instead of a message.
pub(crate) const MSG_NOTIFICATION: i32 = 0x8000;
/// The size of a buffer for ancillary data with `struct sctp_rcvinfo`, in octets, with a margin.
pub(crate) const RECEIVE_INFORMATION: usize = 64;

/// Types of ancillary data of SCTP, such as SCTP_SNDINFO.
const SNDINFO: i32 = 2;
const RCVINFO: i32 = 3;
const PRINFO: i32 = 5;
/// Offsets of the stream and of the association in the result of [`send_ancillary_data`].
const STREAM_OFFSET: usize = 16;
const ASSOCIATION: usize = STREAM_OFFSET + 12;
/// Flag SCTP_EOF in `struct sctp_sndinfo`: shut the association down.
const EOF_FLAG: u16 = 0x200;
/// Flag SCTP_UNORDERED in `struct sctp_sndinfo`: deliver the message unordered.
const UNORDERED_FLAG: u16 = 1;
/// The length of `struct sockaddr_storage`, in octets.
const SOCKADDR_STORAGE: usize = 128;
/// Types of notifications, such as SCTP_ASSOC_CHANGE.
const ASSOC_CHANGE: u16 = 0x8001;
const PEER_ADDR_CHANGE: u16 = 0x8002;
const SHUTDOWN_EVENT: u16 = 0x8005;
/// The length of `struct sctp_paddr_change`, the longest notification, in octets.
pub(crate) const LONGEST_NOTIFICATION: usize = 148;

/// A socket option with its value.
#[derive(Debug)]
pub(crate) struct SocketOption {
    pub(crate) name: i32,
    pub(crate) value: Vec<u8>,
    /// The operation that sets the option, for the error message.
    pub(crate) doing: &'static str,
}

/// Builds a C structure from its fields.
#[derive(Debug, Default)]
struct Octets(Vec<u8>);

impl Octets {
    /// Starts a structure with the association id 0, which means the socket's own association.
    fn of_socket() -> Self {
        Self::default().u32(0)
    }
    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }
    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }
    fn ms(self, value: Duration) -> Self {
        self.u32(u32::try_from(value.as_millis()).unwrap_or(u32::MAX))
    }
    fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }
    /// Appends an address, encoded as a `struct sockaddr_in` or `struct sockaddr_in6`.
    fn address(mut self, address: SocketAddr) -> Self {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        self.0.extend((family as u16).to_ne_bytes());
        self.0.extend(address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => {
                self.0.extend(ip.octets());
                self.zeros(8)
            }
            IpAddr::V6(ip) => {
                // The flow label precedes the address, the scope follows it.
                self = self.zeros(4);
                self.0.extend(ip.octets());
                self.zeros(4)
            }
        }
    }
    /// Appends an address, encoded as a `struct sockaddr_storage`.
    fn storage(self, address: SocketAddr) -> Self {
        let end = self.0.len() + SOCKADDR_STORAGE;
        let mut with_address = self.address(address);
        with_address.0.resize(end, 0);
        with_address
    }
}

/// Returns all options that must be set on a socket before it has an association.
pub(crate) fn socket_options(config: &Config) -> Vec<SocketOption> {
    let mut settings = vec![init(config), rto(config), association(config), path(config), thresholds(config)];
    let flag = |value| Octets::default().u32(u32::from(value));
    let for_socket = |value: u32| Octets::of_socket().u32(value);
    if config.auth {
        // Off by default: net.sctp.auth_enable and net.sctp.addip_enable. AUTH comes first, since ASCONF
        // needs it.
        settings.push(setting(129, "set SCTP_AUTH_SUPPORTED", for_socket(1)));
        settings.push(setting(128, "set SCTP_ASCONF_SUPPORTED", for_socket(config.addip.into())));
    }
    settings.extend(interleaving(config).into_iter().flatten());
    settings.extend(scheduler(config));
    settings.extend([
        setting(3, "set SCTP_NODELAY", flag(!config.nagle)),
        delayed_sack(config),
        setting(20, "set SCTP_MAX_BURST", for_socket(config.max_burst)),
        setting(113, "set SCTP_PR_SUPPORTED", for_socket(config.partial_reliability.into())),
        setting(32, "set SCTP_RECVRCVINFO", flag(true)),
        event(ASSOC_CHANGE),
        event(PEER_ADDR_CHANGE),
    ]);
    settings
}

fn setting(name: i32, doing: &'static str, Octets(value): Octets) -> SocketOption {
    SocketOption { name, value, doing }
}

fn saturating_u16(value: u32) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

/// Returns SCTP_INITMSG. RFC 6458 section 8.1.3.
fn init(config: &Config) -> SocketOption {
    let octets = Octets::default().u16(config.streams).u16(config.max_inbound_streams);
    setting(2, "set SCTP_INITMSG", octets.u16(saturating_u16(config.max_init_retransmits)).u16(0))
}

/// Returns SCTP_RTOINFO. RFC 6458 section 8.1.1.
fn rto(config: &Config) -> SocketOption {
    let Config { rto_initial, rto_max, rto_min, .. } = config;
    setting(0, "set SCTP_RTOINFO", Octets::of_socket().ms(*rto_initial).ms(*rto_max).ms(*rto_min))
}

/// Returns SCTP_ASSOCINFO. RFC 6458 section 8.1.2.
fn association(config: &Config) -> SocketOption {
    let octets = Octets::of_socket().u16(saturating_u16(config.association_max_retrans)).u16(0).u32(0).u32(0);
    setting(1, "set SCTP_ASSOCINFO", octets.ms(config.valid_cookie_life))
}

/// Returns SCTP_PEER_ADDR_PARAMS for every address. RFC 6458 section 8.1.12.
fn path(config: &Config) -> SocketOption {
    const HB_ENABLE: u32 = 1;
    const HB_DISABLE: u32 = 2;
    let heartbeat = if config.heartbeat { HB_ENABLE } else { HB_DISABLE };
    let octets = Octets::of_socket().zeros(SOCKADDR_STORAGE).ms(config.hb_interval);
    let octets =
        octets.u16(saturating_u16(config.path_max_retrans)).u32(0).u32(0).u32(heartbeat).u32(0).u8(0);
    setting(9, "set SCTP_PEER_ADDR_PARAMS", octets.zeros(1))
}

/// Returns SCTP_PEER_ADDR_THLDS for every address. RFC 7829 section 7.2.
fn thresholds(config: &Config) -> SocketOption {
    let octets = Octets::of_socket().zeros(4 + SOCKADDR_STORAGE).u16(saturating_u16(config.path_max_retrans));
    setting(31, "set SCTP_PEER_ADDR_THLDS", octets.u16(saturating_u16(config.pf_threshold)).zeros(4))
}

/// Returns SCTP_DELAYED_SACK, in which a frequency of 1 disables the delay. RFC 6458 section 8.1.19.
fn delayed_sack(config: &Config) -> SocketOption {
    let frequency = if config.sack_delay.is_zero() { 1 } else { config.sack_frequency };
    let octets =
        if frequency == 1 { Octets::of_socket().u32(0) } else { Octets::of_socket().ms(config.sack_delay) };
    setting(16, "set SCTP_DELAYED_SACK", octets.u32(frequency))
}

/// Returns SCTP_FRAGMENT_INTERLEAVE (RFC 6458 section 8.1.20), with which an application accepts interleaved parts of
/// several messages, and SCTP_INTERLEAVING_SUPPORTED, which requires it (RFC 8260 section 4.3.1).
fn interleaving(config: &Config) -> Option<[SocketOption; 2]> {
    let level = setting(18, "set SCTP_FRAGMENT_INTERLEAVE", Octets::default().u32(2));
    let supported = setting(125, "set SCTP_INTERLEAVING_SUPPORTED", Octets::of_socket().u32(1));
    config.interleaving.then_some([level, supported])
}

/// Returns SCTP_STREAM_SCHEDULER, with the numbers of `enum sctp_sched_type`. RFC 8260 section 4.3.2.
fn scheduler(config: &Config) -> Option<SocketOption> {
    let number = match config.scheduler {
        Scheduler::Fcfs => return None,
        Scheduler::Prio => 1,
        Scheduler::Rr => 2,
        Scheduler::Fc => 3,
        Scheduler::Wfq => 4,
        Scheduler::RrPacket => unreachable!("unsupported schedulers were rejected before"),
    };
    Some(setting(123, "set SCTP_STREAM_SCHEDULER", Octets::of_socket().u32(number)))
}

pub(crate) const STREAM_SCHEDULER_VALUE: i32 = 124;

/// Returns a `struct sctp_stream_value` for each stream with a priority or weight. Linux accepts them only for an
/// association that is established. RFC 8260 section 4.3.3.
pub(crate) fn stream_values(config: &Config, association: u32) -> Vec<Vec<u8>> {
    let value = |stream| {
        let value = config.stream_values.of(stream)?;
        Some(Octets::default().u32(association).u16(stream).u16(value).0)
    };
    (0..config.streams).filter_map(value).collect()
}

/// Returns the option SCTP_EVENT, which subscribes to a kind of notification. RFC 6458 section 6.2.2.
fn event(kind: u16) -> SocketOption {
    setting(127, "subscribe to notifications (SCTP_EVENT)", Octets::of_socket().u16(kind).u8(1).u8(0))
}

/// Turns notifications of path changes on or off.
pub(crate) fn set_path_notifications(socket: &Socket, association: u32, is_enabled: bool) -> io::Result<()> {
    let value = Octets::default().u32(association).u16(PEER_ADDR_CHANGE).u8(is_enabled.into()).u8(0).0;
    system::set_option(socket, SOL_SCTP, event(PEER_ADDR_CHANGE).name, &value)
}

/// Subscribes to the notification SCTP_SHUTDOWN_EVENT, because a one-to-many socket shows the end of an association in
/// no other way. RFC 6458 section 6.1.5.
pub(crate) fn subscribe_to_shutdown(socket: &Socket) -> Result<(), SocketsError> {
    let SocketOption { name, value, doing } = event(SHUTDOWN_EVENT);
    system::set_option(socket, SOL_SCTP, name, &value).map_err(failed_to(doing))
}

/// Sets the buffer sizes that differ from the kernel's defaults. The kernel silently limits them.
pub(crate) fn set_buffers(socket: &Socket, config: &Config) -> Result<(), SocketsError> {
    let limited = |asked: usize, got: usize, limit| {
        let why =
            format!("{limit} limits the buffer to {got} octets, but {asked} are needed; raise the limit");
        if asked == got { Ok(()) } else { Err(std::io::Error::other(why)) }
    };
    // The kernel doubles the value to make room for its bookkeeping.
    if config.send_buffer.0 != tuning::SCTP_SEND_BUFFER {
        let octets = config.send_buffer.0 as usize;
        socket
            .set_send_buffer_size(octets / 2)
            .and_then(|()| limited(octets / 2 * 2, socket.send_buffer_size()?, "net.core.wmem_max"))
            .map_err(failed_to("set SO_SNDBUF"))?;
    }
    if config.receive_buffer.0 != tuning::SCTP_RECEIVE_BUFFER {
        let octets = config.receive_buffer.0 as usize;
        socket
            .set_recv_buffer_size(octets)
            .and_then(|()| limited(octets * 2, socket.recv_buffer_size()?, "net.core.rmem_max"))
            .map_err(failed_to("set SO_RCVBUF"))?;
    }
    Ok(())
}

/// Returns the addresses one after the other, in the form that `sctp_bindx` and `sctp_connectx` expect.
pub(crate) fn addresses(all: &[IpAddr], port: u16) -> Vec<u8> {
    let pack = |octets: Octets, ip: &IpAddr| octets.address(SocketAddr::new(*ip, port));
    all.iter().fold(Octets::default(), pack).0
}

/// Returns up to eight addresses of a socket. RFC 6458 section 9.5, `struct sctp_getaddrs`.
pub(crate) fn local_addresses(socket: &Socket) -> std::io::Result<Vec<IpAddr>> {
    let mut octets = [0; LIST_LENGTH];
    system::read_option(socket, SOL_SCTP, GET_LOCAL_ADDRS, &mut octets)?;
    Ok(parse_addresses(&octets).into_iter().map(|address| address.ip()).collect())
}

/// Returns up to eight addresses of the peer. RFC 6458 section 9.3.
fn peer_addresses(socket: &Socket, association: u32) -> std::io::Result<Vec<SocketAddr>> {
    let mut octets = [0; LIST_LENGTH];
    octets[..4].copy_from_slice(&association.to_ne_bytes());
    system::read_option(socket, SOL_SCTP, GET_PEER_ADDRS, &mut octets)?;
    Ok(parse_addresses(&octets))
}

/// Returns the addresses in a `struct sctp_getaddrs`.
fn parse_addresses(octets: &[u8]) -> Vec<SocketAddr> {
    let count = u32_at(octets, 4).unwrap_or(0) as usize;
    let mut rest = &octets[LIST_HEADER_LENGTH..];
    let mut next = || {
        let (address, length) = socket_address(rest)?;
        rest = &rest[length..];
        Some(address)
    };
    (0..count).map_while(|_| next()).collect()
}

/// Parses a `struct sockaddr_in` or `struct sockaddr_in6`; also returns its length.
fn socket_address(octets: &[u8]) -> Option<(SocketAddr, usize)> {
    let family = i32::from(u16_at(octets, 0)?);
    let port = u16::from_be_bytes(*octets.get(2..)?.first_chunk()?);
    let (ip, length) = match family {
        libc::AF_INET => (Ipv4Addr::from(*octets.get(4..)?.first_chunk::<4>()?).into(), 16),
        libc::AF_INET6 => (Ipv6Addr::from(*octets.get(8..)?.first_chunk::<16>()?).into(), 28),
        _ => return None,
    };
    Some((SocketAddr::new(ip, port), length))
}

const LIST_HEADER_LENGTH: usize = 8;
const LIST_LENGTH: usize = LIST_HEADER_LENGTH + 8 * 28;

/// Encodes the value of an option that sets the primary address of the peer or of this end. RFC 6458 sections 8.1.9 and
/// 8.3.1.
pub(crate) fn encode_primary(association: u32, address: SocketAddr) -> Vec<u8> {
    Octets::default().u32(association).storage(address).0
}

/// Returns the ancillary data of a message. RFC 6458 sections 5.3.4 and 5.3.7; [`set_association_and_stream`] fills in the
/// stream.
pub(crate) fn send_ancillary_data(unordered: bool, reliability: Reliability) -> Vec<u8> {
    const TTL: u16 = 0x10;
    const RTX: u16 = 0x20;
    let mut control = with_flags(if unordered { UNORDERED_FLAG } else { 0 });
    let policy = |policy| Octets::default().u16(policy).u16(0);
    let limit = match reliability {
        Reliability::Full => return control,
        Reliability::Lifetime(time) => policy(TTL).ms(time),
        Reliability::Retransmissions(max) => policy(RTX).u32(max),
    };
    system::push_item(&mut control, SOL_SCTP, PRINFO, &limit.0);
    control
}

/// Returns the ancillary data of the message that shuts the association down (SCTP_EOF). RFC 6458 section 5.3.4.
pub(crate) fn eof_sndinfo(association: u32) -> Vec<u8> {
    let mut control = with_flags(EOF_FLAG);
    set_association_and_stream(&mut control, association, 0);
    control
}

fn with_flags(flags: u16) -> Vec<u8> {
    let mut control = Vec::new();
    let ppid_context_association = 12;
    let Octets(info) = Octets::default().u16(0).u16(flags).zeros(ppid_context_association);
    system::push_item(&mut control, SOL_SCTP, SNDINFO, &info);
    control
}

/// Sets the association and the stream in ancillary data from [`send_ancillary_data`].
pub(crate) fn set_association_and_stream(control: &mut [u8], association: u32, stream: u16) {
    control[STREAM_OFFSET..STREAM_OFFSET + 2].copy_from_slice(&stream.to_ne_bytes());
    control[ASSOCIATION..ASSOCIATION + 4].copy_from_slice(&association.to_ne_bytes());
}

/// Returns the stream of a received message, and whether it is unordered, from its ancillary data. RFC 6458 section
/// 5.3.5.
pub(crate) fn stream(control: &[u8]) -> (u16, bool) {
    const FLAGS_OFFSET: usize = 4;
    let mut items = system::items(control);
    let info = items.find(|(level, kind, _)| (*level, *kind) == (SOL_SCTP, RCVINFO));
    let field = |at| info.and_then(|(_, _, value)| u16_at(value, at)).unwrap_or(0);
    (field(0), field(FLAGS_OFFSET) & UNORDERED_FLAG != 0)
}

/// Returns the number of the association that a notification reports as established. RFC 6458 section 6.1.1.
pub(crate) fn established_association(notification: &[u8]) -> Option<u32> {
    const STATE: usize = 8;
    const ASSOCIATION: usize = 16;
    let up = u16_at(notification, 0) == Some(ASSOC_CHANGE) && u16_at(notification, STATE) == Some(0);
    u32_at(notification, ASSOCIATION).filter(|_| up)
}

/// Parses a notification about a path, or about an association that has been established or has ended. RFC 6458 section
/// 6.1.
pub(crate) fn parse_notification(octets: &[u8]) -> Result<Option<SocketEvent>, ConnectionFault> {
    const STATE: usize = 8;
    match u16_at(octets, 0) {
        Some(ASSOC_CHANGE) => match u16_at(octets, STATE) {
            Some(0) => Ok(established_association(octets).map(SocketEvent::Up)),
            Some(1) => Err(ConnectionFault::Protocol("association lost")),
            Some(2) => Err(ConnectionFault::Protocol("association restarted by the peer")),
            Some(3) => Err(ConnectionFault::PeerClosed),
            Some(4) => Err(ConnectionFault::Protocol("association could not be started")),
            _ => Ok(None),
        },
        Some(PEER_ADDR_CHANGE) => Ok(path_change(octets)),
        Some(SHUTDOWN_EVENT) => Err(ConnectionFault::PeerClosed),
        _ => Ok(None),
    }
}

/// Parses the notification SCTP_PEER_ADDR_CHANGE. RFC 6458 section 6.1.2.
fn path_change(octets: &[u8]) -> Option<SocketEvent> {
    const ADDRESS_OFFSET: usize = 8;
    let (address, _) = socket_address(octets.get(ADDRESS_OFFSET..)?)?;
    let status = match u32_at(octets, ADDRESS_OFFSET + SOCKADDR_STORAGE)? {
        0 | 5 => PathStatus::Active,
        1 => PathStatus::Inactive,
        6 => PathStatus::PotentiallyFailed,
        _ => return None,
    };
    Some(SocketEvent::Path(address.ip(), status))
}

/// Returns the counters in `struct sctp_assoc_stats`; zeros after the association has ended.
pub(crate) fn counts(socket: &Socket, association: u32) -> SocketCounters {
    const SENT_OFFSET: usize = 160;
    const RECEIVED_OFFSET: usize = 168;
    let Some(at) = statistics(socket, association) else { return SocketCounters::default() };
    SocketCounters {
        packets_sent: at(SENT_OFFSET),
        packets_received: at(RECEIVED_OFFSET),
        retransmissions: at(RETRANSMITTED_OFFSET),
    }
}

/// Offset of the number of retransmitted chunks in `struct sctp_assoc_stats`, in octets.
const RETRANSMITTED_OFFSET: usize = 176;

/// Returns a function that reads the 64-bit counter at an offset of `struct sctp_assoc_stats`.
fn statistics(socket: &Socket, association: u32) -> Option<impl Fn(usize) -> u64> {
    let mut stats = [0; 256];
    stats[..4].copy_from_slice(&association.to_ne_bytes());
    system::read_option(socket, SOL_SCTP, GET_ASSOC_STATS, &mut stats).ok()?;
    Some(move |offset: usize| stats[offset..].first_chunk().map_or(0, |octets| u64::from_ne_bytes(*octets)))
}

/// Returns the state of an association as a sender: for each path the values of SCTP_GET_PEER_ADDR_INFO (RFC 6458
/// section 8.2.2), which do not include ssthresh and the data in flight. `None` if it has not sent data.
pub(crate) fn sender_state(socket: &Socket, association: u32) -> Option<SenderState> {
    const UNORDERED_SENT: usize = 208;
    const ORDERED_SENT: usize = 224;
    let at = statistics(socket, association)?;
    if at(UNORDERED_SENT) + at(ORDERED_SENT) == 0 {
        return None;
    }
    let peers = peer_addresses(socket, association).ok()?;
    let paths = peers.into_iter().filter_map(|peer| path_state(socket, association, peer)).collect();
    Some(SenderState { paths, retransmissions: at(RETRANSMITTED_OFFSET) })
}

/// Returns the state of the path to `peer` (`struct sctp_paddrinfo`), read with SCTP_GET_PEER_ADDR_INFO.
fn path_state(socket: &Socket, association: u32, peer: SocketAddr) -> Option<PathState> {
    const CWND_OFFSET: usize = 4 + SOCKADDR_STORAGE + 4;
    const SRTT_OFFSET: usize = CWND_OFFSET + 4;
    let mut info = Octets::default().u32(association).storage(peer).zeros(20).0;
    system::read_option(socket, SOL_SCTP, GET_PEER_ADDR_INFO, &mut info).ok()?;
    // Linux returns the RTT in jiffies, contrary to RFC 6458: sctp_getsockopt_peer_addr_info, net/sctp/socket.c.
    let srtt = u32_at(&info, SRTT_OFFSET).filter(|jiffies| *jiffies > 0);
    Some(PathState {
        peer: peer.ip(),
        cwnd: u32_at(&info, CWND_OFFSET).map(u64::from),
        ssthresh: None,
        srtt: srtt.map(|jiffies| jiffy().saturating_mul(jiffies.into())),
        pacing_rate: None,
        in_flight: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_stack::{Protocol, TransportSpec};

    fn config(text: &str) -> Config {
        let spec: TransportSpec = text.parse().unwrap();
        let Protocol::Sctp { config, .. } = spec.protocol() else { panic!("{text} is not sctp") };
        config.clone()
    }

    /// The expected sizes are those that `sizeof` returns for the structures of `linux/sctp.h` on 64-bit machines.
    #[test]
    fn every_structure_has_the_size_that_the_kernel_expects() {
        let sizes: Vec<_> = socket_options(&config("sctp")).iter().map(|o| (o.name, o.value.len())).collect();
        let expected = [
            (2, 8),
            (0, 16),
            (1, 20),
            (9, 156),
            (31, 144),
            (3, 4),
            (16, 12),
            (20, 8),
            (113, 8),
            (32, 4),
            (127, 8),
            (127, 8),
        ];
        assert_eq!(sizes, expected);
        assert_eq!(encode_primary(0, "10.0.0.1:7".parse().unwrap()).len(), 132);
        assert_eq!(addresses(&[Ipv4Addr::LOCALHOST.into(); 3], 9).len(), 3 * 16);
    }

    /// RFC 8260 section 4.3.
    #[test]
    fn interleaving_and_schedulers_are_requested_if_not_the_default() {
        let asked = |text: &str| -> Vec<_> {
            let options = socket_options(&config(text)).into_iter();
            let new = options.filter(|option| matches!(option.name, 18 | 123..=125));
            new.map(|option| (option.name, option.value)).collect()
        };
        let value = |value: u32| [0, value].map(u32::to_ne_bytes).concat();
        assert_eq!(asked("sctp"), []);
        let both = [(18, 2u32.to_ne_bytes().to_vec()), (125, value(1)), (123, value(2))];
        assert_eq!(asked("sctp:interleaving,scheduler=rr"), both);
        let all = ["prio", "rr", "fc", "wfq"].map(|name| asked(&format!("sctp:scheduler={name}")));
        assert_eq!(all, [1, 2, 3, 4].map(|number| vec![(123, value(number))]));
        let values = stream_values(&config("sctp:scheduler=prio,streams=3,stream_values=7/0"), 9);
        let stream = |stream: u16, value: u16| {
            [&9u32.to_ne_bytes()[..], &stream.to_ne_bytes(), &value.to_ne_bytes()].concat()
        };
        assert_eq!(values, [stream(0, 7), stream(1, 0), stream(2, 0)]);
        assert!(stream_values(&config("sctp:streams=3"), 9).is_empty());
    }

    /// RFC 6458 section 8.1.19.
    #[test]
    fn immediate_sacks_have_a_frequency_of_one() {
        for (text, expected) in [
            ("sctp", [0u32, 200, 2]),
            ("sctp:sack_delay=0s", [0, 0, 1]),
            ("sctp:sack_frequency=1", [0, 0, 1]),
            ("sctp:sack_delay=40ms,sack_frequency=3", [0, 40, 3]),
        ] {
            let octets = expected.map(u32::to_ne_bytes).concat();
            assert_eq!(delayed_sack(&config(text)).value, octets, "{text}");
        }
    }

    /// RFC 6458 sections 5.3.4 and 5.3.7.
    #[test]
    fn ancillary_data_contain_stream_association_and_lifetime() {
        let mut control = send_ancillary_data(true, Reliability::Lifetime(Duration::from_millis(150)));
        set_association_and_stream(&mut control, 0x0102_0304, 7);
        let items: Vec<_> = system::items(&control).collect();
        assert_eq!((items[0].1, u16_at(items[0].2, 0), u16_at(items[0].2, 2)), (SNDINFO, Some(7), Some(1)));
        assert_eq!(
            (items[1].1, u16_at(items[1].2, 0), u32_at(items[1].2, 4)),
            (PRINFO, Some(0x10), Some(150))
        );
        assert_eq!(u32_at(items[0].2, 12), Some(0x0102_0304));
        assert_eq!(system::items(&send_ancillary_data(false, Reliability::Full)).count(), 1);
    }

    /// RFC 6458 section 6.1.
    #[test]
    fn notifications_report_path_changes_and_the_end() {
        let address = SocketAddr::from(([10, 0, 2, 2], 7626));
        let change = |state| {
            Octets::default().u16(PEER_ADDR_CHANGE).u16(0).u32(148).address(address).zeros(112).u32(state)
        };
        let Ok(Some(SocketEvent::Path(ip, status))) = parse_notification(&change(1).zeros(8).0) else {
            panic!("no path")
        };
        assert_eq!((ip, status), (address.ip(), PathStatus::Inactive));
        let lost = Octets::default().u16(ASSOC_CHANGE).u16(0).u32(20).u16(1).zeros(10).0;
        assert_eq!(parse_notification(&lost).unwrap_err().reason(), "association lost");
        let up = Octets::default().u16(ASSOC_CHANGE).u16(0).u32(20).u16(0).zeros(6).u32(9).0;
        assert_eq!(
            (
                established_association(&up),
                established_association(&lost),
                established_association(&up[..18])
            ),
            (Some(9), None, None)
        );
        let shutdown = Octets::default().u16(SHUTDOWN_EVENT).u16(0).u32(12).u32(9).0;
        assert!(matches!(parse_notification(&shutdown), Err(ConnectionFault::PeerClosed)));
        for length in 0..lost.len().min(10) {
            assert!(parse_notification(&lost[..length]).is_ok_and(|event| event.is_none()));
        }
    }
}
