//! The live world in network namespaces, end to end. The tests run in User-Mode Linux with this host's files, because
//! this host's kernel may lack netem, and because other processes share its clock.

mod machine;

use std::fs;
use std::path::Path;

use crate::program::{BIN, ok};
use hol_live::Namespaces;
use hol_scenario::conformance::{CaseResult, ConformanceCase, cases};
use serde_json::Value;

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2, util-linux and python3"]
fn namespaces_form_the_requested_network_and_change_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("measured.toml"), include_str!("measured.toml")).unwrap();
    machine::run(dir, include_str!("inside.sh"));
    ok(dir, &["run", "measured.toml", "--world", "kernel:uml", "--out", "kernel", "--jobs", "2"]);

    network_equals_that_of_the_kernel_world(dir);
    machine_is_unchanged(dir);
    missing_privileges_and_interrupts_are_reported(dir);
}

/// Each run begins where its seed says, so the outages are at the same times as in the model, and as many datagrams are lost.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2 and python3"]
fn namespaces_play_a_trace_from_the_position_that_the_seed_draws() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("trace.toml"), include_str!("trace.toml")).unwrap();
    let trace = "time_s,loss_%,delay_ms\n0,0,25\n3.005,100,\n3.505,0,\n5.005,,40\n7.005,100,\n8.005,0,\n";
    fs::write(dir.join("lte.csv"), trace).unwrap();
    machine::run(dir, "HOL run trace.toml --world live:namespaces --out here >said 2>&1\n");
    ok(dir, &["run", "trace.toml", "--out", "model"]);
    let [here, model] = ["here", "model"].map(|out| {
        let journal = fs::read_to_string(dir.join(out).join("runs.jsonl"))
            .unwrap_or_else(|_| panic!("{}", read(&dir.join("said"))));
        let mut runs: Vec<(u64, u64, Vec<[u64; 2]>)> = journal
            .lines()
            .map(|line| {
                let run: Value = serde_json::from_str(line).unwrap();
                let number = |value: &Value| value.as_u64().unwrap();
                let outages = run["outages"].as_array().unwrap().iter();
                let outages =
                    outages.map(|outage| ["at_ns", "lost"].map(|key| number(&outage[key]))).collect();
                (number(&run["repetition"]), number(&run["summary"]["completed"]), outages)
            })
            .collect();
        runs.sort();
        runs
    });
    assert_eq!(here, model);
    assert!(here.len() == 2 && here[0].2 != here[1].2 && here[0].2.len() == 2, "{here:?}");
}

/// Environment variable by which this test detects that it runs in the machine.
const INSIDE: &str = "HOL_TEST_INSIDE";
/// One in this many cases is run; the conformance test of User-Mode Linux runs all, and the same program builds the
/// same networks.
const SAMPLE: usize = 17;

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2, util-linux and python3"]
fn namespaces_pass_the_conformance_cases() {
    let test = "kernel::namespaces::namespaces_pass_the_conformance_cases";
    if std::env::var_os(INSIDE).is_some() {
        return conformance_cases_pass();
    }
    let dir = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let run = format!("{INSIDE}=1 {} --exact {test} --include-ignored --nocapture >said 2>&1", own.display());
    machine::run(dir.path(), &run);
    let said = read(&dir.path().join("said"));
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
}

fn conformance_cases_pass() {
    let namespaces = Namespaces::with_program(BIN.into());
    let cases: Vec<ConformanceCase> = cases().into_iter().step_by(SAMPLE).collect();
    let verdicts = cases.iter().map(|case| (case, case.verdict(&namespaces)));
    let wrong: Vec<String> = verdicts
        .filter_map(|(case, verdict)| match verdict {
            CaseResult::Passed => None,
            CaseResult::Refused(what) | CaseResult::Differs(what) => Some(format!("{case}: {what}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() > 15, "{}", cases.len());
}

/// The network has the same kernel as the machine: only random numbers and computing time differ.
fn network_equals_that_of_the_kernel_world(dir: &Path) {
    let [here, kernel] = ["measured", "kernel"].map(|out| dir.join(out));
    let journal =
        fs::read_to_string(here.join("runs.jsonl")).unwrap_or_else(|_| panic!("{}", read(&dir.join("said"))));
    let runs: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 8, "{}", read(&dir.join("said")));
    for run in &runs {
        let world_report = &run["facts"];
        assert!(
            world_report["provenance"].as_str().unwrap().contains("namespaces, clock "),
            "{world_report}"
        );
        assert_eq!(world_report["lines"].as_array().unwrap().len(), 4, "{world_report}");
        assert_eq!(world_report["caution"], Value::Null, "{world_report}");
    }
    // All transports but SCTP, whose messages have no timestamps.
    let stamped =
        runs.iter().filter(|run| run["facts"]["waited_ns"]["server"]["messages"].as_u64() > Some(0));
    assert_eq!(stamped.count(), 6, "{journal}");
    let [here, kernel] = [here, kernel].map(|out| read(&out.join("points.csv")));
    for (own, other) in rows(&here).iter().zip(&rows(&kernel)) {
        let number = |row: &[String], name: &str| -> f64 { row[column(&here, name)].parse().unwrap() };
        for (what, near) in [("p50_ms", 0.1), ("completed", 0.05)] {
            let [own, other] = [own, other].map(|row| number(row, what));
            assert!((own / other - 1.0).abs() < near, "{what}: {own} here, {other} there");
        }
    }
}

fn machine_is_unchanged(left: &Path) {
    let before = read(&left.join("before"));
    assert!(
        before.contains("tcp_sack:1") && !before.contains("veth") && !before.contains("netem"),
        "{before}"
    );
    assert_eq!(read(&left.join("after")), before);
    let processes = read(&left.join("processes"));
    assert!(!processes.contains("compare"), "{processes}");
}

fn missing_privileges_and_interrupts_are_reported(left: &Path) {
    let interrupted = read(&left.join("interrupted"));
    assert!(interrupted.contains("interrupted"), "{interrupted}");
    let unprivileged = read(&left.join("unprivileged"));
    assert!(
        unprivileged.contains("run hol as root") && unprivileged.contains("unshare --map-root-user --net"),
        "{unprivileged}"
    );
    let rootless = read(&left.join("rootless"));
    assert!(rootless.contains("in live:namespaces") && rootless.contains("20ms each way"), "{rootless}");
    let traced = read(&left.join("traced"));
    assert!(traced.contains("packets of hol compare"), "{traced}");
    assert!(fs::metadata(left.join("run.pcapng")).unwrap().len() > 2000);
}

fn rows(points: &str) -> Vec<Vec<String>> {
    points.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn column(points: &str, name: &str) -> usize {
    points.lines().next().unwrap().split(',').position(|column| column == name).unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}
