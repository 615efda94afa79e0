//! `network.trace`: a path that changes, read from a file next to the experiment.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{failure, ok};

fn experiment(dir: &Path, trace: &str, file: &str, rest: &str) {
    let text = format!(
        "transports = ['tcp']\nmessages = 200\nrepetitions = 1\n[workload]\nkind = 'oneway'\nrate = '100/s'\nsize = '1000B'\n\
         [network]\ntrace = {trace}\n{rest}"
    );
    fs::write(dir.join("a.toml"), text).unwrap();
    fs::write(dir.join("lte.csv"), file).unwrap();
}

fn mean(dir: &Path, out: &str) -> f64 {
    let rows = ok(dir, &["run", "a.toml", "--json", "--out", out]);
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    row["mean_ms"].as_f64().unwrap()
}

/// The values at time 0 apply from the first packet on, and a change is equivalent to an event.
#[test]
fn trace_table_equals_the_corresponding_events() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), "'lte.csv'", "time,rate,delay\n0s,2Mbit,40ms\n1s,4Mbit,15ms\n", "");
    let traced = mean(dir.path(), "traced");
    let events = "rate = '2Mbit'\ndelay = '40ms'\nevents = [{ at = '1s', rate = '4Mbit', delay = '15ms' }]\n";
    experiment(dir.path(), "{}", "", events);
    assert_eq!(traced, mean(dir.path(), "events"));
    assert!((20.0..45.0).contains(&traced), "{traced}");
}

#[test]
fn mahimahi_traces_can_be_swept() {
    let dir = tempfile::tempdir().unwrap();
    // One packet every 4 ms is 3 Mbit/s.
    let file: String = (1..=250).map(|k| format!("{}\n", 4 * k)).collect();
    experiment(dir.path(), "{ up = 'lte.csv' }", &file, "delay = '20ms'\n");
    // 1052 octets and 14 of the Ethernet header at 3.028 Mbit/s.
    let mean = mean(dir.path(), "opportunities");
    assert!((mean - 20.0 - 1066.0 * 8.0 / 3028.0).abs() < 0.15, "{mean}");
}

/// Half of the packets take 10 ms longer, as the file says; the result contains the numbers of the file, not its name.
#[test]
fn a_distribution_is_read_from_a_file_beside_the_experiment() {
    let dir = tempfile::tempdir().unwrap();
    let rest = "delay = '20ms'\njitter = '10ms'\ndown.jitter_distribution = 'normal'\n[network.up]\njitter_distribution = { file = 'own.dist' }\n";
    experiment(dir.path(), "{}", "", rest);
    fs::write(dir.path().join("own.dist"), "# two values\n0 8192\n").unwrap();
    let mean = mean(dir.path(), "own");
    // 200 packets: four standard deviations of 5 ms, divided by the square root of 200.
    assert!((mean - 25.0).abs() < 4.0 * 5.0 / 200_f64.sqrt() + 0.1, "{mean}");
    let manifest = fs::read_to_string(dir.path().join("own/manifest.json")).unwrap();
    // The name is among the files that were read, and no point depends on it.
    assert!(manifest.matches("own.dist").count() == 1 && manifest.contains("8192"), "{manifest}");
    for (numbers, words) in
        [("1 x\n", "own.dist:1: \"x\" is not a whole number"), ("3\n2\n", "own.dist:2: \"2\" is below")]
    {
        fs::write(dir.path().join("own.dist"), numbers).unwrap();
        let (code, message) = failure(dir.path(), &["run", "a.toml"]);
        assert!(code == 2 && message.contains(words), "{message}");
    }
    fs::remove_file(dir.path().join("own.dist")).unwrap();
    let (code, message) = failure(dir.path(), &["run", "a.toml"]);
    assert!(code == 2 && message.contains("`jitter_distribution`: cannot read"), "{message}");
}

/// The results of the runs in a directory.
fn journal(dir: &Path, out: &str) -> Vec<serde_json::Value> {
    let journal = fs::read_to_string(dir.join(out).join("runs.jsonl")).unwrap();
    journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The digests of both transports' runs, in order.
fn digests(dir: &Path, out: &str, options: &[&str]) -> Vec<String> {
    ok(
        dir,
        &[&["run", "a.toml", "--out", out, "--set", "repetitions=3", "--set", "messages=600"], options]
            .concat(),
    );
    let mut runs: Vec<_> = journal(dir, out)
        .iter()
        .map(|run| (run["repetition"].as_u64().unwrap(), run["summary"]["digest"].to_string()))
        .collect();
    runs.sort();
    runs.into_iter().map(|(_, digest)| digest).collect()
}

/// Nothing but the start is random here.
#[test]
fn trace_start_of_a_run_follows_from_its_seed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    experiment(
        dir,
        "'lte.csv'",
        "time,rate,delay\n0s,2Mbit,40ms\n1s,4Mbit,15ms\n2s,3Mbit,15ms\n4s,2Mbit,30ms\n",
        "",
    );
    let start = |out: &str, start: &str, more: &[&str]| {
        digests(dir, out, &[&["--set", &format!("network.trace_start={start}")], more].concat())
    };
    let default = digests(dir, "default", &[]);
    assert_eq!(default, vec![default[0].clone(); 3]);
    assert_eq!(start("beginning", "0 s", &[]), default);
    let fixed = start("fixed", "1500ms", &[]);
    assert_eq!(fixed, vec![fixed[0].clone(); 3]);
    assert_ne!(fixed, default);

    let random = start("random", "random", &[]);
    assert_eq!(start("again", "random", &["--jobs", "1"]), random);
    assert!(random[0] != random[1] && random[1] != random[2] && random[0] != random[2], "{random:?}");
    assert_ne!(start("seed", "random", &["--set", "seed=2"]), random);

    // The position that a repetition drew repeats it, and the records of runs without a drawn position have none.
    let starts = |out: &str| -> Vec<Option<u64>> {
        let mut runs = journal(dir, out);
        runs.sort_by_key(|run| run["repetition"].as_u64());
        runs.iter().map(|run| run["trace_start_ns"].as_u64()).collect()
    };
    let drawn = starts("random");
    assert_eq!(
        (starts("again"), starts("default"), starts("fixed")),
        (drawn.clone(), vec![None; 3], vec![None; 3])
    );
    for (own, digest) in drawn.into_iter().zip(&random) {
        let own = own.expect("a position was drawn");
        assert!(own < 6_000_000_000, "{own}");
        assert_eq!(start(&format!("at{own}"), &format!("{own}ns"), &[])[0], *digest);
    }

    // The result has the trace, so it can be continued without its file.
    fs::rename(dir.join("lte.csv"), dir.join("other.csv")).unwrap();
    let (code, message) = failure(dir, &["run", "a.toml", "--set", "network.trace_start=random"]);
    assert!(code == 2 && message.contains("cannot read"), "{message}");
    ok(dir, &["verify", "random"]);

    let (code, message) =
        failure(dir, &["run", "a.toml", "--set", "network.trace={}", "--set", "network.trace_start=1s"]);
    assert!(code == 2 && message.contains("no trace is set"), "{message}");
}

/// An outage is at another time in each run, and what it costs counts from there: TCP gives up when its retransmission timer first expires
/// after a second without an acknowledgement (RFC 5482), the third time with 200 ms that double.
#[test]
fn outage_of_a_trace_counts_from_its_start_in_each_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    experiment(dir, "'lte.csv'\ntrace_start = 'random'", "time_s,loss_%\n0,0\n20,100\n21.5,0\n30,0\n", "");
    let set = [
        "--set",
        "repetitions=4",
        "--set",
        "messages=16000",
        "--set",
        "seed=2",
        "--set",
        "transports=['tcp:user_timeout=1s']",
    ];
    let rows =
        ok(dir, &[&["run", "a.toml", "--json", "--out", "out", "--series", "100ms"][..], &set].concat());
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    let noticed = row["noticed_ms"].as_f64().unwrap_or_else(|| panic!("{row}"));
    assert!((1000.0..2000.0).contains(&noticed), "{noticed}");

    let journal = fs::read_to_string(dir.join("out/runs.jsonl")).unwrap();
    let run = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let mut at: Vec<u64> =
        journal.lines().map(run).map(|run| run["outages"][0]["at_ns"].as_u64().unwrap()).collect();
    at.sort_unstable();
    at.dedup();
    assert_eq!(at.len(), 4, "{at:?}");
    // The figure over time is of one run, whose outage it marks.
    let report = fs::read_to_string(dir.join("out/report.html")).unwrap();
    assert!(report.contains("class=\"event\""));
}

#[test]
fn invalid_trace_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    for (trace, file, words) in [
        ("'lte.csv'", "time,rate\n0s,1Mbit\n2s,2Mbit\n1s,1Mbit\n", "lte.csv:4: 1s is before 2s"),
        ("'lte.csv'", "time,rate\n0s,1Mbit\n2s,0\n", "lte.csv:3: the rate is 0 from here to the end"),
        ("'none.csv'", "", "cannot read"),
        ("{ sideways = 'lte.csv' }", "", "sideways"),
        ("7", "", "the name of a file"),
    ] {
        experiment(dir.path(), trace, file, "");
        let (code, message) = failure(dir.path(), &["run", "a.toml"]);
        assert!(code == 2 && message.contains(words), "{words}: {message}");
    }
}

/// The magic number of a file decides, not its name.
#[test]
fn compressed_trace_equals_the_plain_one() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), "'lte.csv'", "time,rate,delay\n0s,2Mbit,40ms\n1s,4Mbit,15ms\n", "");
    let plain = mean(dir.path(), "plain");
    let compressed = Command::new("gzip").args(["-c", "lte.csv"]).current_dir(dir.path()).output().unwrap();
    fs::write(dir.path().join("lte.csv"), compressed.stdout).unwrap();
    assert_eq!(mean(dir.path(), "compressed"), plain);
}
