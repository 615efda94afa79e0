//! Agents of ns: their classes and attributes, and the transport that behaves like each agent.
//!
//! ns's TCP counts packets of `packetSize_`, has no handshake and a window of at most `window_` packets (ns 2.35,
//! `tcp/tcp.cc` `TcpAgent::window`); Emulab's agents behave like the stacks of its hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use hol_base::Duration;

use crate::ns_defaults::{default_of, defaults};
use crate::quantity::{any_number, positive, seconds, switch, whole_number};
use crate::tcl::{MEASURED_VALUE, Word, WordError, error_at};

/// An agent of ns: one end of a flow.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Position in the script at which the agent is created.
    pub at: usize,
    name: &'static str,
    pub class: Class,
    pub node: Option<usize>,
    /// Index of the agent to which this agent is connected.
    pub peer: Option<usize>,
    /// When the agent was detached from its node.
    pub detached: Option<Duration>,
    /// The attributes that the script sets, for this agent or for its class.
    pub attributes: BTreeMap<String, Word>,
    pub congestion: &'static str,
    /// Whether the agent has sent a packet.
    pub is_open: bool,
}

/// The kind of an agent, which follows from its class in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A TCP sender: the options of hol's transport, and whether the agent is ns's Tahoe, which hol lacks.
    Tcp {
        options: &'static str,
        is_tahoe: bool,
    },
    Sctp,
    Udp,
    /// A sink, which only receives. TCP's sinks may delay acknowledgments.
    Sink {
        delays: bool,
    },
}

/// The names of ns's classes of agents, and the kind of each.
const AGENTS: [(&str, Class); 17] = [
    ("Agent/TCP", Class::Tcp { options: "sack=false", is_tahoe: true }),
    ("Agent/TCP/Reno", Class::Tcp { options: "sack=false", is_tahoe: false }),
    ("Agent/TCP/Newreno", Class::Tcp { options: "sack=false", is_tahoe: false }),
    ("Agent/TCP/Sack1", Class::Tcp { options: "sack=true", is_tahoe: false }),
    ("Agent/TCP/Linux", Class::Tcp { options: "sack=true", is_tahoe: false }),
    ("Agent/TCP/FullTcp", Class::Tcp { options: "sack=false", is_tahoe: false }),
    ("Agent/TCP/FullTcp/Newreno", Class::Tcp { options: "sack=false", is_tahoe: false }),
    ("Agent/TCP/FullTcp/Sack", Class::Tcp { options: "sack=true", is_tahoe: false }),
    ("Agent/TCP/FullTcp/Tahoe", Class::Tcp { options: "sack=false", is_tahoe: true }),
    ("Agent/SCTP", Class::Sctp),
    ("Agent/UDP", Class::Udp),
    ("Agent/TCPSink", Class::Sink { delays: false }),
    ("Agent/TCPSink/DelAck", Class::Sink { delays: true }),
    ("Agent/TCPSink/Sack1", Class::Sink { delays: false }),
    ("Agent/TCPSink/Sack1/DelAck", Class::Sink { delays: true }),
    ("Agent/Null", Class::Sink { delays: false }),
    ("Agent/LossMonitor", Class::Sink { delays: false }),
];

/// Attributes of agents that have no effect on packets: they label packets for traces and animations, or are only
/// output.
pub(crate) const ATTRIBUTES_WITHOUT_EFFECT: [&str; 14] = [
    "fid_",
    "flowid_",
    "class_",
    "prio_",
    "flags_",
    "type_",
    "trace_all_oneline_",
    "nam_tracevar_",
    "cls_",
    "dst_",
    "src_",
    "bytes_",
    "npkts_",
    "nlost_",
];

/// Length of the data in the longest IP packet with headers of IP and TCP, in octets.
const LONGEST_PACKET: u64 = 65_535 - 40;
/// Octets of data in a chunk of ns's SCTP: its `dataChunkSize_`, or its `mtu_` if that is smaller with the headers of
/// IP and SCTP, less the chunk's header. sctp/sctp.cc, `SctpAgent::Reset`.
const SCTP_DATA: u64 = 1452;
/// The largest buffer that hol's transports support, in octets.
const LARGEST_BUFFER: u64 = 1_000_000_000_000;
/// The largest shift of the Window Scale option. RFC 7323 section 2.3.
const LARGEST_WINDOW_SCALE: u32 = 14;

/// Attributes of TCP that hol supports, except for the size of a packet.
const TCP_ATTRIBUTES: [&str; 6] = ["window_", "windowInit_", "maxcwnd_", "minrto_", "ecn_", "timestamps_"];

/// Attributes that ns uses as counters: it increases them during a run, so a value that a script sets does not last.
pub(crate) const COUNTER_ATTRIBUTES: [&str; 3] = ["bytes_", "npkts_", "nlost_"];

/// Returns whether a variable of an agent is an attribute in ns; all other variables are the script's own.
pub(crate) fn is_attribute(name: &str) -> bool {
    static KNOWN_ATTRIBUTES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        defaults().filter(|(class, ..)| class.starts_with("Agent")).map(|(_, known, _)| known).collect()
    });
    ATTRIBUTES_WITHOUT_EFFECT.contains(&name) || KNOWN_ATTRIBUTES.contains(name)
}

impl Agent {
    /// Returns an agent of a class; `None` for an unknown class.
    pub fn new(name: &str, at: usize) -> Option<Self> {
        let (name, class) = AGENTS.iter().find(|(known, _)| *known == name)?;
        let (node, peer, detached, own) = (None, None, None, BTreeMap::new());
        Some(Self {
            at,
            name,
            class: *class,
            node,
            peer,
            detached,
            attributes: own,
            congestion: "reno",
            is_open: false,
        })
    }

    /// Returns the name of the agent's class.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how many random numbers ns draws when it creates an agent of this class (for `boot_time_` in
    /// `TcpAgent::reset`).
    pub fn random_draws(&self) -> u32 {
        match self.class {
            Class::Tcp { .. } if self.is_full_tcp() => 2,
            Class::Tcp { .. } => 1,
            _ => 0,
        }
    }

    /// Returns whether the agent's class is FullTcp, which has a handshake and counts octets instead of packets. ns
    /// 2.35, tcp/tcp-full.cc.
    pub fn is_full_tcp(&self) -> bool {
        self.name.contains("FullTcp")
    }

    /// Returns the name of the attribute that sets the size of a packet, in octets.
    fn packet_attribute(&self) -> &'static str {
        if self.is_full_tcp() { "segsize_" } else { "packetSize_" }
    }

    /// Returns whether hol supports all values of an attribute of this agent.
    fn reads(&self, name: &str) -> bool {
        match self.class {
            // The flow's path decides whether it suffices.
            _ if name == "ttl_" => true,
            Class::Tcp { .. } => TCP_ATTRIBUTES.contains(&name) || name == self.packet_attribute(),
            Class::Udp => name == self.packet_attribute(),
            Class::Sink { delays } => delays && name == "interval_",
            Class::Sctp => false,
        }
    }

    /// Returns whether an attribute has no effect on the packets that are sent.
    fn is_idle(&self, name: &str) -> bool {
        ATTRIBUTES_WITHOUT_EFFECT.contains(&name)
            // ns's foutput() sets it to segsize_ plus headers.
            || self.is_full_tcp() && name == "packetSize_"
            || self.is_silent()
    }

    /// Returns whether the agent receives packets without sending any reply.
    pub fn is_silent(&self) -> bool {
        matches!(self.name, "Agent/Null" | "Agent/LossMonitor")
    }

    /// Returns the value of an attribute; ns's default if the script does not set the attribute.
    fn number<T>(&self, name: &str, read: fn(&Word) -> Result<T, WordError>) -> Result<T, WordError> {
        let usual = || {
            let text = default_of(self.name(), name).unwrap_or_default().to_owned();
            Word { text, at: self.at, verbatim: None }
        };
        self.attributes.get(name).map_or_else(|| read(&usual()), read)
    }

    /// Returns the size of a packet in octets: without headers for TCP and SCTP, with headers for UDP.
    pub fn packet(&self) -> Result<u64, WordError> {
        if self.class == Class::Sctp {
            return Ok(SCTP_DATA);
        }
        let octets = self.number(self.packet_attribute(), positive)?;
        if octets > LONGEST_PACKET {
            let at = self.attributes.get(self.packet_attribute()).map_or(self.at, |value| value.at);
            let problem =
                format!("packets of {octets} octets are longer than IP allows; use {LONGEST_PACKET}");
            return error_at(at, problem);
        }
        Ok(octets)
    }

    /// Returns how many octets Telnet writes at a time: the agent's attribute `size_`. apps/telnet.cc.
    pub fn write_size(&self) -> Result<u64, WordError> {
        match self.class {
            _ if self.is_full_tcp() => {
                // tcp/tcp-full.cc: foutput() sets it.
                error_at(self.at, "Telnet over FullTcp writes packets of two sizes; use Agent/TCP")
            }
            _ => self.packet(),
        }
    }

    /// Returns the transport that sends as this agent does, and the transport's label. `capacity` is the number of
    /// octets that the path and its queues can hold.
    pub fn transport(
        &self,
        sink: &Self,
        is_emulab: bool,
        capacity: u64,
    ) -> Result<(String, Option<&'static str>), WordError> {
        let options = match self.class {
            Class::Udp => return Ok(("udp".to_owned(), None)),
            Class::Sctp => return Ok(("sctp".to_owned(), None)),
            Class::Sink { .. } => {
                return error_at(
                    self.at,
                    "this agent only receives; attach the application to the sending agent",
                );
            }
            Class::Tcp { .. } if is_emulab => return Ok((format!("tcp:cc={}", self.congestion), None)),
            Class::Tcp { options, .. } => options,
        };
        let packet = self.packet()?;
        let max_window: f64 = self.number("maxcwnd_", not_negative)?;
        let window: f64 = self.number("window_", positive)?;
        let window = if max_window > 0.0 { window.min(max_window) } else { window };
        let window = window.clamp(1.0, LARGEST_BUFFER as f64) as u64;
        let rto: Duration = self.number("minrto_", seconds)?;
        let first: f64 = self.number("windowInit_", positive)?;
        let ecn = self.number("ecn_", switch)?;
        // tcp/tcp-full.cc, output(): without nodelay_ a short segment waits for an ACK.
        let nagle = if self.is_full_tcp() { "classic" } else { "off" };
        let timestamps = self.number("timestamps_", switch)?;
        // The unit of the window is no coarser than needed, so that it holds exactly these packets. The send buffer is limited, so that after a
        // stop only as much is sent as the path can hold.
        let octets = |packets: u64| packets.saturating_mul(packet).min(LARGEST_BUFFER);
        let (receive, send) = (octets(window), octets(2 * window).min(capacity.max(octets(4))));
        let window_scale =
            (receive / 65_536).checked_ilog2().map_or(0, |scale| scale + 1).min(LARGEST_WINDOW_SCALE);
        let acknowledgements = match sink.class {
            Class::Sink { delays: true } => {
                let wait = sink.number("interval_", seconds)?;
                format!("delayed_ack_min={wait},delayed_ack_max={wait}")
            }
            // A plain sink acknowledges each packet.
            _ => "delayed_ack_min=0s,delayed_ack_max=0s".to_owned(),
        };
        let spec = format!(
            "tcp:stack=rfc,cc={},{options},ecn={ecn},mss={packet},timestamps={timestamps},nagle={nagle},limited_transmit=false,\
             congestion_unit=packets,cwnd_validation=false,initial_window={},rto_min={rto},{acknowledgements},receive_buffer={receive}B,window_scale={window_scale},\
             send_buffer={send}B",
            self.congestion,
            (first as u64).max(1),
        );
        Ok((spec, Some(self.name())))
    }
}

fn not_negative(word: &Word) -> Result<f64, WordError> {
    if word.text.parse() == Ok(0.0) { Ok(0.0) } else { positive(word) }
}

impl Agent {
    /// Returns an error for an attribute that is not supported. An attribute matters only if it affects the
    /// packets and the script sets it to a value other than ns's default.
    pub fn check(&self) -> Result<(), WordError> {
        for (name, value) in &self.attributes {
            // Other variables are the script's own and have no effect.
            if !is_attribute(name) {
                continue;
            }
            let usual = default_of(self.name(), name);
            let is_usual = usual.is_some_and(|usual| is_same(usual, &value.text));
            if !(is_usual || self.reads(name) || self.is_idle(name)) {
                let class = self.name();
                let problem = match usual {
                    Some(MEASURED_VALUE) => {
                        format!("{name:?} of {class} is a result of the run; a script cannot set it")
                    }
                    Some(usual) => {
                        format!("{name:?} of {class} changes what is sent; hol supports only {usual}")
                    }
                    None => format!("{class} of ns has no attribute {name:?}; remove it"),
                };
                return error_at(value.at, problem);
            }
        }
        // Checks the value of the packet size.
        if matches!(self.class, Class::Tcp { .. } | Class::Udp) {
            self.packet()?;
        }
        Ok(())
    }

    /// Returns an error if packets of the agent would be dropped on a path with this number of links, because each link
    /// decrements their TTL (ns 2.35, common/ttl.cc).
    pub fn check_ttl(&self, links: usize) -> Result<(), WordError> {
        let ttl: f64 = self.number("ttl_", any_number)?;
        if self.is_silent() || ttl > links as f64 {
            return Ok(());
        }
        let at = self.attributes.get("ttl_").map_or(self.at, |value| value.at);
        let problem = format!(
            "ns drops all packets of this agent, because its ttl_ is {ttl}; set it above the number of links on the path ({links})"
        );
        error_at(at, problem)
    }

    /// Returns whether the agent is Tahoe, which returns to slow start after each loss; hol has no such transport.
    pub const fn is_tahoe(&self) -> bool {
        matches!(self.class, Class::Tcp { is_tahoe: true, .. })
    }
}

/// Returns whether two texts of attributes mean the same number or the same switch (on or off).
fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        text => text.parse::<f64>().ok(),
    };
    let time = |text: &str| {
        let word = Word { text: text.to_owned(), at: 0, verbatim: None };
        seconds(&word).ok()
    };
    one == other
        || number(one).is_some() && number(one) == number(other)
        || time(one).is_some() && time(one) == time(other)
}

/// Parses a whole number of packets to send.
pub(crate) fn packets(word: &Word) -> Result<u64, WordError> {
    whole_number(word)
}
