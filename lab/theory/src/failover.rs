//! The time for which a multihomed SCTP association continues to use a path that has failed.

use hol_base::Duration;

/// Returns the time from the first lost packet until the number of consecutive timeouts exceeds `errors` (RFC 9260
/// section 8.2).
///
/// It is the sum of `errors + 1` timeouts; each is twice the previous one, but at most `rto_max`. `errors` is
/// Path.Max.Retrans, or the potentially-failed threshold of RFC 7829 section 3.2.
pub fn detection_time(rto: Duration, rto_max: Duration, errors: u32) -> Duration {
    let timeouts = std::iter::successors(Some(rto), |timeout| Some((*timeout * 2).min(rto_max)));
    timeouts.take(errors as usize + 1).fold(Duration::ZERO, |sum, timeout| sum + timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_fails_after_the_sum_of_its_timeouts() {
        let after = |rto, errors| detection_time(Duration::from_secs(rto), Duration::from_secs(60), errors);
        assert_eq!(after(1, 5), Duration::from_secs(63));
        assert_eq!(after(1, 1), Duration::from_secs(3));
        assert_eq!(after(1, 0), Duration::from_secs(1), "potentially failed at once, RFC 7829");
        assert_eq!(after(1, 7), Duration::from_secs(63 + 60 + 60), "RTO.Max cuts the doubling");
    }
}
