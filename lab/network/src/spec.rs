//! The `[network]` table of an experiment.
//!
//! Short form: one link between `client` and `server`, or several in parallel (`paths`). Long form: `nodes`,
//! `links` and `lans` with static routing. Settings at the top hold for every line; a path, link or LAN may
//! override them, and its `up` and `down` tables override one direction of it.

use hol_base::{BitRate, ByteCount, Duration, QueueLimit, Ratio};
use hol_wire::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::discipline::Discipline;
use crate::distribution::Distribution;
use crate::event::EventSpec;
use crate::handover::{Changes, HandoverSpec};
use crate::ip::Ip;
use crate::loss::LossSpec;
use crate::police::PoliceSpec;
use crate::trace::TraceSpec;

/// Makes every table that may hold the settings of a line from the one list of them.
///
/// serde's `flatten` would do it too, but then a misspelt key or unit loses its line and column.
macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr,)*) => {
        /// The settings of one line (one direction of a link, or a LAN), complete.
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
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
            /// Overrides for the direction from client to server.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Overrides for the direction from server to client.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
            /// MPTCP sends over it only while no other path works (RFC 8684 section 3.3, B). TCP uses the first path alone, and SCTP
            /// has all others wait anyhow. Not the first path, where connections begin. Default no.
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
            /// What events and drawings call it. Default `from-to`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// The addresses of `from` and `to`. Default 10.0.i.1 and 10.0.i.2, or fd00:0:0:i::1 and fd00:0:0:i::2, on the i-th of all links and LANs.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(with = "Vec<String>")]
            pub addresses: Vec<Address>,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
            /// Overrides for the direction `from` → `to`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Overrides for the direction `to` → `from`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
        }

        /// A shared segment: each of its nodes reaches every other in one hop, one packet at a time.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct LanSpec {
            /// The nodes on the segment.
            pub nodes: Vec<String>,
            /// What events and drawings call it. Default the nodes, joined by hyphens.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// The addresses of `nodes`, in their order. Default 10.0.i.1, 10.0.i.2, … or fd00:0:0:i::1, …
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(with = "Vec<String>")]
            pub addresses: Vec<Address>,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$kind>,)*
        }

        /// What lies between the endpoints.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct NetworkSpec {
            $($(#[$doc])* pub $field: $kind,)*
            /// The version of IP: `"v4"` or `"v6"`, whose header is 20 octets longer. Default `"v4"`.
            #[serde(skip_serializing_if = "Ip::is_default")]
            pub ip: Ip,
            /// Overrides for the direction from client to server.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub up: Option<Overrides>,
            /// Overrides for the direction from server to client.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub down: Option<Overrides>,
            /// What changes during the run.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub events: Vec<EventSpec>,
            /// A file beside the experiment of which more events are made: a table with `time` and some of `rate`, `delay`, `loss`
            /// (CSV), or mahimahi's times at which a packet may leave. One for each direction: `{ up = "a.csv", down = "b.csv" }`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace: Option<TraceSpec>,
            /// The client moves from the first of two paths to the second. Over UDP in the kernel world, and over QUIC, only with
            /// `changes = "route"`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub handover: Option<HandoverSpec>,
            /// Parallel links between client and server; path i has the addresses 10.0.i.1 and 10.0.i.2, or fd00:0:0:i::1 and fd00:0:0:i::2.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub paths: Vec<PathSpec>,
            /// Long form: the names of all nodes, `client` and `server` among them.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub nodes: Vec<String>,
            /// Long form: links between nodes.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub links: Vec<LinkSpec>,
            /// Long form: segments that nodes share.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub lans: Vec<LanSpec>,
        }

        impl Default for NetworkSpec {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    ip: Ip::V4,
                    up: None,
                    down: None,
                    events: Vec::new(),
                    trace: None,
                    handover: None,
                    paths: Vec::new(),
                    nodes: Vec::new(),
                    links: Vec::new(),
                    lans: Vec::new(),
                }
            }
        }

        impl NetworkSpec {
            /// What each table says of how the delay varies.
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

            /// The client gets another address during the run.
            pub fn client_moves(&self) -> bool {
                self.handover.as_ref().is_some_and(|handover| handover.changes == Changes::Address)
            }

            /// The settings at the top of the table.
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
            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
        impl LinkSpec {
            /// A link between two nodes with the settings of the table around it.
            pub fn between(from: String, to: String) -> Self {
                Self { from, to, name: None, addresses: Vec::new(), $($field: None,)* up: None, down: None }
            }

            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
        impl LanSpec {
            /// A segment that `nodes` share, with the settings of the table around it.
            pub fn of(nodes: Vec<String>) -> Self {
                Self { nodes, name: None, addresses: Vec::new(), $($field: None,)* }
            }

            pub(crate) fn overrides(&self) -> Overrides {
                Overrides { $($field: self.$field.clone(),)* }
            }
        }
    };
}

settings! {
    /// Bit rate; a packet occupies the line for its length divided by this. Default 100 Mbit/s.
    rate: BitRate = mbit(100),
    /// One-way propagation delay. Default 10 ms.
    delay: Duration = Duration::from_millis(10),
    /// The delay varies uniformly by up to this much either way, or as `jitter_distribution` says; packets keep their order. At most 2 s
    /// in the kernel world. Default none.
    jitter: Duration = Duration::ZERO,
    /// How the delay varies: `"uniform"`; `"normal"`, with `jitter` as the standard deviation; `"pareto"` or `"paretonormal"`, as tc-netem
    /// has them; or `{ file = "measured.dist" }` in its format. No packet takes less than no time. Default `"uniform"`.
    jitter_distribution: Distribution = Distribution::Uniform,
    /// How much of a packet's jitter is that of the packet before. If uniform: j = correlation · j + (1 − correlation) · new, so that the
    /// variance is less; if normal, the correlation of one packet's with the next one's. In the model world alone. Default 0 %.
    jitter_correlation: Ratio = Ratio::ZERO,
    /// Loss on the line: `"1%"`, a Gilbert–Elliott table, or `{ drop = [3, 7] }`. Default none.
    loss: LossSpec = LossSpec::default(),
    /// Probability that a packet arrives twice. Default 0.
    duplicate: Ratio = Ratio::ZERO,
    /// Probability that a packet is held back by `reorder_by`, so that later ones overtake it. Default 0.
    reorder: Ratio = Ratio::ZERO,
    /// Extra delay of packets that are reordered.
    reorder_by: Duration = Duration::ZERO,
    /// Probability that a packet arrives with a wrong checksum. Default 0.
    corrupt: Ratio = Ratio::ZERO,
    /// What the queue before the line holds, the packet in transmission included. Default 1000 packets.
    queue: QueueLimit = QueueLimit::Packets(1000),
    /// Who is dropped when packets queue up, and who goes first: `"droptail"`, `"codel"`, `"fq_codel"`, `"pie"`, or a table as
    /// `{ red = { min = "5p", max = "15p" } }`.
    discipline: Discipline = Discipline::DropTail,
    /// Drops what comes out of the line faster than a rate: `{ rate = "1Mbit", burst = "10kB" }`. In the kernel world
    /// not beside `duplicate`. Default `"none"`.
    police: PoliceSpec = PoliceSpec::default(),
    /// Lines that name the same channel transmit one packet at a time over all of them, in turns. In the model world alone. Default
    /// `"own"`: each for itself.
    channel: String = Settings::OWN_CHANNEL.to_owned(),
    /// Longest IP packet; a longer one is dropped. At most 65535 octets in the kernel world. Default 1500 octets.
    mtu: ByteCount = ByteCount(1500),
    /// Octets that a packet takes on the line beyond IP. Default 14, as `tc` counts Ethernet.
    overhead: ByteCount = ByteCount(14),
}

impl Settings {
    /// The channel of a line that shares none.
    pub const OWN_CHANNEL: &'static str = "own";

    /// These settings with a table's overrides, then with those of one direction of it.
    pub(crate) fn refined(&self, table: &Overrides, direction: Option<&Overrides>) -> Self {
        let settings = self.with(table);
        direction.map_or_else(|| settings.clone(), |overrides| settings.with(overrides))
    }
}

/// What the tables of two directions say of how the delay varies.
fn directions<'a>(
    up: &'a mut Option<Overrides>,
    down: &'a mut Option<Overrides>,
) -> impl Iterator<Item = &'a mut Distribution> {
    [up, down].into_iter().filter_map(|table| table.as_mut()?.jitter_distribution.as_mut())
}

fn mbit(rate: u64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1_000_000).expect("above zero")
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
    fn overrides_apply_from_the_outside_in() {
        let spec = parse(
            "loss = '1%'\n[[paths]]\n[[paths]]\ndelay = '50ms'\ndown = { delay = '60ms' }\nup = { loss = '2%' }",
        )
        .unwrap();
        let [first, second] = &spec.paths[..] else { panic!("two paths") };
        assert_eq!(spec.settings().refined(&first.overrides(), None).delay, Duration::from_millis(10));
        let up = spec.settings().refined(&second.overrides(), second.up.as_ref());
        let down = spec.settings().refined(&second.overrides(), second.down.as_ref());
        assert_eq!((up.delay, down.delay), (Duration::from_millis(50), Duration::from_millis(60)));
        assert_eq!(up.loss, LossSpec::Independent("2%".parse().unwrap()));
        assert_eq!(down.loss, LossSpec::Independent("1%".parse().unwrap()));
    }

    #[test]
    fn unknown_keys_and_missing_units_are_refused_with_their_place() {
        let error = parse("delay = '10ms'\nlatency = '3ms'").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("latency"), "{error}");
        let error = parse("up = { delay = '10' }").unwrap_err().to_string();
        assert!(error.contains("a time such as"), "{error}");
    }
}
