//! Time series of runs, from the experiment to the file and back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use hol_base::{Duration, Time};
use hol_lab::{
    Experiment, LabError, Manifest, Plan, Results, Row, RunKey, RunResult, SampledObject, Series, Source,
    Store, execute,
};

const EXPERIMENT: &str = "
    transports = ['tcp', 'sctp', 'quic', 'udp']
    messages = 300
    repetitions = 2
    network = { rate = '4Mbit', delay = '10ms', queue = '30p' }
    workload = { kind = 'echo', size = '400B', rate = '200/s' }
    background = [{ transport = 'tcp', workload = { kind = 'bulk' } }]
    sweep = { 'network.loss' = ['0%', '1%'] }
";

fn experiment(text: &str) -> Experiment {
    Experiment::parse("test", &Source::new("test", text)).unwrap()
}

fn run(text: &str, dir: &Path) -> Result<Results, LabError> {
    let experiment = experiment(text);
    let manifest = Manifest::new("test", None, std::slice::from_ref(&experiment), Vec::new());
    let (mut store, mut finished) = Store::open(dir, manifest)?;
    let (plan, archive, stop) = (Plan::new([&experiment]), store.archive(), AtomicBool::new(false));
    execute(&plan, &mut finished, 1, &stop, &archive, |ended, _, _| {
        ended.map_or(Ok(()), |ended| store.append(ended))
    })?;
    store.write_tables(&finished)
}

fn rows(dir: &Path, key: RunKey) -> Vec<Row> {
    let mut rows = Vec::new();
    Series::open(dir, key).unwrap().expect("the series is kept").for_each_row(|row| rows.push(row)).unwrap();
    rows
}

#[test]
fn sampling_does_not_change_a_run_and_its_goodput_adds_up() {
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = format!("series = '30ms'\n{EXPERIMENT}");
    let (kept, plain) = (run(&text, with.path()).unwrap(), run(EXPERIMENT, without.path()).unwrap());
    assert!(!without.path().join("series").exists());
    for (point, other) in kept.points.iter().zip(&plain.points) {
        assert_eq!(point.point.id, other.point.id, "the interval is not part of the id");
        for (run, same) in point.runs.iter().zip(&other.runs) {
            let told =
                |run: &RunResult| serde_json::to_string(&RunResult { wall_s: 0.0, ..run.clone() }).unwrap();
            assert_eq!(told(run), told(same));
            let rows = rows(with.path(), run.key);
            let mut delivered = BTreeMap::<u32, u64>::new();
            for row in &rows {
                if let SampledObject::Flow(flow) = row.subject {
                    *delivered.entry(flow).or_default() += row.number("delivered_octets").unwrap();
                }
            }
            // All delivered messages of 400 octets, and those that the background flows delivered until the end.
            let (completed, offered) = (run.summary.latency.completed(), run.summary.offered);
            match point.point.label.as_str() {
                // A delivered request counts, whether or not its reply was delivered.
                "udp" => assert!((400 * completed..=400 * offered).contains(&delivered[&0])),
                _ => assert_eq!(delivered[&0], 400 * completed, "{}", point.point),
            }
            assert!(delivered[&1] >= run.background[0].octets && run.background[0].octets > 0);
            check(&rows, &point.point.label);
        }
    }
}

/// Checks properties of every file.
fn check(rows: &[Row], transport: &str) {
    let interval = Duration::from_millis(30);
    let flows = rows.iter().filter(|row| matches!(row.subject, SampledObject::Flow(_))).count();
    let (seen, flows) = rows.split_at(rows.len() - flows);
    assert!(seen.is_sorted_by_key(|row| row.at));
    assert!(seen.iter().all(|row| row.at.as_nanos() % interval.as_nanos() == 0));
    let (last, whole) = flows[..flows.len() / 2].split_last().unwrap();
    let ends: Vec<Time> = whole.iter().map(|row| row.at).collect();
    let expected: Vec<Time> =
        (1..=whole.len() as u64).map(|k| Time::ZERO + interval.saturating_mul(k)).collect();
    assert_eq!(ends, expected);
    assert!(last.at <= Time::ZERO + interval.saturating_mul(whole.len() as u64 + 1), "it ends with the run");
    let senders: Vec<&Row> =
        seen.iter().filter(|row| matches!(row.subject, SampledObject::Sender { flow: 0, .. })).collect();
    assert_eq!(senders.is_empty(), transport == "udp");
    for row in senders {
        assert!(row.number("cwnd_octets") > Some(0) && row.number("in_flight_octets").is_some(), "{row:?}");
        assert_eq!(row.number("queue_packets"), None);
    }
    let names: Vec<&str> = seen
        .iter()
        .filter_map(|row| if let SampledObject::Queue(name) = &row.subject { Some(&**name) } else { None })
        .collect();
    assert!(names.contains(&"client:1") && names.contains(&"server:1"));
}

#[test]
fn an_interval_longer_than_the_run_has_one_sample_and_the_deliveries() {
    let dir = tempfile::tempdir().unwrap();
    let results =
        run("series = '1h'\ntransports = ['tcp']\nmessages = 50\nrepetitions = 1", dir.path()).unwrap();
    let rows = rows(dir.path(), results.points[0].runs[0].key);
    let [up, down, flow] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((up.at, down.at), (Time::ZERO, Time::ZERO));
    assert!(flow.number("delivered_octets") > Some(0) && flow.at < Time::from_millis(10_000));
}

#[test]
fn an_invalid_interval_is_refused_at_its_position() {
    for (interval, said) in [
        ("'0s'", "test:1:10: `series` must be at least 10us; write series = \"10ms\""),
        ("'9us'", "test:1:10: `series` must be at least 10us"),
        ("'-5ms'", "test:1:10: \"-5ms\" is not a time"),
        ("'often'", "test:1:10: \"often\" is not a time"),
        ("10", "test:1:10: "),
        ("['1ms']", "test:1:10: "),
    ] {
        let text = format!("series = {interval}\ntransports = ['tcp']");
        let problem = Experiment::parse("test", &Source::new("test", text)).unwrap_err().to_string();
        assert!(problem.starts_with(said), "{problem}");
    }
    let swept = "transports = ['tcp']\nsweep = { series = ['1ms', '2ms'] }";
    let problem = Experiment::parse("test", &Source::new("test", swept)).unwrap_err().to_string();
    assert!(problem.contains("\"series\" cannot be swept"), "{problem}");
}

#[test]
fn a_directory_without_series_is_not_continued_with_series() {
    let dir = tempfile::tempdir().unwrap();
    let text = "transports = ['tcp']\nmessages = 20\nrepetitions = 1";
    run(text, dir.path()).unwrap();
    let problem = run(&format!("series = '10ms'\n{text}"), dir.path()).unwrap_err().to_string();
    assert!(problem.contains("contains results of another experiment"), "{problem}");
}

#[test]
fn damaged_and_foreign_files_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let text = "series = '10ms'\nrecords = 'all'\ntransports = ['tcp']\nmessages = 20\nrepetitions = 1";
    let key = run(text, dir.path()).unwrap().points[0].runs[0].key;
    let name = format!("{}-{}.parquet", key.point, key.repetition);
    let (series, records) = (dir.path().join("series").join(&name), dir.path().join("records").join(&name));
    let whole = std::fs::read(&series).unwrap();
    let read = || match Series::open(dir.path(), key) {
        Err(problem) => problem.to_string(),
        Ok(None) => "none".to_owned(),
        Ok(Some(series)) => {
            series.for_each_row(|_| ()).map_or_else(|problem| problem.to_string(), |()| "whole".to_owned())
        }
    };
    assert_eq!(read(), "whole");
    for damaged in [&whole[..whole.len() / 2], b"PAR1", b"", &[0; 4096]] {
        std::fs::write(&series, damaged).unwrap();
        let problem = read();
        assert!(problem.contains(&name) && problem.contains("remove the file"), "{problem}");
    }
    std::fs::copy(&records, &series).unwrap();
    assert!(read().contains("not a time series of layout 1"), "{}", read());
    std::fs::remove_file(&series).unwrap();
    assert_eq!(read(), "none");
    // Changed octets anywhere must not cause a panic.
    for place in (0..whole.len()).step_by(7) {
        let mut octets = whole.clone();
        octets[place] ^= 0x55;
        std::fs::write(&series, octets).unwrap();
        read();
    }
}
