//! The known differences between the model world and Linux 6.12, and the range of conditions in which both
//! were compared.
//!
//! `hol validate --random` draws scenarios from these ranges. A report of the model world names the
//! differences that affect its own points, and the values outside of the ranges. `docs/fidelity.md` lists
//! all differences.

use hol_base::QueueLimit;
use hol_network::{LossSpec, Settings};
use hol_stack::ProtocolKind;

use crate::point::Point;

/// The ranges of values from which the random comparison of the model with Linux draws.
#[derive(Debug, Clone, Copy)]
pub struct Ranges {
    /// Size of a message, in octets.
    pub size: [f64; 2],
    /// Rate of messages, per second.
    pub rate: [f64; 2],
    /// One-way delay in milliseconds.
    pub delay_ms: [f64; 2],
    /// Bit rate of the link in kbit/s.
    pub bandwidth_kbps: [f64; 2],
    /// Random loss in percent.
    pub loss_percent: [f64; 2],
    /// The capacity of a short queue, which fills up during a run, in packets.
    pub short_queue: [f64; 2],
}

/// The ranges in which the model was compared with Linux 6.12.
pub const COMPARED_RANGES: Ranges = Ranges {
    size: [1.0, 256_000.0],
    rate: [1.0, 1000.0],
    delay_ms: [0.2, 150.0],
    bandwidth_kbps: [1_000.0, 1_000_000.0],
    loss_percent: [0.3, 8.0],
    short_queue: [4.0, 60.0],
};

/// The stack that the model had when it was compared with Linux.
const COMPARED_STACK: &str = "linux-6.12";

/// A known difference between the model and Linux 6.12.
#[derive(Debug)]
pub struct KnownDifference {
    /// Description of the difference, without a full stop.
    pub description: &'static str,
    /// The size of the difference, as text.
    pub size: &'static str,
    /// Conditions under which the difference matters.
    pub condition: &'static str,
    /// Function that returns whether the difference affects a point; `None` if it changes packets but no value of a
    /// report.
    affects: Option<fn(&Point) -> bool>,
}

/// All known differences, those with the largest effect on results first.
pub const KNOWN_DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        description: "SCTP over the loopback interface, whose MTU is 64 KiB, stalls in Linux but not in the model",
        size: "throughput by a factor of 60",
        condition: "an MTU above 9000",
        affects: Some(|point| is_sctp(point) && point.network.mtu.0 > LARGE_MTU),
    },
    KnownDifference {
        description: "A packet that arrives within nanoseconds of the moment at which a full queue drains may be dropped in one world only",
        size: "single packets, and a timeout if one of them is lost",
        condition: "queues of about 10 packets",
        affects: Some(|point| {
            point.network.directions().iter().any(
                |settings| matches!(settings.queue, QueueLimit::Packets(packets) if packets <= SHORT_QUEUE),
            )
        }),
    },
    KnownDifference {
        description: "SCTP: if two packets of the peer arrive within 1 µs, the program may read between them in Linux, and not in the model",
        size: "the order of SACK and DATA chunks",
        condition: "echo of messages longer than 100 kB",
        affects: Some(|point| {
            let is_long = point.workload.longest_message().is_some_and(|octets| octets > LONG_MESSAGE);
            is_sctp(point) && point.workload.has_replies() && is_long
        }),
    },
    KnownDifference {
        description: "UDP: if no program listens on a port, Linux replies with ICMP port unreachable; the model sends no ICMP",
        size: "packets of the return path",
        condition: "a server that does not listen",
        affects: Some(|point| point.transport.kind() == ProtocolKind::Udp && !point.workload.listens),
    },
    KnownDifference {
        description: "TCP: Linux computes CUBIC's curve with an approximate cube root (`cubic_root`), the model with the exact one",
        size: "0.2 % of the time to the plateau: a segment is added to the window a few acknowledgments earlier or later",
        condition: "traces after losses on slow paths",
        affects: None,
    },
    KnownDifference {
        description: "In the model jitter is added after the queue, in the kernel world (netem) before it, so the queue absorbs it",
        size: "the time of each packet, by up to the jitter; response times and throughput did not differ in 60 to 100 runs of four scenarios",
        condition: "jitter under load",
        affects: None,
    },
    KnownDifference {
        description: "If a rate changes while a packet is being sent, the kernel world sends the rest of it at the old rate, the model at the new one",
        size: "the transmission time of one packet per change",
        condition: "events and traces that change the rate under load",
        affects: Some(|point| {
            let network = &point.network;
            network.events.iter().chain(network.changes_of_trace()).any(|event| event.rate.is_some())
        }),
    },
    KnownDifference {
        description: "In the kernel world `sch_cbs` sets the rate of queues with a discipline, and counts whole octets, so packets leave slightly late",
        size: "0.1 ms after some seconds",
        condition: "traces of CoDel, FQ-CoDel, PIE and RED",
        affects: None,
    },
    KnownDifference {
        description: "TCP: in Linux an `sk_buff` also ends after 17 small writes (`MAX_SKB_FRAGS`), or when the send buffer is full",
        size: "a segment sent sooner or later; its PSH flag",
        condition: "traces; bulk messages of a few runs",
        affects: None,
    },
    KnownDifference {
        description: "TCP: Linux merges small segments (`tcp_try_coalesce`, `tcp_collapse`), which changes the memory that they take",
        size: "the receive window, by 1 to 4 %",
        condition: "traces of small writes",
        affects: None,
    },
];

/// An MTU in octets; only the loopback interface has a larger one.
const LARGE_MTU: u64 = 9_000;
/// The message size in octets above which a message exceeds SCTP's default receive buffer.
const LONG_MESSAGE: u64 = 100_000;
/// The queue length in packets up to which the order of simultaneous packets matters.
const SHORT_QUEUE: u64 = 10;

/// The known differences between the model and Linux that affect results, and the conditions that were not
/// compared.
#[derive(Debug, Clone, Default)]
pub struct Fidelity {
    /// The known differences that affect at least one of the points.
    pub known: Vec<&'static KnownDifference>,
    /// A description of each condition that is outside of the compared ranges.
    pub outside: Vec<String>,
}

impl Fidelity {
    /// Returns the fidelity of those of the points that ran in the model world; `None` if none of them did.
    pub fn of<'p>(points: impl IntoIterator<Item = &'p Point>) -> Option<Self> {
        let points: Vec<_> = points.into_iter().filter(|point| point.world.is_default()).collect();
        let is_touched = |known: &&KnownDifference| {
            known.affects.is_some_and(|affects| points.iter().any(|point| affects(point)))
        };
        let known = KNOWN_DIFFERENCES.iter().filter(is_touched).collect();
        (!points.is_empty()).then(|| Self { known, outside: outside(&points) })
    }
}

/// A quantity of a point for which random scenarios draw values from a range.
struct ComparedQuantity {
    name: &'static str,
    unit: &'static str,
    values_of: fn(&Point) -> Vec<f64>,
    compared: [f64; 2],
}

const COMPARED_QUANTITIES: [ComparedQuantity; 5] = [
    ComparedQuantity {
        name: "messages",
        unit: " octets",
        values_of: |point| point.workload.longest_message().map(|octets| octets as f64).into_iter().collect(),
        compared: COMPARED_RANGES.size,
    },
    ComparedQuantity {
        name: "rates",
        unit: "/s",
        values_of: |point| {
            let of_each = point.workload.rate().map(|rate| rate.per_second());
            of_each.map(|rate| rate * f64::from(point.workload.source_count())).into_iter().collect()
        },
        compared: COMPARED_RANGES.rate,
    },
    ComparedQuantity {
        name: "one-way delays",
        unit: " ms",
        values_of: |point| point.network.directions().map(|settings| settings.delay.as_millis_f64()).to_vec(),
        compared: COMPARED_RANGES.delay_ms,
    },
    ComparedQuantity {
        name: "bit rates",
        unit: " kbit/s",
        values_of: |point| {
            let kbps = |settings: Settings| settings.rate.bits_per_second() as f64 / 1e3;
            point.network.directions().map(kbps).to_vec()
        },
        compared: COMPARED_RANGES.bandwidth_kbps,
    },
    ComparedQuantity {
        name: "losses",
        unit: " %",
        values_of: |point| {
            let percent = |settings: Settings| match settings.loss {
                // Rounded, because converting the fraction to a percentage adds a small error.
                LossSpec::Independent(ratio) => Some((ratio.value() * 1e8).round() / 1e6),
                LossSpec::Bursts(_) | LossSpec::TimedBursts(_) | LossSpec::Packets(_) => None,
            };
            point.network.directions().into_iter().filter_map(percent).collect()
        },
        compared: COMPARED_RANGES.loss_percent,
    },
];

impl ComparedQuantity {
    /// Returns a description of the points' values that are outside of the compared range; `None` if there are
    /// none. Zero is never outside.
    fn outside(&self, points: &[&Point]) -> Option<String> {
        let Self { name, unit, values_of: of, compared: [min, max] } = self;
        let is_outside = |value: &f64| value > max || (value < min && *value != 0.0);
        let values: Vec<f64> = points.iter().flat_map(|point| of(point)).filter(is_outside).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let values = if low < high { format!("{low} to {high}") } else { low.to_string() };
        Some(format!("{name} of {values}{unit} ({min} to {max}{unit} were compared)"))
    }
}

/// Returns a description of each condition of the points that random scenarios do not cover.
fn outside(points: &[&Point]) -> Vec<String> {
    let mut stacks: Vec<&str> =
        points.iter().filter(|point| is_ours(point)).map(|p| p.transport.stack()).collect();
    stacks.sort_unstable();
    stacks.dedup();
    let stacks = stacks.into_iter().filter(|stack| *stack != COMPARED_STACK);
    let stacks = stacks.map(|stack| format!("the stack {stack} (only {COMPARED_STACK} was compared)"));
    let any = |is_there: fn(&Point) -> bool| points.iter().any(|point| is_there(point));
    let kinds = [
        (any(|point| !point.background.is_empty()), "background flows"),
        (any(|point| !point.onward.is_empty()), "requests to further servers"),
        (any(has_graph), "routers and LANs"),
        (any(|point| point.network.trace.is_some()), "a trace of rates and delays"),
    ];
    let kinds = kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name.to_owned());
    stacks
        .chain(COMPARED_QUANTITIES.iter().filter_map(|quantity| quantity.outside(points)))
        .chain(kinds)
        .collect()
}

fn has_graph(point: &Point) -> bool {
    let network = &point.network;
    !(network.nodes.is_empty() && network.links.is_empty() && network.lans.is_empty())
}

/// Returns whether the point runs hol's own endpoints, whose behaviour is set by a stack.
fn is_ours(point: &Point) -> bool {
    point.transport.kind() == ProtocolKind::Tcp || is_sctp(point)
}

fn is_sctp(point: &Point) -> bool {
    point.transport.kind() == ProtocolKind::Sctp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, Source};

    /// Returns the fidelity of this experiment's points.
    fn fidelity(text: &str) -> Fidelity {
        let source = Source::new("mine.toml", text).with_file("a.csv", "time,rate\n0s,10Mbit\n9s,20Mbit\n");
        let experiment = Experiment::parse("mine", &source).unwrap();
        Fidelity::of(&experiment.points).unwrap()
    }

    #[test]
    fn a_point_within_the_compared_ranges_has_nothing_outside() {
        let Fidelity { known, outside } =
            fidelity("transports = [\"tcp\", \"sctp:streams=8\"]\nnetwork.loss = \"1%\"\n");
        assert!(known.is_empty() && outside.is_empty(), "{known:?} {outside:?}");
    }

    #[test]
    fn each_value_outside_is_named_once_with_its_range() {
        let Fidelity { outside, .. } = fidelity(
            "transports = [\"tcp:stack=linux-2.6.16\", \"sctp:stack=linux-2.6.16\"]\nnetwork.delay = \"300ms\"\nnetwork.loss = \"20%\"\n",
        );
        let expected = [
            "the stack linux-2.6.16 (only linux-6.12 was compared)",
            "one-way delays of 300 ms (0.2 to 150 ms were compared)",
            "losses of 20 % (0.3 to 8 % were compared)",
        ];
        assert_eq!(outside, expected);
    }

    #[test]
    fn a_known_difference_is_named_only_for_points_it_affects() {
        let echo = "workload.kind = \"echo\"\nworkload.size = \"150kB\"\n";
        let sctp = fidelity(&format!("transports = [\"sctp\"]\n{echo}"));
        let tcp = fidelity(&format!("transports = [\"tcp\"]\n{echo}"));
        assert!(sctp.known.iter().any(|known| known.condition.starts_with("echo")));
        assert!(tcp.known.is_empty(), "{:?}", tcp.known);
    }

    #[test]
    fn the_rate_difference_is_named_for_any_start_of_a_trace() {
        for start in ["0s", "5s", "random"] {
            let text = format!(
                "transports = [\"tcp\"]\nnetwork.trace = \"a.csv\"\nnetwork.trace_start = \"{start}\""
            );
            let known = fidelity(&text).known;
            assert!(known.iter().any(|known| known.description.starts_with("If a rate changes")), "{start}");
        }
    }
}
