//! The live world in namespaces of a machine, end to end: the machine is User-Mode Linux with this host's files, for this host's kernel may have no
//! netem, and its clock is shared with others. Without a kernel for it this test says so and passes, unless `HOL_REQUIRE_UML` is set; so it
//! does without the programs that it takes, unless `HOL_REQUIRE_PROGRAMS` is.

#[path = "../hol/mod.rs"]
mod hol;
#[path = "../hol/kernel.rs"]
mod kernel;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hol::{BIN, hol, ok};
use kernel::{has_programs, has_user_mode};
use serde_json::Value;

const PROGRAMS: [&str; 8] = ["ip", "tc", "sh", "setpriv", "unshare", "setarch", "timeout", "python3"];

#[test]
fn namespaces_of_a_machine_are_the_network_that_was_asked_for_and_change_nothing_else() {
    let test = "namespaces_of_a_machine_are_the_network_that_was_asked_for_and_change_nothing_else";
    if !has_user_mode(test) || !has_programs(&PROGRAMS, test) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("measured.toml"), include_str!("measured.toml")).unwrap();
    boot(dir);
    ok(dir, &["run", "measured.toml", "--world", "kernel:uml", "--out", "kernel", "--jobs", "2"]);

    the_network_is_that_of_the_kernel_world(dir);
    the_machine_is_what_it_was(dir);
    everybody_learns_what_he_may(dir);
}

/// A machine that ends when its first process, the script, is done.
fn boot(dir: &Path) {
    let script = include_str!("inside.sh").replace("DIR", dir.to_str().unwrap()).replace("HOL", BIN);
    let init = dir.join("inside.sh");
    fs::write(&init, script).unwrap();
    fs::set_permissions(&init, Permissions::from_mode(0o755)).unwrap();
    // Anybody may look at what root measures.
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let listed = String::from_utf8(hol(dir, &["kernel", "list"]).stdout).unwrap();
    let kernel =
        listed.split_whitespace().find(|word| word.starts_with('/') && word.ends_with("-uml")).unwrap();
    let booted = Command::new("timeout")
        .args(["300", "setarch", "-R", &format!("{kernel}/linux"), "mem=1024M"])
        .args([
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "rw",
            &format!("init={}", init.display()),
        ])
        .args(["time-travel=inf-cpu", "time-travel-start=1577836800000000000", "uml_dir=./", "umid=uml"])
        .args(["con=null", "con0=null,fd:1", "panic=-1"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&booted.stdout);
    assert!(booted.status.success() && console.contains("Power down"), "{console}");
}

/// The same kernel as the network's, and as the machine's: what differs are random numbers, and that a machine takes time.
fn the_network_is_that_of_the_kernel_world(dir: &Path) {
    let [here, kernel] = ["measured", "kernel"].map(|out| dir.join(out));
    let journal =
        fs::read_to_string(here.join("runs.jsonl")).unwrap_or_else(|_| panic!("{}", read(&dir.join("said"))));
    let runs: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 8, "{}", read(&dir.join("said")));
    for run in &runs {
        let facts = &run["facts"];
        assert!(facts["provenance"].as_str().unwrap().contains("namespaces, clock "), "{facts}");
        assert_eq!(facts["lines"].as_array().unwrap().len(), 4, "{facts}");
        assert_eq!(facts["caution"], Value::Null, "{facts}");
    }
    let [here, kernel] = [here, kernel].map(|out| read(&out.join("points.csv")));
    for (own, other) in rows(&here).iter().zip(&rows(&kernel)) {
        let number = |row: &[String], name: &str| -> f64 { row[column(&here, name)].parse().unwrap() };
        for (what, near) in [("p50_ms", 0.2), ("completed", 0.05)] {
            let [own, other] = [own, other].map(|row| number(row, what));
            assert!((own / other - 1.0).abs() < near, "{what}: {own} here, {other} there");
        }
    }
}

fn the_machine_is_what_it_was(left: &Path) {
    let before = read(&left.join("before"));
    assert!(
        before.contains("tcp_sack:1") && !before.contains("veth") && !before.contains("netem"),
        "{before}"
    );
    assert_eq!(read(&left.join("after")), before);
    let processes = read(&left.join("processes"));
    assert!(!processes.contains("compare"), "{processes}");
}

fn everybody_learns_what_he_may(left: &Path) {
    let interrupted = read(&left.join("interrupted"));
    assert!(interrupted.contains("interrupted"), "{interrupted}");
    let unprivileged = read(&left.join("unprivileged"));
    assert!(
        unprivileged.contains("run it as root") && unprivileged.contains("unshare --map-root-user --net"),
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
