//! The parameters of the endpoints. RFC 9260 section 16.

use hol_base::ByteCount;
use hol_sctp::Config;

/// The role of an endpoint in a SIMCO session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The endpoint is an agent, which trusts its middlebox.
    Agent,
    /// The endpoint is a middlebox, whose peers may be hostile.
    Middlebox,
}

impl Role {
    /// Maximum size of IP packets in octets. Every IPv6 path carries packets of this size (RFC 8200 section 5), and so
    /// does almost every IPv4 path.
    const MTU: u64 = 1280;
    /// Length of the UDP header in octets, by which the MTU for SCTP packets is reduced. RFC 6951 section 5.6.
    const UDP_HEADER: u64 = 8;
    /// Number of streams in each direction, which is what Linux requests.
    const STREAMS: u16 = 10;

    /// Returns the size of an association's receive buffer for user data, in octets.
    pub const fn receive_buffer(self) -> usize {
        match self {
            Self::Agent => 256 << 10,
            Self::Middlebox => 16 << 10,
        }
    }

    pub(crate) fn config(self) -> Config {
        let config = Config::rfc9260().with_network_mtu(Self::MTU - Self::UDP_HEADER);
        let config = config.with(|config| {
            config.streams = Self::STREAMS;
            config.max_inbound_streams = Self::STREAMS;
            config.receive_buffer = ByteCount(self.receive_buffer() as u64);
            config.send_buffer = ByteCount(64 << 10);
            // As many as fit into a packet of this size, with duplicates: RFC 9260 section 3.3.4.
            config.max_gap_blocks = 256;
            // Replies to pipelined requests are not delayed.
            config.nagle = false;
            // Every message arrives, or the session ends.
            config.partial_reliability = false;
            // With heartbeats every 30 s, which also keep the bindings of NATs, an agent that has vanished is detected after about
            // four minutes, as over TCP. A potentially failed path would be probed faster, to find another one: RFC 7829.
            config.association_max_retrans = config.path_max_retrans;
            config.pf_threshold = config.path_max_retrans;
        });
        config.expect("an endpoint can work with these parameters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6951 section 5.6.
    #[test]
    fn packets_leave_room_for_the_udp_header() {
        for role in [Role::Agent, Role::Middlebox] {
            assert_eq!(role.config().mtu, ByteCount(1272));
        }
    }
}
