//! Time series of the kernel world, compared with the model's.

use std::fs;
use std::path::Path;

use crate::program::ok;
use hol_base::Time;
use hol_lab::{Results, Row, SampledObject, Series};

/// A bulk transfer in slow start: a round trip takes 100 ms, and the queue does not overflow.
const SLOW_START: &str = "
    messages = 1000
    repetitions = 1
    series = '50ms'
    transports = ['tcp:cc=reno', 'tcp', 'sctp', 'quic']
    network = { delay = '50ms', rate = '100Mbit', queue = '10000p' }
    workload = { kind = 'bulk', size = '1448B' }
";

/// A queue that overflows.
const DEEP_QUEUE: &str = "
    messages = 1500
    repetitions = 1
    series = '20ms'
    transports = ['tcp:cc=reno']
    network = { delay = '20ms', rate = '5Mbit', queue = '60p' }
    workload = { kind = 'bulk', size = '1448B' }
";

/// Returns the rows of the first run of each transport in a world.
fn rows(dir: &Path, world: &str) -> Vec<(String, Vec<Row>)> {
    let out = dir.join(world.replace(':', "-"));
    ok(dir, &["run", "a.toml", "--world", world, "--out", out.to_str().unwrap()]);
    let points = Results::load(&out).unwrap().points;
    let of = |point: &hol_lab::PointResult| {
        let mut rows = Vec::new();
        let series = Series::open(&out, point.runs[0].key).unwrap().expect("it is kept");
        series.for_each_row(|row| rows.push(row)).unwrap();
        (point.point.label.clone(), rows)
    };
    points.iter().map(of).collect()
}

fn both(text: &str) -> Vec<(String, [Vec<Row>; 2])> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.toml"), text).unwrap();
    let (model, kernel) = (rows(dir.path(), "model"), rows(dir.path(), "kernel:uml"));
    model.into_iter().zip(kernel).map(|((label, model), (_, kernel))| (label, [model, kernel])).collect()
}

/// Returns the client's sample within a ms after a time.
fn client(rows: &[Row], ms: u64) -> &Row {
    let at = Time::from_millis(ms)..Time::from_millis(ms + 1);
    let is_client = |row: &&Row| {
        matches!(&row.subject, SampledObject::Sender { side: hol_scenario::Side::Client, .. })
            && at.contains(&row.at)
    };
    rows.iter().find(is_client).unwrap_or_else(|| panic!("nothing after {ms} ms"))
}

/// Returns whether both are equal. The model wakes a program that reads QUIC 25 µs late, when other packets may have
/// arrived: values of QUIC may differ by a twentieth, or by a packet.
fn alike(numbers: [Option<u64>; 2], label: &str) -> bool {
    let [own, linux] = numbers.map(|number| number.expect("it is known"));
    own.abs_diff(linux) <= if label == "quic" { (linux / 20).max(1200) } else { 0 }
}

/// RFC 5681 section 3.1, RFC 9260 section 7.2.1, RFC 9002 section 7.3.1: the windows of both worlds are equal to the
/// octet; the round-trip times differ by at most 1 %, or by the tick of 4 ms with which the kernel measures SCTP's.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn windows_in_slow_start_equal_those_of_linux() {
    for (label, [model, kernel]) in both(SLOW_START) {
        let from = match &*label {
            "sctp" => 350,
            "quic" => 250,
            _ => 150,
        };
        let mut windows = Vec::new();
        for ms in (from..=from + 300).step_by(100) {
            let [own, linux] = [&model, &kernel].map(|rows| client(rows, ms));
            let number = |name| [own, linux].map(|row| row.number(name));
            let [cwnd, same] = number("cwnd_octets");
            assert!(alike([cwnd, same], &label), "{label} after {ms} ms: {cwnd:?} and {same:?}");
            windows.extend(cwnd);
            let [srtt, measured] = number("srtt_ns").map(|ns| ns.expect("it is measured") as f64);
            let margin = if label == "sctp" { 4e6 } else { 0.01 * srtt };
            assert!((srtt - measured).abs() <= margin, "{label} after {ms} ms: {srtt} and {measured} ns");
            if label != "sctp" {
                let flight = number("in_flight_octets");
                assert!(alike(flight, &label), "{label} after {ms} ms: {flight:?}");
            }
            assert_eq!(number("sent_again"), [Some(0), Some(0)], "{label}");
        }
        assert!(windows.is_sorted_by(|a, b| a < b), "{label}: {windows:?}");
    }
}

/// Queue length, drops and retransmissions are the same as in the model except for single packets, because less than a
/// µs determines the order of two packets that arrive at the queue together.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn kernel_queue_fills_and_drops_as_in_the_model() {
    for (_, [model, kernel]) in both(DEEP_QUEUE) {
        let queue = |rows: &[Row]| -> Vec<[u64; 3]> {
            let up = rows
                .iter()
                .filter(|row| matches!(&row.subject, SampledObject::Queue(name) if &**name == "client:1"));
            up.map(|row| ["queue_packets", "queue_octets", "dropped"].map(|name| row.number(name).unwrap()))
                .collect()
        };
        let [own, linux] = [&model, &kernel].map(|rows| queue(rows));
        for seen in [&own, &linux] {
            assert!(
                seen.iter().all(|[packets, octets, _]| *packets <= 60 && *octets <= packets * 1500),
                "{seen:?}"
            );
            assert_eq!(seen.iter().map(|[packets, ..]| *packets).max(), Some(60), "{seen:?}");
        }
        let dropped = [&own, &linux].map(|seen| seen.last().unwrap()[2]);
        assert!(dropped[0] > 0 && dropped[0].abs_diff(dropped[1]) <= 1 + dropped[0] / 20, "{dropped:?}");
        let mean = |seen: &[[u64; 3]]| {
            seen.iter().map(|[packets, ..]| *packets as f64).sum::<f64>() / seen.len() as f64
        };
        assert!(
            (mean(&own) / mean(&linux) - 1.0).abs() < 0.05,
            "{} and {} packets",
            mean(&own),
            mean(&linux)
        );
        let lost = kernel
            .iter()
            .filter(|row| matches!(row.subject, SampledObject::Queue(_)))
            .filter_map(|row| row.number("lost"));
        assert_eq!(lost.max(), Some(0), "the line loses nothing");
        let again = |rows: &[Row]| rows.iter().filter_map(|row| row.number("sent_again")).max();
        assert!(again(&model).unwrap().abs_diff(again(&kernel).unwrap()) <= 1 + dropped[0] / 20);
    }
}
