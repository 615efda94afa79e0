//! `hol advise` compared with the result of `hol compare` at both ends of the crossover that it finds.

use std::fs;
use std::path::Path;

use crate::program::{failure, ok};
use serde_json::Value;

/// SCTP with several streams delivers the messages after a lost one; with one stream they wait, and its timer is slower
/// than TCP's.
const EXPERIMENT: &str = r#"
messages = 8000
repetitions = 8
transports = ["tcp", "sctp"]
[workload]
kind = "echo"
[sweep]
"network.loss" = ["0%", "3%"]
"network.delay" = ["10ms", "12ms"]
"#;

fn advise(dir: &Path, more: &[&str]) -> Vec<Value> {
    fs::write(dir.join("mine.toml"), EXPERIMENT).unwrap();
    let text = ok(dir, &[&["advise", "mine.toml", "--json"], more].concat());
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Runs `hol compare` with other losses than those of the search.
fn compare(dir: &Path, loss: f64) -> String {
    let loss = format!("{loss}%");
    let arguments =
        ["compare", "tcp", "sctp", "--workload", "echo", "--loss", &loss, "--seed", "77", "--count", "60000"];
    ok(dir, &[&arguments[..], &["--repetitions", "30"]].concat())
}

#[test]
fn ends_of_a_crossover_have_different_winners() {
    let dir = tempfile::tempdir().unwrap();
    let lines = advise(dir.path(), &["--set", "network.delay=10ms", "--precision", "20%"]);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let [border] = &line["borders"].as_array().unwrap()[..] else { panic!("{line}") };
    assert_eq!(
        (border["before"].as_str(), border["after"].as_str()),
        (Some("as fast"), Some("slower")),
        "{line}"
    );
    let of = |key: &str| border[key].as_f64().unwrap();
    assert!(0.0 <= of("low") && of("low") <= of("high") && of("high") <= 5.0, "{line}");
    let (below, above) = (compare(dir.path(), of("low")), compare(dir.path(), of("high")));
    assert!(above.contains(" slower than tcp"), "{above}");
    // Half a percent of 20 ms, and the uncertainty of the comparison itself.
    assert!(!below.contains("sctp is 2") && !below.contains("sctp is 3"), "{below}");
}

#[test]
fn an_option_is_searched_only_for_the_transport_that_has_it() {
    const OPTION: &str = r#"
        messages = 400
        repetitions = 2
        transports = ["tcp", "quic", "sctp"]
        [sweep]
        "sctp.rto_min" = ["200ms", "1s"]
    "#;
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.toml"), OPTION).unwrap();
    let text = ok(dir.path(), &["advise", "mine.toml", "--json", "--max-repetitions", "4"]);
    let challengers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect(line)["transport"].clone())
        .collect();
    assert_eq!(challengers, ["sctp"], "{text}");
}

#[test]
fn each_step_of_the_other_axis_has_a_line_in_the_map() {
    let dir = tempfile::tempdir().unwrap();
    // Few short runs: the test is about the format of lines, not about their precision.
    let short = ["--set", "messages=400", "--max-repetitions", "64"];
    let lines = advise(dir.path(), &short);
    assert_eq!(
        lines.iter().map(|line| line["at"].as_str().unwrap()).collect::<Vec<_>>(),
        ["network.delay 10ms", "network.delay 12ms"]
    );
    let ask = || ok(dir.path(), &[&["advise", "mine.toml"], &short[..]].concat());
    let text = ask();
    assert!(text.contains("network.delay 10ms  ") && text.contains("─ worse"), "{text}");
    assert_eq!(text, ask(), "the same question has the same answer");
}

#[test]
fn axes_that_cannot_be_searched_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.toml"), EXPERIMENT).unwrap();
    let (exit, message) = failure(dir.path(), &["advise", "mine.toml", "--over", "workload.rate"]);
    assert_eq!(exit, 2);
    assert!(
        message.contains("workload.rate is not swept; network.loss and network.delay can be searched"),
        "{message}"
    );
    let set = ["--set", "network.loss=1%", "--set", "network.delay=1ms"];
    let (exit, message) = failure(dir.path(), &[&["advise", "mine.toml"], &set[..]].concat());
    assert_eq!(exit, 2);
    assert!(
        message.contains("mine.toml: --set network.loss fixes the key along which to search"),
        "{message}"
    );
    let zip = EXPERIMENT.replace("[sweep]", "[[zip]]");
    fs::write(dir.path().join("zip.toml"), zip).unwrap();
    let (exit, message) = failure(dir.path(), &["advise", "zip.toml", "--over", "network.delay"]);
    assert_eq!(exit, 2);
    assert!(message.contains("zip.toml: network.delay and network.loss are swept together"), "{message}");
    let names = EXPERIMENT
        .replace("\"network.delay\" = [\"10ms\", \"12ms\"]", "\"network.discipline\" = [\"droptail\"]");
    fs::write(dir.path().join("names.toml"), names).unwrap();
    let (_, message) = failure(dir.path(), &["advise", "names.toml", "--set", "network.loss=1%"]);
    assert!(message.contains("--set network.loss fixes the key"), "{message}");
}
