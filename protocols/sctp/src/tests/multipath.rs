//! Tests data over all paths at once. Iyengar, Amer, Stewart 2006; the sections are those of RFC 9260.

use hol_base::Duration;

use super::multihoming::{data_went_to, two_paths};
use super::pair::{Network, Pair};
use super::script::{config, message};
use crate::Config;

fn cmt() -> Config {
    Config { cmt: true, ..config() }
}

#[test]
fn each_path_is_filled_up_to_its_window() {
    // Section 6.1 B, for each path: 4404 octets are four chunks of 1400, and the least filled path is used first.
    let mut script = two_paths(cmt());
    (0..12).for_each(|_| script.send(0, 1400));
    assert_eq!(data_went_to(&mut script), [0, 1, 0, 1, 0, 1, 0, 1]);
    let mut script = two_paths(config());
    (0..12).for_each(|_| script.send(0, 1400));
    assert_eq!(data_went_to(&mut script), [0, 0, 0, 0], "without it, over one");
}

#[test]
fn faster_path_causes_no_missing_reports_on_the_other() {
    // The paper's section 4.1: every second chunk was sent on the second path.
    let mut script = two_paths(cmt());
    (0..8).for_each(|_| script.send(0, 1400));
    data_went_to(&mut script);
    script.sack(0, &[(2, 2)]);
    script.sack(0, &[(2, 2), (4, 4)]);
    script.sack(0, &[(2, 2), (4, 4), (6, 6)]);
    script.sack(0, &[(2, 2), (4, 4), (6, 6), (8, 8)]);
    assert_eq!(script.endpoint.statistics.fast_retransmissions, 0);
    // Three reports of the same path are enough, section 7.2.4.
    script.sack(0, &[(2, 4), (6, 6), (8, 8)]);
    script.sack(0, &[(2, 6), (8, 8)]);
    script.sack(0, &[(2, 8)]);
    assert_eq!(script.endpoint.statistics.fast_retransmissions, 1);
    let windows = script.endpoint.paths().iter().map(crate::Path::ssthresh).collect::<Vec<_>>();
    assert!(windows[0] < windows[1], "only the path of the loss is slower: {windows:?}");
}

#[test]
fn gap_acks_grow_the_window_of_their_path() {
    // The paper's section 4.2; section 7.2.1.
    let mut script = two_paths(cmt());
    (0..8).for_each(|_| script.send(0, 1400));
    let before = script.endpoint.paths()[1].cwnd();
    script.sack(0, &[(2, 2), (4, 4), (6, 6), (8, 8)]);
    assert_eq!(script.endpoint.paths()[1].cwnd(), before + 1500);
}

/// Two equal paths carry in half of the time what one carries.
#[test]
fn two_paths_carry_twice_as_much() {
    let took = |config: &Config, seed| {
        let network = Network { paths: 2, loss: 0.01, ..Network::PERFECT };
        let mut pair = Pair::connected(config, network, seed);
        // Both addresses are confirmed by heartbeats, section 5.4.
        pair.run(Duration::from_secs(10));
        let begun = pair.now;
        (0..2000).for_each(|_| pair.send(0, message(0, 1400)));
        pair.run_while(Duration::from_secs(600), |pair| pair.received(1).len() < 2000);
        assert_eq!(pair.received(1).len(), 2000);
        pair.now.since(begun).as_millis_f64()
    };
    let mean = |config: &Config| (0..10).map(|seed| took(config, seed)).sum::<f64>() / 10.0;
    let (both, one) = (mean(&cmt()), mean(&config()));
    assert!((0.4..0.65).contains(&(both / one)), "{both} ms for {one}");
}

#[test]
fn remaining_path_carries_everything_after_a_failure() {
    let network = Network { paths: 2, ..Network::PERFECT };
    let mut pair = Pair::connected(&cmt(), network, 3);
    pair.run(Duration::from_secs(10));
    (0..200).for_each(|_| pair.send(0, message(0, 1400)));
    pair.run(Duration::from_millis(30));
    pair.cut[0] = true;
    pair.run_while(Duration::from_secs(120), |pair| pair.received(1).len() < 200);
    assert_eq!(pair.received(1).len(), 200);
}
