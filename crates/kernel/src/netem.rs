//! What of the `[network]` table the kernel's network emulator can do, as settings for it.
//!
//! A line of the model is a queue, a transmitter, loss, then propagation. Here it is a chain of emulators on the
//! router's interface, each one effect, the outer one first: delay, rate with its queue, loss, hold-back. All but the
//! last are first in, first out, so the delay may stand before the queue: the sums are the same. An emulator counts
//! what the ones inside it hold, so packets that are held back take room in the queue.

use hol_base::{Duration, QueueLimit, Ratio, Seed};
use hol_network::{LossSpec, NetworkSpec, PathSpec, Settings, Topology};
use serde::Serialize;
use serde_json::Value;

use crate::KernelError;

/// A network that can be built: parallel links between client and server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) links: Vec<Link>,
}

/// Two lines and what they share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    /// Longest IP packet, in octets.
    pub(crate) mtu: u32,
    /// From client to server.
    pub(crate) up: Line,
    /// From server to client.
    pub(crate) down: Line,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// It also names the random stream: `link/1/up`.
    pub(crate) name: String,
    /// The emulators, the outermost first.
    pub(crate) stages: Vec<Stage>,
    /// Delay without jitter and queue.
    pub(crate) delay: Duration,
    /// bit/s.
    pub(crate) rate: u64,
}

/// The settings of one emulator.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Stage {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// Octets a second; 0: no limit.
    pub(crate) rate: u64,
    /// Octets that a packet takes beyond what the interface counts, which is IP and Ethernet.
    pub(crate) overhead: i32,
    /// Packets that it holds at most.
    pub(crate) limit: u32,
    pub(crate) loss: Loss,
    /// The share of packets that pass without the delay.
    pub(crate) overtaking: Option<Ratio>,
    pub(crate) corrupt: Ratio,
}

/// Which packets an emulator loses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Loss {
    #[default]
    None,
    Independent(Ratio),
    /// From good to bad, from bad to good, loss while good, loss while bad.
    Bursts([Ratio; 4]),
}

/// Room for everything that is under way; the limit that matters is that of the queue.
const UNDER_WAY: u32 = 1_000_000;
/// Faster than any line: it takes no time, but keeps packets in order. In octets a second.
const NO_TIME: u64 = 1 << 50;
/// What the interface counts beyond IP.
const ETHERNET: i64 = 14;

fn refuse<T>(what: impl Into<String>, why: impl Into<String>) -> Result<T, KernelError> {
    Err(KernelError::Unsupported { what: what.into(), why: why.into() })
}

/// Makes a plan of the table, or refuses what netem has no words for.
pub(crate) fn plan(spec: &NetworkSpec) -> Result<Plan, KernelError> {
    if let Err(problem) = Topology::new(spec) {
        return refuse("network", problem.to_string());
    }
    if !spec.nodes.is_empty() {
        return refuse("network.nodes", "it has links between client and server only; use `paths`");
    }
    if !spec.events.is_empty() {
        return refuse("network.events", "its links keep their settings during a run");
    }
    let links = directions(spec).into_iter().zip(1..).map(|([up, down], number)| link(number, &up, &down));
    Ok(Plan { links: links.collect::<Result<_, _>>()? })
}

/// For each path the settings of its two directions: the table's, then those of its direction, of the path, and of
/// the path's direction.
fn directions(spec: &NetworkSpec) -> Vec<[Settings; 2]> {
    let own = json(&spec.settings());
    let single = [PathSpec::default()];
    let paths = if spec.paths.is_empty() { &single[..] } else { &spec.paths };
    let refined = |layers: [Value; 3]| {
        let mut settled = own.clone();
        for (key, value) in layers.into_iter().filter_map(|layer| layer.as_object().cloned()).flatten() {
            // A path's own directions are layers of their own.
            if !matches!(key.as_str(), "up" | "down") {
                settled[key] = value;
            }
        }
        serde_json::from_value::<NetworkSpec>(settled).expect("a table of settings is a network").settings()
    };
    let both = |path: &PathSpec| {
        [(&spec.up, &path.up), (&spec.down, &path.down)]
            .map(|(direction, of_path)| refined([json(direction), json(path), json(of_path)]))
    };
    paths.iter().map(both).collect()
}

fn json(table: &impl Serialize) -> Value {
    serde_json::to_value(table).expect("a table of the experiment is plain data")
}

fn link(number: usize, up: &Settings, down: &Settings) -> Result<Link, KernelError> {
    if up.mtu != down.mtu {
        return refuse("network.mtu", "an interface has one for both directions");
    }
    let mtu = u32::try_from(up.mtu.0).ok().filter(|mtu| *mtu <= 65_535);
    let Some(mtu) = mtu else {
        return refuse(format!("network.mtu = {}", up.mtu), "an interface takes at most 65535 octets");
    };
    let [up, down] =
        [("up", up), ("down", down)].map(|(way, settings)| line(&format!("link/{number}/{way}"), settings));
    Ok(Link { mtu, up: up?, down: down? })
}

fn line(name: &str, settings: &Settings) -> Result<Line, KernelError> {
    let Settings {
        rate, delay, jitter, loss, duplicate, reorder, reorder_by, corrupt, queue, overhead, ..
    } = settings;
    if !duplicate.is_zero() {
        return refuse(
            format!("network.duplicate = {duplicate}"),
            "netem sends the copy through the line again, with a delay and a loss of its own",
        );
    }
    let QueueLimit::Packets(packets) = queue else {
        return refuse(format!("network.queue = {queue}"), "netem counts packets; write it as in \"1000p\"");
    };
    if *jitter > Duration::from_secs(2) {
        return refuse(format!("network.jitter = {jitter}"), "netem takes at most 2 s");
    }
    let limit = u32::try_from(*packets).unwrap_or(u32::MAX).max(1);
    let octets = rate.bits_per_second() / 8;
    let mut stages = Vec::new();
    // A rate keeps the order of packets whose delays differ.
    let in_order = if *jitter > Duration::ZERO { NO_TIME } else { 0 };
    stages.push(Stage {
        delay: *delay,
        jitter: *jitter,
        rate: in_order,
        limit: UNDER_WAY,
        ..Stage::default()
    });
    let overhead = i32::try_from(overhead.0 as i64 - ETHERNET).unwrap_or(i32::MAX);
    stages.push(Stage { rate: octets.max(1), overhead, limit, ..Stage::default() });
    let loss = self::loss(loss)?;
    if loss != Loss::None || !corrupt.is_zero() {
        stages.push(Stage { loss, corrupt: *corrupt, limit: UNDER_WAY, ..Stage::default() });
    }
    if !reorder.is_zero() {
        // Last, for a packet that overtakes also overtakes the emulators inside.
        let overtaking = Ratio::new(1.0 - reorder.value()).unwrap_or_default();
        stages.push(Stage {
            delay: *reorder_by,
            limit: UNDER_WAY,
            overtaking: Some(overtaking),
            ..Stage::default()
        });
    }
    Ok(Line { name: name.to_owned(), stages, delay: *delay, rate: rate.bits_per_second() })
}

fn loss(loss: &LossSpec) -> Result<Loss, KernelError> {
    match loss {
        LossSpec::Independent(ratio) if ratio.is_zero() => Ok(Loss::None),
        LossSpec::Independent(ratio) => Ok(Loss::Independent(*ratio)),
        LossSpec::Bursts(bursts) => {
            Ok(Loss::Bursts([bursts.good_to_bad, bursts.bad_to_good, bursts.loss_good, bursts.loss_bad]))
        }
        LossSpec::Packets(_) => {
            refuse("network.loss = { drop = … }", "netem loses packets by chance, not by number")
        }
    }
}

impl Link {
    /// The round trip of a packet of `octets` of IP on an idle link.
    pub(crate) fn round_trip(&self, octets: u64) -> Duration {
        let one = |line: &Line| {
            let bits = (octets + ETHERNET as u64) * 8;
            line.delay
                + Duration::from_nanos((u128::from(bits) * 1_000_000_000 / u128::from(line.rate)) as u64)
        };
        one(&self.up) + one(&self.down)
    }
}

impl Line {
    /// The seed of one of its emulators.
    pub(crate) fn seed(&self, run: Seed, stage: usize) -> u64 {
        run.derive(&self.name).derive("netem").derive_index(stage as u64).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Plan, KernelError> {
        plan(&toml::from_str(text).unwrap())
    }

    #[test]
    fn a_line_delays_then_transmits_then_loses() {
        let plan = of("delay = '40ms'\nloss = '1%'\nqueue = '50p'").unwrap();
        let [delay, rate, loss] = &plan.links[0].up.stages[..] else { panic!("three stages") };
        assert_eq!((delay.delay, delay.rate, delay.limit), (Duration::from_millis(40), 0, UNDER_WAY));
        assert_eq!((rate.rate, rate.overhead, rate.limit), (12_500_000, 0, 50));
        assert_eq!(loss.loss, Loss::Independent(Ratio::new(0.01).unwrap()));
    }

    #[test]
    fn jitter_keeps_the_order() {
        let plan = of("jitter = '2ms'").unwrap();
        assert_eq!(plan.links[0].down.stages[0].rate, NO_TIME);
    }

    #[test]
    fn held_back_packets_are_those_that_do_not_overtake() {
        let plan = of("reorder = '5%'\nreorder_by = '3ms'").unwrap();
        let hold = plan.links[0].up.stages[2];
        assert_eq!((hold.delay, hold.overtaking), (Duration::from_millis(3), Ratio::new(0.95)));
    }

    #[test]
    fn directions_and_paths_differ() {
        let plan = of("paths = [{}, { delay = '50ms', up = { loss = '5%' } }]").unwrap();
        assert_eq!(plan.links.len(), 2);
        assert_eq!(plan.links[1].up.stages.len(), 3);
        assert_eq!(plan.links[1].down.stages.len(), 2);
        assert_eq!(plan.links[1].down.delay, Duration::from_millis(50));
    }

    #[test]
    fn what_netem_cannot_do_is_refused_by_name() {
        for (text, key) in [
            ("duplicate = '1%'", "network.duplicate"),
            ("queue = '64KiB'", "network.queue"),
            ("loss = { drop = [3] }", "network.loss"),
            ("up = { mtu = '1400B' }", "network.mtu"),
            ("events = [{ at = '1s', down = true }]", "network.events"),
            ("nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server' }]", "network.nodes"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn lines_have_different_seeds() {
        let plan = of("").unwrap();
        let Link { up, down, .. } = &plan.links[0];
        assert_ne!(up.seed(Seed(1), 0), down.seed(Seed(1), 0));
        assert_ne!(up.seed(Seed(1), 0), up.seed(Seed(2), 0));
        assert_ne!(up.seed(Seed(1), 0), up.seed(Seed(1), 1));
    }
}
