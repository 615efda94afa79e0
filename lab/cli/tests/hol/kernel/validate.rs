//! `hol validate` end to end.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::program;

const FILE: &str = "transports = ['tcp', 'tcp:stack=linux-2.6.16']\nmessages = 200\nrepetitions = 2\n\
                    [sweep]\n'network.delay' = ['10ms', '20ms']\n";

const VALIDATE: [&str; 6] = ["validate", "still.toml", "--world", "kernel:uml", "--out", "out"];

fn validate(dir: &Path, more: &[&str]) -> Output {
    fs::write(dir.join("still.toml"), FILE).unwrap();
    program::hol(dir, &[&VALIDATE[..], more].concat())
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn worlds_agree_without_loss_and_finished_runs_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("still.toml"), FILE).unwrap();
    let part = program::ok(dir.path(), &[&VALIDATE[..], &["--where", "delay=10ms"]].concat());
    assert!(part.contains("1 of 1 points agree"), "{part}");

    let whole = validate(dir.path(), &[]);
    assert!(text(&whole.stderr).contains("uml: 2 runs to perform"), "{}", text(&whole.stderr));
    assert!(text(&whole.stdout).contains("2 of 2 points agree"), "{}", text(&whole.stdout));
    let csv = fs::read_to_string(dir.path().join("out/validation.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "a head and two points; the stack of 2.6 is not the kernel's: {csv}");

    let again = validate(dir.path(), &[]);
    assert_eq!(text(&again.stderr).matches(": 0 runs to perform").count(), 2, "{}", text(&again.stderr));
    assert_eq!(again.stdout, whole.stdout);

    let page = program::ok(dir.path(), &["report", "out/kernel", "out/model"]);
    assert!(page.contains("out/model/both-worlds.html"), "{page}");
    let page = fs::read_to_string(dir.path().join("out/model/both-worlds.html")).unwrap();
    assert!(page.contains("2 points were measured in both worlds; at 2 of 2 the"), "{page}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn selection_without_points_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let output = validate(dir.path(), &["--where", "delay=30ms"]);
    assert_eq!(program::code(&output), 2);
    assert!(text(&output.stderr).contains("--where delay=30ms: no point"), "{}", text(&output.stderr));
}
