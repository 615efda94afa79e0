//! A distribution in compact JSON.

use hol_base::Duration;
use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::distribution::Distribution;

/// The form in which a distribution is stored. Each bucket is stored as the distance from the previous bucket, and
/// its count. The sum of squares is a text, because many JSON readers limit integers to 64 bits.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackedDistribution {
    offered: u64,
    total_ns: u128,
    squares_ns2: String,
    range_ns: Option<(u64, u64)>,
    buckets: Vec<(u32, u64)>,
}

/// The error for a stored distribution that contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PackedError {
    #[error("squares_ns2 is not a whole number below 2^128")]
    Squares,
    #[error("buckets: a distance or a count is 0, or their sum overflows")]
    Buckets,
    #[error("more messages completed than were offered")]
    Offered,
    #[error("range_ns must be present exactly if messages completed")]
    Range,
}

impl From<Distribution> for PackedDistribution {
    fn from(distribution: Distribution) -> Self {
        let Distribution { offered, completed: _, total, squares, range, buckets } = distribution;
        let mut next = 0;
        let gap = |(Bucket(at), count)| (at + 1 - std::mem::replace(&mut next, at + 1), count);
        Self {
            offered,
            total_ns: total,
            squares_ns2: squares.to_string(),
            range_ns: range.map(|(min, max)| (min.as_nanos(), max.as_nanos())),
            buckets: buckets.iter().map(gap).collect(),
        }
    }
}

impl TryFrom<PackedDistribution> for Distribution {
    type Error = PackedError;
    fn try_from(packed: PackedDistribution) -> Result<Self, PackedError> {
        let PackedDistribution { offered, total_ns, squares_ns2, range_ns, buckets: gaps } = packed;
        let mut buckets = Vec::with_capacity(gaps.len());
        let (mut next, mut completed) = (0u32, 0u64);
        for (gap, count) in gaps {
            next = next.checked_add(gap).filter(|_| gap > 0 && count > 0).ok_or(PackedError::Buckets)?;
            completed = completed.checked_add(count).ok_or(PackedError::Buckets)?;
            buckets.push((Bucket(next - 1), count));
        }
        if completed > offered {
            return Err(PackedError::Offered);
        }
        if range_ns.is_some() != (completed > 0) {
            return Err(PackedError::Range);
        }
        let squares = squares_ns2.parse().map_err(|_| PackedError::Squares)?;
        let range = range_ns.map(|(min, max)| (Duration::from_nanos(min), Duration::from_nanos(max)));
        Ok(Self {
            offered,
            completed,
            total: total_ns,
            squares,
            range,
            buckets: buckets.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;

    #[test]
    fn stored_distribution_is_small_and_readable() {
        let mut recorder = Recorder::new();
        (0..1000).for_each(|_| recorder.count_completed(Duration::from_nanos(5)));
        recorder.count_completed(Duration::from_nanos(9));
        recorder.count_failure();
        let json = serde_json::to_string(&recorder.finish()).unwrap();
        let expected = r#"{"offered":1002,"total_ns":5009,"squares_ns2":"25081","range_ns":[5,9],"buckets":[[6,1000],[4,1]]}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn contradictory_counts_are_refused() {
        let read = |offered: u64, squares: &str, range: &str, buckets: &str| {
            let json = format!(
                r#"{{"offered":{offered},"total_ns":5,"squares_ns2":"{squares}","range_ns":{range},"buckets":{buckets}}}"#
            );
            serde_json::from_str::<Distribution>(&json).map_err(|e| e.to_string())
        };
        assert!(read(1, "25", "[5,5]", "[[6,1]]").is_ok());
        assert!(read(0, "25", "[5,5]", "[[6,1]]").unwrap_err().contains("offered"));
        assert!(read(1, "-1", "[5,5]", "[[6,1]]").unwrap_err().contains("squares_ns2"));
        assert!(read(1, "25", "null", "[[6,1]]").unwrap_err().contains("range_ns"));
        for buckets in ["[[0,1]]", "[[6,0]]", "[[4294967295,1],[6,1]]"] {
            assert!(read(9, "25", "[5,5]", buckets).unwrap_err().contains("buckets"), "{buckets}");
        }
    }
}
