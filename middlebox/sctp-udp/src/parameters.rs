//! The parameters of the endpoints. RFC 9260 section 16.

use hol_base::ByteCount;
use hol_sctp::Config;

/// Which end of a session the endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An agent, which trusts its middlebox.
    Agent,
    /// A middlebox, whose peers may be hostile.
    Middlebox,
}

impl Role {
    /// The largest IP packet: every IPv6 path carries packets of this size, and so does almost every IPv4 path. RFC
    /// 8200 section 5.
    const MTU: u64 = 1280;
    /// Octets of the UDP header, by which SCTP packets must be shorter. RFC 6951 section 5.6.
    const UDP_HEADER: u64 = 8;
    /// Number of streams in each direction, as many as Linux requests.
    const STREAMS: u16 = 10;

    /// Octets of received user data for which an association has room.
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
