//! Sizes that differ from message to message.

use std::collections::BTreeMap;
use std::fmt;

use hol_base::{ByteCount, Rng};
use hol_measure::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sizes of messages or files in octets: one for all, or drawn from a distribution or from a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write a size such as \"20kB\", sizes with weights such as { \"1kB\" = 9, \"200kB\" = 1 }, or \
                 { median = \"10kB\", sigma = 1.5, max = \"1MB\" }, or { file = \"sizes.txt\" }"
)]
pub enum Sizes {
    /// One size for all messages or files.
    Fixed(ByteCount),
    /// A log-normal distribution, which fits the bulk of the sizes of web files. Barford and Crovella 1998
    /// (SIGMETRICS), section 4.
    LogNormal(LogNormal),
    /// The sizes in a file, which has not been read yet: `{ file = "sizes.txt" }`.
    File(SizesFile),
    /// Some sizes, each with its weight.
    Mix(BTreeMap<ByteCount, u32>),
}

/// A file with the possible sizes, one on each line, each optionally followed by its number of occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizesFile {
    /// Path, relative to the experiment.
    pub file: String,
}

/// A log-normal distribution of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormal {
    /// Median size.
    pub median: ByteCount,
    /// Standard deviation of the size's natural logarithm.
    pub sigma: f64,
    /// Maximum size; larger draws are reduced to it. Default: the longest message that the workload allows.
    #[serde(default, alias = "most", skip_serializing_if = "Option::is_none")]
    pub max: Option<ByteCount>,
}

/// A class of messages with similar sizes, for which results are also reported separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeClass {
    /// Name of the class in tables, such as `200 kB replies`.
    pub name: String,
    /// Whether the class is by size of the reply, not of the request.
    pub is_reply_size: bool,
    /// The smallest size of the class, in octets.
    pub min: u64,
    /// The largest size of the class, in octets.
    pub max: u64,
}

impl Sizes {
    /// Maximum number of sizes of a mix with a class for each size; a longer mix has a class for each power of ten.
    const MAX_SIZE_CLASSES: usize = 4;

    /// Returns whether the sizes are valid: `octets` must return true for every fixed size, and for the median and
    /// maximum of a distribution.
    pub(crate) fn is_possible(&self, octets: impl Fn(u64) -> bool) -> bool {
        match self {
            Self::Fixed(size) => octets(size.0),
            Self::LogNormal(LogNormal { median, sigma, max }) => {
                let is_max_possible = max.is_none_or(|max| max >= *median && octets(max.0));
                octets(median.0) && (0.0..=4.0).contains(sigma) && is_max_possible
            }
            Self::Mix(weights) => {
                weights.values().any(|weight| *weight > 0) && weights.keys().all(|size| octets(size.0))
            }
            Self::File(_) => true,
        }
    }

    /// Draws the size of the next message in octets, between `min` and `max`.
    ///
    /// # Panics
    /// If the sizes are those of a file that has not been read.
    pub(crate) fn draw(&self, rng: &mut Rng, [min, max]: [u64; 2]) -> u32 {
        let octets = match self {
            Self::Fixed(size) => size.0,
            Self::LogNormal(LogNormal { median, sigma, max }) => {
                let drawn = (median.0 as f64 * (sigma * rng.normal()).exp()).round() as u64;
                max.map_or(drawn, |max| drawn.min(max.0))
            }
            Self::Mix(weights) => pick(weights, rng),
            Self::File(SizesFile { file }) => unreachable!("{file} is read with the experiment"),
        };
        octets.clamp(min, max) as u32
    }

    /// Returns the largest size; `None` if there is no limit.
    pub(crate) fn largest(&self) -> Option<u64> {
        match self {
            Self::Fixed(size) => Some(size.0),
            Self::Mix(weights) => weights.keys().next_back().map(|size| size.0),
            Self::LogNormal(LogNormal { max, .. }) => max.map(|max| max.0),
            Self::File(_) => None,
        }
    }

    /// Returns classes that together contain every size: one per size of a short mix, otherwise one per power of ten.
    /// Empty if all sizes are the same.
    pub(crate) fn classes(&self, is_reply_size: bool) -> Vec<SizeClass> {
        let classes = match self {
            Self::Fixed(_) | Self::File(_) => Vec::new(),
            Self::Mix(weights) if weights.len() <= Self::MAX_SIZE_CLASSES => {
                weights.keys().map(|size| SizeClass::of_size(size.0, is_reply_size)).collect()
            }
            Self::Mix(weights) => {
                let [min, max] = [weights.keys().next(), weights.keys().next_back()];
                SizeClass::decades(min.map_or(0, |size| size.0), max.map_or(0, |size| size.0), is_reply_size)
            }
            // 95 % of the sizes are within two standard deviations of the median.
            Self::LogNormal(LogNormal { median, sigma, max }) => {
                let at = |deviations: f64| (median.0 as f64 * (sigma * deviations).exp()) as u64;
                let largest = max.map_or(u64::MAX, |max| max.0);
                SizeClass::decades(at(-2.0), at(2.0).min(largest), is_reply_size)
            }
        };
        if classes.len() > 1 { classes } else { Vec::new() }
    }
}

/// Draws one of the sizes with a probability in proportion to its weight.
fn pick(weights: &BTreeMap<ByteCount, u32>, rng: &mut Rng) -> u64 {
    let total: u64 = weights.values().map(|weight| u64::from(*weight)).sum();
    let mut left = rng.below(total);
    for (size, weight) in weights {
        match left.checked_sub(u64::from(*weight)) {
            Some(rest) => left = rest,
            None => return size.0,
        }
    }
    unreachable!("the draw is below the sum of the weights")
}

impl SizeClass {
    /// Returns the class that contains only one size.
    fn of_size(size: u64, is_reply_size: bool) -> Self {
        let name = format!("{} {}", short_size(size), direction(is_reply_size));
        Self { name, is_reply_size, min: size, max: size }
    }

    /// Returns a class for each power of ten from that of `min` to that of `max`. The first class has no lower limit,
    /// and the last has no upper limit.
    fn decades(min: u64, max: u64, is_reply_size: bool) -> Vec<Self> {
        let [first, last] = [min, max].map(|size| size.max(1).ilog10());
        let class = |power: u32| {
            let (from, below) = (10_u64.pow(power), 10_u64.pow(power + 1));
            let range = match (power == first, power == last) {
                (true, _) => format!("below {}", short_size(below)),
                (_, true) => format!("from {}", short_size(from)),
                _ => format!("from {} to {}", short_size(from), short_size(below)),
            };
            let min = if power == first { 0 } else { from };
            let max = if power == last { u64::MAX } else { below - 1 };
            Self { name: format!("{} {range}", direction(is_reply_size)), is_reply_size, min, max }
        };
        (first..=last).map(class).collect()
    }

    /// Returns whether a record belongs to the class.
    pub fn contains(&self, record: &Record) -> bool {
        let size = if self.is_reply_size { record.reply_size } else { record.size };
        (self.min..=self.max).contains(&u64::from(size))
    }
}

const fn direction(is_reply_size: bool) -> &'static str {
    if is_reply_size { "replies" } else { "requests" }
}

/// Formats a number of octets in the largest decimal unit that needs no fraction.
fn short_size(octets: u64) -> String {
    let units = [(1_000_000, "MB"), (1_000, "kB")];
    let unit = units.into_iter().find(|(unit, _)| octets > 0 && octets.is_multiple_of(*unit));
    unit.map_or(format!("{octets} B"), |(unit, name)| format!("{} {name}", octets / unit))
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::File(SizesFile { file }) => write!(f, "sizes in {file}"),
            Self::LogNormal(LogNormal { median, sigma, max }) => {
                write!(f, "{median} (sigma {sigma}")?;
                max.map_or(Ok(()), |max| write!(f, ", at most {max}"))?;
                f.write_str(")")
            }
            Self::Mix(weights) if weights.len() > Self::MAX_SIZE_CLASSES => {
                let [min, max] = [weights.keys().next(), weights.keys().next_back()];
                let [min, max] = [min, max].map(|size| short_size(size.map_or(0, |size| size.0)));
                write!(f, "{min} to {max} ({} sizes)", weights.len())
            }
            Self::Mix(weights) => {
                let total: u64 = weights.values().map(|weight| u64::from(*weight)).sum();
                let mut separator = "";
                weights.iter().try_for_each(|(size, weight)| {
                    let percent = 100.0 * f64::from(*weight) / total as f64;
                    write!(f, "{separator}{} ({} %)", short_size(size.0), (percent * 10.0).round() / 10.0)?;
                    separator = " or ";
                    Ok(())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    fn read(json: &str) -> Sizes {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn log_normal_draws_have_their_median_and_deviation() {
        let size = read("{\"median\":\"10kB\",\"sigma\":1.5}");
        let mut rng = Seed(4).rng();
        let mut drawn: Vec<u32> = (0..20_001).map(|_| size.draw(&mut rng, [1, 1 << 30])).collect();
        drawn.sort_unstable();
        let [below, median, above] = [3174, 10_000, 16_827].map(|at| f64::from(drawn[at]).ln());
        assert!((median - 1e4_f64.ln()).abs() < 0.05, "{median}");
        // One standard deviation to each side of a normal distribution lies 68.27 % of it.
        assert!(((above - below) / 2.0 - 1.5).abs() < 0.05, "{below} to {above}");
    }

    #[test]
    fn mix_draws_each_size_by_its_weight() {
        let mix = read("{\"200kB\":1,\"1kB\":9,\"7B\":0}");
        let mut rng = Seed(4).rng();
        let drawn: Vec<u32> = (0..10_000).map(|_| mix.draw(&mut rng, [8, 1 << 30])).collect();
        let long = drawn.iter().filter(|size| **size == 200_000).count();
        // Binomial: a standard deviation is 30.
        assert!((880..1120).contains(&long), "{long}");
        assert!(drawn.iter().all(|size| [1000, 200_000].contains(size)));
        assert_eq!(mix.largest(), Some(200_000));
        assert_eq!(mix.to_string(), "7 B (0 %) or 1 kB (90 %) or 200 kB (10 %)");
    }

    #[test]
    fn size_is_a_quantity_weights_or_a_distribution() {
        for text in ["\"20kB\"", "{\"median\":\"10kB\",\"sigma\":1.5}", "{\"1kB\":9,\"200kB\":1}"] {
            let again = serde_json::to_string(&read(text)).unwrap();
            assert_eq!(read(&again), read(text));
        }
        for wrong in ["{\"median\":\"10kB\",\"sgma\":1.5}", "{\"1k\":1}", "7"] {
            let problem = serde_json::from_str::<Sizes>(wrong).unwrap_err().to_string();
            assert!(problem.contains("sizes with weights"), "{problem}");
        }
        let is_possible = |text: &str| read(text).is_possible(|octets| octets >= 8);
        assert!(!is_possible("{}") && !is_possible("{\"9B\":0}") && !is_possible("{\"9B\":1,\"7B\":1}"));
    }

    #[test]
    fn classes_are_the_sizes_of_a_short_mix_and_powers_of_ten_otherwise() {
        let names = |json: &str| -> Vec<String> {
            read(json).classes(true).into_iter().map(|class| class.name).collect()
        };
        assert_eq!(names("\"1kB\""), [""; 0]);
        assert_eq!(names("{\"1kB\":9,\"200kB\":1}"), ["1 kB replies", "200 kB replies"]);
        let decades = ["replies below 1 kB", "replies from 1 kB to 10 kB", "replies from 10 kB to 100 kB"];
        let last = "replies from 100 kB";
        assert_eq!(names("{\"median\":\"10kB\",\"sigma\":1.5}"), [&decades[..], &[last]].concat());
        assert_eq!(names("{\"200B\":1,\"1kB\":1,\"2kB\":1,\"20kB\":1,\"1MB\":1}").len(), 5);
    }

    #[test]
    fn log_normal_draws_do_not_exceed_max() {
        let sizes = read("{\"median\":\"10kB\",\"sigma\":1.5,\"most\":\"60kB\"}");
        let mut rng = Seed(4).rng();
        let drawn: Vec<u32> = (0..10_000).map(|_| sizes.draw(&mut rng, [8, 1 << 30])).collect();
        assert_eq!((drawn.iter().max(), sizes.largest()), (Some(&60_000), Some(60_000)));
        assert_eq!(sizes.classes(true).last().map(|class| class.name.as_str()), Some("replies from 10 kB"));
        assert!(!read("{\"median\":\"10kB\",\"sigma\":1.5,\"most\":\"9kB\"}").is_possible(|_| true));
    }

    #[test]
    fn every_size_is_in_exactly_one_class() {
        let classes = read("{\"median\":\"10kB\",\"sigma\":1.5}").classes(true);
        for size in [0, 1, 999, 1000, 9999, 10_000, 99_999, 100_000, 1 << 30] {
            let holds = classes.iter().filter(|class| (class.min..=class.max).contains(&size)).count();
            assert_eq!(holds, 1, "{size}");
        }
    }
}
