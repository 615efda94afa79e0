//! The estimate of a path, and its table for an experiment.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use hol_base::{BitRate, Duration, Ratio};
use hol_measure::ConfidenceInterval;

use super::loss::{Bursts, LossEstimate};
use super::rate::{LINK_OVERHEAD, RateEstimate};
use super::unknown_delay::UnknownDelay;

/// A path estimated from a capture. Direction 0, up, is from the host that opened the first conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct PathEstimate {
    /// The two hosts; the first one opened the first conversation.
    pub hosts: [IpAddr; 2],
    /// Packets between the two hosts.
    pub packets: u64,
    /// Packets between other hosts.
    pub other_packets: u64,
    /// Packets that could not be parsed, and fragments of packets that are not complete.
    pub unread: u64,
    /// Packets that were captured twice.
    pub duplicates: u64,
    /// Whether all conversations use QUIC. Only the handshake and the spin bit of QUIC are visible.
    pub is_quic: bool,
    /// Number of round trips to the second host that spin bits show.
    pub spins: usize,
    /// Number of TCP connections and SCTP associations between the hosts.
    pub conversations: usize,
    /// Whether the capture contains the handshakes of all conversations.
    pub is_whole: bool,
    /// Duration from the first packet to the last, in ns.
    pub duration_ns: u64,
    /// How often the clock of the capture was set back.
    pub clock_steps: u64,
    /// The round-trip time, or why it is unknown.
    pub round_trip: Result<RoundTrip, UnknownDelay>,
    /// The rate of each direction.
    pub rates: [Option<RateEstimate>; 2],
    /// Loss and reordering of each direction's packets.
    pub losses: [Option<LossEstimate>; 2],
    /// Whether acknowledgements of each direction's data were seen.
    pub answered: [bool; 2],
    /// The longest packet, which bounds the MTU.
    pub mtu: Mtu,
    /// Estimates of the other paths that the associations between these hosts use (RFC 9260 section 6.4).
    pub further_paths: Vec<Self>,
}

/// The round-trip time, in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrip {
    /// The shortest round trip.
    pub shortest: u64,
    /// The shortest round trip by part: from the capture point to the second host and back, and to the first
    /// host and back.
    pub halves: [u64; 2],
    /// Number of samples: packets that were acknowledged at once and did not queue.
    pub samples: usize,
    /// Median round trip of the packets that `samples` counts.
    pub median: Option<ConfidenceInterval>,
    /// Quartiles of the round trip of the packets that `samples` counts.
    pub quartiles: Option<(ConfidenceInterval, ConfidenceInterval)>,
}

/// The longest packet, in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mtu {
    /// The longest captured packet.
    pub longest: u32,
    /// The longest packet that both TCP hosts accept.
    pub agreed: Option<u32>,
}

/// Minimum number of samples for an estimate of jitter.
pub(super) const MIN_SAMPLES: usize = 20;
/// The smallest distance of the quartiles, relative to the median, that counts as jitter.
const MIN_SPREAD: f64 = 0.02;
const DIRECTIONS: [&str; 2] = ["up", "down"];

impl RoundTrip {
    /// Returns the jitter (in both directions, in ns), assuming that the delays of both directions are
    /// uniform and have the same width. The distance between the quartiles of their sum is then 2 · (2 − √2)
    /// times the jitter.
    pub fn jitter(&self) -> Option<ConfidenceInterval> {
        const QUARTILE_DISTANCE: f64 = 2.0 * (2.0 - std::f64::consts::SQRT_2);
        let (first, third) = self.quartiles.filter(|_| self.samples >= MIN_SAMPLES)?;
        let value = (third.value - first.value) / QUARTILE_DISTANCE;
        let is_steady = third.value - first.value < MIN_SPREAD * self.median?.value;
        let (low, high) = (
            (third.low - first.high).max(0.0) / QUARTILE_DISTANCE,
            (third.high - first.low) / QUARTILE_DISTANCE,
        );
        (!is_steady).then_some(ConfidenceInterval { value, low, high })
    }
}

impl PathEstimate {
    /// Returns the rate of a direction, if known.
    fn rate(&self, direction: usize) -> Option<ConfidenceInterval> {
        match self.rates[direction] {
            Some(RateEstimate::Measured { rate, .. }) => Some(rate),
            _ => None,
        }
    }

    /// Returns the transmission time of two handshake packets on the links with known rates, in ns.
    fn serialization(&self) -> f64 {
        const HANDSHAKE_OCTETS: u32 = 60;
        let bits = f64::from((HANDSHAKE_OCTETS + LINK_OVERHEAD) * 8);
        [0, 1].iter().filter_map(|direction| self.rate(*direction)).map(|rate| bits * 1e9 / rate.value).sum()
    }

    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [client, server] = self.hosts;
        let Self { packets, conversations, .. } = self;
        writeln!(
            f,
            "# {packets} packets of {conversations} connections within {:.3} s.",
            self.duration_ns as f64 / 1e9
        )?;
        writeln!(f, "# Up is the direction from {client}, which opened the first connection, to {server}.")?;
        let of_paths: u64 = self.further_paths.iter().map(|path| path.packets).sum();
        let others = self.other_packets - of_paths;
        if others > 0 {
            writeln!(
                f,
                "# {others} packets between other hosts are ignored: --host ADDRESS chooses another pair."
            )?;
        }
        if self.unread > 0 {
            writeln!(
                f,
                "# {} packets are too short to be parsed, or fragments of packets that are not complete.",
                self.unread
            )?;
        }
        if self.clock_steps > 0 {
            writeln!(
                f,
                "# The clock of the capture was set back {}; times over such a step are not used.",
                if self.clock_steps == 1 { "once".to_owned() } else { format!("{} times", self.clock_steps) }
            )?;
        }
        if self.duplicates > 0 {
            writeln!(
                f,
                "# {} packets were captured twice, as at two ports of a bridge, and count once.",
                self.duplicates
            )?;
        }
        if self.is_quic {
            let spins = match self.spins {
                0 => "its handshakes are used; its spin bits show no round trips".to_owned(),
                spins => format!("its handshakes and {spins} round trips of its spin bits are used"),
            };
            writeln!(f, "# QUIC encrypts its acknowledgements, so only {spins}.")?;
        }
        if !self.is_whole {
            writeln!(f, "# Some connections began before the capture.")?;
        }
        for (direction, name) in DIRECTIONS.iter().enumerate() {
            if self.losses[direction].is_some() && !self.answered[direction] {
                let problem = "the capture has no replies to packets in the direction";
                writeln!(
                    f,
                    "# {problem} {name}: it covers only that direction, and the estimate of its losses is uncertain."
                )?;
            }
        }
        Ok(())
    }

    fn write_delay(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let round_trip = match &self.round_trip {
            Ok(round_trip) => round_trip,
            Err(why) => return writeln!(f, "# delay: unknown; {why}."),
        };
        let serialization = self.serialization();
        let one_way = |ns: f64| ((ns - serialization) / 2.0).max(0.0);
        let RoundTrip { samples, shortest, .. } = *round_trip;
        match round_trip.jitter().zip(round_trip.median) {
            None => {
                let (value, max) = (one_way(shortest as f64), shortest as f64 / 2.0);
                writeln!(
                    f,
                    "# At most {}: half of the shortest round trip, which includes the response time of hosts.",
                    format_ms(max)
                )?;
                writeln!(f, "delay = \"{}\"", format_time(value))?;
                if samples < MIN_SAMPLES {
                    let problem = "so the mean delay may be longer";
                    return writeln!(
                        f,
                        "# jitter: unknown; only {samples} packets had an immediate reply and no queueing delay, {problem}."
                    );
                }
                writeln!(
                    f,
                    "# jitter: none, as {samples} packets with an immediate reply and no queueing delay show."
                )
            }
            Some((jitter, median)) => {
                // Queueing and hosts lengthen the median, but not the shortest round trip.
                let low = one_way(median.low).min(one_way(shortest as f64) + jitter.low);
                let [low, high] = [low, one_way(median.high)].map(format_ms);
                let what = format!("half of the median of {samples} round trips without queueing");
                writeln!(f, "# {low} to {high}: {what}; this includes the response time of hosts.")?;
                writeln!(f, "delay = \"{}\"", format_time(one_way(median.value)))?;
                // A delay cannot vary by more than itself.
                let value = jitter.value.min(one_way(median.value));
                let [low, high] = [jitter.low.min(value), jitter.high.max(value)].map(format_ms);
                writeln!(f, "# {low} to {high}, if it is uniform and the same in both directions.")?;
                writeln!(f, "jitter = \"{}\"", format_time(value))
            }
        }
    }

    /// Writes the values of a path and of its two directions; the header of `table` is already written.
    fn write_path(&self, f: &mut Formatter<'_>, table: &str) -> fmt::Result {
        self.write_delay(f)?;
        self.write_mtu(f)?;
        for (direction, name) in DIRECTIONS.iter().enumerate() {
            writeln!(f, "\n[{table}.{name}]")?;
            self.write_direction(f, direction)?;
        }
        Ok(())
    }

    fn is_ipv6(&self) -> bool {
        self.hosts[0].is_ipv6()
    }

    fn write_mtu(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Mtu { longest, agreed } = self.mtu;
        // The network of an experiment has an MTU of at least 576 octets, with IPv6 1280; current hosts accept at least 1280.
        const MIN_IPV6_MTU: u32 = 1280;
        if agreed.is_none() && longest < MIN_IPV6_MTU {
            return writeln!(f, "# mtu: unknown; the longest packet has {longest} octets.");
        }
        let (value, why) = match agreed {
            Some(agreed) if longest > agreed => (
                agreed,
                format!(
                    "From the MSS of the hosts; packets of {longest} octets were segmented later, by the network card"
                ),
            ),
            Some(agreed) => {
                (agreed, format!("From the MSS of the hosts; the longest packet has {longest} octets"))
            }
            None => (longest, "The length of the longest packet, so the MTU may be larger".to_owned()),
        };
        writeln!(f, "# {why}.\nmtu = \"{}B\"", value.max(if self.is_ipv6() { MIN_IPV6_MTU } else { 576 }))
    }

    fn write_direction(&self, f: &mut Formatter<'_>, direction: usize) -> fmt::Result {
        match self.rates[direction] {
            Some(RateEstimate::Measured { rate: ConfidenceInterval { value, low, high }, trains }) => {
                writeln!(
                    f,
                    "# {} to {}, measured with {trains} trains of queued packets.",
                    format_rate(low),
                    format_rate(high)
                )?;
                writeln!(f, "rate = \"{}\"", format_rate(value))?;
            }
            Some(RateEstimate::AtLeast(rate)) => {
                writeln!(
                    f,
                    "# rate: at least {}, the rate of the fastest train of packets; no train was queued long enough for an estimate.",
                    format_rate(rate)
                )?;
            }
            None => writeln!(f, "# rate: unknown; too few packets carried data.")?,
        }
        match &self.losses[direction] {
            Some(losses) => write_losses(f, losses),
            None if self.is_quic => writeln!(f, "# loss: unknown; QUIC encrypts its acknowledgements."),
            None => writeln!(f, "# loss: unknown; only acknowledgements were sent in this direction."),
        }
    }
}

fn write_losses(f: &mut Formatter<'_>, losses: &LossEstimate) -> fmt::Result {
    let LossEstimate { packets, lost, loss, bursts, reordering } = losses;
    // A path that loses every packet carries no handshake, and is no network for an experiment.
    if loss.high >= 1.0 {
        return writeln!(
            f,
            "# loss: unknown; the capture shows the arrival of none of the {packets} packets with data."
        );
    }
    let range = |bounds: &ConfidenceInterval| {
        format!("{} to {}", format_percent(bounds.low), format_percent(bounds.high))
    };
    writeln!(
        f,
        "# {}: {lost} of {packets} packets with data, including losses at a full queue.",
        range(loss)
    )?;
    match bursts {
        Some(Bursts { good_to_bad, bad_to_good }) => {
            let [begin, end] = [good_to_bad, bad_to_good].map(range);
            writeln!(
                f,
                "# Bursts: one begins after {begin} of the packets that arrive, and ends after {end} of the lost ones."
            )?;
            let [begin, end] = [good_to_bad, bad_to_good].map(|bounds| format_percent(bounds.value));
            writeln!(f, "loss = {{ good_to_bad = \"{begin}\", bad_to_good = \"{end}\" }}")?;
        }
        None => writeln!(f, "loss = \"{}\"", format_percent(loss.value))?,
    }
    if let Some(reordering) = reordering {
        writeln!(
            f,
            "# {} of the packets are overtaken, and delayed by {} to {}.",
            range(&reordering.share),
            format_ms(reordering.by.low),
            format_ms(reordering.by.high)
        )?;
        writeln!(f, "reorder = \"{}\"", format_percent(reordering.share.value))?;
        writeln!(f, "reorder_by = \"{}\"", format_time(reordering.by.value.max(1000.0)))?;
    }
    Ok(())
}

/// Writes the path as the `[network]` of an experiment; comments give the uncertainty of each value.
impl Display for PathEstimate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        writeln!(f, "# Intervals are 95 % confidence intervals.\n\n[network]")?;
        if self.is_ipv6() {
            writeln!(f, "ip = \"v6\"")?;
        }
        if self.further_paths.is_empty() {
            return self.write_path(f, "network");
        }
        for path in [self].into_iter().chain(&self.further_paths) {
            let [client, server] = path.hosts;
            writeln!(f, "\n# From {client} to {server}: {} packets.\n[[network.paths]]", path.packets)?;
            path.write_path(f, "network.paths")?;
        }
        Ok(())
    }
}

/// Rounds to four significant digits.
fn round_to_four_digits(value: f64) -> f64 {
    let scale = 10f64.powi(3 - value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32);
    (value * scale).round() / scale
}

fn format_rate(rate: f64) -> String {
    let rate = BitRate::from_bits_per_second(round_to_four_digits(rate) as u64);
    rate.map_or("0bit".to_owned(), |rate| rate.to_string())
}

fn format_percent(share: f64) -> String {
    let percent = if share <= 0.0 { 0.0 } else { round_to_four_digits(share * 100.0).min(100.0) };
    Ratio::new(percent / 100.0).map_or("0%".to_owned(), |ratio| ratio.to_string())
}

/// Formats a time in whole microseconds.
fn format_time(ns: f64) -> String {
    Duration::from_micros((ns.max(0.0) / 1e3).round() as u64).to_string()
}

fn format_ms(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}
