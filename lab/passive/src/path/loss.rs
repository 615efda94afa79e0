//! Packet loss, and whether it comes in bursts.

use hol_measure::{CONFIDENCE, ConfidenceInterval, fisher_exact};

use super::sender_trace::{PacketOutcome, ReorderingDelayBounds};

/// Loss and reordering of the packets of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct LossEstimate {
    /// Number of packets known to be delivered or lost.
    pub packets: u64,
    /// Number of lost packets among `packets`.
    pub lost: u64,
    /// Loss rate of the packets.
    pub loss: ConfidenceInterval,
    /// The Gilbert–Elliott parameters, if a loss makes the next one more likely.
    pub bursts: Option<Bursts>,
    /// Reordered packets, if any.
    pub reordering: Option<Reordering>,
}

/// The parameters of a Gilbert–Elliott link that loses everything in the bad state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Probability of a loss after a packet that arrived.
    pub good_to_bad: ConfidenceInterval,
    /// Probability that a packet after a loss arrives.
    pub bad_to_good: ConfidenceInterval,
}

/// How many packets were reordered, and by how much time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reordering {
    /// Share of reordered packets.
    pub share: ConfidenceInterval,
    /// Delay of reordered packets, in ns. If the medians of the lower and the upper bounds are near each
    /// other, it is between them; otherwise it is the median of the lower bounds.
    pub by: ConfidenceInterval,
}

/// Significance level for bursts.
const BURST_SIGNIFICANCE: f64 = 0.01;

/// Summarises the outcomes of a direction's packets, in the order in which the link transmitted them; `None` if there
/// are none.
pub(super) fn estimate_loss(outcomes: &[PacketOutcome]) -> Option<LossEstimate> {
    let packets = outcomes.len() as u64;
    let is_lost = |outcome: &&PacketOutcome| **outcome == PacketOutcome::Lost;
    let lost = outcomes.iter().filter(is_lost).count() as u64;
    let bursts = bursts(outcomes);
    // Losses in bursts give less information than as many single ones.
    let memory =
        bursts.map_or(0.0, |bursts| (1.0 - bursts.bad_to_good.value - bursts.good_to_bad.value).max(0.0));
    let independent = packets as f64 * (1.0 - memory) / (1.0 + memory);
    let share = ConfidenceInterval::of_share(lost, packets as f64, CONFIDENCE)?;
    let effective = (share.value * independent).round() as u64;
    let wide = ConfidenceInterval::of_share(effective, independent, CONFIDENCE)?;
    let loss = ConfidenceInterval {
        value: share.value,
        low: wide.low.min(share.low),
        high: wide.high.max(share.high),
    };
    Some(LossEstimate { packets, lost, loss, bursts, reordering: reordering(outcomes) })
}

fn bursts(outcomes: &[PacketOutcome]) -> Option<Bursts> {
    let (mut behind_loss, mut behind_arrival) = ((0, 0), (0, 0));
    for pair in outcomes.windows(2) {
        let behind = if pair[0] == PacketOutcome::Lost { &mut behind_loss } else { &mut behind_arrival };
        behind.0 += u64::from(pair[1] == PacketOutcome::Lost);
        behind.1 += 1;
    }
    let share = |(lost, of): (u64, u64)| lost as f64 / of as f64;
    let is_likelier = behind_loss.0 > 0 && share(behind_loss) > share(behind_arrival);
    if !is_likelier || fisher_exact(behind_loss, behind_arrival) >= BURST_SIGNIFICANCE {
        return None;
    }
    let ends = (behind_loss.1 - behind_loss.0, behind_loss.1);
    let bounds = |(have, of): (u64, u64)| ConfidenceInterval::of_share(have, of as f64, CONFIDENCE);
    Some(Bursts { good_to_bad: bounds(behind_arrival)?, bad_to_good: bounds(ends)? })
}

/// Minimum number of reordered packets for a path to count as reordering.
const MIN_REORDERED: usize = 3;

fn reordering(outcomes: &[PacketOutcome]) -> Option<Reordering> {
    let lags = || {
        outcomes
            .iter()
            .filter_map(|outcome| if let PacketOutcome::Reordered(lag) = outcome { Some(*lag) } else { None })
    };
    let late = lags().count();
    let share = ConfidenceInterval::of_share(late as u64, outcomes.len() as f64, CONFIDENCE)?;
    // A packet behind a pause was due at an unknown time of it.
    let close: Vec<ReorderingDelayBounds> =
        lags().filter(|lag| lag.max <= lag.min.saturating_mul(MAX_RATIO)).collect();
    let by = if close.len() >= MIN_REORDERED {
        let (low, high) = (median(&close, |lag| lag.min)?, median(&close, |lag| lag.max)?);
        ConfidenceInterval { value: f64::midpoint(low, high), low, high }
    } else {
        // Most packets that are overtaken were sent just before those that overtake them.
        let all: Vec<ReorderingDelayBounds> = lags().collect();
        let (low, high) = (median(&all, |lag| lag.min)?, median(&all, |lag| lag.max)?);
        ConfidenceInterval { value: low, low, high }
    };
    (late >= MIN_REORDERED).then_some(Reordering { share, by })
}

/// The largest ratio of the bounds of a delay with which they are used; bounds further apart say little.
const MAX_RATIO: u64 = 4;

fn median(lags: &[ReorderingDelayBounds], of: fn(&ReorderingDelayBounds) -> u64) -> Option<f64> {
    let mut all: Vec<u64> = lags.iter().map(of).collect();
    all.sort_unstable();
    all.get(all.len() / 2).map(|ns| *ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    /// Generates the outcomes of a two-state link with known parameters.
    fn gilbert(n: usize, good_to_bad: f64, bad_to_good: f64) -> Vec<PacketOutcome> {
        let mut rng = Seed(7).rng();
        let mut bad = false;
        let mut step = || {
            bad = if bad { !rng.chance(bad_to_good) } else { rng.chance(good_to_bad) };
            if bad { PacketOutcome::Lost } else { PacketOutcome::Arrived }
        };
        (0..n).map(|_| step()).collect()
    }

    #[test]
    fn gilbert_parameters_are_estimated() {
        let LossEstimate { loss, bursts, .. } = estimate_loss(&gilbert(50_000, 0.01, 0.25)).unwrap();
        let within = |bounds: ConfidenceInterval, truth: f64| bounds.low <= truth && truth <= bounds.high;
        let Bursts { good_to_bad, bad_to_good } = bursts.unwrap();
        assert!(within(good_to_bad, 0.01) && within(bad_to_good, 0.25), "{bursts:?}");
        assert!(within(loss, 0.01 / 0.26), "{loss:?}");
        assert!(good_to_bad.high < 0.012 && bad_to_good.high < 0.30, "{bursts:?}");
    }

    /// Segments swap within 0.1 ms in bursts that follow a pause of a second.
    #[test]
    fn delay_of_reordered_packets_does_not_include_a_pause() {
        let lags = |wide: usize, close: usize| {
            let wide = std::iter::repeat_n(ReorderingDelayBounds { min: 100_000, max: 1_000_000_000 }, wide);
            let close = std::iter::repeat_n(ReorderingDelayBounds { min: 4_000_000, max: 6_000_000 }, close);
            let late: Vec<PacketOutcome> = wide.chain(close).map(PacketOutcome::Reordered).collect();
            estimate_loss(&late).unwrap().reordering.unwrap().by
        };
        assert_eq!(lags(20, 0).value, 100_000.0);
        let by = lags(20, 3);
        assert_eq!((by.low, by.value, by.high), (4e6, 5e6, 6e6));
    }

    #[test]
    fn independent_losses_are_not_reported_as_bursts() {
        let independent = estimate_loss(&gilbert(50_000, 0.02, 0.98)).unwrap();
        assert_eq!(independent.bursts, None);
        assert!(independent.loss.low <= 0.02 && 0.02 <= independent.loss.high);
        assert_eq!(estimate_loss(&[]), None);
        let none = estimate_loss(&[PacketOutcome::Arrived; 100]).unwrap();
        assert!(none.lost == 0 && none.loss.high < 0.04 && none.reordering.is_none());
    }
}
