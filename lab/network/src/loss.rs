//! Loss on a link: independent (Bernoulli), in bursts of packets or of time (Gilbert–Elliott), or by packet number.

use std::fmt;

use hol_base::{Duration, Ratio, Rng, Seed};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The packet loss of a link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LossSpec {
    /// Each packet is lost independently with the same probability: `"1%"`.
    Independent(Ratio),
    /// Packets are lost in bursts: `{ good_to_bad = "1%", bad_to_good = "25%" }`.
    Bursts(GilbertElliott),
    /// Packets are lost in bursts of a given mean duration: `{ good_for = "15s", bad_for = "100ms" }`.
    TimedBursts(TimedBursts),
    /// The packets with the given numbers are lost: `{ drop = [3, 7] }`.
    Packets(ExplicitLoss),
}

/// A link that alternates between a good and a bad state, each with its loss probability (Gilbert 1960,
/// Elliott 1963).
///
/// As in netem the link starts good, so a run's first packet passes unless `loss_good` is set. A packet is lost with
/// the probability of the state; after each packet the state may change. In the long run the link is bad for
/// `good_to_bad / (good_to_bad + bad_to_good)` of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of entering the bad state after a packet.
    pub good_to_bad: Ratio,
    /// Probability of leaving the bad state after a packet: 1 / mean burst length.
    pub bad_to_good: Ratio,
    /// Loss in the good state. Default 0.
    #[schemars(with = "Option<Ratio>")]
    pub loss_good: Ratio,
    /// Loss in the bad state. Default 100 %.
    #[schemars(with = "Option<Ratio>")]
    pub loss_bad: Ratio,
}

/// A link that alternates between a good and a bad state in time, whether packets are sent or not (a Markov
/// chain in continuous time).
///
/// The link starts good, and the duration of each state is exponential. Unlike a burst of packets, a burst in time
/// ends even if the sender backs off. The times depend only on the run's seed and the link, so all transports, in the
/// model and in the kernel world, meet the same bursts. After a day, or after the mean time of 36,000 bursts, the
/// link stays good.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimedBursts {
    /// Mean time in the good state; `good_for` + `bad_for` must be at least 100 ms.
    pub good_for: Duration,
    /// Mean time in the bad state.
    pub bad_for: Duration,
    /// Loss in the good state. Default 0.
    #[schemars(with = "Option<Ratio>")]
    pub loss_good: Ratio,
    /// Loss in the bad state. Default 100 %.
    #[schemars(with = "Option<Ratio>")]
    pub loss_bad: Ratio,
}

/// The packets that are lost, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExplicitLoss {
    /// Packets to drop, counted from 1 in order of transmission.
    pub drop: Vec<u64>,
}

impl LossSpec {
    /// Returns whether every packet is lost.
    pub(crate) fn loses_everything(&self) -> bool {
        matches!(self, Self::Independent(ratio) if ratio.value() >= 1.0)
    }

    /// Returns the long-run share of lost packets. For a Gilbert–Elliott model this is the loss of its
    /// states, weighted by their durations.
    pub fn long_run_loss(&self) -> f64 {
        let (bad, good, loss_bad, loss_good) = match self {
            Self::Independent(ratio) => return ratio.value(),
            Self::Packets(_) => return 0.0,
            Self::Bursts(GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }) => {
                (good_to_bad.value(), bad_to_good.value(), loss_bad, loss_good)
            }
            Self::TimedBursts(TimedBursts { good_for, bad_for, loss_good, loss_bad }) => {
                (bad_for.as_secs_f64(), good_for.as_secs_f64(), loss_bad, loss_good)
            }
        };
        let bad = if bad + good > 0.0 { bad / (bad + good) } else { 0.0 };
        bad * loss_bad.value() + (1.0 - bad) * loss_good.value()
    }
}

impl Default for LossSpec {
    fn default() -> Self {
        Self::Independent(Ratio::ZERO)
    }
}

/// The keys of a loss table; which of them are present determines the kind of loss.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LossTable {
    good_to_bad: Option<Ratio>,
    bad_to_good: Option<Ratio>,
    good_for: Option<Duration>,
    bad_for: Option<Duration>,
    loss_good: Option<Ratio>,
    loss_bad: Option<Ratio>,
    drop: Option<Vec<u64>>,
}

impl LossTable {
    fn into_spec<E: de::Error>(self) -> Result<LossSpec, E> {
        let certain = Ratio::new(1.0).expect("1 is a probability");
        match self {
            Self {
                good_to_bad: None,
                bad_to_good: None,
                good_for: None,
                bad_for: None,
                loss_good: None,
                loss_bad: None,
                drop: Some(drop),
            } => {
                if drop.contains(&0) {
                    return Err(E::custom("`drop` contains 0, but packets are counted from 1; remove it"));
                }
                Ok(LossSpec::Packets(ExplicitLoss { drop }))
            }
            Self {
                good_to_bad: Some(good_to_bad),
                bad_to_good: Some(bad_to_good),
                good_for: None,
                bad_for: None,
                loss_good,
                loss_bad,
                drop: None,
            } => Ok(LossSpec::Bursts(GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good: loss_good.unwrap_or_default(),
                loss_bad: loss_bad.unwrap_or(certain),
            })),
            Self {
                good_to_bad: None,
                bad_to_good: None,
                good_for: Some(good_for),
                bad_for: Some(bad_for),
                loss_good,
                loss_bad,
                drop: None,
            } => Ok(LossSpec::TimedBursts(TimedBursts {
                good_for,
                bad_for,
                loss_good: loss_good.unwrap_or_default(),
                loss_bad: loss_bad.unwrap_or(certain),
            })),
            _ => Err(E::custom(
                "a loss table is { good_to_bad = \"1%\", bad_to_good = \"25%\" } or { good_for = \"15s\", bad_for = \"100ms\" }, both \
                with optional loss_good and loss_bad, or { drop = [3, 7] }",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for LossSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = LossSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage such as \"1%\", or a loss table")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LossSpec, E> {
                text.parse().map(LossSpec::Independent).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LossSpec, A::Error> {
                LossTable::deserialize(MapAccessDeserializer::new(map))?.into_spec()
            }
        }
        deserializer.deserialize_any(TextOrTable)
    }
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = || {
            let percent = self.long_run_loss() * 100.0;
            // Rounds to two significant digits.
            let unit = 10f64.powf(1.0 - percent.max(1e-9).log10().floor());
            (percent * unit).round() / unit
        };
        match self {
            Self::Independent(ratio) => ratio.fmt(f),
            Self::Bursts(bursts) => {
                write!(f, "{}% in bursts of {:.0}p", percent(), 1.0 / bursts.bad_to_good.value())
            }
            Self::TimedBursts(bursts) => write!(f, "{}% in bursts of {}", percent(), bursts.bad_for),
            Self::Packets(ExplicitLoss { drop }) => {
                let numbers: Vec<String> = drop.iter().map(u64::to_string).collect();
                write!(f, "of packets {}", numbers.join(", "))
            }
        }
    }
}

/// Decides for each packet whether it is lost.
#[derive(Debug)]
pub(crate) struct Loss {
    process: Process,
    rng: Rng,
}

/// The state of a loss process.
#[derive(Debug)]
enum Process {
    Independent(f64),
    Bursts { model: GilbertElliott, bad: bool },
    Packets { drop: Vec<u64>, number: u64 },
}

impl Loss {
    /// Creates a loss model whose draws derive from `seed`.
    pub(crate) fn new(spec: &LossSpec, seed: Seed) -> Self {
        Self { process: Process::new(spec), rng: seed.rng() }
    }

    /// Applies another loss model from the next packet on; the random stream continues.
    pub(crate) fn change(&mut self, spec: &LossSpec) {
        self.process = Process::new(spec);
    }

    /// Returns whether the next packet is lost. It always draws, even at probability zero, so that the k-th
    /// packet of every transport gets the k-th draw.
    pub(crate) fn hits_next(&mut self) -> bool {
        let rng = &mut self.rng;
        match &mut self.process {
            Process::Independent(probability) => rng.chance(*probability),
            Process::Bursts { model, bad } => {
                // The state before the transition decides, as in `loss_gilb_ell` of sch_netem.c.
                let (leave, loss) = if *bad {
                    (model.bad_to_good, model.loss_bad)
                } else {
                    (model.good_to_bad, model.loss_good)
                };
                *bad ^= rng.chance(leave.value());
                rng.chance(loss.value())
            }
            Process::Packets { drop, number } => {
                *number += 1;
                drop.binary_search(number).is_ok()
            }
        }
    }
}

impl Process {
    fn new(spec: &LossSpec) -> Self {
        match spec {
            LossSpec::Independent(ratio) => Self::Independent(ratio.value()),
            LossSpec::Bursts(model) => Self::Bursts { model: *model, bad: false },
            // Scheduled changes start and end its bursts.
            LossSpec::TimedBursts(bursts) => Self::Independent(bursts.loss_good.value()),
            LossSpec::Packets(ExplicitLoss { drop }) => {
                let mut drop = drop.clone();
                drop.sort_unstable();
                Self::Packets { drop, number: 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Table {
        loss: LossSpec,
    }

    fn parse(text: &str) -> Result<LossSpec, toml::de::Error> {
        toml::from_str::<Table>(&format!("loss = {text}")).map(|table| table.loss)
    }

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    #[test]
    fn loss_is_read_and_written_in_four_forms() {
        assert_eq!(parse("'1%'").unwrap(), LossSpec::Independent(ratio("1%")));
        assert_eq!(parse("{ drop = [3, 7] }").unwrap(), LossSpec::Packets(ExplicitLoss { drop: vec![3, 7] }));
        let bursts = GilbertElliott {
            good_to_bad: ratio("1%"),
            bad_to_good: ratio("25%"),
            loss_good: Ratio::ZERO,
            loss_bad: ratio("100%"),
        };
        assert_eq!(parse("{ good_to_bad = '1%', bad_to_good = '25%' }").unwrap(), LossSpec::Bursts(bursts));
        let timed = parse("{ good_for = '9900ms', bad_for = '100ms', loss_bad = '50%' }").unwrap();
        let LossSpec::TimedBursts(bursts) = timed else { panic!("{timed:?}") };
        assert_eq!((bursts.bad_for, bursts.loss_good), (Duration::from_millis(100), Ratio::ZERO));
        let text = |text: &str| parse(text).unwrap().to_string();
        assert_eq!(text("'0.25%'"), "0.25%");
        assert_eq!(text("{ good_to_bad = '1%', bad_to_good = '20%' }"), "4.8% in bursts of 5p");
        assert_eq!(timed.to_string(), "0.5% in bursts of 100ms");
        assert_eq!(text("{ drop = [3, 7] }"), "of packets 3, 7");
    }

    #[test]
    fn mixed_loss_table_is_refused_with_a_remedy() {
        for text in [
            "{ good_to_bad = '1%' }",
            "{ good_for = '1s' }",
            "{ good_for = '1s', bad_to_good = '1%' }",
            "{ good_for = '1s', bad_for = '1s', drop = [1] }",
            "{ drop = [1], loss_bad = '1%' }",
            "{ drop = [0] }",
            "'1'",
            "{ p = '1%' }",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("drop") || error.contains("percentage"), "{text}: {error}");
        }
    }

    #[test]
    fn independent_loss_has_the_binomial_share() {
        let mut loss = Loss::new(&LossSpec::Independent(ratio("2%")), Seed(5));
        let n = 200_000;
        let lost = (0..n).filter(|_| loss.hits_next()).count() as f64;
        let deviation = (f64::from(n) * 0.02 * 0.98).sqrt();
        assert!((lost - f64::from(n) * 0.02).abs() < 4.0 * deviation, "{lost}");
    }

    #[test]
    fn bursts_have_the_long_run_loss_and_mean_length() {
        let model = GilbertElliott {
            good_to_bad: ratio("1%"),
            bad_to_good: ratio("20%"),
            loss_good: Ratio::ZERO,
            loss_bad: ratio("100%"),
        };
        assert!((LossSpec::Bursts(model).long_run_loss() - 0.01 / 0.21).abs() < 1e-12);
        let mut loss = Loss::new(&LossSpec::Bursts(model), Seed(9));
        let (n, mut lost, mut bursts, mut before) = (400_000, 0, 0, false);
        for _ in 0..n {
            let now = loss.hits_next();
            lost += i32::from(now);
            bursts += i32::from(now && !before);
            before = now;
        }
        let (share, length) = (f64::from(lost) / f64::from(n), f64::from(lost) / f64::from(bursts));
        assert!((share - 0.01 / 0.21).abs() < 0.003, "{share}");
        assert!((length - 5.0).abs() < 0.2, "{length}");
    }

    // `loss_gilb_ell` of sch_netem.c draws the next state, then loses the packet by the state before.
    #[test]
    fn first_packet_of_a_run_and_of_a_burst_passes() {
        let model = GilbertElliott {
            good_to_bad: ratio("100%"),
            bad_to_good: ratio("100%"),
            loss_good: Ratio::ZERO,
            loss_bad: ratio("100%"),
        };
        let mut loss = Loss::new(&LossSpec::Bursts(model), Seed(1));
        assert_eq!([(); 4].map(|()| loss.hits_next()), [false, true, false, true]);
    }

    #[test]
    fn explicit_loss_counts_from_one() {
        let mut loss = Loss::new(&LossSpec::Packets(ExplicitLoss { drop: vec![7, 3] }), Seed(0));
        let lost: Vec<u32> = (1..=8).filter(|_| loss.hits_next()).collect();
        assert_eq!(lost, [3, 7]);
    }

    #[test]
    fn kth_packet_gets_the_kth_draw_at_any_probability() {
        let pattern = |percent: &str| {
            let mut loss = Loss::new(&LossSpec::Independent(ratio(percent)), Seed(4));
            (0..5000).map(|_| loss.hits_next()).collect::<Vec<_>>()
        };
        let (some, more) = (pattern("1%"), pattern("3%"));
        assert!(some.iter().zip(&more).all(|(some, more)| !some || *more), "a loss at 1 % is a loss at 3 %");
    }
}
