//! Multipath TCP (RFC 8684): TCP's framing over a socket that may have several subflows. The network
//! namespace (`ip mptcp endpoint`), not the socket, determines the subflows' addresses.

use std::net::IpAddr;

use socket2::{Protocol, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::stream::{Connection, StreamKind};
use crate::tcp::{self, Tcp};
use crate::transceiver::{ConnectionFault, Opener, SenderState, SocketProtocol, Transceiver};
use hol_system::{self as system, u32_at};

/// Opens Multipath TCP connections.
#[derive(Debug)]
pub(crate) struct Mptcp(pub(crate) Tcp);

impl Mptcp {
    pub(crate) const PROTOCOL: SocketProtocol = SocketProtocol {
        name: "MPTCP",
        kind: Type::STREAM,
        protocol: Protocol::MPTCP,
        cure: "use Linux 5.6 or later with CONFIG_MPTCP and sysctl net.mptcp.enabled=1, or the kernel world \
               (--world kernel)",
    };
}

impl Opener for Mptcp {
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        self.0.listen(server)
    }

    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        self.0.connect(client, server)
    }

    fn transceiver(&self, socket: Socket, _peer: &EndAddresses) -> Box<dyn Transceiver> {
        Box::new(Connection { stream: self.0.stream(socket), kind: Kind })
    }
}

/// How Multipath TCP differs from other stream sockets.
#[derive(Debug)]
struct Kind;

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
const MPTCP_SUBFLOW_ADDRS: i32 = 3;
/// The length of `struct mptcp_subflow_addrs`, in octets, and the offset of the peer's `struct sockaddr_storage` in it.
const ADDRESSES_LENGTH: usize = 256;
const PEER_OFFSET: usize = 128;
/// The flag in the field `mptcpi_flags` of `struct mptcp_info` which says that the connection fell back to TCP.
const FALLBACK_FLAG: u32 = 1;

impl StreamKind for Kind {
    /// Returns an error if the connection fell back to TCP, because its results would be reported as those of MPTCP.
    fn opened(&self, socket: &Socket) -> Result<(), ConnectionFault> {
        let mut info = [0; 12];
        system::read_option(socket, SOL_MPTCP, MPTCP_INFO, &mut info)
            .map_err(|_| ConnectionFault::Protocol("fell back to TCP"))?;
        match u32_at(&info, 8) {
            Some(flags) if flags & FALLBACK_FLAG == 0 => Ok(()),
            _ => Err(ConnectionFault::Protocol("fell back to TCP")),
        }
    }

    /// Returns the sum of the counters of all subflows.
    fn counts(&self, socket: &Socket) -> SocketCounters {
        let infos = subflows(socket, MPTCP_TCPINFO, tcp::INFO_LENGTH);
        infos.iter().map(|info| tcp::info_counts(info)).sum()
    }

    /// Returns the sender's state with a path per subflow. The kernel lists states and addresses of subflows in the
    /// same order.
    fn sending(&self, socket: &Socket) -> Option<SenderState> {
        let infos = subflows(socket, MPTCP_TCPINFO, tcp::INFO_LENGTH);
        let addresses = subflows(socket, MPTCP_SUBFLOW_ADDRS, ADDRESSES_LENGTH);
        let subflows = infos.iter().zip(&addresses).filter_map(|(info, addresses)| {
            tcp::sender_state(info, ip_address(addresses.get(PEER_OFFSET..)?)?, false)
        });
        let (paths, retransmissions): (Vec<_>, Vec<u64>) = subflows.unzip();
        (!paths.is_empty()).then(|| SenderState { paths, retransmissions: retransmissions.iter().sum() })
    }
}

/// Returns the address in a `struct sockaddr_in` or `sockaddr_in6`; `None` for other address families. linux/in.h,
/// linux/in6.h
fn ip_address(socket_address: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(*socket_address.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => Some(IpAddr::from(*socket_address.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => Some(IpAddr::from(*socket_address.get(8..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Returns the kernel's data on each subflow, of `each` octets per subflow; they follow `struct mptcp_subflow_data`.
/// linux/mptcp.h
fn subflows(socket: &Socket, option: i32, each: usize) -> Vec<Vec<u8>> {
    const HEADER_LENGTH: usize = 16;
    const MAX_SUBFLOWS: usize = 8;
    let mut data = vec![0; HEADER_LENGTH + MAX_SUBFLOWS * each];
    data[..4].copy_from_slice(&(HEADER_LENGTH as u32).to_ne_bytes());
    data[12..16].copy_from_slice(&(each as u32).to_ne_bytes());
    let length = system::read_option(socket, SOL_MPTCP, option, &mut data).unwrap_or(0);
    data[..length].get(HEADER_LENGTH..).unwrap_or_default().chunks(each).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_both_families_are_read() {
        let octets =
            |family: i32, parts: &[&[u8]]| [&(family as u16).to_ne_bytes(), &parts.concat()[..]].concat();
        let v4 = octets(libc::AF_INET, &[&[0x12, 0x34], &[10, 0, 1, 2]]);
        assert_eq!(ip_address(&v4), Some("10.0.1.2".parse().unwrap()));
        let v6 = octets(libc::AF_INET6, &[&[0x12, 0x34], &[0; 4], &[0xfd], &[0; 14], &[2]]);
        assert_eq!(ip_address(&v6), Some("fd00::2".parse().unwrap()));
        assert_eq!(ip_address(&v6[..20]), None);
        assert_eq!(ip_address(&octets(0, &[&[0; 30]])), None);
    }
}
