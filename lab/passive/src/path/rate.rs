//! Estimates the rate of a link from trains of packets that the link has spaced.
//!
//! Data that an application sends evenly also arrives evenly, as from a slow link. So trains count only if their packets queued: each took
//! longer than the shortest delay by at least two packet times at that rate.

use hol_measure::ConfidenceInterval;

use super::sender_trace::Delivery;

/// Number of packets or acknowledgements in a train.
const TRAIN_LENGTH: usize = 16;
/// The ratio up to which two rates count as equal.
const MAX_RATE_RATIO: f64 = 1.02;
/// Minimum number of trains with the same rate for an estimate. They must also be a large share of the trains that
/// queued.
const MIN_TRAINS: usize = 8;
/// Minimum share of the trains with the same rate among all trains that queued.
const MIN_TRAIN_SHARE: f64 = 0.1;

/// The estimate of a link's rate in bit/s; the size of a packet includes its link-layer header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateEstimate {
    /// The rate, measured from the spacing of packets.
    Measured {
        /// The rate of the trains in the band of 2 % that contains the most trains.
        rate: ConfidenceInterval,
        /// Number of trains in the band.
        trains: usize,
    },
    /// Too few packets queued: the link has at least this rate.
    AtLeast(f64),
}

/// Octets of a packet in addition to the IP packet: the default of `overhead`.
pub(super) const LINK_OVERHEAD: u32 = 14;

/// If many trains are faster than the estimate by this factor, the estimate is rejected.
const REFUTING_FACTOR: f64 = 1.1;
/// The largest share of faster trains with which the estimate is accepted.
const MAX_FASTER_SHARE: f64 = 0.01;

/// Octets whose delivery became known at one time, with the shortest delay of their packets.
#[derive(Debug, Clone, Copy)]
struct Batch {
    at: u64,
    octets: u64,
    delay: Option<u64>,
}

/// Estimates the rate from deliveries in order of time; `None` with too few packets for a train.
pub(super) fn estimate_rate(deliveries: &[Delivery]) -> Option<RateEstimate> {
    let together = deliveries.chunk_by(|one, next| one.at == next.at);
    let batches: Vec<Batch> = together.map(Batch::from_deliveries).collect();
    let shortest = batches.iter().filter_map(|batch| batch.delay).min();
    let trains = || batches.windows(TRAIN_LENGTH).map(|train| (train, rate_of(train)));
    let has_queued =
        |train: &&[Batch], rate| shortest.is_some_and(|shortest| has_queued(train, rate, shortest));
    let waited = trains().filter(|(train, rate)| has_queued(train, *rate));
    let mut waited: Vec<f64> = waited.map(|(_, rate)| rate).collect();
    waited.sort_by(f64::total_cmp);
    let fastest = trains().map(|(_, rate)| rate).max_by(f64::total_cmp)?;
    let dense = densest(&waited);
    if dense.len() < MIN_TRAINS || (dense.len() as f64) < MIN_TRAIN_SHARE * waited.len() as f64 {
        return Some(RateEstimate::AtLeast(fastest));
    }
    let (low, high) = (dense[0], dense[dense.len() - 1]);
    let faster = trains().filter(|(_, rate)| *rate > REFUTING_FACTOR * high).count();
    // Packets that a link has spaced have queued; if as many have not, an application has spaced them.
    let alike = trains().filter(|(_, rate)| (low..=high).contains(rate)).count();
    if faster as f64 > MAX_FASTER_SHARE * batches.len() as f64 || 2 * dense.len() < alike {
        return Some(RateEstimate::AtLeast(fastest));
    }
    Some(RateEstimate::Measured {
        rate: ConfidenceInterval { value: dense[dense.len() / 2], low, high },
        trains: dense.len(),
    })
}

impl Batch {
    fn from_deliveries(together: &[Delivery]) -> Self {
        let octets = together.iter().map(|delivery| u64::from(delivery.octets + LINK_OVERHEAD)).sum();
        let delay = together.iter().filter_map(|delivery| delivery.delay).min();
        Self { at: together[0].at, octets, delay }
    }
}

/// Returns the rate of a train: the octets of all batches but the first, over the time since the first.
fn rate_of(train: &[Batch]) -> f64 {
    let octets: u64 = train[1..].iter().map(|batch| batch.octets).sum();
    octets as f64 * 8e9 / (train[train.len() - 1].at - train[0].at) as f64
}

/// Returns whether most of the train took longer than the shortest delay and the transmission time of two batches
/// together.
fn has_queued(train: &[Batch], rate: f64, shortest: u64) -> bool {
    let octets: u64 = train.iter().map(|batch| batch.octets).sum();
    let two = 2.0 * octets as f64 / train.len() as f64 * 8e9 / rate;
    let delays = || train.iter().filter_map(|batch| batch.delay);
    let waited = delays().filter(|delay| (delay - shortest) as f64 >= two).count();
    waited > 0 && 2 * waited >= delays().count()
}

/// Returns the largest set of sorted rates within a band of [`MAX_RATE_RATIO`].
fn densest(sorted: &[f64]) -> &[f64] {
    let mut best = 0..0;
    let mut begin = 0;
    for end in 1..=sorted.len() {
        while sorted[begin] * MAX_RATE_RATIO < sorted[end - 1] {
            begin += 1;
        }
        if end - begin > best.len() {
            best = begin..end;
        }
    }
    &sorted[best]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliveries(gap: u64, delay: impl Fn(u64) -> u64) -> Vec<Delivery> {
        (0..200).map(|k| Delivery { at: k * gap, octets: 1486, delay: Some(delay(k)), path: 0 }).collect()
    }

    #[test]
    fn queued_packets_give_the_rate_and_other_packets_a_lower_bound() {
        // Batches of 12,000 bits each ms.
        let queued = estimate_rate(&deliveries(1_000_000, |k| 20_000_000 + 1_000_000 * k));
        let Some(RateEstimate::Measured { rate: seen, .. }) = queued else { panic!("{queued:?}") };
        assert!((seen.value - 12e6).abs() < 1.0, "{seen:?}");
        let even = estimate_rate(&deliveries(1_000_000, |_| 20_000_000));
        assert!(matches!(even, Some(RateEstimate::AtLeast(bits)) if (bits - 12e6).abs() < 1.0), "{even:?}");
        assert_eq!(estimate_rate(&deliveries(1, |_| 1)[..10]), None);
    }
}
