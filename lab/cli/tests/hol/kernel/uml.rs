//! User-Mode Linux as an engine of the kernel world, end to end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::points::csv;
use crate::program::{BIN, code, ok};

const SWEEP: &str = "
    world = 'kernel:uml'
    transports = ['tcp']
    messages = 9000
    repetitions = 3
";

const RUN: [&str; 6] = ["run", "sweep.toml", "--out", "out", "--jobs", "1"];

/// Creates a directory with the sweep, and a directory for temporary files of runs.
fn directory_with_sweep() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("sweep.toml"), SWEEP).unwrap();
    fs::create_dir(temporary_directory(dir.path())).unwrap();
    dir
}

fn temporary_directory(dir: &Path) -> PathBuf {
    dir.join("passing")
}

/// Returns the command that runs the sweep.
fn sweep(dir: &Path) -> Command {
    let mut command = Command::new(BIN);
    command
        .current_dir(dir)
        .args(RUN)
        .env("TMPDIR", temporary_directory(dir))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn journal(dir: &Path) -> Vec<String> {
    fs::read_to_string(dir.join("out/runs.jsonl")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Returns the error output; the command must have failed with `exit`.
fn error_output(output: &Output, exit: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(output), exit, "{text}");
    text
}

/// Returns the processes of runs of the sweep in `dir`: kernels, and the programs in them.
fn running(dir: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |id: &u32| {
        let cwd = fs::read_link(format!("/proc/{id}/cwd")).unwrap_or_default();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        cwd.starts_with(temporary_directory(dir)) && !status.contains("State:\tZ")
    };
    ids.filter(is_ours).collect()
}

/// Returns the kernel process that `sweep` in `dir` runs, once it has programs.
fn kernel_of(sweep: &Child, dir: &Path) -> u32 {
    for _ in 0..3000 {
        let processes = running(dir);
        let is_child = |id: &u32| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            status.contains(&format!("PPid:\t{}\n", sweep.id()))
        };
        if let Some(kernel) = processes.iter().copied().find(is_child).filter(|_| processes.len() > 1) {
            return kernel;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    panic!("no kernel was started");
}

fn kill(signal: &str, id: u32) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

fn leaves_nothing(dir: &Path) {
    // The system needs a moment to end killed processes, and more if it is busy.
    let is_empty = || running(dir).is_empty();
    let ended = (0..100).any(|_| {
        is_empty() || {
            thread::park_timeout(Duration::from_millis(100));
            false
        }
    });
    assert!(ended || is_empty(), "{:?}", running(dir));
}

fn digest(transport: &str, seed: &str) -> String {
    let fixed =
        ["compare", transport, "--json", "--world", "kernel:uml", "--repetitions", "1", "--count", "100"];
    let lines = ok(Path::new("."), &[&fixed[..], &["--loss", "5%", "--seed", seed]].concat());
    let (_, rest) = lines.split_once("\"digest\":\"").unwrap();
    rest[..32].to_owned()
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn digest_depends_on_the_seed_and_not_on_the_load_of_the_host() {
    for transport in ["tcp", "sctp:streams=8", "mptcp", "udp"] {
        let first = digest(transport, "1");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().unwrap().get() {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let again: Vec<_> = (0..3).map(|_| digest(transport, "1")).collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(again, vec![first.clone(); 3], "{transport}");
        });
        assert_ne!(digest(transport, "2"), first, "{transport}");
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn capture_is_repeatable_to_the_octet() {
    let dir = tempfile::tempdir().unwrap();
    let capture = |name: &str| {
        let fixed = ["trace", "sctp", "--world", "kernel:uml", "--repetitions", "1", "--count", "100"];
        let text = ok(dir.path(), &[&fixed[..], &["--loss", "5%", "--pcap", name]].concat());
        (fs::read(dir.path().join(name)).unwrap(), text.replace(name, ""))
    };
    let (first, second) = (capture("first.pcapng"), capture("second.pcapng"));
    assert!(first == second);
    assert!(first.0.len() > 20_000, "{} octets", first.0.len());
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn results_name_the_engine_and_do_not_mix_with_those_of_qemu() {
    let dir = directory_with_sweep();
    assert_eq!(code(&sweep(dir.path()).args(["--set", "messages=50"]).output().unwrap()), 0);
    let journal = journal(dir.path());
    assert_eq!(journal.len(), 3);
    assert!(journal.iter().all(|line| line.contains(r#""provenance":"uml 6.12."#)), "{journal:?}");
    let manifest = fs::read_to_string(dir.path().join("out/manifest.json")).unwrap();
    assert!(manifest.contains("-uml") && manifest.contains("uml 6.12."), "{manifest}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn killed_kernel_is_a_failed_run_that_can_be_repeated() {
    let dir = directory_with_sweep();
    let child = sweep(dir.path()).spawn().unwrap();
    kill("-KILL", kernel_of(&child, dir.path()));
    let said = error_output(&child.wait_with_output().unwrap(), 1);
    assert!(said.contains("1 of 3 runs failed") && said.contains("SIGKILL"), "{said}");
    assert_eq!(journal(dir.path()).len(), 3, "the others were done");
    leaves_nothing(dir.path());
    assert_eq!(fs::read_dir(temporary_directory(dir.path())).unwrap().count(), 0);
    assert_eq!(code(&sweep(dir.path()).output().unwrap()), 0);
    assert_eq!(journal(dir.path()).len(), 4);
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn a_run_that_takes_too_long_is_ended() {
    let dir = directory_with_sweep();
    let said = error_output(&sweep(dir.path()).env("HOL_RUN_LIMIT", "20ms").output().unwrap(), 1);
    assert!(said.contains("3 of 3 runs failed") && said.contains("HOL_RUN_LIMIT"), "{said}");
    leaves_nothing(dir.path());
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn killed_sweep_leaves_no_process_and_continues() {
    let dir = directory_with_sweep();
    let mut child = sweep(dir.path()).spawn().unwrap();
    kernel_of(&child, dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    leaves_nothing(dir.path());
    assert_eq!(code(&sweep(dir.path()).output().unwrap()), 0);
    assert_eq!(journal(dir.path()).len(), 3);
    assert_eq!(
        fs::read_dir(temporary_directory(dir.path())).unwrap().count(),
        0,
        "what the dead left is removed"
    );
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn interrupt_ends_the_sweep_and_its_current_run() {
    let dir = directory_with_sweep();
    let child = sweep(dir.path()).spawn().unwrap();
    kernel_of(&child, dir.path());
    kill("-INT", child.id());
    let said = error_output(&child.wait_with_output().unwrap(), 1);
    assert!(said.contains("run the same command again"), "{said}");
    leaves_nothing(dir.path());
    assert_eq!(code(&sweep(dir.path()).output().unwrap()), 0);
    assert_eq!(journal(dir.path()).len(), 3);
}

/// Returns the program that is the kernel.
fn kernel_file() -> PathBuf {
    let list = Command::new(BIN).args(["kernel", "list", "--json"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let kernels = list.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let directories = kernels.filter_map(|kernel| Some(PathBuf::from(kernel["directory"].as_str()?)));
    directories.map(|directory| directory.join("linux")).find(|file| file.exists()).expect("hol kernel build")
}

/// The child that a starting kernel tests ptrace with has no parent-death signal in Linux (arch/um/os-Linux/start_up.c), and stayed behind,
/// stopped.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn kernel_killed_at_its_start_leaves_no_process() {
    let dir = directory_with_sweep();
    for attempt in 0..100 {
        let mut kernel = Command::new(kernel_file())
            .current_dir(temporary_directory(dir.path()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::park_timeout(Duration::from_micros(30 * attempt));
        kernel.kill().unwrap();
        kernel.wait().unwrap();
    }
    leaves_nothing(dir.path());
}

/// Replaces a kernel by a script, in a separate cache, and runs it.
fn with_kernel_replaced(script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let kernel = dir.path().join("headofline/kernels/6.12.0-uml");
    fs::create_dir_all(&kernel).unwrap();
    fs::write(kernel.join("modules.builtin"), "kernel/net/sctp/sctp.ko\n").unwrap();
    // Another process writes the script: a child of another thread may inherit a file that this process has open for
    // writing (ETXTBSY).
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let written =
        Command::new("sh").args(["-c", write]).arg(kernel.join("linux")).arg(script).status().unwrap();
    assert!(written.success());
    let mut command = Command::new(BIN);
    command.args(["compare", "tcp", "--world", "kernel:uml", "--repetitions", "1", "--count", "10"]);
    let output = command.env("XDG_CACHE_HOME", dir.path()).env("HOL_RUN_LIMIT", "5s").output().unwrap();
    error_output(&output, 1)
}

#[test]
fn failing_kernel_is_reported_with_its_output() {
    let said = with_kernel_replaced("echo no such device; echo host too old >&2; exit 3");
    assert!(said.contains("exit status: 3 and wrote no result (host too old)"), "{said}");
    assert!(said.contains("no such device"), "{said}");
    let said = with_kernel_replaced("printf hol- >mail");
    assert!(said.contains("truncated after 4 octets"), "{said}");
}

#[test]
fn missing_kernel_or_build_tools_name_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let hol = |arguments: &[&str], exit| {
        let mut command = Command::new(BIN);
        let command = command.args(arguments).env("XDG_CACHE_HOME", dir.path()).env("PATH", dir.path());
        error_output(&command.output().unwrap(), exit)
    };
    let said = hol(&["compare", "tcp", "--world", "kernel:uml"], 2);
    assert!(said.contains("hol kernel build"), "{said}");
    fs::write(dir.path().join("gcc"), "").unwrap();
    fs::set_permissions(dir.path().join("gcc"), Permissions::from_mode(0o755)).unwrap();
    let said = hol(&["kernel", "build"], 1);
    assert!(said.contains("not installed: make, ld, flex, bison, bc, patch, xz"), "{said}");
    assert!(said.contains("`apt-get install make binutils flex bison bc patch xz-utils`"), "{said}");
}

/// A listener that calls accept when no association is waiting sleeps for up to 4 ms (Linux, `sctp_wait_for_accept`).
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn association_per_file_waits_for_no_timer_tick() {
    let dir = directory_with_sweep();
    let pages = "world = 'kernel:uml'\ntransports = ['sctp']\nmessages = 1\nrepetitions = 1\n\
        [network]\ndelay = '50us'\n[workload]\nkind = 'page'\nway = 'close'\ndocument = '0B'\nobjects = 20\nsize = '100B'";
    fs::write(dir.path().join("sweep.toml"), pages).unwrap();
    let run = sweep(dir.path()).output().unwrap();
    assert_eq!(code(&run), 0, "{}", String::from_utf8_lossy(&run.stderr));
    let points = fs::read_to_string(dir.path().join("out/points.csv")).unwrap();
    let page: f64 = csv(&points)[0]["p50_ms"].parse().unwrap();
    assert!((5.0..20.0).contains(&page), "{page} ms, and 20 ticks are 80");
}
