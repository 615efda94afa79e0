//! RFC 9260 sections 6.3 and 7.2.4: tests the detection of losses.

use super::script::{Script, config};
use crate::Config;
use hol_base::Duration;
use hol_congestion::sctp::{CwndParameters, Window};
use hol_transport::Endpoint as _;

/// Returns a script with `count` messages of 100 octets in flight.
fn in_flight(config: Config, count: u32) -> Script {
    let mut script = Script::established(config);
    for _ in 0..count {
        script.send(0, 100);
    }
    assert_eq!(script.take_data().len(), count as usize);
    script
}

#[test]
fn three_miss_indications_start_a_fast_retransmit() {
    // Section 7.2.4.
    let mut script = in_flight(config(), 5);
    script.sack(0, &[(2, 2)]);
    script.sack(0, &[(2, 3)]);
    assert_eq!(script.take_data(), []);
    script.sack(0, &[(2, 4)]);
    assert_eq!(script.take_data(), [(0, vec![1])]);
    assert_eq!(script.endpoint.statistics().fast_retransmissions, 1);
}

#[test]
fn rfc2960_needs_four_missing_reports() {
    // RFC 2960 section 7.2.4.
    let mut script = in_flight(Config { missing_reports: 4, ..config() }, 6);
    for last in 2..=4 {
        script.sack(0, &[(2, last)]);
    }
    assert_eq!(script.take_data(), []);
    script.sack(0, &[(2, 5)]);
    assert_eq!(script.take_data(), [(0, vec![1])]);
}

#[test]
fn sack_without_news_is_no_miss_indication() {
    // Section 7.2.4: HTNA counts only newly acknowledged TSNs.
    let mut script = in_flight(config(), 5);
    for _ in 0..5 {
        script.sack(0, &[(2, 2)]);
    }
    assert_eq!(script.take_data(), []);
}

#[test]
fn htna_counts_only_below_the_highest_newly_acked_tsn() {
    // Section 7.2.4: chunk 3 is missing below TSN 4, chunk 5 above all newly acknowledged TSNs.
    let mut script = in_flight(config(), 8);
    script.sack(0, &[(2, 2), (6, 6)]);
    script.sack(0, &[(2, 3), (6, 6)]);
    script.sack(0, &[(2, 4), (6, 6)]);
    assert_eq!(script.take_data(), [(0, vec![1])], "chunk 5 has one report");
}

#[test]
fn advancing_sack_in_fast_recovery_counts_every_gap() {
    // Section 7.2.4: in fast recovery, a SACK that advances counts every missing TSN below its highest.
    let mut script = in_flight(config(), 12);
    for last in [3, 4, 5] {
        script.sack(0, &[(2, last), (7, 7)]);
    }
    assert_eq!(script.take_data(), [(0, vec![1])]);
    script.sack(5, &[(7, 7)]);
    assert_eq!(script.take_data(), [], "chunk 6 has two reports");
    script.sack(5, &[(7, 8)]);
    assert_eq!(script.take_data(), [(0, vec![6])]);
}

#[test]
fn fast_retransmit_halves_the_window_once_a_recovery() {
    // Sections 7.2.3 and 7.2.4 step 2.
    let mut script = in_flight(config(), 8);
    for last in [3, 4, 5] {
        script.sack(0, &[(3, last)]);
    }
    assert_eq!(script.take_data(), [(0, vec![1, 2])], "one packet takes both");
    assert_eq!(script.endpoint.statistics().congestion_events, 1);
    let path = &script.endpoint.paths()[0];
    assert_eq!((path.cwnd(), path.ssthresh()), (6000, 6000));
}

#[test]
fn fast_recovery_ends_when_its_initial_flight_is_acked() {
    // Section 7.2.4: the highest outstanding TSN is the exit point; a loss after it is a new event.
    let mut script = in_flight(config(), 5);
    let lose_first_behind = |script: &mut Script, acknowledged| {
        for last in 2..=4 {
            script.sack(acknowledged, &[(acknowledged + 2, acknowledged + last)]);
        }
        script.take_data();
    };
    lose_first_behind(&mut script, 0);
    script.sack(5, &[]);
    (0..5).for_each(|_| script.send(0, 100));
    script.take_data();
    lose_first_behind(&mut script, 5);
    let statistics = script.endpoint.statistics();
    assert_eq!((statistics.fast_retransmissions, statistics.congestion_events), (2, 2));
}

#[test]
fn a_lost_fast_retransmission_waits_for_the_timer() {
    // Section 7.2.4 step 5: the chunk is not eligible again.
    let mut script = in_flight(Config { fast_retransmit_restarts_t3: false, ..config() }, 20);
    for last in 2..=10 {
        script.sack(0, &[(2, last)]);
    }
    assert_eq!(script.take_data(), [(0, vec![1])]);
    script.run_to(5000);
    assert_eq!(script.take_data()[0].0, 1000, "T3-rtx runs from the first transmission");
}

#[test]
fn fast_retransmit_again_repairs_a_lost_retransmission() {
    let again = Config { fast_retransmit_again: true, ..config() };
    let mut script = in_flight(again, 5);
    for last in 2..=4 {
        script.sack(0, &[(2, last)]);
    }
    assert_eq!(script.take_data(), [(0, vec![1])]);
    for _ in 0..3 {
        script.send(0, 100);
    }
    script.take_data();
    script.sack(0, &[(2, 5)]);
    assert_eq!(script.take_data(), [], "chunk 5 was sent before the retransmission");
    for last in 6..=8 {
        script.sack(0, &[(2, last)]);
    }
    assert_eq!(script.take_data(), [(0, vec![1])]);
}

/// dcSCTP: OutstandingData::nack_between_ack_blocks and Item::nack.
#[test]
fn retransmission_can_be_missed_by_earlier_data() {
    let repeated = |at_once| {
        let config =
            Config { fast_retransmit_again: true, retransmissions_miss_at_once: at_once, ..config() };
        let mut script = in_flight(config, 12);
        for last in 2..=10 {
            script.sack(0, &[(2, last)]);
        }
        script.take_data()
    };
    assert_eq!(repeated(false), [(0, vec![1])]);
    assert_eq!(repeated(true), [(0, vec![1]), (0, vec![1]), (0, vec![1])]);
}

#[test]
fn cwnd_can_limit_losses_found_in_fast_recovery() {
    // Section 7.2.4 step 3: the packet that starts fast recovery ignores cwnd.
    let second_loss = |in_recovery| {
        let mut script = Script::established(Config { fast_retransmit_in_recovery: in_recovery, ..config() });
        let rules = CwndParameters { initial: 20_000, ..CwndParameters::rfc9260(1500, 4404) };
        script.endpoint.paths.list[0].window = Window::new(rules, 100_000);
        for _ in 0..20 {
            script.send(0, 1000);
        }
        for last in 2..=4 {
            script.sack(0, &[(2, last)]);
        }
        script.take_data();
        for last in 6..=8 {
            script.sack(0, &[(2, 4), (6, last)]);
        }
        assert_eq!(script.endpoint.paths()[0].cwnd(), 10_500);
        script.take_data()
    };
    assert_eq!((second_loss(true), second_loss(false)), (vec![(0, vec![5])], vec![]));
}

#[test]
fn t3_restarts_only_when_the_earliest_chunk_is_acknowledged() {
    // Section 6.3.2 R3.
    let mut script = in_flight(config(), 3);
    script.run_to(300);
    script.sack(1, &[]);
    script.run_to(400);
    script.sack(1, &[(3, 3)]);
    script.run_to(3000);
    let rto = Duration::from_millis(300 + 4 * 150);
    assert!(rto < Duration::from_secs(1));
    assert_eq!(script.take_data(), [(1300, vec![2])], "a gap ack block does not restart it");
}

#[test]
fn fast_retransmit_of_the_earliest_chunk_can_restart_t3() {
    // Section 7.2.4 step 4.
    for (restarts, expected) in [(true, 1500), (false, 1000)] {
        let mut script = in_flight(Config { fast_retransmit_restarts_t3: restarts, ..config() }, 5);
        script.run_to(500);
        for last in 2..=5 {
            script.sack(0, &[(2, last)]);
        }
        assert_eq!(script.take_data(), [(500, vec![1])]);
        script.run_to(1999);
        let rto_after = script.take_data();
        assert_eq!(rto_after.first().map(|(at, _)| *at), Some(expected), "{restarts}");
    }
}

#[test]
fn a_timeout_resends_one_packet_and_backs_off() {
    // Sections 6.3.3 and 7.2.3.
    let mut script = in_flight(Config { pf_threshold: 5, ..config() }, 20);
    script.run_to(7500);
    let packets = script.take_data();
    let times: Vec<u64> = packets.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [1000, 3000, 7000]);
    assert_eq!(packets[0].1, (1..=12).collect::<Vec<u32>>(), "what fits into one packet");
    let path = &script.endpoint.paths()[0];
    assert_eq!((path.cwnd(), path.rto()), (1500, Duration::from_secs(8)));
}

#[test]
fn lost_chunks_precede_new_data_after_a_timeout() {
    // Section 6.3.3 E3 and 6.1 C.
    let mut script = in_flight(config(), 20);
    script.run_to(1000);
    script.send(0, 100);
    let packets = [(1000, (1..=12).collect::<Vec<u32>>()), (1000, vec![13, 14, 15])];
    assert_eq!(script.take_data(), packets, "a window of one MTU takes 1500 octets");
    script.sack(12, &[]);
    assert_eq!(script.take_data(), [(1000, (16..=21).collect())]);
}

#[test]
fn a_retransmitted_chunk_measures_no_round_trip() {
    // Section 6.3.1 C5, Karn's rule.
    let mut script = in_flight(config(), 1);
    script.run_to(1100);
    script.sack(1, &[]);
    assert_eq!(script.endpoint.paths()[0].srtt(), None);
    script.send(0, 100);
    script.run_to(1150);
    script.sack(2, &[]);
    assert_eq!(script.endpoint.paths()[0].srtt(), Some(Duration::from_millis(50)));
    assert_eq!(script.endpoint.paths()[0].rto(), Duration::from_secs(1), "the back-off is over");
}

#[test]
fn rtt_is_measured_once_per_round_trip() {
    // Section 6.3.1 C4.
    let mut script = in_flight(config(), 1);
    script.run_to(40);
    script.send(0, 100);
    script.run_to(60);
    script.sack(2, &[]);
    assert_eq!(script.endpoint.paths()[0].srtt(), Some(Duration::from_millis(60)));
}

#[test]
fn reneged_chunk_is_retransmitted() {
    // Section 6.2.1 D iv and 6.3.2 R4.
    let mut script = in_flight(config(), 3);
    script.sack(0, &[(2, 3)]);
    assert_eq!(script.flight_size(), 100);
    script.sack(1, &[(3, 3)]);
    assert_eq!(script.flight_size(), 100, "chunk 2 is outstanding again");
    script.run_to(1000);
    assert_eq!(script.take_data(), [(1000, vec![2])]);
}

#[test]
fn gap_blocks_that_overlap_hide_no_reneging() {
    // Section 6.2.1 D iv: chunks 3 and 4 are named twice, and chunk 5 no longer.
    let mut script = in_flight(config(), 5);
    script.sack(1, &[(3, 5)]);
    assert_eq!(script.flight_size(), 100);
    script.sack(1, &[(3, 4), (3, 4)]);
    assert_eq!(script.flight_size(), 200, "chunk 5 is outstanding again");
}

#[test]
fn an_old_sack_changes_nothing() {
    // Section 6.2.1 D i.
    let mut script = in_flight(config(), 3);
    script.sack(2, &[]);
    script.sack(1, &[(3, 3)]);
    assert_eq!(script.flight_size(), 100);
}

#[test]
fn linux_delays_even_retransmissions_by_nagle() {
    // The linux-6.12 stack without SCTP_NODELAY; section 7.2.4 would send at once.
    for (delays, expected) in [(true, vec![]), (false, vec![(0, vec![1])])] {
        let config = Config { nagle: true, nagle_delays_retransmissions: delays, ..config() };
        let mut script = Script::established(config);
        script.send(0, 100);
        for _ in 0..4 {
            script.send(0, 1452);
        }
        for last in 2..=4 {
            script.sack(0, &[(2, last)]);
        }
        let packets = script.take_data();
        assert_eq!(packets[5..], expected, "the packets after the first five");
    }
}

#[test]
fn linux_retransmits_a_burst_instead_of_one_packet() {
    // Section 7.2.4 step 3; the linux-6.12 stack lets a train take half of cwnd, which is 6000 octets here.
    for (offload, expected) in
        [(false, vec![(0, vec![1, 2])]), (true, vec![(0, vec![1, 2]), (0, vec![3, 4])])]
    {
        let mut script = Script::established(Config { segmentation_offload: offload, ..config() });
        for _ in 0..7 {
            script.send(0, 700);
        }
        script.take_data();
        for last in 5..=7 {
            script.sack(0, &[(5, last)]);
        }
        assert_eq!(script.take_data(), expected);
    }
}
