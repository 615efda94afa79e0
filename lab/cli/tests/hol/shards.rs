//! One experiment in parts, as if performed by several machines, and merged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::program::{failure, ok};
use serde_json::Value;

/// A third of the points is repeated until it is precise, so one machine performs all runs of such a point.
const EXPERIMENT: &str = "
    transports = ['tcp', 'sctp:streams=8']
    messages = 900
    repetitions = 6
    records = 'all'
    [sweep]
    'network.loss' = ['0%', '1%', '5%']
";
const PRECISE: &str = "
    transports = ['tcp', 'sctp:streams=8']
    messages = 900
    repetitions = '3..30'
    precision = '5%'
    [sweep]
    'network.loss' = ['0%', '1%', '5%']
";

fn write(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.toml"), text).unwrap();
    dir
}

fn run_parts(dir: &Path, of: usize) {
    for number in 1..=of {
        let said = ok(dir, &["run", "one.toml", "--shard", &format!("{number}/{of}")]);
        assert!(said.contains(&format!("part {number}/{of} is in results/one-{number}of{of}")), "{said}");
    }
}

/// Returns every run without its duration.
fn runs(dir: &Path) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(dir.join("runs.jsonl")).unwrap();
    let run = |line| {
        let mut run: Value = serde_json::from_str(line).unwrap();
        run["wall_s"] = Value::Null;
        (format!("{}-{}", run["point"].as_str().unwrap(), run["repetition"]), run)
    };
    text.lines().map(run).collect()
}

/// Returns the names and contents of the files below a directory.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn merged_parts_equal_the_run_on_one_machine() {
    for (text, of) in [(EXPERIMENT, 3), (PRECISE, 4)] {
        let dir = write(text);
        let dir = dir.path();
        let whole = ok(dir, &["run", "one.toml"]);
        run_parts(dir, of);
        let mut parts: Vec<String> =
            (1..=of).rev().map(|number| format!("results/one-{number}of{of}")).collect();
        parts.swap(0, 1);
        let merged = |out| {
            let parts = parts.iter().map(String::as_str);
            ok(dir, &["merge"].into_iter().chain(parts).chain(["--out", out]).collect::<Vec<_>>())
        };
        let joined = merged("joined");
        assert_eq!(joined.replace("joined", "results/one"), whole);
        let [one, other] = ["results/one", "joined"].map(|name| dir.join(name));
        assert_eq!(runs(&one), runs(&other));
        for table in ["points.csv", "points.json"] {
            assert_eq!(
                fs::read_to_string(one.join(table)).unwrap(),
                fs::read_to_string(other.join(table)).unwrap()
            );
        }
        for kept in ["records", "figures"] {
            assert_eq!(files(&one.join(kept)), files(&other.join(kept)), "{kept}");
        }
        assert_eq!(files(&one.join("records")).len(), if text == EXPERIMENT { 36 } else { 0 });
        // Existing results are kept, and no run is missing.
        assert_eq!(merged("joined"), joined);
        assert!(ok(dir, &["verify", "joined", "--sample", "5"]).contains("all digests are equal"));
    }
}

#[test]
fn missing_and_incomplete_parts_are_named_and_can_be_added_later() {
    let dir = write(EXPERIMENT);
    let dir = dir.path();
    run_parts(dir, 3);
    let (_, said) = failure(dir, &["merge", "results/one-1of3", "results/one-3of3", "--out", "all"]);
    assert!(
        said.contains("12 of 36 runs are missing (12 of part 2/3)") && said.contains("--out all"),
        "{said}"
    );
    // The last line was incomplete when the machine stopped.
    let journal = dir.join("results/one-2of3/runs.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 100]).unwrap();
    let (_, said) = failure(dir, &["merge", "results/one-2of3", "--out", "all"]);
    assert!(said.contains("1 of 36 runs are missing"), "{said}");
    ok(dir, &["run", "one.toml", "--shard", "2/3"]);
    let said = ok(dir, &["merge", "results/one-2of3", "results/one-1of3", "--out", "all"]);
    assert!(said.contains("all contains the points"), "{said}");
    ok(dir, &["run", "one.toml", "--out", "all"]);
}

#[test]
fn contradicting_and_foreign_parts_are_refused() {
    let dir = write(EXPERIMENT);
    let dir = dir.path();
    run_parts(dir, 2);
    ok(dir, &["run", "one.toml"]);
    // A complete result may be among the parts, and has the same results for the runs that both contain.
    ok(dir, &["merge", "results/one", "results/one-2of2", "--out", "same"]);
    let journal = dir.join("results/one-2of2/runs.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let packets = text.split("\"packets\":").nth(1).unwrap().split(',').next().unwrap().to_owned();
    fs::write(&journal, text.replacen(&format!("\"packets\":{packets},"), "\"packets\":7,", 1)).unwrap();
    let (_, said) = failure(dir, &["merge", "results/one", "results/one-2of2", "--out", "both"]);
    assert!(
        said.contains("one-2of2") && said.contains("packets was") && said.contains("results/one"),
        "{said}"
    );

    ok(dir, &["run", "one.toml", "--set", "seed=5", "--out", "other"]);
    let (_, said) = failure(dir, &["merge", "results/one-1of2", "other", "--out", "neither"]);
    assert!(
        said.contains("other: the experiment or its settings differ") && said.contains("omit this directory"),
        "{said}"
    );
    let (_, said) = failure(dir, &["run", "one.toml", "--shard", "1/2", "--out", "results/one-2of2"]);
    assert!(said.contains("--out"), "{said}");
    for wrong in ["0/2", "3/2", "half"] {
        let (code, said) = failure(dir, &["run", "one.toml", "--shard", wrong]);
        assert!(code == 2 && said.contains("1/4 to 4/4"), "{said}");
    }
    assert!(failure(dir, &["merge", "nowhere", "--out", "x"]).1.contains("nowhere"));
}

#[test]
fn plan_shows_the_cost_of_parts() {
    let dir = write(EXPERIMENT);
    let said = ok(dir.path(), &["plan", "one.toml", "--shards", "50"]);
    assert!(said.contains("6 points, "), "{said}");
    assert!(said.contains("50 parts of") && said.contains("14 of them are empty"), "{said}");
}
