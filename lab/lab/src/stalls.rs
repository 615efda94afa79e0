//! Retransmission timeouts of a point's runs, and the bias of its mean if they are so rare that too few occurred.

use hol_base::Duration;
use hol_measure::{Allowance, TimeoutCounts};
use hol_network::{LossSpec, Settings};
use hol_stack::ProtocolKind;

use crate::point::Point;
use crate::point_result::PointResult;
use crate::run_result::{EndpointCounters, RunResult};

/// The time for delayed acknowledgements that the timeout includes in stacks without a minimum RTO, such as QUIC
/// (RFC 9002 section 6.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

impl PointResult {
    /// Returns by how much the true mean response time may exceed the measured one because of timeouts that are too
    /// rare to have occurred in the runs. Zero if no packet can be lost, if lost packets are not retransmitted, or if
    /// the world does not count timeouts.
    pub fn allowance(&self) -> Allowance {
        self.timeout_counts().map_or(Allowance::default(), |stalls| stalls.allowance())
    }

    /// Returns the numbers of timeouts in all runs, and the effect of a timeout; `None` if timeouts are impossible
    /// or not counted.
    pub fn timeout_counts(&self) -> Option<TimeoutCounts> {
        let counts: Vec<&EndpointCounters> =
            self.runs.iter().map(|run| run.counts.as_ref()).collect::<Option<_>>()?;
        let lost: u64 = self.runs.iter().map(|run| run.packets_lost).sum::<Option<_>>()?;
        let point = &self.point;
        if point.transport.kind() == ProtocolKind::Udp || (lost == 0 && !point.names_loss()) {
            return None;
        }
        let arrives = 1.0 - lost as f64 / self.packets().max(1) as f64;
        Some(TimeoutCounts {
            timeouts: counts.iter().map(|counts| counts.timeouts).sum(),
            backoffs: counts.iter().map(|counts| counts.backoffs).sum::<Option<_>>()?,
            lost_again: 1.0 - arrives * arrives,
            stall_s: stall(point).as_secs_f64(),
            rate: point.offered_rate() / f64::from(point.transport.streams().max(1)),
            messages: self.completed(),
        })
    }

    /// Returns the total numbers of timeouts and of backoffs in all runs; `None` if they are not counted.
    pub fn timeouts(&self) -> Option<[u64; 2]> {
        let of = |run: &RunResult| {
            let counts = run.counts.as_ref()?;
            Some([counts.timeouts, counts.backoffs?])
        };
        let add = |[a, b]: [u64; 2], [c, d]: [u64; 2]| [a + c, b + d];
        self.runs.iter().map(|run| of(run)).try_fold([0, 0], |sum, counts| Some(add(sum, counts?)))
    }
}

impl Point {
    /// Returns whether the network has no random loss, so that only a full queue drops packets. False for networks with
    /// named nodes.
    pub fn has_only_queue_loss(&self) -> bool {
        self.network.nodes.is_empty() && !self.names_loss()
    }

    /// Returns whether the network has random loss.
    fn names_loss(&self) -> bool {
        let loses =
            |settings: &Settings| !matches!(settings.loss, LossSpec::Independent(ratio) if ratio.is_zero());
        self.network.directions().iter().any(loses)
    }
}

/// Returns for how long a first timeout stalls a stream: the minimum RTO, plus a round trip until the retransmission is
/// acknowledged.
fn stall(point: &Point) -> Duration {
    let [up, down] = point.network.directions();
    let round_trip = up.delay + down.delay;
    let min = point.transport.option_values().get("rto_min").and_then(|value| value.as_str()?.parse().ok());
    min.unwrap_or(round_trip + round_trip + MAX_ACK_DELAY) + round_trip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::source::Source;

    fn points(text: &str) -> Vec<Point> {
        let text = format!("transports = ['tcp', 'sctp:streams=8', 'quic']\n{text}");
        Experiment::parse("a", &Source::new("a", &text)).unwrap().points
    }

    #[test]
    fn a_timeout_stalls_for_the_minimum_rto_of_the_stack() {
        let stalls: Vec<Duration> = points("").iter().map(stall).collect();
        assert_eq!(stalls, [220, 1020, 85].map(Duration::from_millis));
        let of_lte: Vec<Duration> = points("network.path = 'lte'").iter().map(stall).collect();
        assert_eq!(of_lte[..2], [245, 1045].map(Duration::from_millis));
    }

    #[test]
    fn random_loss_is_distinguished_from_queue_loss() {
        assert!(points("").iter().all(Point::has_only_queue_loss));
        assert!(!points("network.loss = '1%'").iter().any(Point::has_only_queue_loss));
        assert!(!points("network.up.loss = '1%'").iter().any(Point::has_only_queue_loss));
        assert!(points("network.path = 'lte'").iter().all(Point::has_only_queue_loss));
        assert!(!points("network.path = 'starlink'").iter().any(Point::has_only_queue_loss));
    }
}
