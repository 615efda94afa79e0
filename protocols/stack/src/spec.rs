//! Transport specifications such as `tcp:cc=reno,connections=4`: a protocol, a stack, and options.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hol_base::nearest_word;
use hol_quic::MessageMapping;
use hol_transport::{ConfigError, Reliability};

use crate::metrics_cache::MetricsCache;
use crate::options::{Options, bad_value};
use crate::stacks::{Stack, stack, stacks};
use crate::{ProtocolKind, SocketStyle, SpecError, Tls};

/// A transport protocol, how the application uses it, and the configuration of its endpoints.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// One or several TCP connections.
    Tcp {
        /// The configuration of both endpoints.
        config: hol_tcp::Config,
        /// Number of parallel connections. Messages use them in turn.
        connections: u16,
        /// The metrics that hosts cache from one connection for the next.
        metrics_cache: MetricsCache,
        /// How TLS begins on each connection; `None` without TLS.
        tls: Option<Tls>,
    },
    /// One or several SCTP associations.
    Sctp {
        /// The configuration of both endpoints.
        config: hol_sctp::Config,
        /// Number of parallel associations, each with its own streams. Messages use them in turn.
        associations: u16,
        /// Whether each endpoint uses only its node's first address, and thus the same path as TCP.
        single_homed: bool,
        /// Whether messages are sent unordered.
        unordered: bool,
        /// When the sender abandons a message.
        reliability: Reliability,
        /// The style of both endpoints' sockets.
        socket: SocketStyle,
        /// Whether both endpoints neither compute nor check checksums.
        no_checksums: bool,
    },
    /// One or several Multipath TCP connections.
    Mptcp {
        /// The configuration of both endpoints and of every subflow.
        config: hol_tcp::Config,
        /// Number of parallel connections. Messages use them in turn.
        connections: u16,
        /// The metrics that hosts cache from one subflow for the next.
        metrics_cache: MetricsCache,
        /// How TLS begins on each connection; `None` without TLS.
        tls: Option<Tls>,
    },
    /// One or several QUIC connections.
    Quic {
        /// The configuration of both endpoints.
        config: hol_quic::Config,
        /// Number of parallel connections, each with its own streams. Messages use them in turn.
        connections: u16,
        /// How messages are mapped to streams or DATAGRAM frames.
        mapping: MessageMapping,
    },
    /// UDP datagrams. Lost ones are not retransmitted, except by SIP.
    Udp {
        /// The configuration of both endpoints.
        config: hol_udp::Config,
    },
    /// One or several pairs of UNIX sockets.
    Unix {
        /// Number of parallel connections. Messages use them in turn.
        connections: u16,
    },
}

/// A transport as the user names it, resolved to a protocol, a stack and the value of every option.
#[derive(Debug, Clone)]
pub struct TransportSpec {
    text: String,
    stack: &'static str,
    /// The values of all options, shared by all points (combinations of axis values) of an experiment.
    values: Arc<toml::Table>,
    protocol: Protocol,
}

impl TransportSpec {
    /// Returns the protocol and the configuration of its endpoints.
    pub const fn protocol(&self) -> &Protocol {
        &self.protocol
    }
    /// Returns which transport protocol this is.
    pub const fn kind(&self) -> ProtocolKind {
        match self.protocol {
            Protocol::Tcp { .. } => ProtocolKind::Tcp,
            Protocol::Sctp { .. } => ProtocolKind::Sctp,
            Protocol::Quic { .. } => ProtocolKind::Quic,
            Protocol::Mptcp { .. } => ProtocolKind::Mptcp,
            Protocol::Udp { .. } => ProtocolKind::Udp,
            Protocol::Unix { .. } => ProtocolKind::Unix,
        }
    }
    /// Returns the name of the stack.
    pub const fn stack(&self) -> &'static str {
        self.stack
    }
    /// Returns the value of every option of the endpoints, as the manifest of an experiment's results stores it.
    pub fn option_values(&self) -> &toml::Table {
        &self.values
    }
    /// Returns how many connections (associations) the application opens.
    pub const fn connections(&self) -> u16 {
        match self.protocol {
            Protocol::Tcp { connections, .. }
            | Protocol::Mptcp { connections, .. }
            | Protocol::Quic { connections, .. }
            | Protocol::Unix { connections } => connections,
            Protocol::Sctp { associations, .. } => associations,
            Protocol::Udp { .. } => 1,
        }
    }

    /// Returns whether the transport may abandon or lose messages.
    pub fn may_lose_messages(&self) -> bool {
        match &self.protocol {
            Protocol::Sctp { reliability, .. } => *reliability != Reliability::Full,
            Protocol::Quic { mapping, .. } => *mapping == MessageMapping::Datagrams,
            Protocol::Udp { .. } => true,
            Protocol::Tcp { .. } | Protocol::Mptcp { .. } | Protocol::Unix { .. } => false,
        }
    }

    /// Returns whether the sender has no flow control, so that datagrams arrive even if the receiver is busy.
    pub const fn lacks_flow_control(&self) -> bool {
        matches!(
            self.protocol,
            Protocol::Udp { .. } | Protocol::Quic { mapping: MessageMapping::Datagrams, .. }
        )
    }

    /// Returns the metrics that hosts cache from one connection for the next.
    pub const fn metrics_cache(&self) -> MetricsCache {
        match self.protocol {
            Protocol::Tcp { metrics_cache, .. } | Protocol::Mptcp { metrics_cache, .. } => metrics_cache,
            Protocol::Sctp { .. } | Protocol::Quic { .. } | Protocol::Udp { .. } | Protocol::Unix { .. } => {
                MetricsCache::Off
            }
        }
    }

    /// Returns how TLS begins on each connection; `None` without TLS. QUIC has a handshake of its own (RFC
    /// 9001).
    pub const fn tls(&self) -> Option<Tls> {
        match self.protocol {
            Protocol::Tcp { tls, .. } | Protocol::Mptcp { tls, .. } => tls,
            Protocol::Sctp { .. } | Protocol::Quic { .. } | Protocol::Udp { .. } | Protocol::Unix { .. } => {
                None
            }
        }
    }

    /// Returns whether this program, not the kernel, implements the protocol in every world (model, kernel,
    /// live).
    pub const fn is_userspace(&self) -> bool {
        matches!(self.protocol, Protocol::Quic { .. } | Protocol::Sctp { socket: SocketStyle::Own, .. })
    }

    /// Returns whether both endpoints neither compute nor check checksums.
    pub const fn has_no_checksums(&self) -> bool {
        matches!(self.protocol, Protocol::Sctp { no_checksums: true, .. })
    }

    /// Returns the number of streams on which a workload's messages can be sent: all streams of all SCTP
    /// associations or QUIC connections, or all TCP connections.
    pub const fn streams(&self) -> u16 {
        match &self.protocol {
            Protocol::Tcp { connections, .. }
            | Protocol::Mptcp { connections, .. }
            | Protocol::Unix { connections } => *connections,
            Protocol::Sctp { config, associations, .. } => config.streams * *associations,
            Protocol::Quic { config, connections, .. } => config.streams * *connections,
            Protocol::Udp { .. } => 1,
        }
    }
}

impl fmt::Display for TransportSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for TransportSpec {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl FromStr for TransportSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let kind = ProtocolKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| SpecError::UnknownTransport(name.to_owned()))?;
        let mut options = Options::split(options)?;
        let (stack, mut values) = named_stack(kind, options.take("stack").as_deref())?;
        // A request/response application disables Nagle's algorithm on both ends (TCP_NODELAY, SCTP_NODELAY).
        if let Some(off) = kind.nagle_off_value() {
            let own = values.insert("nagle".to_owned(), off);
            options.apply_nagle_option(own, &mut values);
        }
        let protocol = match kind {
            ProtocolKind::Tcp | ProtocolKind::Mptcp => {
                tcp(kind, options.with_reno_renamed("reno"), &mut values)?
            }
            ProtocolKind::Sctp => sctp(options, &mut values)?,
            ProtocolKind::Quic => quic(options.with_reno_renamed("newreno"), &mut values)?,
            ProtocolKind::Udp => udp(options, &mut values)?,
            ProtocolKind::Unix => unix(options, &mut values)?,
        };
        Ok(Self { text: text.trim().to_owned(), stack: stack.name, values: Arc::new(values), protocol })
    }
}

fn tcp(kind: ProtocolKind, mut options: Options, values: &mut toml::Table) -> Result<Protocol, SpecError> {
    let connections = options.parse_or("connections", 1, 1..=1024)?;
    let metrics_cache = options.metrics_cache()?;
    let tls = options.tls()?;
    let config: hol_tcp::Config = options.into_config(kind, values)?;
    check_values(config.check(), values)?;
    Ok(match kind {
        ProtocolKind::Mptcp => Protocol::Mptcp { config, connections, metrics_cache, tls },
        _ => Protocol::Tcp { config, connections, metrics_cache, tls },
    })
}

fn sctp(mut options: Options, values: &mut toml::Table) -> Result<Protocol, SpecError> {
    let associations = options.parse_or("associations", 1, 1..=1024)?;
    let single_homed = options.flag("single_homed")?;
    let unordered = options.flag("unordered")?;
    let reliability = options.reliability()?;
    let socket = options.socket_style()?;
    let no_checksums = options.flag("no_checksums")?;
    let config: hol_sctp::Config = options.into_config(ProtocolKind::Sctp, values)?;
    check_values(config.check(), values)?;
    if config.streams.checked_mul(associations).is_none() {
        let problem = format!(
            "the {associations} associations together have more than 65535 streams; lower `streams` or `associations`"
        );
        return Err(bad_value("streams", &values["streams"], problem));
    }
    if reliability != Reliability::Full && !config.partial_reliability {
        let problem = "lifetime and retransmissions need partial reliability (RFC 3758); remove this option";
        return Err(bad_value("partial_reliability", &values["partial_reliability"], problem.to_owned()));
    }
    Ok(Protocol::Sctp { config, associations, single_homed, unordered, reliability, socket, no_checksums })
}

fn quic(mut options: Options, values: &mut toml::Table) -> Result<Protocol, SpecError> {
    let connections = options.parse_or("connections", 1, 1..=1024)?;
    let mapping = options.mapping()?;
    let zero_rtt = options.flag("zero_rtt")?;
    let config: hol_quic::Config = options.into_config(ProtocolKind::Quic, values)?;
    let config = hol_quic::Config { zero_rtt, ..config };
    check_values(config.check(), values)?;
    let refused = |problem: String| Err(bad_value("streams", &values["streams"], problem));
    if config.streams.checked_mul(connections).is_none() {
        return refused(format!(
            "the {connections} connections together have more than 65535 streams; lower `streams` or `connections`"
        ));
    }
    if config.streams != 1 && mapping != MessageMapping::Streams {
        return refused(
            "`streams` has no effect with per_message or datagrams; remove one of the options".to_owned(),
        );
    }
    Ok(Protocol::Quic { config, connections, mapping })
}

fn udp(options: Options, values: &mut toml::Table) -> Result<Protocol, SpecError> {
    let config: hol_udp::Config = options.into_config(ProtocolKind::Udp, values)?;
    check_values(config.check(), values)?;
    Ok(Protocol::Udp { config })
}

fn unix(mut options: Options, values: &mut toml::Table) -> Result<Protocol, SpecError> {
    let connections = options.parse_or("connections", 1, 1..=1024)?;
    options.into_config::<toml::Table>(ProtocolKind::Unix, values)?;
    Ok(Protocol::Unix { connections })
}

/// Returns a stack and its defaults for the protocol: the stack called `name` or, without a name, the first stack
/// that supports the protocol.
fn named_stack(kind: ProtocolKind, name: Option<&str>) -> Result<(&'static Stack, toml::Table), SpecError> {
    let names = |stacks: &mut dyn Iterator<Item = &'static Stack>| {
        stacks.map(|stack| stack.name).collect::<Vec<_>>().join(", ")
    };
    let Some(name) = name else {
        let stack = kind.stacks().next().expect("each transport is in at least one stack");
        return Ok((stack, kind.option_values(stack).expect("the stack has this transport")));
    };
    let unknown = || {
        let all = || stacks().iter().map(|stack| stack.name);
        // The first version of a kernel whose name has none, as in linux-2.6.
        let similar = nearest_word(name, all())
            .and_then(|near| all().find(|known| known.starts_with(name)).or(Some(near)));
        let hint = match similar {
            Some(near) => format!("; did you mean {near:?}?"),
            None => format!("; known: {}", names(&mut stacks().iter())),
        };
        SpecError::UnknownStack { name: name.to_owned(), hint }
    };
    let stack = stack(name).ok_or_else(unknown)?;
    let values = kind.option_values(stack).ok_or_else(|| SpecError::ForeignStack {
        name: stack.name,
        transport: kind.name(),
        known: names(&mut kind.stacks()),
    })?;
    Ok((stack, values))
}

/// Returns an error with the option and its value if an endpoint cannot use the value.
fn check_values(found: Result<(), ConfigError>, values: &toml::Table) -> Result<(), SpecError> {
    found.map_err(|error| bad_value(error.key, &values[error.key], error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Duration;

    fn error(text: &str) -> String {
        text.parse::<TransportSpec>().unwrap_err().to_string()
    }

    #[test]
    fn every_stack_parses_for_every_transport() {
        for kind in ProtocolKind::ALL {
            for stack in kind.stacks() {
                let text = format!("{}:stack={}", kind.name(), stack.name);
                let spec: TransportSpec = text.parse().unwrap();
                assert_eq!((spec.kind(), spec.stack()), (kind, stack.name));
            }
        }
    }

    #[test]
    fn options_override_the_stack() {
        let spec: TransportSpec = "sctp:streams=8,rto_min=200ms".parse().unwrap();
        assert_eq!(spec.streams(), 8);
        let Protocol::Sctp { config, unordered, .. } = spec.protocol() else { panic!("not sctp") };
        assert_eq!((config.rto_min, *unordered), (Duration::from_millis(200), false));
        let spec: TransportSpec = "tcp:cc=reno,stack=linux-2.6.16,connections=4".parse().unwrap();
        assert_eq!((spec.streams(), spec.stack()), (4, "linux-2.6.16"));
        let spec: TransportSpec = "sctp:streams=8,associations=3".parse().unwrap();
        assert_eq!((spec.streams(), spec.connections()), (24, 3));
    }

    #[test]
    fn early_data_are_an_option_of_the_application() {
        for (text, expected) in [("quic", false), ("quic:zero_rtt", true), ("quic:zero_rtt=false", false)] {
            let spec: TransportSpec = text.parse().unwrap();
            let Protocol::Quic { config, .. } = spec.protocol() else { panic!("not quic") };
            assert_eq!((config.zero_rtt, spec.to_string().as_str()), (expected, text));
            assert!(!spec.option_values().contains_key("zero_rtt"), "no stack sets it");
        }
        assert!(error("tcp:zero_rtt").contains("tcp has no option \"zero_rtt\""));
    }

    #[test]
    fn reno_and_newreno_are_one_congestion_control() {
        for (text, name) in [("tcp:cc=newreno", "reno"), ("tcp:cc=reno", "reno"), ("quic:cc=reno", "newreno")]
        {
            let spec: TransportSpec = text.parse().unwrap();
            assert_eq!(spec.option_values()["congestion"].as_str(), Some(name), "{text}");
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn nagle_is_off_by_default() {
        for (text, expected) in [
            ("tcp", "\"off\""),
            ("tcp:nagle", "\"minshall\""),
            ("tcp:nagle=classic", "\"classic\""),
            ("tcp:nagle=off", "\"off\""),
            ("tcp:stack=rfc,nagle=on", "\"classic\""),
            ("sctp", "false"),
            ("sctp:nagle", "true"),
            ("sctp:nagle=on", "true"),
            ("sctp:nagle=false", "false"),
        ] {
            let spec: TransportSpec = text.parse().unwrap();
            assert_eq!(spec.option_values()["nagle"].to_string(), expected, "{text}");
        }
    }

    #[test]
    fn metrics_cache_is_off_by_default() {
        for (text, expected) in [
            ("tcp", MetricsCache::Off),
            ("sctp", MetricsCache::Off),
            ("tcp:metrics_cache", MetricsCache::On),
            ("mptcp:metrics_cache=on", MetricsCache::On),
            ("tcp:metrics_cache=ssthresh", MetricsCache::Ssthresh),
        ] {
            assert_eq!(text.parse::<TransportSpec>().unwrap().metrics_cache(), expected, "{text}");
        }
        assert!(error("tcp:metrics_cache=all").contains("metrics_cache=all: use off, on"));
        assert!(error("sctp:metrics_cache").contains("sctp has no option \"metrics_cache\""));
    }

    #[test]
    fn partial_reliability_takes_only_one_limit() {
        let spec: TransportSpec = "sctp:unordered,lifetime=100ms".parse().unwrap();
        let Protocol::Sctp { unordered, reliability, .. } = spec.protocol() else { panic!("not sctp") };
        assert_eq!((*unordered, *reliability), (true, Reliability::Lifetime(Duration::from_millis(100))));
        assert!(error("sctp:lifetime=1s,retransmissions=2").contains("lifetime and retransmissions exclude"));
        for limit in ["lifetime=1s", "retransmissions=0"] {
            let problem = error(&format!("sctp:{limit},partial_reliability=false"));
            assert!(problem.contains("need partial reliability"), "{problem}");
        }
    }

    #[test]
    fn sockets_are_one_to_one_by_default() {
        for (text, expected) in [
            ("sctp", SocketStyle::OneToOne),
            ("sctp:socket=one-to-one", SocketStyle::OneToOne),
            ("sctp:socket=one-to-many", SocketStyle::OneToMany),
            ("sctp:socket=own", SocketStyle::Own),
        ] {
            let spec: TransportSpec = text.parse().unwrap();
            assert!(
                matches!(spec.protocol(), Protocol::Sctp { socket, .. } if *socket == expected),
                "{text}"
            );
        }
        assert!(error("sctp:socket=stream").contains("socket=stream: use one-to-one, one-to-many or own"));
        assert!(error("sctp:socket").contains("needs a value"));
    }

    #[test]
    fn errors_say_what_to_do() {
        assert!(error("dccp").contains("known are \"tcp\", \"sctp\", \"quic\""));
        assert!(
            error("TCP").ends_with("; write \"tcp\"")
                && error("tcp:bbr").contains("write cc=bbr, as in tcp:cc=bbr")
        );
        assert!(error("quic:pacing=off").contains("quic has no option \"pacing\""));
        assert!(error("quic:rto_min=1s").contains("quic has no option \"rto_min\""));
        assert!(error("quic:cc=bbr3").contains("congestion=bbr3"));
        assert!(error("quic:stack=linux-6.12").contains("stack linux-6.12 has no quic; use quinn-0.11, rfc"));
        assert!(error("tcp:stack=quinn-0.11").contains("stack quinn-0.11 has no tcp"));
        assert!(error("quic:per_message,datagrams").contains("per_message"));
        assert!(error("quic:per_message,streams=8").contains("`streams` has no effect"));
        assert!(error("quic:mtu=1000B").contains("RFC 9000 section 14"));
        assert!(error("quic:streams=100").contains("raise max_streams"));
        assert!(error("udp:streams=8").contains("udp has no option \"streams\""));
        assert!(error("unix:nagle").contains("unix has no option \"nagle\""));
        assert!(error("udp:t2=100ms").contains("t2=100ms: t2 is shorter than t1"));
        assert!(error("sctp:stream=8").contains("did you mean \"streams\"?"));
        assert!(
            error("tcp:stack=bsd")
                .contains("linux-6.12, linux-7.3, linux-2.6.16, linux-2.6.15, linux-2.6.10, dcsctp, usrsctp, quinn-0.11, rfc")
        );
        for (name, stack) in [
            ("linux-2.6", "linux-2.6.16"),
            ("linux", "linux-6.12"),
            ("linux-6.11", "linux-6.12"),
            ("usrsct", "usrsctp"),
        ] {
            let problem = error(&format!("sctp:stack={name}"));
            assert!(problem.ends_with(&format!("; did you mean {stack:?}?")), "{problem}");
        }
        assert!(error("sctp:rto_min=200").contains("rto_min=200: \"200\" is not a time such as \"10ms\""));
        assert!(error("sctp:streams=0").contains("streams"));
        assert!(error("sctp:streams").contains("needs a value"));
        assert!(error("sctp:streams=8,streams=9").contains("twice"));
        assert!(error("tcp:connections=0").contains("between 1 and 1024"));
        assert!(error("sctp:streams=6554,associations=10").contains("streams=6554: the 10 associations"));
        assert!(error("tcp:mss=0").contains("mss=0: mss must be at least 88 octets"));
        assert!(error("sctp:rto_min=5s,rto_max=1s").contains("rto_min must be at most rto_max"));
    }
}
