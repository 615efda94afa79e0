//! Scenarios in which the model once differed from Linux: their packets must stay equal.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{failure, ok};

/// Returns the experiment files; each is named after the former fault.
fn agreed() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hol/kernel/agreed");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn scenarios_that_once_differed_have_the_packets_of_linux() {
    let files = agreed();
    assert!(files.len() > 10, "{files:?}");
    let differ: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let text = ok(Path::new("."), &["trace", file.to_str().unwrap(), "--beside", "kernel:uml"]);
            let last = text.lines().next_back().unwrap_or_default().to_owned();
            (last.trim() != "both worlds sent the same packets at the same times")
                .then(|| format!("{}: {last}", file.display()))
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn random_comparison_continues_and_reports_its_coverage() {
    let directory = tempfile::tempdir().unwrap();
    let compare = |count| {
        ok(
            directory.path(),
            &["validate", "--random", count, "--seed", "3", "--out", "out", "--require", "0%"],
        )
    };
    let few = compare("4");
    let journal = || {
        let file = fs::read_dir(directory.path().join("out")).unwrap().flatten().map(|entry| entry.path());
        let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
        fs::read_to_string(file).unwrap()
    };
    let first = journal();
    assert!(
        few.contains("keys and options were used in scenarios that both worlds ran")
            && first.lines().count() == 4,
        "{few}"
    );
    compare("6");
    assert!(journal().starts_with(&first) && journal().lines().count() == 6, "{}", journal());
}

#[test]
fn random_comparison_needs_repeatable_worlds() {
    let refused = failure(Path::new("."), &["validate", "--random", "2", "--world", "live"]).1;
    assert!(refused.contains("cannot be repeated") && refused.contains("kernel:uml"), "{refused}");
    let refused = failure(Path::new("."), &["validate", "--random", "2", "--world", "matrix"]).1;
    assert!(refused.contains("unknown world"), "{refused}");
    let refused = failure(Path::new("."), &["validate", "--random", "2", "--only", "carrier-pigeon"]).1;
    assert!(refused.contains("--only carrier-pigeon") && refused.contains("pingpong"), "{refused}");
    // clap drops a `requires` whose argument conflicts with a given one.
    for option in
        [&["--only", "sctp"][..], &["--seed", "3"], &["--first", "kernel"], &["--shrink"], &["--traces"]]
    {
        let (code, refused) = failure(Path::new("."), &[&["validate", "fidelity"], option].concat());
        assert!(code == 2 && refused.contains("cannot be used with"), "{option:?}: {refused}");
    }
    for world in ["model", "live"] {
        let refused = failure(Path::new("."), &["validate", "fidelity", "--world", world]).1;
        assert!(refused.contains("validated against a kernel"), "{refused}");
    }
    let refused = failure(Path::new("."), &["validate"]).1;
    assert!(refused.contains("STUDY|FILE"), "{refused}");
}
