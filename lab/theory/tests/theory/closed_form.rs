//! Compares the closed form with printed values, with the formulas for a single level, and with sampling.

use hol_base::{Duration, Frequency, Ratio, Rng, Seed};
use hol_theory::{Arrivals, Recovery, Transfer, check_applicability};
use proptest::prelude::*;

const THREE_REPORTS: Recovery = Recovery::Ideal { reports: 3 };

fn transfer(one_way_ms: u64, loss: f64, streams: u32) -> Transfer {
    Transfer {
        rate: Frequency::new(100.0).unwrap(),
        one_way_delay: Duration::from_millis(one_way_ms),
        loss: Ratio::new(loss).unwrap(),
        streams,
        arrivals: Arrivals::Periodic,
        recovery: THREE_REPORTS,
    }
}

#[test]
fn mean_response_times_at_100_per_second_by_streams() {
    let streams = [1, 2, 4, 8, 16, 1024];
    let printed = [
        (10, 0.01, [22.96, 21.79, 21.20, 21.00, 21.00, 21.00], 0.005),
        (10, 0.05, [34.04, 28.75, 25.95, 25.00, 25.00, 25.00], 0.005),
        (10, 0.10, [46.29, 37.02, 31.80, 30.00, 30.00, 30.00], 0.005),
        (20, 0.01, [45.49, 43.17, 41.99, 41.40, 41.40, 41.40], 0.005),
        (20, 0.05, [65.37, 55.31, 49.85, 47.00, 47.00, 47.00], 0.005),
        (40, 0.01, [92.77, 87.09, 84.17, 82.79, 82.20, 82.20], 0.005),
        (40, 0.05, [136.1, 113.4, 100.4, 93.85, 91.00, 91.00], 0.05),
    ];
    for (delay, loss, means, rounding) in printed {
        for (k, expected) in streams.into_iter().zip(means) {
            let mean = transfer(delay, loss, k).mean_response();
            assert!(
                (mean - expected).abs() <= rounding + 1e-9,
                "{delay} ms, {loss}, {k}: {mean} for {expected}"
            );
        }
    }
}

#[test]
fn ccdf_plateaus_at_one_percent_loss_by_streams() {
    let printed = [
        (10, [9.6, 5.9, 3.9, 2.0, 2.0, 2.0]),
        (20, [13.1, 7.7, 3.9, 2.0, 2.0, 2.0]),
        (40, [19.8, 11.4, 5.9, 3.9, 2.0, 2.0]),
    ];
    for (delay, shares) in printed {
        for (k, expected) in [1, 2, 4, 8, 16, 1024].into_iter().zip(shares) {
            let share = 100.0 * transfer(delay, 0.01, k).share_delayed();
            assert!((share - expected).abs() <= 0.0501, "{delay} ms, {k} streams: {share} for {expected}");
            let ccdf = 100.0 * transfer(delay, 0.01, k).ccdf(Duration::from_millis(2 * delay));
            assert!((share - ccdf).abs() < 1e-9, "the CCDF starts at its plateau");
        }
    }
}

#[test]
fn enough_streams_delay_only_the_lost_message() {
    for (delay, enough) in [(10, 5), (20, 7), (40, 11)] {
        let with = |streams| transfer(delay, 0.01, streams);
        assert_eq!(with(1).sufficient_streams(), enough);
        assert!((with(enough).mean_response() - with(1024).mean_response()).abs() < 1e-9);
        assert!(with(enough - 1).mean_response() > with(1024).mean_response() + 1e-3);
    }
}

/// `E[W] = Delta - q (1 - exp(-mu p Delta)) / (mu p)` and `P(W > 0) = 1 - q exp(-mu p Delta)`.
#[test]
fn poisson_arrivals_follow_the_exponential_form() {
    for (loss, streams) in [(0.01, 1), (0.1, 1), (0.1, 4)] {
        let poisson = Transfer { arrivals: Arrivals::Poisson, ..transfer(10, loss, streams) };
        let (delta, q, lost) = (0.05, 1.0 - loss, 100.0 / f64::from(streams) * loss);
        let wait = delta - q * (1.0 - (-lost * delta).exp()) / lost;
        assert!((poisson.mean_response() - 20.0 - 2e3 * wait).abs() < 1e-3, "{loss} {streams}");
        let undisturbed = q * (-lost * delta).exp();
        assert!((poisson.share_delayed() - 1.0 + undisturbed * undisturbed).abs() < 1e-9);
    }
}

#[test]
fn lossless_path_takes_a_round_trip() {
    for arrivals in [Arrivals::Periodic, Arrivals::Poisson] {
        let lossless = Transfer { arrivals, ..transfer(10, 0.0, 4) };
        assert_eq!((lossless.mean_response(), lossless.share_delayed()), (20.0, 0.0));
        assert_eq!(lossless.ccdf(Duration::from_millis(19)), 1.0);
        assert_eq!(lossless.ccdf(Duration::from_millis(20)), 0.0);
    }
}

fn any_rto_min() -> impl Strategy<Value = Duration> {
    (1u64..2_000).prop_map(Duration::from_millis)
}

/// Generates recoveries with one association, however many streams it has.
fn one_association() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        (0u32..6).prop_map(|reports| Recovery::Ideal { reports }),
        (any_rto_min(), any::<bool>()).prop_map(|(rto_min, again)| Recovery::Sctp { rto_min, again }),
    ]
}

fn any_recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        one_association(),
        any_rto_min().prop_map(|rto_min| Recovery::TcpDupThresh { rto_min }),
        any_rto_min().prop_map(|rto_min| Recovery::TcpRack { rto_min }),
    ]
}

fn transfers(recovery: impl Strategy<Value = Recovery>) -> impl Strategy<Value = Transfer> {
    let arrivals = prop_oneof![Just(Arrivals::Periodic), Just(Arrivals::Poisson)];
    let numbers = (0.1f64..3_000.0, 0u64..100, 0.0f64..0.3, 1u32..1_025);
    (numbers, arrivals, recovery).prop_map(|((rate, delay, loss, streams), arrivals, recovery)| Transfer {
        rate: Frequency::new(rate).unwrap(),
        arrivals,
        recovery,
        ..transfer(delay, loss, streams)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ccdf_is_monotonic_and_consistent(transfer in transfers(any_recovery())) {
        let round_trip = transfer.one_way_delay * 2;
        let mut above = transfer.share_delayed();
        prop_assert!((0.0..=1.0).contains(&above));
        for ms in [1, 10, 100, 1_000, 10_000, 10_000_000] {
            let further = transfer.ccdf(round_trip + Duration::from_millis(ms));
            prop_assert!((0.0..=above + 1e-9).contains(&further), "{} after {} at {}", further, above, ms);
            above = further;
        }
        prop_assert!(above < 1e-6, "everything is delivered in the end");
        prop_assert!(transfer.mean_response() >= round_trip.as_millis_f64() - 1e-9);
    }

    // More connections do, because one does not learn of another's losses.
    #[test]
    fn more_streams_never_increase_the_mean(transfer in transfers(one_association())) {
        let more = Transfer { streams: transfer.streams * 2, ..transfer };
        prop_assert!(more.mean_response() <= transfer.mean_response() * (1.0 + 1e-3));
    }

    #[test]
    fn a_single_loss_bounds_the_mean(transfer in transfers(any_recovery())) {
        let ideal = Transfer { recovery: Recovery::Ideal { reports: 3 }, ..transfer };
        let bound = (ideal.one_way_delay * 2 + ideal.loss_delay() * 2).as_millis_f64();
        prop_assert!(ideal.mean_response() <= bound + 1e-6);
    }
}

/// Samples the delay of a lost packet in ms: three reports, each after a packet and a SACK that arrive, then the timer.
fn sampled_delay(loss: f64, rng: &mut Rng) -> f64 {
    if !rng.chance(loss) {
        return 0.0;
    }
    let (mut packets, mut reports) = (0, 0);
    while reports < 3 {
        packets += 1;
        reports += u32::from(!rng.chance(loss) & !rng.chance(loss));
    }
    let (mut late, mut rto) = (20.0 + 10.0 * f64::from(packets), 200.0);
    while rng.chance(loss) {
        late += rto;
        rto *= 2.0;
    }
    late
}

/// Samples resequencing delays in ms of one stream according to the definition, as a running maximum.
fn sampled_waits(transfer: &Transfer, messages: usize, rng: &mut Rng) -> Vec<f64> {
    let spacing = 10.0 * f64::from(transfer.streams);
    let (mut sent, mut released) = (0.0, 0.0f64);
    let wait = |_| {
        sent += match transfer.arrivals {
            Arrivals::Periodic => spacing,
            Arrivals::Poisson => rng.exponential(spacing),
        };
        released = released.max(sent + sampled_delay(transfer.loss.value(), rng));
        released - sent
    };
    (0..messages).map(wait).collect()
}

#[test]
fn sampled_definition_gives_the_same_distribution() {
    let recovery = Recovery::Sctp { rto_min: Duration::from_millis(200), again: false };
    let mut rng = Seed(3).rng();
    for arrivals in [Arrivals::Periodic, Arrivals::Poisson] {
        for streams in [1, 4] {
            let model = Transfer { arrivals, recovery, ..transfer(10, 0.05, streams) };
            let n = 200_000;
            let mut draw = || sampled_waits(&model, n, &mut rng);
            let responses: Vec<f64> = draw().iter().zip(draw()).map(|(a, b)| 20.0 + a + b).collect();
            let mean = responses.iter().sum::<f64>() / n as f64;
            assert!((mean / model.mean_response() - 1.0).abs() < 0.03, "{model:?}: {mean}");
            for ms in [20, 40, 100, 250] {
                let above = responses.iter().filter(|t| **t > f64::from(ms) + 1e-6).count() as f64 / n as f64;
                let ccdf = model.ccdf(Duration::from_millis(ms as u64));
                assert!((above - ccdf).abs() < 0.01, "{model:?} at {ms}: {above} for {ccdf}");
            }
        }
    }
}

/// Generates times from zero to a century, with all magnitudes equally likely.
fn any_time() -> impl Strategy<Value = Duration> {
    (0u32..62).prop_flat_map(|bits| 0..1u64 << bits).prop_map(Duration::from_nanos)
}

fn recovery_of_any_time() -> impl Strategy<Value = Recovery> {
    (any_time(), any_recovery()).prop_map(|(rto_min, recovery)| match recovery {
        Recovery::Ideal { reports } => Recovery::Ideal { reports },
        Recovery::Sctp { again, .. } => Recovery::Sctp { rto_min, again },
        Recovery::TcpDupThresh { .. } => Recovery::TcpDupThresh { rto_min },
        Recovery::TcpRack { .. } => Recovery::TcpRack { rto_min },
    })
}

proptest! {
    #[test]
    fn every_transfer_has_a_mean_or_a_reason_for_refusal(
        rate in -10.0..=9.0f64,
        one_way_delay in any_time(),
        loss in prop_oneof![Just(0.0), 0.0..=1.0f64, (-12.0..0.0f64).prop_map(|power| 10f64.powf(power))],
        streams in prop_oneof![1..10u32, 1..=65_535u32],
        poisson in any::<bool>(),
        recovery in recovery_of_any_time(),
    ) {
        let transfer = Transfer {
            rate: Frequency::new(10f64.powf(rate)).unwrap(),
            one_way_delay,
            loss: Ratio::new(loss).unwrap(),
            streams,
            arrivals: if poisson { Arrivals::Poisson } else { Arrivals::Periodic },
            recovery,
        };
        if check_applicability(&transfer).is_ok() {
            let mean = transfer.mean_response();
            prop_assert!(mean.is_finite() && mean + 1e-6 >= 2.0 * one_way_delay.as_millis_f64(), "{mean}");
            let share = transfer.ccdf(one_way_delay * 3);
            prop_assert!((0.0..=1.0).contains(&share), "{share}");
        }
    }
}
