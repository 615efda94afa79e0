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
use crate::policer::PoliceSpec;
use crate::trace::TraceSpec;
use crate::trace_start::TraceStart;

/// Generates every table that may contain the settings of a link from one list.
///
/// serde's `flatten` would do so too, but errors would lose their line and column.
macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr,)*) => {
        /// The complete settings of one direction of a link, or of a LAN.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct Settings {
            $($(#[$doc])* pub $field: $kind,)*
        }

        /// Settings that override the table around them.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Overrides {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
        }

        /// A parallel link between `client` and `server`, with its own interfaces.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct PathSpec {
            /// Named path such as `"lte"` (`hol help lte`); the other keys replace its values in both directions.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub path: Option<NamedPath>,
            /// Round-trip propagation delay, half in each direction; replaces `delay`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rtt: Option<Duration>,
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
            /// Settings of the direction from client to server; they override the common ones.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Settings of the direction from server to client; they override the common ones.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
            /// MPTCP uses the path only while no other works (RFC 8684 section 3.3.8). Not for the first path. Default no.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub backup: bool,
        }

        /// A link between two named nodes.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct LinkSpec {
            /// Node at one end.
            pub from: String,
            /// Node at the other end.
            pub to: String,
            /// Name in events and drawings. Default `from-to`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Addresses of `from` and `to`. Default 10.0.i.1 and 10.0.i.2, or fd00:0:0:i::1 and fd00:0:0:i::2, where i
            /// is the number of the link.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(with = "Vec<String>")]
            pub addresses: Vec<Address>,
            /// Named path such as `"lte"` (`hol help lte`); the other keys replace its values in both directions.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub path: Option<NamedPath>,
            /// Round-trip propagation delay, half in each direction; replaces `delay`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rtt: Option<Duration>,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
            /// Settings of the direction from `from` to `to`; they override the common ones.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Settings of the direction from `to` to `from`; they override the common ones.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
        }

        /// A shared segment, whose nodes are one hop apart and send one packet at a time.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct LanSpec {
            /// Nodes on the segment.
            pub nodes: Vec<String>,
            /// Name in events and drawings. Default `nodes`, joined by hyphens.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Addresses of `nodes`, in order. Default 10.0.i.1, … or fd00:0:0:i::1, …, where i counts the links,
            /// then the LANs.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(with = "Vec<String>")]
            pub addresses: Vec<Address>,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
        }

        /// The network between the endpoints.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct NetworkSpec {
            /// Named path such as `"lte"` (`hol help lte`); the other keys replace its values in both directions.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub path: Option<NamedPath>,
            /// Round-trip propagation delay, half in each direction; replaces `delay`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rtt: Option<Duration>,
            $($(#[$doc])* pub $field: $kind,)*
            /// IP version. Default `"v4"`.
            #[serde(skip_serializing_if = "Ip::is_default")]
            pub ip: Ip,
            /// Settings of the direction from client to server; they override the common ones.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Settings of the direction from server to client; they override the common ones.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
            /// Changes during the run.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub events: Vec<EventSpec>,
            /// Trace file of the link: CSV (`time` and some of `rate`, `delay`, `loss`) or mahimahi. Per direction: `{ up = "a.csv", down =
            /// "b.csv" }`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace: Option<TraceSpec>,
            /// Position in the trace at which a run begins. `"random"` draws a position for each repetition, and the
            /// trace repeats for ten minutes. Default: the beginning; the last line of a CSV then applies until the run
            /// ends.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace_start: Option<TraceStart>,
            /// Move the client between two paths. QUIC, and UDP in the kernel world, need `changes = "route"`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub handover: Option<HandoverSpec>,
            /// Parallel links between client and server. Path i has the addresses 10.0.i.1 and 10.0.i.2, or
            /// fd00:0:0:i::1 and fd00:0:0:i::2.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub paths: Vec<PathSpec>,
            /// All nodes, including `client` and `server`, for `links` and `lans`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub nodes: Vec<String>,
            /// Links between `nodes`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub links: Vec<LinkSpec>,
            /// LANs between `nodes`.
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
            /// Returns the jitter distribution of each table that sets one.
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

            /// Returns the settings of both directions of the first path, up first; with `nodes`, the settings at the
            /// top of the `[network]` table.
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
            /// Returns the settings of the path's table that apply to both directions.
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
        impl LinkSpec {
            /// Creates a link between two nodes with the settings of the table around it.
            pub fn between(from: String, to: String) -> Self {
                Self { from, to, name: None, addresses: Vec::new(), path: None, rtt: None, $($field: None,)* up: None, down: None }
            }

            /// Returns the settings of the link's table that apply to both directions.
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
        impl LanSpec {
            /// Creates a segment shared by `nodes` with the settings of the table around it.
            pub fn of(nodes: Vec<String>) -> Self {
                Self { nodes, name: None, addresses: Vec::new(), $($field: None,)* }
            }

            /// Returns the settings in the table of the LAN.
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
    };
}

settings! {
    /// Bit rate. Default 100 Mbit/s.
    rate: BitRate = mbit(100),
    /// One-way propagation delay. Default 10 ms.
    delay: Duration = Duration::from_millis(10),
    /// The delay varies by up to ± this time, or as `jitter_distribution` determines; packets keep their order.
    /// Kernel world: at most 2 s. Default none.
    jitter: Duration = Duration::ZERO,
    /// Distribution of the jitter, as in tc-netem, or a file with it: `{ file = "measured.dist" }`. `"normal"`: `jitter` is the standard
    /// deviation. Negative delays become zero. Default `"uniform"`.
    jitter_distribution: Distribution = Distribution::Uniform,
    /// Correlation of each packet's jitter with that of the previous packet; for uniform or normal jitter. Correlation
    /// reduces the variance of uniform jitter. Model world only. Default 0.
    jitter_correlation: Ratio = Ratio::ZERO,
    /// Packet loss: a probability, Gilbert–Elliott bursts, or packets by number, as in `{ drop = [3, 7] }`. Default
    /// none.
    loss: LossSpec = LossSpec::default(),
    /// Probability of a duplicate. Default 0.
    duplicate: Ratio = Ratio::ZERO,
    /// Probability that a packet is delayed by `reorder_by`. Default 0.
    reorder: Ratio = Ratio::ZERO,
    /// Additional delay of reordered packets; needs `reorder`. Default none.
    reorder_by: Duration = Duration::ZERO,
    /// Probability of a wrong checksum. Default 0.
    corrupt: Ratio = Ratio::ZERO,
    /// Capacity of the queue, including the packet in transmission. Default 1000 packets.
    queue: QueueLimit = QueueLimit::Packets(1000),
    /// Queueing discipline, with parameters as in `{ red = { min = "5p" } }`. Default `"droptail"`.
    discipline: Discipline = Discipline::DropTail,
    /// Policer at the end of the link, before `reorder`; in the kernel world, it cannot be combined with `duplicate`.
    /// Default `"none"`.
    police: PoliceSpec = PoliceSpec::default(),
    /// Name of a channel; links with the same channel transmit in turns. Model world only. Default `"own"`: not shared.
    channel: String = Settings::OWN_CHANNEL.to_owned(),
    /// Longest IP packet; longer ones are dropped. Kernel world: at most 65535 B. Default 1500 B.
    mtu: ByteCount = ByteCount(1500),
    /// Length of the link-layer header. Default 14 B, as in `tc`.
    overhead: ByteCount = ByteCount(14),
}

impl Settings {
    /// The channel of a link that does not share a channel.
    pub const OWN_CHANNEL: &'static str = "own";

    /// Returns these settings with the overrides of a table, and then with those of one of its directions.
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
