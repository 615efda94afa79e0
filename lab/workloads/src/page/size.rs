//! The size of files.

use std::fmt;

use hol_base::{ByteCount, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Octets per file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a size such as \"20kB\", or { median = \"10kB\", sigma = 1.5 }")]
pub enum FileSize {
    /// The same for all files.
    Fixed(ByteCount),
    /// Log-normal, which fits the body of the distribution of web files. Barford and Crovella 1998
    /// (SIGMETRICS), section 4.
    Drawn(Drawn),
}

/// A log-normal distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drawn {
    /// Half of the files are shorter than this.
    pub median: ByteCount,
    /// The standard deviation of the logarithm.
    pub sigma: f64,
}

impl FileSize {
    /// Returns whether all typical sizes satisfy `octets`.
    pub(crate) fn is_possible(self, octets: impl Fn(u64) -> bool) -> bool {
        match self {
            Self::Fixed(size) => octets(size.0),
            Self::Drawn(Drawn { median, sigma }) => octets(median.0) && (0.0..=4.0).contains(&sigma),
        }
    }

    /// Draws the octets of the next file, between `least` and `most`.
    pub(crate) fn draw(self, rng: &mut Rng, [least, most]: [u64; 2]) -> u32 {
        let octets = match self {
            Self::Fixed(size) => size.0,
            Self::Drawn(Drawn { median, sigma }) => {
                (median.0 as f64 * (sigma * rng.normal()).exp()).round() as u64
            }
        };
        octets.clamp(least, most) as u32
    }
}

impl fmt::Display for FileSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Drawn(Drawn { median, sigma }) => write!(f, "{median} (sigma {sigma})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn half_of_the_drawn_files_are_shorter_than_the_median_and_their_logarithm_has_its_deviation() {
        let size: FileSize = serde_json::from_str("{\"median\":\"10kB\",\"sigma\":1.5}").unwrap();
        let mut rng = Seed(4).rng();
        let mut drawn: Vec<u32> = (0..20_001).map(|_| size.draw(&mut rng, [1, 1 << 30])).collect();
        drawn.sort_unstable();
        let [below, median, above] = [3174, 10_000, 16_827].map(|at| f64::from(drawn[at]).ln());
        assert!((median - 1e4_f64.ln()).abs() < 0.05, "{median}");
        // One standard deviation to each side of a normal distribution lies 68.27 % of it.
        assert!(((above - below) / 2.0 - 1.5).abs() < 0.05, "{below} to {above}");
    }

    #[test]
    fn a_size_is_written_as_a_quantity_or_as_a_distribution() {
        for text in ["\"20kB\"", "{\"median\":\"10kB\",\"sigma\":1.5}"] {
            let size: FileSize = serde_json::from_str(text).unwrap();
            let again = serde_json::to_string(&size).unwrap();
            assert_eq!(serde_json::from_str::<FileSize>(&again).unwrap(), size);
        }
        assert!(serde_json::from_str::<FileSize>("{\"median\":\"10kB\",\"sgma\":1.5}").is_err());
    }
}
