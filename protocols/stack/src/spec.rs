//! `tcp:cc=reno,connections=4`: which transport, whose behaviour, and what differs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hol_quic::Carriage;
use hol_transport::Reliability;

use crate::metrics_cache::MetricsCache;
use crate::options::{Options, bad_value};
use crate::stacks::{Stack, stack, stacks};
use crate::{Kind, SocketStyle, SpecError};

/// What the application uses of a protocol, and how its endpoints behave.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// One or several TCP connections.
    Tcp {
        /// Behaviour of both ends.
        config: hol_tcp::Config,
        /// Parallel connections; messages take them in turn.
        connections: u16,
        /// What hosts keep of one connection for the next.
        metrics_cache: MetricsCache,
    },
    /// One or several SCTP associations.
    Sctp {
        /// Behaviour of both ends.
        config: hol_sctp::Config,
        /// Parallel associations, each with its own streams; messages take them in turn.
        associations: u16,
        /// Each end has but its node's first address: the path that TCP takes.
        single_homed: bool,
        /// Messages are sent unordered.
        unordered: bool,
        /// When the sender gives a message up.
        reliability: Reliability,
        /// How both ends hold them.
        socket: SocketStyle,
        /// Neither end computes or checks checksums.
        no_checksums: bool,
    },
    /// One or several Multipath TCP connections.
    Mptcp {
        /// Behaviour of both ends and of every subflow.
        config: hol_tcp::Config,
        /// Parallel connections; messages take them in turn.
        connections: u16,
        /// What hosts keep of one subflow for the next.
        metrics_cache: MetricsCache,
    },
    /// One or several QUIC connections.
    Quic {
        /// Behaviour of both ends.
        config: hol_quic::Config,
        /// Parallel connections, each with its own streams; messages take them in turn.
        connections: u16,
        /// On what messages go.
        carriage: Carriage,
    },
    /// Datagrams; those that are lost stay lost, unless SIP repeats them.
    Udp {
        /// Behaviour of both ends.
        config: hol_udp::Config,
    },
    /// One or several pairs of UNIX sockets.
    Unix {
        /// Parallel connections; messages take them in turn.
        connections: u16,
    },
}

/// A transport as the user names it, settled: protocol, stack and every behaviour.
#[derive(Debug, Clone)]
pub struct TransportSpec {
    text: String,
    stack: &'static str,
    /// Shared by the many points of a study.
    behaviour: Arc<toml::Table>,
    protocol: Protocol,
}

impl TransportSpec {
    /// The protocol with its settled behaviour.
    pub const fn protocol(&self) -> &Protocol {
        &self.protocol
    }
    /// Which protocol.
    pub const fn kind(&self) -> Kind {
        match self.protocol {
            Protocol::Tcp { .. } => Kind::Tcp,
            Protocol::Sctp { .. } => Kind::Sctp,
            Protocol::Quic { .. } => Kind::Quic,
            Protocol::Mptcp { .. } => Kind::Mptcp,
            Protocol::Udp { .. } => Kind::Udp,
            Protocol::Unix { .. } => Kind::Unix,
        }
    }
    /// The name of the stack.
    pub const fn stack(&self) -> &'static str {
        self.stack
    }
    /// Every behaviour of the endpoints, as the manifest stores it.
    pub fn behaviour(&self) -> &toml::Table {
        &self.behaviour
    }
    /// How many connections (associations) it opens.
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

    /// Whether it may give messages up.
    pub fn gives_up(&self) -> bool {
        match &self.protocol {
            Protocol::Sctp { reliability, .. } => *reliability != Reliability::Full,
            Protocol::Quic { carriage, .. } => *carriage == Carriage::Datagrams,
            Protocol::Udp { .. } => true,
            Protocol::Tcp { .. } | Protocol::Mptcp { .. } | Protocol::Unix { .. } => false,
        }
    }

    /// Whether datagrams come however busy their receiver is.
    pub const fn is_heedless(&self) -> bool {
        matches!(self.protocol, Protocol::Udp { .. } | Protocol::Quic { carriage: Carriage::Datagrams, .. })
    }

    /// What hosts keep of one connection for the next.
    pub const fn metrics_cache(&self) -> MetricsCache {
        match self.protocol {
            Protocol::Tcp { metrics_cache, .. } | Protocol::Mptcp { metrics_cache, .. } => metrics_cache,
            Protocol::Sctp { .. } | Protocol::Quic { .. } | Protocol::Udp { .. } | Protocol::Unix { .. } => {
                MetricsCache::Off
            }
        }
    }

    /// Whether this program speaks it, on any system, and not the kernel.
    pub const fn is_our_own(&self) -> bool {
        matches!(self.protocol, Protocol::Quic { .. } | Protocol::Sctp { socket: SocketStyle::Own, .. })
    }

    /// Whether neither end computes or checks checksums.
    pub const fn has_no_checksums(&self) -> bool {
        matches!(self.protocol, Protocol::Sctp { no_checksums: true, .. })
    }

    /// How many streams a workload may spread its messages over: those of all SCTP associations or QUIC
    /// connections, or TCP connections.
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
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| SpecError::UnknownTransport(name.to_owned()))?;
        let mut options = Options::split(options)?;
        let (stack, mut behaviour) = named_stack(kind, options.take("stack").as_deref())?;
        // A request/response application switches Nagle off on both (TCP_NODELAY, SCTP_NODELAY).
        if let Some(off) = kind.without_nagle() {
            let own = behaviour.insert("nagle".to_owned(), off);
            options.switch_nagle(own, &mut behaviour);
        }
        let protocol = match kind {
            Kind::Tcp | Kind::Mptcp => tcp(kind, options, &mut behaviour)?,
            Kind::Sctp => sctp(options, &mut behaviour)?,
            Kind::Quic => quic(options, &mut behaviour)?,
            Kind::Udp => udp(options, &mut behaviour)?,
            Kind::Unix => unix(options, &mut behaviour)?,
        };
        Ok(Self { text: text.trim().to_owned(), stack: stack.name, behaviour: Arc::new(behaviour), protocol })
    }
}

fn tcp(kind: Kind, mut options: Options, behaviour: &mut toml::Table) -> Result<Protocol, SpecError> {
    let connections = options.parse_or("connections", 1, 1..=1024)?;
    let metrics_cache = options.metrics_cache()?;
    let config: hol_tcp::Config = options.settle(kind, behaviour)?;
    misfit(config.check(), behaviour)?;
    Ok(match kind {
        Kind::Mptcp => Protocol::Mptcp { config, connections, metrics_cache },
        _ => Protocol::Tcp { config, connections, metrics_cache },
    })
}

fn sctp(mut options: Options, behaviour: &mut toml::Table) -> Result<Protocol, SpecError> {
    let associations = options.parse_or("associations", 1, 1..=1024)?;
    let single_homed = options.flag("single_homed")?;
    let unordered = options.flag("unordered")?;
    let reliability = options.reliability()?;
    let socket = options.socket_style()?;
    let no_checksums = options.flag("no_checksums")?;
    let config: hol_sctp::Config = options.settle(Kind::Sctp, behaviour)?;
    misfit(config.check(), behaviour)?;
    if config.streams.checked_mul(associations).is_none() {
        let problem = format!("the {associations} associations have more than 65535 streams together");
        return Err(bad_value("streams", &behaviour["streams"], problem));
    }
    Ok(Protocol::Sctp { config, associations, single_homed, unordered, reliability, socket, no_checksums })
}

fn quic(mut options: Options, behaviour: &mut toml::Table) -> Result<Protocol, SpecError> {
    let connections = options.parse_or("connections", 1, 1..=1024)?;
    let carriage = options.carriage()?;
    let config: hol_quic::Config = options.settle(Kind::Quic, behaviour)?;
    misfit(config.check(), behaviour)?;
    let refused = |problem: String| Err(bad_value("streams", &behaviour["streams"], problem));
    if config.streams.checked_mul(connections).is_none() {
        return refused(format!("the {connections} connections have more than 65535 streams together"));
    }
    if config.streams != 1 && carriage != Carriage::Streams {
        return refused(
            "per_message and datagrams leave nothing for streams to do; remove one of them".to_owned(),
        );
    }
    Ok(Protocol::Quic { config, connections, carriage })
}

fn udp(options: Options, behaviour: &mut toml::Table) -> Result<Protocol, SpecError> {
    let config: hol_udp::Config = options.settle(Kind::Udp, behaviour)?;
    misfit(config.check(), behaviour)?;
    Ok(Protocol::Udp { config })
}

fn unix(mut options: Options, behaviour: &mut toml::Table) -> Result<Protocol, SpecError> {
    let connections = options.parse_or("connections", 1, 1..=1024)?;
    options.settle::<toml::Table>(Kind::Unix, behaviour)?;
    Ok(Protocol::Unix { connections })
}

/// A stack by its name, or the first that has endpoints of the protocol; and what they do.
fn named_stack(kind: Kind, name: Option<&str>) -> Result<(&'static Stack, toml::Table), SpecError> {
    let names = |stacks: &mut dyn Iterator<Item = &'static Stack>| {
        stacks.map(|stack| stack.name).collect::<Vec<_>>().join(", ")
    };
    let Some(name) = name else {
        let stack = kind.stacks().next().expect("some stack has it");
        return Ok((stack, kind.behaviour(stack).expect("that one has")));
    };
    let unknown = || SpecError::UnknownStack { name: name.to_owned(), known: names(&mut stacks().iter()) };
    let stack = stack(name).ok_or_else(unknown)?;
    let behaviour = kind.behaviour(stack).ok_or_else(|| SpecError::ForeignStack {
        name: stack.name,
        transport: kind.name(),
        known: names(&mut kind.stacks()),
    })?;
    Ok((stack, behaviour))
}

/// A value that the endpoint could not work with, in the words of a specification.
fn misfit(found: Result<(), (&str, &str)>, behaviour: &toml::Table) -> Result<(), SpecError> {
    found.map_err(|(key, problem)| bad_value(key, &behaviour[key], format!("{key} {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Duration;

    fn error(text: &str) -> String {
        text.parse::<TransportSpec>().unwrap_err().to_string()
    }

    #[test]
    fn every_stack_settles_every_protocol() {
        for kind in Kind::ALL {
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
    fn nagle_is_off_unless_asked_for() {
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
            assert_eq!(spec.behaviour()["nagle"].to_string(), expected, "{text}");
        }
    }

    #[test]
    fn hosts_remember_nothing_unless_asked_to() {
        for (text, expected) in [
            ("tcp", MetricsCache::Off),
            ("sctp", MetricsCache::Off),
            ("tcp:metrics_cache", MetricsCache::On),
            ("mptcp:metrics_cache=on", MetricsCache::On),
            ("tcp:metrics_cache=ssthresh", MetricsCache::Ssthresh),
        ] {
            assert_eq!(text.parse::<TransportSpec>().unwrap().metrics_cache(), expected, "{text}");
        }
        assert!(error("tcp:metrics_cache=all").contains("metrics_cache=all: it is off, on"));
        assert!(error("sctp:metrics_cache").contains("sctp has no option \"metrics_cache\""));
    }

    #[test]
    fn partial_reliability_has_one_limit() {
        let spec: TransportSpec = "sctp:unordered,lifetime=100ms".parse().unwrap();
        let Protocol::Sctp { unordered, reliability, .. } = spec.protocol() else { panic!("not sctp") };
        assert_eq!((*unordered, *reliability), (true, Reliability::Lifetime(Duration::from_millis(100))));
        assert!(error("sctp:lifetime=1s,retransmissions=2").contains("one limit"));
    }

    #[test]
    fn sockets_are_one_to_one_unless_asked_for() {
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
        assert!(error("sctp:socket=stream").contains("socket=stream: it is one-to-one, one-to-many or own"));
        assert!(error("sctp:socket").contains("needs a value"));
    }

    #[test]
    fn errors_name_the_cure() {
        assert!(error("dccp").contains("known are \"tcp\", \"sctp\", \"quic\""));
        assert!(error("quic:pacing=off").contains("quic has no option \"pacing\""));
        assert!(error("quic:rto_min=1s").contains("quic has no option \"rto_min\""));
        assert!(error("quic:cc=bbr").contains("congestion=bbr"));
        assert!(
            error("quic:stack=linux-6.12").contains("stack linux-6.12 has no quic; take quinn-0.11, rfc")
        );
        assert!(error("tcp:stack=quinn-0.11").contains("stack quinn-0.11 has no tcp"));
        assert!(error("quic:per_message,datagrams").contains("per_message"));
        assert!(error("quic:per_message,streams=8").contains("nothing for streams to do"));
        assert!(error("quic:mtu=1000B").contains("RFC 9000 section 14"));
        assert!(error("quic:streams=100").contains("raise max_streams"));
        assert!(error("udp:streams=8").contains("udp has no option \"streams\""));
        assert!(error("unix:nagle").contains("unix has no option \"nagle\""));
        assert!(error("udp:t2=100ms").contains("t2=100ms: t2 is shorter than t1"));
        assert!(error("sctp:stream=8").contains("did you mean \"streams\"?"));
        assert!(
            error("tcp:stack=bsd")
                .contains("linux-6.12, linux-2.6.16, linux-2.6.15, linux-2.6.10, quinn-0.11, rfc")
        );
        assert!(error("sctp:rto_min=200").contains("rto_min=200: \"200\" is not a time such as \"10ms\""));
        assert!(error("sctp:streams=0").contains("streams"));
        assert!(error("sctp:streams").contains("needs a value"));
        assert!(error("sctp:streams=8,streams=9").contains("twice"));
        assert!(error("tcp:connections=0").contains("between 1 and 1024"));
        assert!(error("sctp:streams=6554,associations=10").contains("streams=6554: the 10 associations"));
        assert!(error("tcp:mss=0").contains("mss=0: mss has to be 88 octets at least"));
        assert!(error("sctp:rto_min=5s,rto_max=1s").contains("rto_min exceeds rto_max"));
    }
}
