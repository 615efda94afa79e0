//! `network.trace`: a path that changes, from a file beside the experiment.

mod hol;

use std::fs;
use std::path::Path;

use hol::{failure, ok};

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

/// What stands at time 0 holds from the first packet on, and a change is that of an event.
#[test]
fn a_table_is_as_the_events_that_it_stands_for() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), "'lte.csv'", "time,rate,delay\n0s,2Mbit,40ms\n1s,4Mbit,15ms\n", "");
    let traced = mean(dir.path(), "traced");
    let events = "rate = '2Mbit'\ndelay = '40ms'\nevents = [{ at = '1s', rate = '4Mbit', delay = '15ms' }]\n";
    experiment(dir.path(), "{}", "", events);
    assert_eq!(traced, mean(dir.path(), "events"));
    assert!((20.0..45.0).contains(&traced), "{traced}");
}

#[test]
fn opportunities_of_mahimahi_are_swept_as_any_other_key() {
    let dir = tempfile::tempdir().unwrap();
    // One packet every 4 ms is 3 Mbit/s.
    let file: String = (1..=250).map(|k| format!("{}\n", 4 * k)).collect();
    experiment(dir.path(), "{ up = 'lte.csv' }", &file, "delay = '20ms'\n");
    // 1052 octets and 14 around them at 3.028 Mbit/s.
    let mean = mean(dir.path(), "opportunities");
    assert!((mean - 20.0 - 1066.0 * 8.0 / 3028.0).abs() < 0.15, "{mean}");
}

#[test]
fn a_trace_that_cannot_be_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    for (trace, file, words) in [
        ("'lte.csv'", "time,rate\n0s,1Mbit\n2s,2Mbit\n1s,1Mbit\n", "lte.csv:4: 1s is before 2s"),
        ("'lte.csv'", "time,rate\n0s,1Mbit\n2s,0\n", "lte.csv:3: a rate of 0 for ever"),
        ("'none.csv'", "", "cannot read"),
        ("{ sideways = 'lte.csv' }", "", "sideways"),
        ("7", "", "the name of a file"),
    ] {
        experiment(dir.path(), trace, file, "");
        let (code, message) = failure(dir.path(), &["run", "a.toml"]);
        assert!(code == 2 && message.contains(words), "{words}: {message}");
    }
}
