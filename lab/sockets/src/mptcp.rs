//! Multipath TCP (RFC 8684): TCP's framing over a socket that may have several subflows. The network
//! namespace (`ip mptcp endpoint`), not the socket, determines the subflows' addresses.

use socket2::{Protocol, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{Counts, EndAddresses};
use crate::stream::{Connection, StreamKind};
use crate::tcp::{self, Tcp};
use crate::transceiver::{ConnectionFault, Family, Opener, SenderState, Transceiver};
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

/// The specifics of Multipath TCP.
#[derive(Debug)]
struct Kind;

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
const MPTCP_SUBFLOW_ADDRS: i32 = 3;
/// Octets of `struct mptcp_subflow_addrs` (two `struct sockaddr_storage`), and the offset of the peer's IPv4
/// address.
const ADDRESSES_LENGTH: usize = 256;
const PEER_OFFSET: usize = 128 + 4;
/// The flag in `mptcpi_flags` of `struct mptcp_info` of a connection that fell back to TCP.
const FALLBACK_FLAG: u32 = 1;

impl StreamKind for Kind {
    /// Fails if the connection fell back to TCP, which would be measured under a wrong name.
    fn opened(&self, socket: &Socket) -> Result<(), ConnectionFault> {
        let mut info = [0; 12];
        system::read_option(socket, SOL_MPTCP, MPTCP_INFO, &mut info)
            .map_err(|_| ConnectionFault::Protocol("fell back to TCP"))?;
        match u32_at(&info, 8) {
            Some(flags) if flags & FALLBACK_FLAG == 0 => Ok(()),
            _ => Err(ConnectionFault::Protocol("fell back to TCP")),
        }
    }

    /// Sums all subflows.
    fn counts(&self, socket: &Socket) -> Counts {
        let infos = subflows(socket, MPTCP_TCPINFO, tcp::INFO_LENGTH);
        infos.iter().map(|info| tcp::info_counts(info)).sum()
    }

    /// Returns a path for each subflow: both lists have the same order.
    fn sending(&self, socket: &Socket) -> Option<SenderState> {
        let infos = subflows(socket, MPTCP_TCPINFO, tcp::INFO_LENGTH);
        let addresses = subflows(socket, MPTCP_SUBFLOW_ADDRS, ADDRESSES_LENGTH);
        let subflows = infos.iter().zip(&addresses).filter_map(|(info, addresses)| {
            let peer: [u8; 4] = *addresses.get(PEER_OFFSET..)?.first_chunk()?;
            tcp::sender_state(info, peer.into(), false)
        });
        let (paths, retransmissions): (Vec<_>, Vec<u64>) = subflows.unzip();
        (!paths.is_empty()).then(|| SenderState { paths, retransmissions: retransmissions.iter().sum() })
    }
}

/// Returns the kernel's data on each subflow, `each` octets after `struct mptcp_subflow_data`. linux/mptcp.h
fn subflows(socket: &Socket, option: i32, each: usize) -> Vec<Vec<u8>> {
    const HEADER_LENGTH: usize = 16;
    const MAX_SUBFLOWS: usize = 8;
    let mut data = vec![0; HEADER_LENGTH + MAX_SUBFLOWS * each];
    data[..4].copy_from_slice(&(HEADER_LENGTH as u32).to_ne_bytes());
    data[12..16].copy_from_slice(&(each as u32).to_ne_bytes());
    let length = system::read_option(socket, SOL_MPTCP, option, &mut data).unwrap_or(0);
    data[..length].get(HEADER_LENGTH..).unwrap_or_default().chunks(each).map(<[u8]>::to_vec).collect()
}
