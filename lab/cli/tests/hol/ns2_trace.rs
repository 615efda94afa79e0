//! The usual awk one-liners for ns-2 traces give the same numbers as our records.
//!
//! A trace ends at the host, so where times are compared, applications wake up immediately.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{failure, ok};
use hol_lab::{Experiment, Source};
use hol_measure::Transfer;
use hol_scenario::Run;

/// Node 0 sends 500-octet messages to node 2, node 3 sends greedily; both share the link from 1 to 2.
const COMPETING: &str = "
    messages = 300
    repetitions = 1
    [network]
    nodes = ['client', 'router', 'server', 'other']
    links = [
        { from = 'client', to = 'router', rate = '10Mbit' },
        { from = 'router', to = 'server', rate = '400kbit', delay = '25ms', queue = '6p' },
        { from = 'other', to = 'router', rate = '10Mbit' },
    ]
    [workload]
    kind = 'oneway'
    size = '500B'
    interval = '20ms'
    start = '1s'
    late_limit = '1h'
    [[background]]
    transport = 'tcp'
    workload = { kind = 'bulk', from = 'other', to = 'server' }
";
/// One message at a time on the same link.
const ALONE: &str = "
    messages = 100
    repetitions = 1
    [network]
    nodes = ['client', 'router', 'server']
    links = [
        { from = 'client', to = 'router', rate = '10Mbit' },
        { from = 'router', to = 'server', rate = '400kbit', delay = '25ms' },
    ]
    [workload]
    kind = 'oneway'
    size = '500B'
    interval = '200ms'
";

/// A point of the study nayak2019: 5.09 Mbit/s in full packets from node 0 to node 1.
const CONSTANT_BIT_RATE: &str = "
    messages = 2000
    repetitions = 1
    [network]
    rate = '10Mbit'
    delay = '10ms'
    loss = '1%'
    overhead = '0B'
    [workload]
    kind = 'oneway'
    size = '1452B'
    rate = '438.2/s'
    late_limit = '1h'
";

/// Writes the trace of an experiment's only run to `run.tr`, and performs the same run.
fn traced(dir: &Path, transport: &str, experiment: &str) -> Run {
    let file = dir.join("a.toml");
    fs::write(&file, format!("transports = ['{transport}']\n{experiment}")).unwrap();
    let said = ok(dir, &["trace", "--experiment", "a.toml", "--ns2", "run.tr"]);
    let experiment = Experiment::parse("a", &Source::read(&file).unwrap()).unwrap();
    let point = &experiment.points[0];
    let run = hol_model::run(&point.scenario(0), point.seed_of(0), None).unwrap();
    assert!(said.starts_with(&format!("run.tr: {} packets of ", run.packets)), "{said}");
    run
}

/// Returns the numbers that a script prints.
fn awk(dir: &Path, script: &str) -> Vec<f64> {
    let ends = ["-v", "from=0", "-v", "to=1", "-v", "headers=48"];
    let output = Command::new("awk").current_dir(dir).args(ends).args([script, "run.tr"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[test]
fn trace_lines_have_twelve_fields_and_are_repeatable() {
    let dir = tempfile::tempdir().unwrap();
    traced(dir.path(), "tcp", ALONE);
    let first = fs::read_to_string(dir.path().join("run.tr")).unwrap();
    // The SYN: 60 octets at 10 Mbit/s and the default delay to the router, where the packet keeps its number.
    let lines: Vec<&str> = first.lines().take(4).collect();
    assert_eq!(lines[0], "+ 0.000000000 0 1 tcp 60 ------- 0 0.49152 2.7626 0 0");
    assert_eq!(lines[1], lines[0].replace('+', "-"));
    assert!(lines[2].starts_with("r 0.") && lines[2].ends_with(" 0 1 tcp 60 ------- 0 0.49152 2.7626 0 0"));
    assert!(lines[3].starts_with("+ 0.") && lines[3].ends_with(" 1 2 tcp 60 ------- 0 0.49152 2.7626 0 0"));
    assert_eq!(awk(dir.path(), "NF != 12 { wrong++ } END { print wrong + 0 }"), [0.0]);
    traced(dir.path(), "tcp", ALONE);
    assert_eq!(first, fs::read_to_string(dir.path().join("run.tr")).unwrap());
}

/// Octets of user data that arrive for the first time, from the first transmission to the last reception.
#[test]
fn awk_throughput_equals_that_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let run = traced(dir.path(), "tcp:wakeup=0s", COMPETING);
    let script = r#"
        $8 != 0 || $5 != "tcp" || $6 <= 60 { next }
        $1 == "+" && $3 == 0 && !started { first = $2; started = 1 }
        $1 == "r" && $4 == 2 && !seen[$11]++ { octets += $6 - 52; last = $2 }
        END { printf "%d %.9f\n", octets, last - first }"#;
    let span = Transfer::of(&run.records).unwrap().span().as_secs_f64();
    let octets: u64 = run.records.iter().map(|record| u64::from(record.size)).sum();
    let [by_awk, seconds] = awk(dir.path(), script)[..] else { panic!("two numbers") };
    assert_eq!(by_awk, octets as f64);
    assert!((seconds - span).abs() < 1e-8, "{seconds} {span}");
}

/// The delay from the sender's queue to the receiver; each message is one packet, which does not wait.
#[test]
fn awk_delay_equals_that_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    for transport in ["tcp:wakeup=0s", "sctp:wakeup=0s"] {
        let run = traced(dir.path(), transport, ALONE);
        let script = r#"
            $6 < 500 { next }
            $1 == "+" && $3 == 0 { sent[$12] = $2 }
            $1 == "r" && $4 == 2 { sum += $2 - sent[$12]; n++ }
            END { printf "%d %.9f\n", n, sum / n }"#;
        let delays = run.records.iter().map(|record| record.latency().unwrap().as_secs_f64());
        let mean = delays.sum::<f64>() / run.records.len() as f64;
        let [packets, by_awk] = awk(dir.path(), script)[..] else { panic!("two numbers") };
        assert_eq!(packets, 100.0, "{transport}");
        assert!((by_awk - mean).abs() < 1e-8, "{transport}: {by_awk} {mean}");
    }
}

/// All packets of all flows, including acknowledgements.
#[test]
fn awk_loss_equals_that_of_the_network() {
    let dir = tempfile::tempdir().unwrap();
    let lossy = COMPETING.replace("queue =", "loss = '1%', queue =");
    for transport in ["tcp", "sctp"] {
        let run = traced(dir.path(), transport, &lossy);
        let script = r#"
            $1 == "+" && !seen[$12]++ { sent++ }
            $1 == "d" { dropped++ }
            END { print sent, dropped }"#;
        let drops = run.drops.expect("the model knows them");
        assert!(drops.loss > 0 && drops.queue > 0, "{drops:?}");
        let dropped = drops.loss + drops.queue;
        assert_eq!(awk(dir.path(), script), [run.packets as f64, dropped as f64], "{transport}");
    }
}

/// The limit of 6 packets is one in transmission and five waiting; a further packet is enqueued and dropped.
#[test]
fn awk_queue_length_stays_below_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    traced(dir.path(), "tcp", COMPETING);
    let script = r#"
        $3 != 1 || $4 != 2 { next }
        $1 == "d" && queue > max_at_drop { max_at_drop = queue }
        $1 == "d" && (queue < min_at_drop || !drops++) { min_at_drop = queue }
        $1 == "+" { queue++ }
        $1 == "-" || $1 == "d" { queue-- }
        queue < 0 { wrong++ }
        END { print min_at_drop, max_at_drop, wrong + 0 }"#;
    assert_eq!(awk(dir.path(), script), [6.0, 6.0, 0.0]);
}

#[test]
fn awk_scripts_of_the_study_give_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    for transport in ["sctp:wakeup=0s,streams=2", "sctp:wakeup=0s,associations=2"] {
        let run = traced(dir.path(), transport, CONSTANT_BIT_RATE);
        let number = |script| awk(dir.path(), script)[0];

        let span = Transfer::of(&run.records).unwrap().span().as_secs_f64();
        let throughput = f64::from(2000 * 1452 * 8) / span / 1e3;
        let by_awk = number(include_str!("../../../../studies/nayak2019/throughput.awk"));
        assert!((by_awk - throughput).abs() < 1e-3, "{transport}: {by_awk} {throughput}");
        let on_wire = number(include_str!("../../../../studies/nayak2019/wire.awk"));
        let headers = 1500.0 / 1452.0;
        assert!(on_wire > throughput * headers - 1e-3, "{transport}: {on_wire} {throughput}");

        let delay = |leg: hol_measure::TransferTimes| leg.arrived.since(leg.first_sent).as_millis_f64();
        let delays = run.records.iter().map(|record| delay(record.request.unwrap()));
        let mean = delays.sum::<f64>() / run.records.len() as f64;
        let by_awk = number(include_str!("../../../../studies/nayak2019/delay.awk"));
        assert!((by_awk - mean).abs() < 1e-5, "{transport}: {by_awk} {mean}");

        let drops = run.drops.expect("the model knows them");
        let loss = 100.0 * drops.loss as f64 / run.packets as f64;
        let by_awk = number(include_str!("../../../../studies/nayak2019/loss.awk"));
        assert!((by_awk - loss).abs() < 1e-5 && loss > 0.5, "{transport}: {by_awk} {loss}");
    }
}

#[test]
fn impossible_trace_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (code, message) = failure(dir.path(), &["trace", "tcp", "--ns2", "none/run.tr"]);
    assert!(code == 1 && message.contains("none/run.tr: cannot write"), "{message}");
    let (code, message) = failure(dir.path(), &["trace", "tcp", "--ns2", "a", "--pcap", "b"]);
    assert!(code == 2 && message.contains("cannot be used with"), "{message}");
}
