//! The distribution of the delay: the key `jitter_distribution`, a word or a custom table.
//!
//! Every distribution except the uniform one is a table of equally likely quantiles as in tc-netem(8): the
//! delay beyond `delay` in units of `jitter`/[`UNITS_PER_JITTER`]. The kernel world passes the same table to netem.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use statrs::distribution::{ContinuousCDF, Normal};

/// Number of units in a table that equal one `jitter`: `NETEM_DIST_SCALE` of linux/pkt_sched.h.
pub(crate) const UNITS_PER_JITTER: i64 = 8192;
/// Number of entries of a built-in table, as in iproute2.
const TABLE_SIZE: usize = 4096;
/// Maximum number of entries of a table: `NETEM_DIST_MAX` of linux/pkt_sched.h.
const MAX_TABLE_SIZE: usize = 16_384;

/// The distribution of the delay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Uniform, up to `jitter` either way: `"uniform"`.
    #[default]
    Uniform,
    /// Normal, with `jitter` as the standard deviation: `"normal"`.
    Normal,
    /// Pareto, with rare, large positive deviations: `"pareto"`.
    Pareto,
    /// Three parts Pareto and one part normal: `"paretonormal"`.
    ParetoNormal,
    /// A file next to the experiment, not yet read: `{ file = "measured.dist" }`.
    File(String),
    /// A table of quantiles: `{ table = [-8192, 0, 8192] }`.
    Table(Arc<[i16]>),
}

const DISTRIBUTION_NAMES: [&str; 4] = ["uniform", "normal", "pareto", "paretonormal"];

impl Distribution {
    /// Returns the table from which the delay of each packet is drawn; `None` for the uniform distribution
    /// and for an unread file.
    pub fn table(&self) -> Option<Arc<[i16]>> {
        static NORMAL: LazyLock<Arc<[i16]>> = LazyLock::new(|| quantiles(normal));
        static PARETO: LazyLock<Arc<[i16]>> = LazyLock::new(|| quantiles(pareto));
        static MIXED: LazyLock<Arc<[i16]>> =
            LazyLock::new(|| quantiles(|share| (normal(share) + 3.0 * pareto(share)) / 4.0));
        match self {
            Self::Uniform | Self::File(_) => None,
            Self::Normal => Some(NORMAL.clone()),
            Self::Pareto => Some(PARETO.clone()),
            Self::ParetoNormal => Some(MIXED.clone()),
            Self::Table(numbers) => Some(numbers.clone()),
        }
    }

    /// Parses a file in the format of tc-netem(8): integers in ascending order, separated by blanks, with comments
    /// after `#`. An error contains the line number.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut numbers: Vec<i16> = Vec::new();
        for (line, words) in (1..).zip(text.lines()) {
            for word in words.split('#').next().unwrap_or_default().split_whitespace() {
                let refuse = |problem: &str| Err((line, format!("{word:?} {problem}")));
                let Ok(number) = word.parse() else {
                    return refuse("is not a whole number from -32768 to 32767; the unit is `jitter` / 8192");
                };
                if numbers.last().is_some_and(|last| *last > number) {
                    return refuse(
                        "is below the number before it; a distribution is an ascending list of quantiles; sort it",
                    );
                }
                if numbers.len() == MAX_TABLE_SIZE {
                    return refuse(
                        "is number 16385, but netem accepts at most 16384; remove every other number",
                    );
                }
                numbers.push(number);
            }
        }
        if numbers.is_empty() {
            return Err((
                1,
                "contains no number; a distribution is an ascending list of quantiles, in units of `jitter` / 8192".to_owned(),
            ));
        }
        Ok(Self::Table(numbers.into()))
    }

    /// Returns a description of an invalid table, with a remedy; `None` if the table is valid.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match self {
            Self::File(_) => {
                Some("only an experiment file can name a file; give the numbers of the file here, as `table`")
            }
            Self::Table(numbers) if numbers.is_empty() || numbers.len() > MAX_TABLE_SIZE => {
                Some("`table` must have 1 to 16384 numbers")
            }
            _ => None,
        }
    }

    fn word(&self) -> Option<&'static str> {
        let place = match self {
            Self::Uniform => 0,
            Self::Normal => 1,
            Self::Pareto => 2,
            Self::ParetoNormal => 3,
            Self::File(_) | Self::Table(_) => return None,
        };
        Some(DISTRIBUTION_NAMES[place])
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "as in {name}"),
            Self::Table(numbers) => write!(f, "by a table of {}", numbers.len()),
            _ => f.write_str(self.word().unwrap_or_default()),
        }
    }
}

/// Returns the quantiles of a distribution as a table, each at the middle of one of equally large shares.
fn quantiles(quantile: impl Fn(f64) -> f64) -> Arc<[i16]> {
    let number = |place: usize| {
        let share = (place as f64 + 0.5) / TABLE_SIZE as f64;
        // The conversion saturates at the ends of the range.
        (quantile(share) * UNITS_PER_JITTER as f64).round() as i16
    };
    (0..TABLE_SIZE).map(number).collect()
}

fn normal(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// Returns a quantile of the distribution that iproute2's generator uses: Pareto with index 3 and minimum 1, so
/// that the mean is 1.5 and the variance 3/4, limited to the range of an i16.
fn pareto(share: f64) -> f64 {
    const INDEX: f64 = 3.0;
    const MEAN: f64 = 1.5;
    const STRETCH: f64 = 4.0 / 3.0;
    let max = f64::from(i16::MAX) / UNITS_PER_JITTER as f64;
    (((1.0 - share).powf(-1.0 / INDEX) - MEAN) * STRETCH).min(max)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum OwnDistribution {
    /// A file next to the experiment, in the format of tc-netem(8).
    File(String),
    /// Quantiles in units of `jitter`/8192.
    Table(Vec<i16>),
}

impl JsonSchema for Distribution {
    fn schema_name() -> Cow<'static, str> {
        "Distribution".into()
    }

    fn json_schema(of: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": DISTRIBUTION_NAMES }, of.subschema_for::<OwnDistribution>()] })
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Some(word) = self.word() {
            return to.serialize_str(word);
        }
        let mut map = to.serialize_map(Some(1))?;
        match self {
            Self::File(name) => map.serialize_entry("file", name)?,
            Self::Table(numbers) => map.serialize_entry("table", &numbers[..])?,
            _ => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrTable;
        impl<'de> Visitor<'de> for WordOrTable {
            type Value = Distribution;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"uniform\", \"normal\", \"pareto\", \"paretonormal\", or { file = \"measured.dist\" }",
                )
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Distribution, E> {
                Ok(match word {
                    "uniform" => Distribution::Uniform,
                    "normal" => Distribution::Normal,
                    "pareto" => Distribution::Pareto,
                    "paretonormal" => Distribution::ParetoNormal,
                    _ => return Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distribution, A::Error> {
                OwnDistribution::deserialize(MapAccessDeserializer::new(map)).map(|own| match own {
                    OwnDistribution::File(name) => Distribution::File(name),
                    OwnDistribution::Table(numbers) => Distribution::Table(numbers.into()),
                })
            }
        }
        deserializer.deserialize_any(WordOrTable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns mean and standard deviation, in units.
    fn moments(distribution: &Distribution) -> (f64, f64) {
        let values: Vec<f64> = distribution
            .table()
            .unwrap()
            .iter()
            .map(|number| f64::from(*number) / UNITS_PER_JITTER as f64)
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, square.sqrt())
    }

    /// Returns the quantile of the table at this share, in units.
    fn quantile(distribution: &Distribution, share: f64) -> f64 {
        let table = distribution.table().unwrap();
        f64::from(table[(share * table.len() as f64) as usize]) / UNITS_PER_JITTER as f64
    }

    #[test]
    fn normal_table_has_the_moments_and_published_quantiles() {
        let (mean, deviation) = moments(&Distribution::Normal);
        assert!(mean.abs() < 1e-9 && (deviation - 1.0).abs() < 1e-3, "{mean} {deviation}");
        // Abramowitz and Stegun 1964, table 26.5.
        for (share, due) in [(0.5, 0.0), (0.75, 0.67449), (0.9, 1.28155), (0.975, 1.95996), (0.999, 3.09023)]
        {
            let found = quantile(&Distribution::Normal, share);
            // The tolerance is half an entry of the table, at the density there.
            let density = (-due * due / 2.0_f64).exp() / std::f64::consts::TAU.sqrt();
            assert!(
                (found - due).abs() < 0.6 / TABLE_SIZE as f64 / density + 1e-4,
                "{share}: {found}, {due}"
            );
        }
    }

    /// For a Pareto-distributed X (index 3, minimum 1) and the cap c at the end of an i16, E min(X, c) is 3/2
    /// − c⁻²/2 and E min(X, c)² is 3 − 2/c.
    #[test]
    fn pareto_table_has_the_moments_of_its_generator() {
        let max = f64::from(i16::MAX) / UNITS_PER_JITTER as f64;
        let c = max * 0.75 + 1.5;
        let (first, second) = (1.5 - c.powi(-2) / 2.0, 3.0 - 2.0 / c);
        let due = ((first - 1.5) * 4.0 / 3.0, (second - first * first).sqrt() * 4.0 / 3.0);
        let (mean, deviation) = moments(&Distribution::Pareto);
        assert!(
            (mean - due.0).abs() < 2e-3 && (deviation - due.1).abs() < 2e-3,
            "{mean} {deviation}, {due:?}"
        );
        assert!((mean + 0.033).abs() < 1e-3 && (deviation - 0.821).abs() < 1e-3, "as the documentation says");
        // The median is 2^(1/3).
        assert!((quantile(&Distribution::Pareto, 0.5) - (2_f64.cbrt() - 1.5) * 4.0 / 3.0).abs() < 1e-3);
        assert_eq!(*Distribution::Pareto.table().unwrap().last().unwrap(), i16::MAX);
    }

    #[test]
    fn paretonormal_is_three_parts_pareto_and_one_part_normal() {
        for share in [0.001, 0.3, 0.5, 0.9, 0.99] {
            let [normal, pareto, mixed] =
                [Distribution::Normal, Distribution::Pareto, Distribution::ParetoNormal]
                    .map(|distribution| quantile(&distribution, share));
            assert!((mixed - (normal + 3.0 * pareto) / 4.0).abs() < 3e-4, "{share}");
        }
        let (mean, deviation) = moments(&Distribution::ParetoNormal);
        // Computed with Python's statistics.NormalDist over two million shares.
        assert!((mean + 0.0247).abs() < 1e-3 && (deviation - 0.8349).abs() < 1e-3, "{mean} {deviation}");
    }

    #[test]
    fn files_are_read_as_iproute2_writes_them() {
        let text = "# This is the distribution table.\n -32768 -5\n 0 7 # and on\n32767\n";
        assert_eq!(Distribution::read(text), Ok(Distribution::Table([-32768, -5, 0, 7, 32767].into())));
        let long: String = (0..20_000).map(|_| "3\n").collect();
        for (text, line, words) in [
            ("", 1, "no number"),
            ("# nothing\n", 1, "no number"),
            ("1 2\n3 x", 2, "\"x\" is not a whole number"),
            ("1\n40000", 2, "\"40000\" is not a whole number"),
            ("1.5", 1, "whole number"),
            ("5\n\n4", 3, "sort it"),
            (&long, 16_385, "16384"),
        ] {
            let (place, problem) = Distribution::read(text).unwrap_err();
            assert!(place == line && problem.contains(words), "{place}: {problem}");
        }
    }

    #[test]
    fn words_and_tables_are_read_and_written() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Link {
            d: Distribution,
        }
        for text in
            ["'uniform'", "'normal'", "'pareto'", "'paretonormal'", "{ file = 'a' }", "{ table = [-1, 3] }"]
        {
            let link: Link = toml::from_str(&format!("d = {text}")).unwrap();
            assert_eq!(toml::from_str::<Link>(&toml::to_string(&link).unwrap()).unwrap(), link);
        }
        for text in ["'gauss'", "{ table = [40000] }", "{ files = 'a' }", "{}", "3"] {
            assert!(toml::from_str::<Link>(&format!("d = {text}")).is_err(), "{text}");
        }
    }
}
