//! The `[network]` table of an experiment.
//!
//! Without `nodes`: one link between `client` and `server`, or several in parallel (`paths`). With `nodes`: `links` and
//! `lans` between them, with static routing. Settings at the top apply to every link; a path, link or LAN may
//! override them, and its `up` and `down` tables override one direction.

use hol_base::{BitRate, ByteCount, Duration, QueueLimit, Ratio};
use hol_wire::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::discipline::Discipline;
use crate::distribution::Distribution;
use crate::event::EventSpec;
use crate::handover::{HandoverChange, HandoverSpec};
use crate::ip::Ip;
use crate::loss::LossSpec;
use crate::named_path::NamedPath;
use crate::police::PoliceSpec;
use crate::trace::TraceSpec;
use crate::trace_start::TraceStart;

/// Generates every table that may hold the settings of a link from one list.
///
/// serde's `flatten` would do so too, but errors would lose their line and column.
macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr,)*) => {
        /// The settings of one direction of a link, or of a LAN, complete.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct Settings {
            $($(#[$doc])* pub $field: $kind,)*
        }

        /// Settings that replace those of the table around them.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Overrides {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
        }

        /// One of several parallel links between `client` and `server`, each with its own interfaces.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct PathSpec {
            /// A path by name, such as `"lte"`: other keys of the table override its settings in both directions. `hol list paths` lists
            /// the paths; `hol help lte` shows the settings and sources of one. Default none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub path: Option<NamedPath>,
            /// Round-trip propagation delay, instead of `delay`: half of it in each direction.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rtt: Option<Duration>,
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
            /// Overrides for the direction from client to server.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Overrides for the direction from server to client.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
            /// Use the path in MPTCP only while no other path works (RFC 8684 section 3.3.8). TCP uses only
            /// the first path, and SCTP has only one active path anyway. Not allowed for the first path,
            /// where connections start. Default no.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub backup: bool,
        }

        /// A link between two named nodes.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct LinkSpec {
            /// The node at one end.
            pub from: String,
            /// The node at the other end.
            pub to: String,
            /// Name in events and drawings. Default `from-to`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Addresses of `from` and `to`. Default 10.0.i.1 and 10.0.i.2, or fd00:0:0:i::1 and
            /// fd00:0:0:i::2, on the i-th of all links and LANs.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(with = "Vec<String>")]
            pub addresses: Vec<Address>,
            /// A path by name, such as `"lte"`: other keys of the table override its settings in both directions. `hol list paths` lists
            /// the paths; `hol help lte` shows the settings and sources of one. Default none.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub path: Option<NamedPath>,
            /// Round-trip propagation delay, instead of `delay`: half of it in each direction.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rtt: Option<Duration>,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
            /// Overrides for the direction `from` → `to`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Overrides for the direction `to` → `from`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
        }

        /// A shared segment: each of its nodes reaches every other in one hop, and only one packet is sent at a time.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct LanSpec {
            /// The nodes on the segment.
            pub nodes: Vec<String>,
            /// Name in events and drawings. Default the nodes, joined by hyphens.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Addresses of `nodes`, in their order. Default 10.0.i.1, 10.0.i.2, … or fd00:0:0:i::1, … for the i-th of
            /// all links and LANs.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(with = "Vec<String>")]
            pub addresses: Vec<Address>,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
        }

        /// The network between the endpoints.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct NetworkSpec {
            /// A path by name, such as `"lte"`: other keys of the table override its settings in both directions. `hol list paths` lists
            /// the paths; `hol help lte` shows the settings and sources of one. Default none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub path: Option<NamedPath>,
            /// Round-trip propagation delay, instead of `delay`: half of it in each direction.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rtt: Option<Duration>,
            $($(#[$doc])* pub $field: $kind,)*
            /// Version of IP: `"v4"` or `"v6"`, whose header is 20 octets longer. Default `"v4"`.
            #[serde(skip_serializing_if = "Ip::is_default")]
            pub ip: Ip,
            /// Overrides for the direction from client to server.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Overrides for the direction from server to client.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
            /// Changes during the run.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub events: Vec<EventSpec>,
            /// A trace of the link, as a file whose path is relative to the experiment file: a table (CSV) with `time` and some of `rate`,
            /// `delay` and `loss`, or the times at which a packet may leave (mahimahi). One file per direction: `{ up = "a.csv", down =
            /// "b.csv" }`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace: Option<TraceSpec>,
            /// Position in the trace at which a run begins: a time since the beginning of the trace, or `"random"`, which each run draws
            /// from its seed, so that all transports of a repetition begin at the same position. The trace then goes on with its beginning
            /// after its end, for ten minutes. Default: the beginning, and the last line of a table holds.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace_start: Option<TraceStart>,
            /// Move the client from the first of two paths to the second. Over QUIC, and over UDP in the
            /// kernel world, only with `changes = "route"`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub handover: Option<HandoverSpec>,
            /// Parallel links between client and server. Path i has the addresses 10.0.i.1 and 10.0.i.2, or
            /// fd00:0:0:i::1 and fd00:0:0:i::2.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub paths: Vec<PathSpec>,
            /// Names of all nodes, including `client` and `server`, of a network with `links` or `lans`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub nodes: Vec<String>,
            /// Links between the nodes named in `nodes`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub links: Vec<LinkSpec>,
            /// LANs that several of the nodes named in `nodes` share.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub lans: Vec<LanSpec>,
        }

        impl Default for NetworkSpec {
            fn default() -> Self {
                Self {
                    path: None,
                    rtt: None,
                    $($field: $default,)*
                    ip: Ip::V4,
                    up: None,
                    down: None,
                    events: Vec::new(),
                    trace: None,
                    trace_start: None,
                    handover: None,
                    paths: Vec::new(),
                    nodes: Vec::new(),
                    links: Vec::new(),
                    lans: Vec::new(),
                }
            }
        }

        impl NetworkSpec {
            /// Returns the delay distribution of each table.
            pub fn distributions(&mut self) -> impl Iterator<Item = &mut Distribution> {
                let Self { jitter_distribution, up, down, paths, links, lans, .. } = self;
                let paths = paths.iter_mut().flat_map(|PathSpec { jitter_distribution: own, up, down, .. }| {
                    own.iter_mut().chain(directions(up, down))
                });
                let links = links.iter_mut().flat_map(|LinkSpec { jitter_distribution: own, up, down, .. }| {
                    own.iter_mut().chain(directions(up, down))
                });
                let lans = lans.iter_mut().filter_map(|lan| lan.jitter_distribution.as_mut());
                let top = [jitter_distribution].into_iter().chain(directions(up, down));
                top.chain(paths).chain(links).chain(lans)
            }

            /// Returns whether the client gets another address during the run.
            pub fn client_moves(&self) -> bool {
                self.handover.as_ref().is_some_and(|handover| handover.changes == HandoverChange::Address)
            }

            /// Returns the settings of both directions of the first path, up first; with `nodes`, those at the top of the table.
            pub fn directions(&self) -> [Settings; 2] {
                self.directions_of(&self.paths.first().cloned().unwrap_or_default())
            }

            /// Returns the settings of both directions of a path, up first.
            pub(crate) fn directions_of(&self, path: &PathSpec) -> [Settings; 2] {
                let table = path.overrides();
                [(&self.up, &path.up), (&self.down, &path.down)].map(|(own, of_path)| {
                    let own = own.clone().unwrap_or_default();
                    self.settings().with_overrides(&own, None).with_overrides(&table, of_path.as_ref())
                })
            }

            /// Returns the settings at the top of the table.
            pub fn settings(&self) -> Settings {
                Settings { $($field: self.$field.clone(),)* }
            }
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Settings {
            fn with(&self, overrides: &Overrides) -> Self {
                Self { $($field: overrides.$field.clone().unwrap_or_else(|| self.$field.clone()),)* }
            }
        }

        impl PathSpec {
            /// Returns the overrides of both directions.
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
        impl LinkSpec {
            /// Creates a link between two nodes with the settings of the table around it.
            pub fn between(from: String, to: String) -> Self {
                Self { from, to, name: None, addresses: Vec::new(), path: None, rtt: None, $($field: None,)* up: None, down: None }
            }

            /// Returns the overrides of both directions.
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
        impl LanSpec {
            /// Creates a segment shared by `nodes` with the settings of the table around it.
            pub fn of(nodes: Vec<String>) -> Self {
                Self { nodes, name: None, addresses: Vec::new(), $($field: None,)* }
            }

            /// Returns the overrides of the LAN.
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
    };
}

settings! {
    /// Bit rate; a packet occupies the link for its length divided by this rate. Default 100 Mbit/s.
    rate: BitRate = mbit(100),
    /// One-way propagation delay. Default 10 ms.
    delay: Duration = Duration::from_millis(10),
    /// Jitter: the delay varies uniformly by up to plus or minus this time, or as `jitter_distribution` specifies; packets keep their
    /// order. At most 2 s in the kernel world. Default none.
    jitter: Duration = Duration::ZERO,
    /// Distribution of the jitter: `"uniform"`; `"normal"`, with `jitter` as the standard deviation; `"pareto"` or `"paretonormal"`, as in
    /// tc-netem; or `{ file = "measured.dist" }`, a file in the format of tc-netem. A negative delay becomes zero. Default `"uniform"`.
    jitter_distribution: Distribution = Distribution::Uniform,
    /// Correlation with the jitter of the previous packet. Uniform: j = correlation · j + (1 − correlation)
    /// · new, which reduces the variance. Normal: the correlation of consecutive packets. Model world only.
    /// Default 0 %.
    jitter_correlation: Ratio = Ratio::ZERO,
    /// Packet loss: `"1%"`, a Gilbert–Elliott table whose bursts have a mean length in packets or in time, or `{ drop = [3, 7] }`. Default
    /// none.
    loss: LossSpec = LossSpec::default(),
    /// Probability that a packet arrives twice. Default 0.
    duplicate: Ratio = Ratio::ZERO,
    /// Probability that a packet is delayed by `reorder_by`, so that later packets overtake it. Default 0.
    reorder: Ratio = Ratio::ZERO,
    /// Additional delay of reordered packets; needs `reorder`. Default none.
    reorder_by: Duration = Duration::ZERO,
    /// Probability that a packet arrives with a wrong checksum. Default 0.
    corrupt: Ratio = Ratio::ZERO,
    /// Capacity of the queue, including the packet in transmission. Default 1000 packets.
    queue: QueueLimit = QueueLimit::Packets(1000),
    /// Queueing discipline: `"droptail"`, `"red"`, `"codel"`, `"fq_codel"`, `"pie"`, `"dualpi2"`, or a table such as
    /// `{ red = { min = "5p", max = "15p" } }`.
    discipline: Discipline = Discipline::DropTail,
    /// Drop packets that leave the link faster than a rate: `{ rate = "1Mbit", burst = "10kB" }`; `reorder` takes
    /// effect after it. In the kernel world not together with `duplicate`. Default `"none"`.
    police: PoliceSpec = PoliceSpec::default(),
    /// Name of the channel of the link: links that name the same channel take turns and transmit one packet at a time. Model world only.
    /// Default `"own"`: not shared.
    channel: String = Settings::OWN_CHANNEL.to_owned(),
    /// Maximum size of an IP packet; longer packets are dropped. At most 65535 octets in the kernel world. Default 1500 octets.
    mtu: ByteCount = ByteCount(1500),
    /// Octets of the link-layer header of each packet. Default 14, as `tc` counts for Ethernet.
    overhead: ByteCount = ByteCount(14),
}

impl Settings {
    /// The channel of a link that does not share a channel.
    pub const OWN_CHANNEL: &'static str = "own";

    /// Returns these settings with the overrides of a table, then of one of its directions.
    pub(crate) fn with_overrides(&self, table: &Overrides, direction: Option<&Overrides>) -> Self {
        let settings = self.with(table);
        direction.map_or_else(|| settings.clone(), |overrides| settings.with(overrides))
    }
}

/// Returns the delay distributions of the tables of two directions.
fn directions<'a>(
    up: &'a mut Option<Overrides>,
    down: &'a mut Option<Overrides>,
) -> impl Iterator<Item = &'a mut Distribution> {
    [up, down].into_iter().filter_map(|table| table.as_mut()?.jitter_distribution.as_mut())
}

fn mbit(rate: u64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1_000_000).expect("the rate is above zero")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NetworkSpec, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn an_empty_table_is_one_link_with_the_defaults() {
        let spec = parse("").unwrap();
        assert_eq!(spec, NetworkSpec::default());
        assert_eq!(spec.settings(), Settings::default());
    }

    #[test]
    fn the_table_round_trips_with_every_default_spelt_out() {
        let spec = parse("delay = '40ms'\nloss = '1%'\ndown = { loss = { drop = [3, 7] } }").unwrap();
        let text = toml::to_string(&spec).unwrap();
        assert!(text.contains("rate = \"100Mbit\"") && text.contains("mtu = \"1500B\""), "{text}");
        assert_eq!(parse(&text).unwrap(), spec);
    }

    #[test]
    fn inner_overrides_replace_outer_ones() {
        let spec = parse(
            "loss = '1%'\n[[paths]]\n[[paths]]\ndelay = '50ms'\ndown = { delay = '60ms' }\nup = { loss = '2%' }",
        )
        .unwrap();
        let [first, second] = &spec.paths[..] else { panic!("two paths") };
        assert_eq!(spec.settings().with_overrides(&first.overrides(), None).delay, Duration::from_millis(10));
        let up = spec.settings().with_overrides(&second.overrides(), second.up.as_ref());
        let down = spec.settings().with_overrides(&second.overrides(), second.down.as_ref());
        assert_eq!((up.delay, down.delay), (Duration::from_millis(50), Duration::from_millis(60)));
        assert_eq!(up.loss, LossSpec::Independent("2%".parse().unwrap()));
        assert_eq!(down.loss, LossSpec::Independent("1%".parse().unwrap()));
    }

    #[test]
    fn unknown_keys_and_missing_units_are_refused() {
        let error = parse("delay = '10ms'\nlatency = '3ms'").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("latency"), "{error}");
        let error = parse("up = { delay = '10' }").unwrap_err().to_string();
        assert!(error.contains("a time such as"), "{error}");
    }
}
