//! Tests whether one of two transports is faster. Runs with the same seed met the same losses, so they are
//! compared in pairs. Also prints the distribution of the latencies of one run, including messages that
//! never arrived.

use hol_measure::base::Duration;
use hol_measure::{CONFIDENCE, Recorder, compare_paired, compare_unpaired};

/// Mean response times of eight runs with different seeds, in ms.
const TCP: [f64; 8] = [23.1, 25.8, 22.4, 28.0, 24.2, 23.9, 26.6, 22.9];
const SCTP: [f64; 8] = [21.9, 24.0, 21.6, 25.7, 23.0, 22.2, 25.1, 21.8];

fn main() {
    // A difference below 0.1 ms counts as none.
    let paired = compare_paired(&SCTP, &TCP, 0.1, CONFIDENCE);
    println!("SCTP - TCP: {} ms, p = {:.5}: {:?}", paired.difference, paired.p, paired.verdict);
    let unpaired = compare_unpaired(&SCTP, &TCP, 0.1, CONFIDENCE);
    println!("without pairs: {} ms, p = {:.2}: {:?}", unpaired.difference, unpaired.p, unpaired.verdict);

    let mut recorder = Recorder::new();
    (0..1000).for_each(|number| recorder.count_completed(Duration::from_micros(20_000 + 10 * number)));
    (0..15).for_each(|_| recorder.count_failure());
    let latency = recorder.finish();
    for share in [0.5, 0.9, 0.99] {
        match latency.quantile(share) {
            Some(quantile) => println!("p{} is {:.1} ms", share * 100.0, quantile.as_millis_f64()),
            None => println!("p{} is unknown: too few messages arrived", share * 100.0),
        }
    }
}
