//! A link as a chain of queueing disciplines (stages).
//!
//! A link of the model is a queue, a transmitter, loss, then propagation. Here it is a chain on its own
//! router: delay, admission to the queue, rate, release from the queue, loss, policing, reordering; packets
//! are duplicated at the end. If the queue has a discipline, packets wait behind a shaper before the rate. All
//! stages but the last are first in, first out, so the delay may come before the queue: the sums are equal.
//! An emulator counts the packets inside nested ones, so reordered packets take room in a queue of packets.

use std::sync::Arc;

use hol_base::{Duration, QueueLimit, Ratio, Seed};
use hol_network::{
    Discipline, EventRate, LinkChange, LinkId, LossSpec, PoliceSpec, ScheduledChange, Settings, TokenBucket,
    Topology,
};

use crate::shaper::{Shaper, ShaperQueue, UnsupportedKey};

/// One direction of a link, or a LAN, as disciplines of Linux emulate it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapedLink {
    /// Name of the direction, such as `link/1/up`; its random numbers derive from this name, too.
    pub name: String,
    /// The settings at the start of the run.
    pub settings: Settings,
    /// Which settings change during the run; the stages that they need must exist from the start.
    pub changing: ChangingSettings,
}

/// Which settings of a link change during the run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChangingSettings {
    /// Whether any setting of the link may change.
    pub any: bool,
    /// Whether the delay of the link changes.
    pub delay: bool,
    /// Whether the loss of the link changes.
    pub loss: bool,
    /// Whether the rate of the link changes.
    pub rate: bool,
    /// Whether the rate becomes 0 at some time.
    pub stops: bool,
}

/// A discipline or filter through which the packets of a link pass.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// An emulator (netem), which delays, loses or transmits packets.
    Emulator(Emulator),
    /// A filter, which drops packets by their number, beyond a limit of octets, or beyond a token rate; or frames that
    /// are not packets of the network.
    Filter(DropFilter),
    /// A shaper, which releases packets at the rate of the link.
    Shaper(Shaper),
    /// A queue of packets with a queueing discipline.
    Queue(ShaperQueue),
    /// The transit of packets to the next interface. The stages before this one are on an interface before the link's
    /// own, the stages after it on the link's own interface.
    Transit,
}

/// The settings of a network emulator (netem).
#[derive(Debug, Clone, PartialEq)]
pub struct Emulator {
    /// Delay of each packet.
    pub delay: Duration,
    /// Maximum deviation of the delay in either direction.
    pub jitter: Duration,
    /// Distribution of the delay; `None`: uniform.
    pub distribution: Option<Arc<[i16]>>,
    /// Rate in octets per second; 0: unlimited.
    pub rate: u64,
    /// Octets that are added to the length of each packet, in addition to the IP packet and the Ethernet header, which
    /// the interface counts.
    pub overhead: i32,
    /// Maximum number of packets in the emulator.
    pub limit: u32,
    /// Packet loss in the emulator.
    pub loss: Loss,
    /// Share of packets that are not delayed, so that they overtake others; `None`: no packets.
    pub overtaking: Option<Ratio>,
    /// Share of packets in which a bit is flipped.
    pub corrupt: Ratio,
    /// Whether packets stay in the emulator until the next change.
    pub gate: Gate,
}

/// Whether an emulator holds its packets until the next change of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The emulator never holds packets.
    None,
    /// The emulator does not hold packets now, but may do so after a change.
    Open,
    /// The emulator holds its packets.
    Closed,
}

/// A filter that drops packets for a reason that emulators do not support.
#[derive(Debug, Clone, PartialEq)]
pub enum DropFilter {
    /// Admits a packet only if the octets of IP in all packets that were admitted and not yet released are at most this
    /// limit.
    Admit(u64),
    /// Releases the octets of a packet that [`Self::Admit`] has counted; drops nothing.
    Release,
    /// Drops the packets with these numbers, counted from 1.
    Drop(Vec<u64>),
    /// Drops packets that exceed the rate of a token bucket.
    Police(TokenBucket),
    /// Drops the frames that are sent only to wake the stages behind this filter after a rate of 0.
    Wake,
}

/// The packet loss of an emulator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability.
    Independent(Ratio),
    /// Losses follow the Gilbert–Elliott model: the probabilities of a change from good to bad and from bad to good,
    /// and the loss rate in the good and in the bad state.
    Bursts([Ratio; 4]),
}

/// A setting that no queueing discipline supports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{what}`: {why}")]
pub struct Unsupported {
    /// Name of the setting's key.
    pub what: String,
    /// Why the setting is not supported, and the remedy.
    pub why: String,
}

fn refuse<T>(what: impl Into<String>, why: impl Into<String>) -> Result<T, Unsupported> {
    Err(Unsupported { what: what.into(), why: why.into() })
}

/// A limit of an emulator in packets that is never reached, so that only the limit of the queue has an effect.
const UNLIMITED_PACKETS: u32 = 1_000_000;
/// A rate above that of any link, in octets per second. At this rate transmission takes no time, but packets stay in
/// order.
const INSTANT_RATE: u64 = 1 << 50;
/// Length of the link-layer header, which the interface counts as part of a packet, in octets.
const ETHERNET_HEADER: i64 = 14;

/// An emulator that does nothing to packets.
const IDLE_EMULATOR: Emulator = Emulator {
    delay: Duration::ZERO,
    jitter: Duration::ZERO,
    distribution: None,
    rate: 0,
    overhead: 0,
    limit: UNLIMITED_PACKETS,
    loss: Loss::Independent(Ratio::ZERO),
    overtaking: None,
    corrupt: Ratio::ZERO,
    gate: Gate::None,
};

impl ChangingSettings {
    fn from_changes(changes: &[ScheduledChange], link: LinkId) -> Self {
        let own = || changes.iter().filter(|scheduled| scheduled.link == link);
        Self {
            any: own().next().is_some(),
            delay: own().any(|scheduled| matches!(scheduled.change, LinkChange::Delay(_))),
            loss: own().any(|scheduled| matches!(scheduled.change, LinkChange::Loss(_))),
            rate: own().any(|scheduled| matches!(scheduled.change, LinkChange::Rate(_))),
            stops: own().any(|scheduled| scheduled.change == LinkChange::Rate(EventRate::Zero)),
        }
    }

    /// Takes the changes into account that a loss in timed bursts causes during the run.
    fn with_timed_bursts(self, loss: &LossSpec) -> Self {
        let has_bursts = matches!(loss, LossSpec::TimedBursts(_));
        Self { any: self.any || has_bursts, loss: self.loss || has_bursts, ..self }
    }
}

impl ShapedLink {
    /// Returns all link directions of a network, or an error for an unsupported setting.
    pub fn from_topology(network: &Topology) -> Result<Vec<Self>, Unsupported> {
        let links = Self::of_topology(network);
        links.map(|link| link.check().map(|()| link)).collect()
    }

    /// Returns all link directions of a network, for a caller that itself passes netem its options. Such a caller may
    /// request correlated delays: netem has an option for them, although its delays then are hardly correlated.
    pub fn from_topology_with_correlation(network: &Topology) -> Result<Vec<Self>, Unsupported> {
        let check = |link: Self| {
            let settings = Settings { jitter_correlation: Ratio::ZERO, ..link.settings.clone() };
            Self { settings, ..link.clone() }.check().map(|()| link)
        };
        Self::of_topology(network).map(check).collect()
    }

    fn of_topology(network: &Topology) -> impl Iterator<Item = Self> {
        (0..).zip(network.links()).map(|(id, link)| Self {
            name: link.name.clone(),
            settings: link.settings.clone(),
            changing: ChangingSettings::from_changes(network.link_changes(), LinkId(id))
                .with_timed_bursts(&link.settings.loss),
        })
    }

    /// Returns the stages of the link for `settings`, which may differ from those at the start.
    pub fn stages(&self, settings: &Settings) -> Vec<Stage> {
        let Settings { delay, jitter, queue, loss, reorder, reorder_by, corrupt, police, .. } = settings;
        let discipline = &self.settings.discipline;
        // A rate keeps packets in order although their delays differ.
        let in_order = *jitter > Duration::ZERO || self.changing.delay;
        let rate = if in_order { INSTANT_RATE } else { 0 };
        let distribution = settings.jitter_distribution.table();
        let delay = Emulator { delay: *delay, jitter: *jitter, distribution, rate, ..IDLE_EMULATOR };
        // The first stage on an interface: a frame that passed would count as a packet, and occupy the transmitter.
        let wake = self.changing.stops.then_some(Stage::Filter(DropFilter::Wake));
        let mut stages: Vec<Stage> = wake.iter().cloned().chain([Stage::Emulator(delay)]).collect();
        let octets = match queue {
            QueueLimit::Packets(_) => None,
            // A discipline with early drops precedes the transmitter and has its own limit.
            QueueLimit::Bytes(octets) => (*discipline == Discipline::DropTail).then_some(*octets),
        };
        stages.extend(octets.map(|octets| Stage::Filter(DropFilter::Admit(octets))));
        match self.paced(settings) {
            Some(Ok((pace, waiting))) => {
                stages.push(Stage::Shaper(pace));
                stages.extend(waiting.into_iter().map(Stage::Queue));
                stages.push(Stage::Transit);
                stages.extend(wake);
                stages.push(Stage::Emulator(self.transmitter(settings)));
            }
            _ => {
                let limit = match queue {
                    QueueLimit::Packets(packets) => u32::try_from(*packets).unwrap_or(u32::MAX),
                    QueueLimit::Bytes(_) => UNLIMITED_PACKETS,
                };
                stages.push(Stage::Emulator(Emulator { limit, ..self.transmitter(settings) }));
            }
        }
        stages.extend(octets.map(|_| Stage::Filter(DropFilter::Release)));
        if let LossSpec::Packets(explicit) = loss {
            stages.push(Stage::Filter(DropFilter::Drop(explicit.drop.clone())));
        }
        let loss = random_loss(loss);
        if loss != IDLE_EMULATOR.loss || !corrupt.is_zero() || self.changing.loss {
            stages.push(Stage::Emulator(Emulator { loss, corrupt: *corrupt, ..IDLE_EMULATOR }));
        }
        stages.extend(police.0.map(|bucket| Stage::Filter(DropFilter::Police(bucket))));
        if !reorder.is_zero() {
            // This stage is the last: a packet that overtakes is not passed to the stages inside (`netem_dequeue`),
            // so it would overtake the packets there, and a policer would not count it.
            let overtaking = Some(Ratio::new(1.0 - reorder.value()).unwrap_or_default());
            stages.push(Stage::Emulator(Emulator { delay: *reorder_by, overtaking, ..IDLE_EMULATOR }));
        }
        stages
    }

    /// Returns the stages of the link for a rate of 0. The shaper lets one more packet pass after a long time, because
    /// its credit is not negative when its queue is empty; the transmitter keeps this packet.
    pub fn stopped_stages(&self, settings: &Settings) -> Vec<Stage> {
        let mut stages = self.stages(settings);
        for stage in &mut stages {
            match stage {
                Stage::Shaper(shaper) => *shaper = Shaper::SLOWEST,
                Stage::Emulator(emulator) if emulator.gate == Gate::Open => emulator.gate = Gate::Closed,
                _ => {}
            }
        }
        stages
    }

    /// Returns the emulator that transmits at the rate of the link, with room for all packets.
    fn transmitter(&self, settings: &Settings) -> Emulator {
        let gate = if self.changing.stops { Gate::Open } else { Gate::None };
        Emulator { gate, ..transmitter(settings) }
    }

    /// Returns the stages for measuring the baseline delay before the run. Each takes a known time, and all are on the
    /// link's own interface.
    pub fn baseline_stages(&self) -> Vec<Stage> {
        let delay = Emulator { delay: self.settings.delay, ..IDLE_EMULATOR };
        let [delay, transmitter] = [delay, transmitter(&self.settings)].map(Stage::Emulator);
        vec![Stage::Transit, delay, transmitter]
    }

    /// Returns how long the transmission of a packet with `octets` of IP takes.
    pub fn serialization(&self, octets: u64) -> Duration {
        let Settings { rate, overhead, .. } = &self.settings;
        rate.serialization_time(octets + overhead.0, 0).0
    }

    /// Returns the share of packets that are lost at random; `None` if it changes or if losses are not random.
    pub fn expected_loss(&self) -> Option<Ratio> {
        match &self.settings.loss {
            LossSpec::Independent(ratio) if !self.changing.any => Some(*ratio),
            _ => None,
        }
    }

    /// Returns the seed of a stage's random numbers after its n-th change.
    pub fn seed(&self, run: Seed, stage: usize, change: u64) -> u64 {
        let seed = run.derive(&self.name).derive("netem").derive_for_index(stage as u64);
        seed.derive_for_index(change).0
    }

    /// Returns the shaper for `settings` and the queues behind it; `None` if a queue inside the transmitter suffices.
    /// It does not suffice if the rate changes, because an emulator fixes a packet's departure when the packet arrives.
    fn paced(&self, settings: &Settings) -> Option<Result<(Shaper, Vec<ShaperQueue>), UnsupportedKey>> {
        let is_paced = self.changing.rate || self.settings.discipline != Discipline::DropTail;
        let paced = || {
            ShaperQueue::nested_queues(&self.settings)
                .and_then(|waiting| Ok((Shaper::new(settings)?, waiting)))
        };
        is_paced.then(paced)
    }

    /// Returns whether some stages are on an interface before the link's own.
    pub fn has_entry_stages(&self) -> bool {
        matches!(self.paced(&self.settings), Some(Ok(_)))
    }

    /// Returns an error for a queue that Linux does not support on the link with `settings`.
    pub fn check_queue(&self, settings: &Settings) -> Result<(), Unsupported> {
        match self.paced(settings) {
            Some(Err((key, why))) => refuse(key, format!("{}: {why}", self.name)),
            _ => Ok(()),
        }
    }

    /// Returns an error for unsupported keys and combinations of keys.
    fn check_keys(&self) -> Result<(), Unsupported> {
        let Settings { jitter_correlation, channel, police, duplicate, .. } = &self.settings;
        if !jitter_correlation.is_zero() {
            let why = "the delays that netem draws are hardly correlated: it takes its correlated random number modulo twice the jitter, \
                or modulo the length of its table; omit the key, or use the world \"model\"";
            return refuse("network.jitter_correlation", format!("{}: {why}", self.name));
        }
        if channel != Settings::OWN_CHANNEL {
            let why =
                "each link has its own transmitter; let the nodes share a LAN, or use the world \"model\"";
            return refuse("network.channel", format!("{}: {why}", self.name));
        }
        if *police != PoliceSpec::default() && !duplicate.is_zero() {
            let why = "the emulator would duplicate packets after policing, so duplicates would need no tokens; duplicate on one link and \
                police on the next";
            return refuse("network.police beside network.duplicate", format!("{}: {why}", self.name));
        }
        Ok(())
    }

    /// Returns an error for settings that an emulator does not support.
    fn check(&self) -> Result<(), Unsupported> {
        let Settings { jitter, loss, .. } = &self.settings;
        self.check_queue(&self.settings)?;
        self.check_keys()?;
        if *jitter > Duration::from_secs(2) {
            return refuse(
                format!("network.jitter = {jitter}"),
                format!("{}: netem supports a jitter of at most 2 s; lower it", self.name),
            );
        }
        if self.changing.loss && matches!(loss, LossSpec::Packets(_)) {
            return refuse(
                "network.loss = { drop = … }",
                format!(
                    "{}: an event changes the loss, but the filter that drops these packets cannot change during a run; remove the event \
                    or this loss",
                    self.name
                ),
            );
        }
        Ok(())
    }
}

/// Returns the emulator that transmits at the rate of a link, with room for all packets.
fn transmitter(settings: &Settings) -> Emulator {
    let rate = octets_per_second(settings);
    let overhead = i32::try_from(settings.overhead.0 as i64 - ETHERNET_HEADER).unwrap_or(i32::MAX);
    Emulator { rate, overhead, ..IDLE_EMULATOR }
}

fn octets_per_second(settings: &Settings) -> u64 {
    (settings.rate.bits_per_second() / 8).max(1)
}

fn random_loss(loss: &LossSpec) -> Loss {
    match loss {
        LossSpec::Independent(ratio) => Loss::Independent(*ratio),
        LossSpec::Bursts(bursts) => {
            Loss::Bursts([bursts.good_to_bad, bursts.bad_to_good, bursts.loss_good, bursts.loss_bad])
        }
        // Scheduled changes start and end its bursts.
        LossSpec::TimedBursts(bursts) => Loss::Independent(bursts.loss_good),
        LossSpec::Packets(_) => IDLE_EMULATOR.loss,
    }
}

/// Applies `change` to `settings`. A change of the rate to 0 does not change `settings.rate`; instead, the stages are
/// stopped: see [`ShapedLink::stopped_stages`].
pub fn apply(settings: &mut Settings, change: &LinkChange) {
    match change {
        LinkChange::Down | LinkChange::Up | LinkChange::Rate(EventRate::Zero) => {}
        LinkChange::Rate(EventRate::Positive(rate)) => settings.rate = *rate,
        LinkChange::Loss(loss) => settings.loss = loss.clone(),
        LinkChange::Delay(delay) => settings.delay = *delay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stages of the first link of a network, given as a TOML table.
    fn stages(text: &str) -> Vec<Stage> {
        let network = Topology::new(&toml::from_str(text).unwrap()).unwrap();
        let link = ShapedLink::from_topology(&network).unwrap().remove(0);
        link.stages(&link.settings)
    }

    #[test]
    fn link_stages_are_delay_then_transmitter_then_loss() {
        let loss = Loss::Independent(Ratio::new(0.01).unwrap());
        let expected = [
            Emulator { delay: Duration::from_millis(40), ..IDLE_EMULATOR },
            Emulator { rate: 12_500_000, limit: 50, ..IDLE_EMULATOR },
            Emulator { loss, ..IDLE_EMULATOR },
        ];
        assert_eq!(stages("delay = '40ms'\nloss = '1%'\nqueue = '50p'"), expected.map(Stage::Emulator));
    }

    #[test]
    fn queue_in_octets_is_limited_around_the_transmitter() {
        let [_, admit, rate, release] = &stages("queue = '64KiB'")[..] else { panic!("four stages") };
        assert_eq!(*admit, Stage::Filter(DropFilter::Admit(65_536)));
        assert_eq!(*rate, Stage::Emulator(Emulator { rate: 12_500_000, ..IDLE_EMULATOR }));
        assert_eq!(*release, Stage::Filter(DropFilter::Release));
    }

    #[test]
    fn jitter_and_a_changing_delay_keep_the_order() {
        for text in ["jitter = '2ms'", "events = [{ at = '1s', delay = '5ms' }]"] {
            let Stage::Emulator(delay) = &stages(text)[0] else { panic!("an emulator") };
            assert_eq!(delay.rate, INSTANT_RATE, "{text}");
        }
    }

    #[test]
    fn packets_under_aqm_wait_before_the_transmitter() {
        let red = "discipline = { red = { min = '7500B', max = '15000B' } }\nqueue = '50p'\nloss = '1%'";
        let [Stage::Emulator(_), Stage::Shaper(pace), Stage::Queue(ShaperQueue::Early(early)), rest @ ..] =
            &stages(red)[..]
        else {
            panic!("delay, pace, queue")
        };
        assert_eq!(*pace, Shaper { gain: 21_616_161, scale: 214 });
        assert_eq!((early.min, early.max), (7500, 15_000));
        assert_eq!(rest[..2], [Stage::Queue(ShaperQueue::Fifo(QueueLimit::Packets(50))), Stage::Transit]);
        assert_eq!(rest[2], Stage::Emulator(Emulator { rate: 12_500_000, ..IDLE_EMULATOR }));
        assert_eq!(rest.len(), 4, "what is lost is lost after the transmission");
    }

    #[test]
    fn reordering_delays_all_packets_except_those_that_overtake() {
        let stages = stages("reorder = '5%'\nreorder_by = '3ms'");
        let Stage::Emulator(hold) = &stages[2] else { panic!("an emulator") };
        assert_eq!((hold.delay, hold.overtaking), (Duration::from_millis(3), Ratio::new(0.95)));
    }

    #[test]
    fn link_whose_rate_becomes_0_keeps_its_packets_in_queue_and_transmitter() {
        let network =
            "rate = '5Mbit'\nevents = [{ at = '1s', rate = '0bit' }, { at = '2s', rate = '1Mbit' }]";
        let network = Topology::new(&toml::from_str(network).unwrap()).unwrap();
        let link = ShapedLink::from_topology(&network).unwrap().remove(0);
        let mut settings = link.settings.clone();
        apply(&mut settings, &LinkChange::Rate(EventRate::Zero));
        let (open, stopped) = (link.stages(&settings), link.stopped_stages(&settings));
        // A frame that wakes the stages of an interface enters none of them.
        let [
            Stage::Filter(DropFilter::Wake),
            Stage::Emulator(_),
            Stage::Shaper(shaper),
            Stage::Queue(_),
            Stage::Transit,
            Stage::Filter(DropFilter::Wake),
            Stage::Emulator(transmitter),
        ] = &stopped[..]
        else {
            panic!("{stopped:?}")
        };
        // An octet of credit is gained in 8 ms or more.
        assert!(f64::from(shaper.gain) / f64::from(shaper.scale) < 1e-2 && transmitter.gate == Gate::Closed);
        let is_open = |stage: &Stage| matches!(stage, Stage::Emulator(Emulator { gate: Gate::Open, .. }));
        assert_eq!(open.iter().filter(|stage| is_open(stage)).count(), 1);
        let never_stops = stages("rate = '5Mbit'\nevents = [{ at = '2s', rate = '1Mbit' }]");
        assert!(!never_stops.iter().any(|stage| is_open(stage) || *stage == Stage::Filter(DropFilter::Wake)));
    }

    #[test]
    fn no_stage_follows_reordering() {
        let all = "reorder = '5%'\nreorder_by = '3ms'\nloss = '1%'\ncorrupt = '1%'\nqueue = '9kB'
            police = { rate = '1Mbit', burst = '10kB' }";
        let stages = stages(all);
        assert!(stages.iter().any(|stage| matches!(stage, Stage::Filter(DropFilter::Police(_)))));
        assert!(matches!(stages.last(), Some(Stage::Emulator(Emulator { overtaking: Some(_), .. }))));
    }
}
