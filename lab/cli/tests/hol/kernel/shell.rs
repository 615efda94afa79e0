//! `hol shell` over a pipe, end to end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::program::{BIN, code, ok};

/// An engine, and the maximum time in ms that a round trip takes there in addition to the network's delay.
#[derive(Clone, Copy)]
struct Engine {
    world: &'static str,
    beside: f64,
}

/// An engine in which computing takes no time.
const USER_MODE: Engine = Engine { world: "--world=kernel:uml", beside: 0.5 };
/// An engine in which computing takes time.
const QEMU: Engine = Engine { world: "--world=kernel", beside: 1.0 };

fn started(dir: &Path, arguments: &[&str]) -> Child {
    let mut shell = Command::new(BIN);
    shell.current_dir(dir).arg("shell").args(arguments).stdin(Stdio::piped());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends these lines to the shell, with a pause before each.
#[expect(clippy::disallowed_methods, reason = "who types takes real time")]
fn typed(dir: &Path, arguments: &[&str], lines: &[&str], thinking: Duration) -> Output {
    let mut child = started(dir, arguments);
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        thread::sleep(thinking);
        // A shell that ended because of an error reads no more lines.
        let _ = writeln!(stdin, "{line}");
    }
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn session(dir: &Path, arguments: &[&str], lines: &[&str]) -> Output {
    typed(dir, arguments, lines, Duration::ZERO)
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Returns the round-trip times that ping prints, in ms.
fn round_trips(printed: &str) -> Vec<f64> {
    let times = printed.lines().filter_map(|line| line.split_once("time=")?.1.strip_suffix(" ms"));
    times.map(|time| time.parse().unwrap()).collect()
}

fn lines_keep_shell_state_and_the_last_exit_code_is_returned(Engine { world, beside }: Engine) {
    let lines = [
        "ping -c1 server",
        ":link up delay=50ms",
        "ping -c1 server",
        "cd /tmp; export X='a  b'; y=lost",
        "echo \"$PWD $X $y.\"",
        "@server hostname; echo $X.",
        ":node server",
        "hostname",
        ":wait 5s",
        ":time",
        "exit 3",
    ];
    let dir = tempfile::tempdir().unwrap();
    let output = session(dir.path(), &["tcp", world], &lines);
    let printed = text(&output.stdout);
    assert_eq!(code(&output), 3, "{world}: {}", text(&output.stderr));
    let trips = round_trips(&printed);
    // 10 ms each way, then 50 ms one way; the second ping needs no ARP request (RFC 826).
    let took = |trip: f64, min: f64| (min..min + beside).contains(&trip);
    assert!(took(trips[0], 20.0) && took(trips[1], 60.0), "{world}: {printed}");
    assert!(printed.contains("\n/tmp a  b .\nserver\n.\nserver\n5."), "{world}: {printed}");
}

fn time_between_lines_changes_neither_output_nor_packets(Engine { world, .. }: Engine) {
    let lines =
        ["ping -c2 server", "date +%s.%N", ":link loss=20%", "ping -i.1 -c20 server", ":time", ":pcap x"];
    let done = [0, 200].map(|thinking| {
        let dir = tempfile::tempdir().unwrap();
        let output = typed(dir.path(), &["tcp", world], &lines, Duration::from_millis(thinking));
        assert_eq!(code(&output), 0, "{world}: {}", text(&output.stderr));
        (text(&output.stdout), fs::read(dir.path().join("x")).unwrap())
    });
    assert_eq!(done[0].0, done[1].0, "{world}");
    assert!(done[0].1 == done[1].1 && done[0].1.len() > 3000, "{world}: {} octets", done[0].1.len());
}

fn replayed_steps_have_the_same_results(Engine { world, beside }: Engine) {
    let again = ["ping -c1 server", "date +%N; ls; touch new", ":time"];
    let before = ["export X=1; mkdir dir; cd dir", ":link delay=30ms", ":snapshot here"];
    let lines = [&before[..], &again, &["echo BACK", ":back here"], &again].concat();
    let dir = tempfile::tempdir().unwrap();
    let output = session(dir.path(), &["tcp", world], &lines);
    assert_eq!(code(&output), 0, "{world}: {}", text(&output.stderr));
    let printed = text(&output.stdout);
    let (first, second) = printed.split_once("BACK\n").unwrap();
    assert_eq!(first, second, "{world}");
    let trip = round_trips(first)[0];
    assert!((60.0..60.5 + beside).contains(&trip) && !first.contains("new"), "{world}: {first}");
    assert_eq!(text(&output.stderr), "", "{world}: nothing was different");
}

fn interrupt_ends_an_endless_line_but_not_the_shell(Engine { world, .. }: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let mut shell = started(dir.path(), &["tcp", world]);
    shell.stdin.take().unwrap().write_all(b"ping -i.01 server\necho after\n").unwrap();
    let mut printed = BufReader::new(shell.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.any(|line| line.contains("bytes from")), "{world}");
    assert!(Command::new("kill").args(["-INT", &shell.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = printed.collect();
    assert_eq!(rest.last().map(String::as_str), Some("after"), "{world}: {rest:?}");
    assert!(rest.iter().any(|line| line.contains("packets transmitted")), "{world}: {rest:?}");
    assert!(shell.wait().unwrap().success(), "{world}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)"]
fn recorded_session_runs_as_an_experiment() {
    let dir = tempfile::tempdir().unwrap();
    let lines =
        [":link loss=0% delay=30ms", "ping -c1 server", "false", "@server echo there", "cd /tmp", "pwd"];
    let output = session(dir.path(), &["tcp", "--record", "x.toml"], &lines);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    ok(dir.path(), &["run", "x.toml", "--out", "out"]);
    let journal = fs::read_to_string(dir.path().join("out/runs.jsonl")).unwrap();
    let run: serde_json::Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let programs = run["facts"]["programs"].as_array().unwrap();
    let printed: Vec<_> = programs.iter().map(|program| program["stdout"].as_str().unwrap()).collect();
    assert!((60.0..61.0).contains(&round_trips(printed[0])[0]), "{printed:?}");
    assert_eq!(printed[1..], ["", "there\n", "", "/tmp\n"]);
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)"]
fn mistakes_are_reported_with_their_line_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (line, words) in [
        (":node srv", "unknown node \"srv\"; use one of client, "),
        (":nod server", "did you mean `:node`"),
        (":link xy loss=1%", "xy"),
        (":link delay=50", "50"),
    ] {
        let output = session(dir.path(), &["tcp"], &["", line, "echo after"]);
        let told = text(&output.stderr);
        assert_eq!(code(&output), 2, "{told}");
        assert!(told.contains("standard input:2: ") && told.contains(words), "{line}: {told}");
        assert_eq!(text(&output.stdout), "", "{line}");
    }
}

/// The interface that `hol serve` uses.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)"]
fn json_session_reports_everything_and_survives_mistakes() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("own");
    fs::create_dir(&dir).unwrap();
    let lines = [":nod server", "echo out; echo err >&2; exit 3", ":pcap ../x", ":pcap x.pcapng", ":quit"];
    let output = session(&dir, &["tcp", "--dialogue", "json"], &lines);
    assert_eq!(text(&output.stderr), "");
    let printed = text(&output.stdout);
    let said: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| said.iter().filter_map(|said| said.get(kind).cloned()).collect::<Vec<_>>();
    assert_eq!((of("out"), of("err")), (vec!["out\n".into()], vec!["err\n".into()]));
    let codes: Vec<_> = of("prompt").iter().map(|prompt| prompt["code"].clone()).collect();
    assert_eq!(codes, [0, 0, 3, 3, 3]);
    assert_eq!(of("prompt")[0]["nodes"], serde_json::json!(["client", "server"]));
    let notes = format!("{:?}", of("note"));
    assert!(notes.contains("did you mean `:node`") && notes.contains("without a directory"), "{notes}");
    assert!(dir.join("x.pcapng").exists() && !above.path().join("x").exists());
}

tests_in! { user_mode = super::USER_MODE,
    lines_keep_shell_state_and_the_last_exit_code_is_returned: "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)",
    time_between_lines_changes_neither_output_nor_packets: "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)",
    replayed_steps_have_the_same_results: "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)",
    interrupt_ends_an_endless_line_but_not_the_shell: "needs User-Mode Linux (hol kernel build), iputils-ping and mkfs.erofs (erofs-utils)",
}

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn time_between_lines_changes_neither_output_nor_packets_in_qemu() {
        time_between_lines_changes_neither_output_nor_packets(QEMU);
    }
}
