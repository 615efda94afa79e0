//! Compares the event simulation with the closed form where that is exact, and with an earlier simulation of the same rules whose means are
//! printed here (200,000 transactions per cell).

use hol_base::{Duration, Frequency, Ratio, Seed};
use hol_measure::{BatchMeans, Interval};
use hol_theory::mechanistic::simulate;
use hol_theory::{Arrivals, Recovery, Transfer, check_applicability};

const fn sctp(rto_min_ms: u64, again: bool) -> Recovery {
    Recovery::Sctp { rto_min: Duration::from_millis(rto_min_ms), again }
}
const TCP: Recovery = Recovery::TcpDupThresh { rto_min: Duration::from_millis(200) };
const RACK: Recovery = Recovery::TcpRack { rto_min: Duration::from_millis(200) };

fn transfer(rate: f64, one_way_ms: u64, loss: f64, streams: u32, recovery: Recovery) -> Transfer {
    Transfer {
        rate: Frequency::new(rate).unwrap(),
        one_way_delay: Duration::from_millis(one_way_ms),
        loss: Ratio::new(loss).unwrap(),
        streams,
        arrivals: Arrivals::Periodic,
        recovery,
    }
}

/// Returns the simulated mean with its 99.9 % interval over batches.
fn simulated(transfer: &Transfer, transactions: usize) -> Interval {
    let responses = simulate(transfer, Seed(11), transactions);
    BatchMeans::of(&responses, 100, 20, 0.999).unwrap().interval
}

/// Checks that `expected` lies in the interval, widened by a share because the models differ.
fn assert_near(transfer: &Transfer, expected: f64, share: f64) {
    let mean = simulated(transfer, 40_000);
    let allowed = mean.half_width + share * expected;
    assert!((mean.mean - expected).abs() < allowed, "{transfer:?}: {mean} ms for {expected} ms");
}

#[test]
fn ideal_recovery_matches_the_closed_form() {
    for (delay, loss, streams) in [(10, 0.01, 1), (10, 0.05, 4), (20, 0.05, 2), (40, 0.01, 16)] {
        let ideal = transfer(100.0, delay, loss, streams, Recovery::Ideal { reports: 3 });
        assert_near(&ideal, ideal.mean_response(), 0.01);
        // If streams are used in turn, the messages of one stream are more regular than the closed form assumes.
        let poisson = Transfer { arrivals: Arrivals::Poisson, streams: 1, ..ideal };
        assert_near(&poisson, poisson.mean_response(), 0.01);
    }
}

#[test]
fn means_at_100_per_second_by_stack() {
    let stacks = [
        (TCP, 1),
        (RACK, 1),
        (sctp(1000, false), 1),
        (sctp(100, false), 1),
        (sctp(1000, true), 1),
        (sctp(1000, false), 8),
        (sctp(1000, false), 1024),
    ];
    let printed = [
        (10, 0.01, [23.9, 21.3, 35.1, 23.4, 23.2, 22.6, 21.2]),
        (10, 0.025, [32.9, 23.2, 116.7, 29.6, 28.7, 33.6, 23.9]),
        (20, 0.01, [46.7, 43.1, 58.7, 46.1, 45.9, 43.2, 41.6]),
        (40, 0.01, [95.1, 91.0, 107.5, 93.8, 93.7, 84.1, 82.5]),
    ];
    for (delay, loss, means) in printed {
        for ((recovery, streams), expected) in stacks.into_iter().zip(means) {
            assert_near(&transfer(100.0, delay, loss, streams, recovery), expected, 0.02);
        }
    }
}

#[test]
fn mean_response_times_at_heavy_loss_by_stack() {
    assert_near(&transfer(100.0, 10, 0.1, 1, RACK), 35.6, 0.02);
    assert_near(&transfer(100.0, 10, 0.05, 1, RACK), 27.0, 0.02);
    assert_near(&transfer(100.0, 10, 0.05, 1, sctp(100, false)), 43.9, 0.07);
    assert_near(&transfer(100.0, 10, 0.05, 1, sctp(1000, true)), 39.9, 0.07);
    assert_near(&transfer(100.0, 20, 0.05, 1, sctp(1000, true)), 75.2, 0.05);
}

#[test]
fn parallel_tcp_connections_increase_the_mean() {
    for (connections, dup_thresh, rack) in
        [(1, 23.9, 21.3), (4, 26.9, 21.7), (8, 28.4, 22.5), (16, 25.9, 24.2)]
    {
        assert_near(&transfer(100.0, 10, 0.01, connections, TCP), dup_thresh, 0.02);
        assert_near(&transfer(100.0, 10, 0.01, connections, RACK), rack, 0.02);
    }
}

#[test]
fn sparse_requests_wait_for_the_timer() {
    for (rate, sctp_1000, tcp) in [(1.0, 41.6, 24.6), (5.0, 48.4, 25.1), (10.0, 36.4, 27.3)] {
        assert_near(&transfer(rate, 10, 0.01, 1, sctp(1000, false)), sctp_1000, 0.03);
        assert_near(&transfer(rate, 10, 0.01, 1, TCP), tcp, 0.02);
    }
    assert_near(&transfer(5.0, 10, 0.01, 1, RACK), 24.9, 0.02);
    assert_near(&transfer(30.0, 10, 0.01, 1, RACK), 21.6, 0.02);
}

#[test]
fn simulation_agrees_where_the_closed_form_applies() {
    for recovery in [TCP, RACK, sctp(1000, false), sctp(200, false), sctp(1000, true)] {
        for (rate, loss, streams) in [(3.0, 0.01, 1), (30.0, 0.025, 1), (100.0, 0.01, 4), (100.0, 0.025, 8)] {
            let transfer = transfer(rate, 10, loss, streams, recovery);
            check_applicability(&transfer).unwrap();
            assert_near(&transfer, transfer.mean_response(), 0.03);
        }
    }
}

#[test]
fn simulation_agrees_with_the_tail_of_the_closed_form() {
    let transfer = transfer(100.0, 10, 0.01, 1, sctp(200, false));
    let responses = simulate(&transfer, Seed(2), 200_000);
    for (ms, allowed) in [(20, 0.005), (40, 0.004), (60, 0.002), (100, 0.0005), (250, 0.0003)] {
        let above = responses.iter().filter(|t| **t > f64::from(ms)).count() as f64 / responses.len() as f64;
        let ccdf = transfer.ccdf(Duration::from_millis(ms as u64));
        assert!((above - ccdf).abs() < allowed, "{ms} ms: {above} for {ccdf}");
    }
}

#[test]
fn inapplicable_transfers_are_refused_with_a_reason() {
    let reason = |transfer: Transfer| check_applicability(&transfer).unwrap_err().to_string();
    let window = reason(transfer(3000.0, 10, 0.01, 1, RACK));
    assert_eq!(window, "the rate needs 60 packets in flight, but losses keep cwnd near 12");
    let timeouts = reason(transfer(100.0, 10, 0.1, 1, sctp(1000, false)));
    assert_eq!(
        timeouts,
        "on average 1.00 timeouts begin during another one, which repairs their losses, too"
    );
    assert_eq!(
        check_applicability(&transfer(3000.0, 10, 0.01, 8, RACK)),
        Ok(()),
        "each of eight connections has a window"
    );
    assert_eq!(check_applicability(&transfer(100.0, 10, 0.1, 1, Recovery::Ideal { reports: 3 })), Ok(()));
}

#[test]
fn same_seed_gives_the_same_response_times() {
    let transfer = transfer(100.0, 10, 0.05, 2, RACK);
    assert_eq!(simulate(&transfer, Seed(1), 2_000), simulate(&transfer, Seed(1), 2_000));
    assert_ne!(simulate(&transfer, Seed(1), 2_000), simulate(&transfer, Seed(2), 2_000));
    assert!(simulate(&transfer, Seed(1), 0).is_empty());
}
