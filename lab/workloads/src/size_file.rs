//! A file of sizes, such as those of the messages that an application was seen to send.

use std::collections::BTreeMap;

use hol_base::ByteCount;

use crate::Sizes;

/// A file with more sizes is reduced to this many of equal weight, because each draw looks through all.
const MAX_SIZES: usize = 1000;

impl Sizes {
    /// Parses a file with a size on each line, and optionally how often it occurs: `20kB` or `1460 17`. Text after `#` is a comment. An
    /// error has its line number.
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
                        "write one size per line, and optionally how often it occurs".to_owned(),
                    ));
                }
            };
            let octets = size.parse().map(ByteCount).or_else(|_| size.parse::<ByteCount>());
            let octets =
                octets.map_err(|_| (line, format!("{size:?} is not a size such as 1460 or \"20kB\"")))?;
            let weight: u32 = weight.parse().map_err(|_| {
                (line, format!("{weight:?} is not a whole number of messages, at most {}", u32::MAX))
            })?;
            *weights.entry(octets).or_default() += u64::from(weight);
        }
        if weights.values().all(|weight| *weight == 0) {
            return Err((1, "the file contains no sizes; write one per line".to_owned()));
        }
        Ok(Self::Mix(reduced(&weights)))
    }
}

/// Returns the sizes with weights that fit; a longer list as [`MAX_SIZES`] quantiles, each in the middle of its part.
fn reduced(weights: &BTreeMap<ByteCount, u64>) -> BTreeMap<ByteCount, u32> {
    let total: u64 = weights.values().sum();
    if weights.len() <= MAX_SIZES && u32::try_from(total).is_ok() {
        return weights.iter().map(|(size, weight)| (*size, *weight as u32)).collect();
    }
    let mut quantiles = BTreeMap::new();
    let (mut seen, mut part) = (0_u128, 0_u128);
    for (size, weight) in weights {
        seen += u128::from(*weight);
        // The middle of a part is at (part + 1/2) / MAX_SIZES of the total.
        while part < MAX_SIZES as u128 && (2 * part + 1) * u128::from(total) <= 2 * MAX_SIZES as u128 * seen {
            *quantiles.entry(*size).or_default() += 1;
            part += 1;
        }
    }
    quantiles
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
    fn a_line_has_a_size_and_perhaps_how_often_it_occurs() {
        let weights = read("# octets\n1kB\n1000\r\n200kB, 3\n\n7\t0\n");
        assert_eq!(
            weights,
            [(7, 0), (1000, 2), (200_000, 3)].map(|(size, weight)| (ByteCount(size), weight)).into()
        );
    }

    #[test]
    fn a_long_file_is_reduced_to_quantiles() {
        let all: String = (1..=100_000).map(|size| format!("{size}\n")).collect();
        let weights = read(&all);
        assert_eq!((weights.len(), weights.values().sum::<u32>()), (MAX_SIZES, 1000));
        let first: Vec<u64> = weights.keys().take(2).map(|size| size.0).collect();
        assert_eq!(first, [50, 150]);
        assert_eq!(weights.keys().map(|size| size.0).sum::<u64>() / 1000, 50_000);
        let heavy = read(&format!("10 {0}\n20 {0}\n", u32::MAX));
        assert_eq!(heavy.values().copied().collect::<Vec<_>>(), [500, 500]);
    }

    #[test]
    fn what_is_no_size_is_refused_with_its_line() {
        for (text, line, words) in [
            ("1kB\n12 apples\n", 2, "\"apples\" is not a whole number of messages"),
            ("1kB\n7Mbit\n", 2, "\"7Mbit\" is not a size such as 1460"),
            ("1 2 3\n", 1, "write one size per line"),
            ("# none\n", 1, "the file contains no sizes"),
            ("9 0\n", 1, "the file contains no sizes"),
            ("-5\n", 1, "\"-5\" is not a size"),
        ] {
            let (at, problem) = Sizes::read(text).expect_err(text);
            assert!(at == line && problem.contains(words), "{text}: {at}: {problem}");
        }
    }
}
