//! A file of sizes, such as the message sizes that were observed for an application.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hol_base::ByteCount;

use crate::Sizes;

/// Maximum number of different sizes. If a file has more, neighbouring sizes are joined, because each draw searches all
/// sizes.
const MAX_SIZES: usize = 1000;

/// The range of sizes in octets that a message can have in any workload.
const POSSIBLE_SIZES: RangeInclusive<u64> = 8..=1 << 30;

impl Sizes {
    /// Parses a file with a size on each line, optionally followed by its number of occurrences: `20kB` or `1460 17`.
    /// Text after `#` is a comment. An error contains the line number, from 1.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut weights: BTreeMap<ByteCount, u64> = BTreeMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default();
            let words: Vec<&str> =
                content.split([',', ' ', '\t', '\r']).filter(|word| !word.is_empty()).collect();
            let (size, weight) = match words[..] {
                [] => continue,
                [size] => (size, "1"),
                [size, weight] => (size, weight),
                _ => {
                    return Err((
                        line,
                        "write one size on each line, optionally followed by its number of occurrences"
                            .to_owned(),
                    ));
                }
            };
            let octets = size.parse().map(ByteCount).or_else(|_| size.parse::<ByteCount>());
            let octets =
                octets.map_err(|_| (line, format!("{size:?} is not a size such as 1460 or \"20kB\"")))?;
            if !POSSIBLE_SIZES.contains(&octets.0) {
                return Err((
                    line,
                    format!("a message of {octets} is not possible; sizes are 8 octets to 1 GiB"),
                ));
            }
            let weight: u32 = weight.parse().map_err(|_| {
                (line, format!("{weight:?} is not a whole number of messages, at most {}", u32::MAX))
            })?;
            *weights.entry(octets).or_default() += u64::from(weight);
        }
        if weights.values().all(|weight| *weight == 0) {
            return Err((1, "the file contains no sizes; write one per line".to_owned()));
        }
        Ok(Self::Mix(join_sizes(&weights)))
    }
}

/// Replaces each group of neighbouring sizes in a long list by their mean. The total number of messages stays the same,
/// and so does the number of octets, except for rounding. A group has at most a thousandth of the messages and of the
/// octets, unless a single size has more; so rare long messages keep their size.
fn join_sizes(weights: &BTreeMap<ByteCount, u64>) -> BTreeMap<ByteCount, u32> {
    let octets = |size: &ByteCount, weight: &u64| u128::from(size.0) * u128::from(*weight);
    let total: u64 = weights.values().sum();
    let all_octets: u128 = weights.iter().map(|(size, weight)| octets(size, weight)).sum();
    let (max_messages, max_octets) = match weights.len() <= MAX_SIZES {
        true => (0, 0),
        false => (total / MAX_SIZES as u64, all_octets / MAX_SIZES as u128),
    };
    let mut groups: Vec<(u64, u128)> = Vec::new();
    for (size, weight) in weights {
        let own = octets(size, weight);
        match groups.last_mut() {
            Some((messages, octets)) if *messages + weight <= max_messages && *octets + own <= max_octets => {
                *messages += weight;
                *octets += own;
            }
            _ => groups.push((*weight, own)),
        }
    }
    // A weight has to fit into 32 bits.
    let max_weight = groups.iter().map(|(messages, _)| *messages).max().unwrap_or(0);
    let divisor = max_weight / u64::from(u32::MAX) + 1;
    let mut reduced = BTreeMap::new();
    for (messages, octets) in groups.into_iter().filter(|(messages, _)| *messages > 0) {
        let mean = (octets + u128::from(messages) / 2) / u128::from(messages);
        *reduced.entry(ByteCount(mean as u64)).or_default() += messages.div_ceil(divisor) as u32;
    }
    reduced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BTreeMap<ByteCount, u32> {
        match Sizes::read(text).unwrap() {
            Sizes::Mix(weights) => weights,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn line_has_a_size_and_an_optional_count() {
        let weights = read("# octets\n1kB\n1000\r\n200kB, 3\n\n70\t0\n");
        assert_eq!(weights, [(1000, 2), (200_000, 3)].map(|(size, weight)| (ByteCount(size), weight)).into());
    }

    #[test]
    fn long_size_file_keeps_its_mean_and_its_rare_long_messages() {
        let mut all: String = (1000..3000).map(|size| format!("{size}\n")).collect();
        all += "10MB\n";
        let weights = read(&all);
        assert_eq!(weights.get(&ByteCount(10_000_000)), Some(&1));
        assert_eq!(weights.values().sum::<u32>(), 2001);
        assert!(weights.len() <= 2 * MAX_SIZES, "{}", weights.len());
        let octets: u64 = weights.iter().map(|(size, weight)| size.0 * u64::from(*weight)).sum();
        let own: u64 = (1000..3000).sum::<u64>() + 10_000_000;
        assert!(octets.abs_diff(own) <= 2001, "{octets} and {own}");
    }

    #[test]
    fn large_weights_are_divided() {
        let heavy = read(&format!("10 {0}\n10 {0}\n20 {0}\n30 1\n", u32::MAX));
        let weights: Vec<u32> = heavy.values().copied().collect();
        assert_eq!(weights, [2_863_311_530, 1_431_655_765, 1]);
    }

    #[test]
    fn invalid_size_is_refused_with_its_line() {
        for (text, line, words) in [
            ("1kB\n12 apples\n", 2, "\"apples\" is not a whole number of messages"),
            ("1kB\n7Mbit\n", 2, "\"7Mbit\" is not a size such as 1460"),
            ("1 2 3\n", 1, "write one size on each line"),
            ("# none\n", 1, "the file contains no sizes"),
            ("90 0\n", 1, "the file contains no sizes"),
            ("-5\n", 1, "\"-5\" is not a size"),
            ("1kB\n7\n", 2, "a message of 7B is not possible"),
            ("2000MB\n", 1, "sizes are 8 octets to 1 GiB"),
        ] {
            let (at, problem) = Sizes::read(text).expect_err(text);
            assert!(at == line && problem.contains(words), "{text}: {at}: {problem}");
        }
    }
}
