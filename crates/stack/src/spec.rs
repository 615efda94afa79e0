//! `tcp:cc=reno,connections=4`: which transport, whose behaviour, and what differs.

use std::fmt;
use std::str::FromStr;

use hol_base::nearest;
use hol_transport::Reliability;
use serde::Deserialize;
use serde::de::IntoDeserializer;

use crate::metrics_cache::MetricsCache;
use crate::stacks::{DEFAULT_STACK, Stack, stack, stacks};

/// The transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Transmission Control Protocol.
    Tcp,
    /// Stream Control Transmission Protocol.
    Sctp,
    /// Multipath TCP, RFC 8684; not in the model world.
    Mptcp,
    /// User Datagram Protocol: a message is a datagram.
    Udp,
}

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
    /// Datagrams; those that are lost stay lost, unless SIP repeats them.
    Udp {
        /// Behaviour of both ends.
        config: hol_udp::Config,
    },
}

/// A transport as the user names it, settled: protocol, stack and every behaviour.
#[derive(Debug, Clone)]
pub struct TransportSpec {
    text: String,
    stack: &'static str,
    behaviour: toml::Table,
    protocol: Protocol,
}

/// A specification that could not be read; the message names the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The word before the colon is no transport.
    #[error(
        "unknown transport {0:?}; known are \"tcp\", \"sctp\", \"mptcp\" and \"udp\", with options as in \"sctp:streams=8\""
    )]
    UnknownTransport(String),
    /// No such stack.
    #[error("unknown stack {name:?}; known are {known}")]
    UnknownStack {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such option.
    #[error("{transport} has no option {key:?}{hint}")]
    UnknownOption {
        /// The transport.
        transport: &'static str,
        /// What was asked for.
        key: String,
        /// What may have been meant, or all there is.
        hint: String,
    },
    /// An option without a value, where one is needed.
    #[error("option {0:?} needs a value, as in {0}=…")]
    MissingValue(String),
    /// The same option twice.
    #[error("option {0:?} is given twice")]
    Repeated(String),
    /// A value that the option does not take.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// The option.
        key: String,
        /// Its value as given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Options that belong to the application's use of a transport, not to the stack's behaviour.
const TCP_USE: [(&str, &str); 2] = [
    ("connections", "parallel connections, 1 to 1024"),
    (
        "metrics_cache",
        "what hosts keep for the next connection: off, on (as Linux does), ssthresh (as until 5.5); kernel world only",
    ),
];
const SCTP_USE: [(&str, &str); 5] = [
    ("associations", "parallel associations, 1 to 1024"),
    ("single_homed", "use the first address of each node alone, as TCP does: one path"),
    ("unordered", "deliver each message on arrival"),
    ("lifetime", "give a message up after this time (RFC 3758)"),
    ("retransmissions", "give a message up after so many retransmissions (RFC 7496)"),
];

impl Kind {
    /// Every transport protocol.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Sctp, Self::Mptcp, Self::Udp];

    /// The name in specifications: `"tcp"`, `"sctp"`, `"mptcp"`, `"udp"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Sctp => "sctp",
            Self::Mptcp => "mptcp",
            Self::Udp => "udp",
        }
    }

    /// What the endpoints of a stack do.
    fn behaviour(self, stack: &Stack) -> toml::Table {
        match self {
            Self::Tcp | Self::Mptcp => stack.table("tcp"),
            Self::Sctp => stack.table("sctp"),
            Self::Udp => stack.table("udp"),
        }
    }

    fn without_nagle(self) -> Option<toml::Value> {
        match self {
            Self::Tcp | Self::Mptcp => Some(toml::Value::String("off".to_owned())),
            Self::Sctp => Some(toml::Value::Boolean(false)),
            Self::Udp => None,
        }
    }

    /// The options that are not a behaviour of the stack, each with its meaning.
    pub const fn uses(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Tcp | Self::Mptcp => &TCP_USE,
            Self::Sctp => &SCTP_USE,
            Self::Udp => &[],
        }
    }
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
            Protocol::Mptcp { .. } => Kind::Mptcp,
            Protocol::Udp { .. } => Kind::Udp,
        }
    }
    /// The name of the stack.
    pub const fn stack(&self) -> &'static str {
        self.stack
    }
    /// Every behaviour of the endpoints, as the manifest stores it.
    pub const fn behaviour(&self) -> &toml::Table {
        &self.behaviour
    }
    /// How many connections (associations) it opens.
    pub const fn connections(&self) -> u16 {
        match self.protocol {
            Protocol::Tcp { connections, .. } | Protocol::Mptcp { connections, .. } => connections,
            Protocol::Sctp { associations, .. } => associations,
            Protocol::Udp { .. } => 1,
        }
    }

    /// What hosts keep of one connection for the next.
    pub const fn metrics_cache(&self) -> MetricsCache {
        match self.protocol {
            Protocol::Tcp { metrics_cache, .. } | Protocol::Mptcp { metrics_cache, .. } => metrics_cache,
            Protocol::Sctp { .. } | Protocol::Udp { .. } => MetricsCache::Off,
        }
    }

    /// How many streams a workload may spread its messages over: those of all SCTP associations, or TCP connections.
    pub const fn streams(&self) -> u16 {
        match &self.protocol {
            Protocol::Tcp { connections, .. } | Protocol::Mptcp { connections, .. } => *connections,
            Protocol::Sctp { config, associations, .. } => config.streams * *associations,
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
        let stack = named_stack(options.take("stack").as_deref())?;
        let mut behaviour = kind.behaviour(stack);
        // A request/response application switches Nagle off on both (TCP_NODELAY, SCTP_NODELAY).
        if let Some(off) = kind.without_nagle() {
            let own = behaviour.insert("nagle".to_owned(), off);
            options.switch_nagle(own, &mut behaviour);
        }

        let protocol = match kind {
            Kind::Tcp | Kind::Mptcp => {
                let connections = options.parse_or("connections", 1, 1..=1024)?;
                let metrics_cache = options.metrics_cache()?;
                let config: hol_tcp::Config = options.settle(kind, &mut behaviour)?;
                misfit(config.check(), &behaviour)?;
                if kind == Kind::Tcp {
                    Protocol::Tcp { config, connections, metrics_cache }
                } else {
                    Protocol::Mptcp { config, connections, metrics_cache }
                }
            }
            Kind::Sctp => {
                let associations = options.parse_or("associations", 1, 1..=1024)?;
                let single_homed = options.flag("single_homed")?;
                let unordered = options.flag("unordered")?;
                let reliability = options.reliability()?;
                let config: hol_sctp::Config = options.settle(kind, &mut behaviour)?;
                misfit(config.check(), &behaviour)?;
                if config.streams.checked_mul(associations).is_none() {
                    let problem =
                        format!("the {associations} associations have more than 65535 streams together");
                    return Err(bad_value("streams", &behaviour["streams"], problem));
                }
                Protocol::Sctp { config, associations, single_homed, unordered, reliability }
            }
            Kind::Udp => {
                let config: hol_udp::Config = options.settle(kind, &mut behaviour)?;
                misfit(config.check(), &behaviour)?;
                Protocol::Udp { config }
            }
        };
        Ok(Self { text: text.trim().to_owned(), stack: stack.name, behaviour, protocol })
    }
}

fn named_stack(name: Option<&str>) -> Result<&'static Stack, SpecError> {
    let name = name.unwrap_or(DEFAULT_STACK);
    stack(name).ok_or_else(|| {
        let known: Vec<_> = stacks().iter().map(|s| s.name).collect();
        SpecError::UnknownStack { name: name.to_owned(), known: known.join(", ") }
    })
}

/// The options behind the colon, in the order given; each is taken out as it is understood.
struct Options(Vec<(String, Option<String>)>);

impl Options {
    fn split(text: &str) -> Result<Self, SpecError> {
        let mut options: Vec<(String, Option<String>)> = Vec::new();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value.trim().to_owned())),
                None => (option, None),
            };
            // `cc` is the word that users of iperf3 and ss know.
            let key = if key.trim() == "cc" { "congestion" } else { key.trim() };
            if options.iter().any(|(known, _)| known == key) {
                return Err(SpecError::Repeated(key.to_owned()));
            }
            options.push((key.to_owned(), value));
        }
        Ok(Self(options))
    }

    fn take_option(&mut self, key: &str) -> Option<Option<String>> {
        let index = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(index).1)
    }

    fn take(&mut self, key: &str) -> Option<String> {
        self.take_option(key).flatten()
    }

    fn flag(&mut self, key: &str) -> Result<bool, SpecError> {
        match self.take_option(key) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(value)) => parse(key, &value),
        }
    }

    fn parse_or(
        &mut self,
        key: &str,
        default: u16,
        range: std::ops::RangeInclusive<u16>,
    ) -> Result<u16, SpecError> {
        let Some(value) = self.take_option(key) else { return Ok(default) };
        let value = value.ok_or_else(|| SpecError::MissingValue(key.to_owned()))?;
        let number = parse(key, &value)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let problem = format!("must lie between {} and {}", range.start(), range.end());
        Err(SpecError::BadValue { key: key.to_owned(), value, problem })
    }

    /// `nagle` and `nagle=on` are the stack's own variant, whatever it calls it.
    fn switch_nagle(&mut self, own: Option<toml::Value>, behaviour: &mut toml::Table) {
        let Some(index) = self.0.iter().position(|(key, _)| key == "nagle") else { return };
        match self.0[index].1.as_deref() {
            None | Some("on" | "true") => behaviour.extend(own.map(|own| ("nagle".to_owned(), own))),
            Some("off" | "false") => {}
            // A variant by name is read like any other behaviour.
            Some(_) => return,
        };
        self.0.remove(index);
    }

    /// `metrics_cache` alone is Linux as it comes.
    fn metrics_cache(&mut self) -> Result<MetricsCache, SpecError> {
        match self.take_option("metrics_cache") {
            None => Ok(MetricsCache::Off),
            Some(None) => Ok(MetricsCache::On),
            Some(Some(value)) => parse("metrics_cache", &value),
        }
    }

    fn reliability(&mut self) -> Result<Reliability, SpecError> {
        match (self.take("lifetime"), self.take("retransmissions")) {
            (None, None) => Ok(Reliability::Full),
            (Some(value), None) => Ok(Reliability::Lifetime(parse("lifetime", &value)?)),
            (None, Some(value)) => Ok(Reliability::Retransmissions(parse("retransmissions", &value)?)),
            (Some(value), Some(_)) => Err(SpecError::BadValue {
                key: "lifetime".to_owned(),
                value,
                problem: "a message has one limit: lifetime or retransmissions".to_owned(),
            }),
        }
    }

    /// Puts what is left over the stack's behaviours and reads the result.
    fn settle<C: for<'de> Deserialize<'de>>(
        self,
        kind: Kind,
        behaviour: &mut toml::Table,
    ) -> Result<C, SpecError> {
        let mut last = None;
        for (key, value) in self.0 {
            let Some(known) = behaviour.get(&key) else { return Err(unknown(kind, key, behaviour)) };
            let value = match (value, known) {
                (Some(value), known) => typed(&value, known),
                (None, toml::Value::Boolean(_)) => toml::Value::Boolean(true),
                (None, _) => return Err(SpecError::MissingValue(key)),
            };
            behaviour.insert(key.clone(), value.clone());
            // Each option is read by itself first, so that an error can name it.
            read::<C>(behaviour).map_err(|problem| bad_value(&key, &value, problem))?;
            last = Some((key, value));
        }
        read(behaviour).map_err(|problem| match last {
            Some((key, value)) => bad_value(&key, &value, problem),
            None => unreachable!("a stack that comes with the program is broken: {problem}"),
        })
    }
}

fn read<C: for<'de> Deserialize<'de>>(behaviour: &toml::Table) -> Result<C, String> {
    C::deserialize(behaviour.clone().into_deserializer()).map_err(|e: toml::de::Error| e.message().to_owned())
}

/// The text of an option as a TOML value of the kind that the stack file has, if it can be one.
fn typed(text: &str, like: &toml::Value) -> toml::Value {
    let number = text.parse().ok().map(toml::Value::Integer);
    let boolean = text.parse().ok().map(toml::Value::Boolean);
    let value = match like {
        toml::Value::Integer(_) => number,
        toml::Value::Boolean(_) => boolean,
        toml::Value::Float(_) => text.parse().ok().map(toml::Value::Float),
        _ => None,
    };
    value.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

fn parse<T: FromStr<Err: fmt::Display>>(key: &str, value: &str) -> Result<T, SpecError> {
    value.parse().map_err(|problem: T::Err| SpecError::BadValue {
        key: key.to_owned(),
        value: value.to_owned(),
        problem: problem.to_string(),
    })
}

/// A value that the endpoint could not work with, in the words of a specification.
fn misfit(found: Result<(), (&str, &str)>, behaviour: &toml::Table) -> Result<(), SpecError> {
    found.map_err(|(key, problem)| bad_value(key, &behaviour[key], format!("{key} {problem}")))
}

fn bad_value(key: &str, value: &toml::Value, problem: String) -> SpecError {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    SpecError::BadValue { key: key.to_owned(), value, problem }
}

fn unknown(kind: Kind, key: String, behaviour: &toml::Table) -> SpecError {
    let uses = kind.uses().iter().map(|(name, _)| *name);
    let known: Vec<&str> = uses.chain(["stack"]).chain(behaviour.keys().map(String::as_str)).collect();
    let hint = match nearest(&key, known.iter().copied()) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => format!("; known are {}", known.join(", ")),
    };
    SpecError::UnknownOption { transport: kind.name(), key, hint }
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
        for stack in stacks() {
            for kind in Kind::ALL {
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
        let spec: TransportSpec = "tcp:cc=reno,stack=linux-2.6,connections=4".parse().unwrap();
        assert_eq!((spec.streams(), spec.stack()), (4, "linux-2.6"));
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
    fn errors_name_the_cure() {
        assert!(error("quic").contains("known are \"tcp\", \"sctp\""));
        assert!(error("udp:streams=8").contains("udp has no option \"streams\""));
        assert!(error("udp:t2=100ms").contains("t2=100ms: t2 is shorter than t1"));
        assert!(error("sctp:stream=8").contains("did you mean \"streams\"?"));
        assert!(error("tcp:stack=bsd").contains("linux-6.12, linux-2.6, rfc"));
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
