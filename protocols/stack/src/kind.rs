//! The transport protocols and their names.

use crate::stacks::{Stack, stacks};

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolKind {
    /// TCP: Transmission Control Protocol.
    Tcp,
    /// SCTP: Stream Control Transmission Protocol.
    Sctp,
    /// Multipath TCP, RFC 8684. The model world (the simulator) does not support it.
    Mptcp,
    /// UDP: each message is one datagram.
    Udp,
    /// QUIC over UDP, RFC 9000.
    Quic,
    /// UNIX sockets (`SOCK_STREAM`) between programs of one host. The model world (the simulator) does not
    /// support them.
    Unix,
}

/// TCP options that determine how the application uses the transport, and that do not belong to a stack.
const TCP_APPLICATION_OPTIONS: [(&str, &str); 3] = [
    ("connections", "parallel connections, 1 to 1024"),
    (
        "metrics_cache",
        "path metrics that hosts cache for later connections: off (none), on (all but ssthresh, as Linux does), ssthresh (all, as Linux \
        until 5.5); kernel world only",
    ),
    (
        "tls",
        "add the octets and round trips of TLS 1.3 (RFC 8446): full (with certificates), resumed (with a ticket), early (0-RTT)",
    ),
];
const UNIX_APPLICATION_OPTIONS: [(&str, &str); 1] = [("connections", "parallel connections, 1 to 1024")];
const SCTP_APPLICATION_OPTIONS: [(&str, &str); 7] = [
    ("associations", "parallel associations, 1 to 1024"),
    ("single_homed", "use only the first address of each node, as TCP does: one path"),
    ("unordered", "deliver each message when it arrives, in any order"),
    ("lifetime", "give up a message after this time (RFC 3758)"),
    ("retransmissions", "give up a message after this many retransmissions (RFC 7496)"),
    (
        "socket",
        "style of the SCTP sockets: one-to-one, one-to-many (messages may be sent with COOKIE ECHO), or own: this program's SCTP over UDP (RFC 6951) instead of the kernel's; no difference in the model world",
    ),
    (
        "no_checksums",
        "neither compute nor check CRC-32c (parameter no_checksums of Linux's sctp module); kernel world only",
    ),
];

const QUIC_APPLICATION_OPTIONS: [(&str, &str); 4] = [
    ("connections", "parallel connections, 1 to 1024"),
    ("per_message", "send each message on a stream of its own"),
    ("datagrams", "send each message in a DATAGRAM frame, which is not retransmitted (RFC 9221)"),
    (
        "zero_rtt",
        "send the first messages before the end of the handshake (0-RTT, RFC 9001 section 4.6), with a ticket of an earlier connection",
    ),
];

impl ProtocolKind {
    /// All transport protocols.
    pub const ALL: [Self; 6] = [Self::Tcp, Self::Sctp, Self::Quic, Self::Mptcp, Self::Udp, Self::Unix];

    /// Returns the name of the protocol in specifications: `"tcp"`, `"sctp"`, `"quic"`, `"mptcp"`, `"udp"`,
    /// `"unix"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Sctp => "sctp",
            Self::Quic => "quic",
            Self::Mptcp => "mptcp",
            Self::Udp => "udp",
            Self::Unix => "unix",
        }
    }

    /// Returns a short description of the protocol for lists.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Tcp => "a byte stream (RFC 9293)",
            Self::Sctp => "messages in several streams (RFC 9260)",
            Self::Quic => "streams over UDP, encrypted (RFC 9000)",
            Self::Mptcp => {
                "TCP over several paths (RFC 8684), with the options of tcp; kernel and live worlds only"
            }
            Self::Udp => "datagrams, which are not retransmitted (RFC 768)",
            Self::Unix => "UNIX sockets between programs on one host; kernel and live worlds only",
        }
    }

    /// Returns the protocol's options with their values in a stack; `None` if the stack has no endpoints of
    /// the protocol.
    pub(crate) fn option_values(self, stack: &Stack) -> Option<toml::Table> {
        match self {
            Self::Tcp | Self::Mptcp => stack.table("tcp"),
            Self::Sctp => stack.table("sctp"),
            Self::Quic => stack.table("quic"),
            Self::Udp => stack.table("udp"),
            Self::Unix => stack.table("tcp").map(|_| toml::Table::new()),
        }
    }

    /// Returns the stacks that have endpoints of the protocol, the default first.
    pub fn stacks(self) -> impl Iterator<Item = &'static Stack> {
        stacks().iter().filter(move |stack| self.option_values(stack).is_some())
    }

    pub(crate) fn nagle_off_value(self) -> Option<toml::Value> {
        match self {
            Self::Tcp | Self::Mptcp => Some(toml::Value::String("off".to_owned())),
            Self::Sctp => Some(toml::Value::Boolean(false)),
            Self::Quic | Self::Udp | Self::Unix => None,
        }
    }

    /// Returns the options that determine how an application uses the protocol, each with its description.
    pub const fn application_options(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Tcp | Self::Mptcp => &TCP_APPLICATION_OPTIONS,
            Self::Sctp => &SCTP_APPLICATION_OPTIONS,
            Self::Quic => &QUIC_APPLICATION_OPTIONS,
            Self::Udp => &[],
            Self::Unix => &UNIX_APPLICATION_OPTIONS,
        }
    }
}
