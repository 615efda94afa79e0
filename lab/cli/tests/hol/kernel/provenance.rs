//! Each run records its engine, and a warning says if the engine does not step exactly.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use super::engine::share_kernels;
use crate::program::{BIN, code};

/// Returns the path of this machine's QEMU.
fn qemu_path() -> String {
    let places = env::var_os("PATH").unwrap();
    let found = env::split_paths(&places).map(|place| place.join(QEMU)).find(|path| path.is_file());
    found.map_or("false".to_owned(), |path| path.display().to_string())
}

const QEMU: &str = "qemu-system-x86_64";

/// Replaces QEMU by a script.
fn replace_qemu(directory: &Path, script: &str) {
    let place = directory.join(QEMU);
    fs::write(&place, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
}

/// Creates a QEMU that reports `version`, and otherwise is that of this machine.
fn install_disguised_qemu(directory: &Path, version: &str) {
    let says = format!("echo QEMU emulator version {version}");
    replace_qemu(
        directory,
        &format!("if [ \"$1\" = --version ]; then {says}; else exec {} \"$@\"; fi", qemu_path()),
    );
}

fn hol(directory: &Path, arguments: &[&str]) -> Output {
    let path = format!("{}:{}", directory.display(), env::var("PATH").unwrap());
    let mut command = Command::new(BIN);
    command.current_dir(directory).args(arguments).env("PATH", path).env("XDG_CACHE_HOME", directory);
    let output = command.output().unwrap();
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

const SWEEP: [&str; 5] = ["run", "sweep.toml", "--out", "out", "--json"];

/// Returns the journal of a sweep of one run, and the output on standard error.
fn sweep(directory: &Path) -> (String, String) {
    let file =
        "world = 'kernel'\ntransports = ['tcp']\nmessages = 100\nrepetitions = 1\n[network]\nloss = '5%'\n";
    fs::write(directory.join("sweep.toml"), file).unwrap();
    let said = text(&hol(directory, &SWEEP).stderr);
    (fs::read_to_string(directory.join("out/runs.jsonl")).unwrap(), said)
}

#[test]
fn doctor_reports_an_untested_qemu_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    install_disguised_qemu(directory.path(), "8.2.0");
    let told = text(&hol(directory.path(), &["doctor"]).stdout);
    let line = told.lines().find(|line| line.contains("kernel engine")).unwrap();
    for word in ["partly", "qemu 8.2.0", "tested only with QEMU 7.2.x", "slower", "digests", "Debian 12"] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn qemu_without_required_functions_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    // A shell runs the script, and has none of them.
    install_disguised_qemu(directory.path(), "7.2.99");
    let told = text(&hol(directory.path(), &["doctor"]).stdout);
    assert!(told.contains("qemu 7.2.99") && told.contains("function qemu_get_cpu not found"), "{told}");
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn exactly_stepped_run_is_recorded_as_such() {
    let directory = tempfile::tempdir().unwrap();
    share_kernels(directory.path());
    let (journal, said) = sweep(directory.path());
    assert!(journal.contains(r#""provenance":"qemu 7.2"#), "{journal}");
    assert!(journal.contains(", exact stepping") && !said.contains("warning"), "{journal}\n{said}");
    let kept = fs::read_dir(directory.path().join("headofline/snapshots")).unwrap().flatten();
    let names: Vec<_> = kept.map(|entry| text(entry.file_name().as_encoded_bytes())).collect();
    assert!(names.iter().any(|name| name.ends_with(".state")), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".differs")), "{names:?}");
    let listed = text(&hol(directory.path(), &["kernel", "list"]).stdout);
    assert!(listed.contains("exact stepping") && !listed.contains("no exact"), "{listed}");
}

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn run_without_exact_stepping_has_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        share_kernels(directory.path());
        install_disguised_qemu(directory.path(), "8.2.0");
        let (journal, said) = sweep(directory.path());
        assert!(journal.contains(r#""provenance":"qemu 8.2.0, no exact stepping"#), "{journal}");
        assert_eq!(
            said.matches("warning: qemu 8.2.0 does not run its threads in a fixed order").count(),
            1,
            "{said}"
        );
    }

    /// The script removes the library from QEMU when it runs a machine, but not when it is asked whether it can load
    /// the library.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn qemu_that_steps_inexactly_is_detected_at_the_snapshot() {
        let directory = tempfile::tempdir().unwrap();
        share_kernels(directory.path());
        let without = r#"LD_PRELOAD=$(echo "$LD_PRELOAD" | sed 's#[^:]*lockstep.so##')"#;
        let script = format!("[ \"$1\" = --version ] || export {without}\nexec {} \"$@\"", qemu_path());
        replace_qemu(directory.path(), &script);
        let reason = "two runs of the same job differed";
        let told = || text(&hol(directory.path(), &["doctor"]).stdout);
        assert!(!told().contains(reason) && told().contains(", exact stepping"), "{}", told());
        let (journal, said) = sweep(directory.path());
        assert!(journal.contains(reason) && said.contains(reason), "{journal}\n{said}");
        assert!(told().contains(reason), "{}", told());
    }
}
