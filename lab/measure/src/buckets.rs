//! Compact counts of latencies, because a study holds the latencies of thousands of runs at once.

use std::fmt;
use std::sync::Arc;

use crate::bucket::Bucket;

/// The non-empty buckets with their counts, in ascending order; clones share the memory.
///
/// Each bucket is stored as the distance from the previous bucket, and the count. Both use seven bits of each
/// octet, the lowest bits first. Most buckets need three octets.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Buckets(Arc<[u8]>);

impl Buckets {
    /// Iterates over the non-empty buckets and their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Bucket, u64)> {
        let (mut rest, mut bucket) = (&*self.0, 0);
        std::iter::from_fn(move || {
            bucket += take_number(&mut rest)? as u32;
            Some((Bucket(bucket), take_number(&mut rest)?))
        })
    }

    /// Returns the counts of two sets of buckets, added up.
    pub(crate) fn merged_with(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        let next = || {
            let (a, b) = (ours.peek().copied(), theirs.peek().copied());
            match (a, b) {
                (Some((bucket, count)), Some((same, more))) if bucket == same => {
                    let _ = ours.next().zip(theirs.next());
                    Some((bucket, count + more))
                }
                (Some((bucket, _)), Some((later, _))) if bucket < later => ours.next(),
                (_, Some(_)) => theirs.next(),
                (_, None) => ours.next(),
            }
        };
        std::iter::from_fn(next).collect()
    }
}

impl FromIterator<(Bucket, u64)> for Buckets {
    /// Creates the counts from buckets in ascending order.
    fn from_iter<I: IntoIterator<Item = (Bucket, u64)>>(buckets: I) -> Self {
        let (mut octets, mut before) = (Vec::new(), 0);
        for (Bucket(bucket), count) in buckets {
            put_number(&mut octets, (bucket - before).into());
            put_number(&mut octets, count);
            before = bucket;
        }
        Self(octets.into())
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(Bucket(bucket), count)| (bucket, count))).finish()
    }
}

fn put_number(octets: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        octets.push(number as u8 | 0x80);
        number >>= 7;
    }
    octets.push(number as u8);
}

fn take_number(octets: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0.. {
        let (octet, rest) = octets.split_first()?;
        *octets = rest;
        number |= u64::from(octet & 0x7f) << (7 * place);
        if octet & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_buckets_round_trip_in_few_octets() {
        let filled = [(0, 1), (1, 127), (129, 128), (20_000, 1 << 40), (u32::MAX, u64::MAX)];
        let filled = filled.map(|(bucket, count)| (Bucket(bucket), count));
        let buckets: Buckets = filled.into_iter().collect();
        assert!(buckets.iter().eq(filled));
        assert_eq!(buckets.0.len(), (1 + 1) + (1 + 1) + (2 + 2) + (3 + 6) + (5 + 10));
        assert_eq!(Buckets::default(), std::iter::empty().collect());
    }

    #[test]
    fn merged_buckets_have_the_sum_of_both_counts() {
        let of = |filled: &[(u32, u64)]| -> Buckets {
            filled.iter().map(|(bucket, count)| (Bucket(*bucket), *count)).collect()
        };
        let (some, others) = (of(&[(1, 2), (5, 1), (9, 9)]), of(&[(0, 7), (5, 3), (10, 1)]));
        assert_eq!(some.merged_with(&others), of(&[(0, 7), (1, 2), (5, 4), (9, 9), (10, 1)]));
        assert_eq!(some.merged_with(&Buckets::default()), some);
        assert_eq!(Buckets::default().merged_with(&others), others);
    }
}
