//! Faults of the kernel world in QEMU: a run fails and the sweep continues; no result is lost, and no process or file
//! remains.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use super::engine::{share_kernels, stock};
use crate::program::{BIN, code};

const SWEEP: &str = "
    world = 'kernel'
    transports = ['tcp']
    messages = 9000
    repetitions = 3
";

/// `hol` with `arguments` in `dir`.
fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BIN);
    command.current_dir(dir).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the error output; the command must have failed with `exit`.
fn error_output(output: &Output, exit: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(output), exit, "{text}");
    text
}

/// Creates a directory with the sweep.
fn directory_with_sweep() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("sweep.toml"), SWEEP).unwrap();
    dir
}

const RUN: [&str; 6] = ["run", "sweep.toml", "--out", "out", "--jobs", "1"];

fn journal(dir: &Path) -> Vec<String> {
    fs::read_to_string(dir.join("out/runs.jsonl")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Returns the machine that `parent` runs, once it executes its job: restoring takes less processor time than this.
fn machine(parent: &Child) -> u32 {
    for _ in 0..6000 {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for id in ids {
            let read = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
            let is_child = read("status").contains(&format!("PPid:\t{}\n", parent.id()));
            let stat = read("stat");
            // proc(5): utime, in ticks of 10 ms, is the twelfth field behind the name.
            let user = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)?.parse().ok());
            if is_child && read("cmdline").contains("opt/headofline/job") && user.unwrap_or(0) > 50 {
                return id;
            }
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("no machine was started");
}

fn is_running(id: u32) -> bool {
    // A zombie is no longer running.
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.contains("qemu") && !status.contains("State:\tZ")
}

fn kill(signal: &str, id: u32) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn a_kernel_without_sctp_is_refused_for_sctp_only() {
    let (cache, modules) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kernel = stock().directory;
    for module in fs::read_dir(kernel.join("modules")).unwrap().flatten() {
        if module.file_name() != "sctp.ko" {
            fs::copy(module.path(), modules.path().join(module.file_name())).unwrap();
        }
    }
    let hol = |arguments: &[&str]| {
        command(cache.path(), arguments).env("XDG_CACHE_HOME", cache.path()).output().unwrap()
    };
    let (image, modules) = (kernel.join("vmlinuz"), modules.path().to_str().unwrap());
    assert_eq!(code(&hol(&["kernel", "use", image.to_str().unwrap(), "--modules", modules])), 0);
    fs::write(cache.path().join("sweep.toml"), SWEEP).unwrap();
    assert_eq!(code(&hol(&["run", "sweep.toml", "--plan"])), 0);
    let said = error_output(&hol(&["run", "sweep.toml", "--plan", "--set", "transports=['sctp']"]), 2);
    assert!(said.contains("no module sctp") && said.contains("hol kernel fetch"), "{said}");
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn truncated_kernel_in_the_cache_is_reported_with_a_remedy() {
    let cache = tempfile::tempdir().unwrap();
    let kernel = stock().directory;
    let copy = cache.path().join("headofline/kernels").join(kernel.file_name().unwrap());
    fs::create_dir_all(&copy).unwrap();
    let octets = fs::read(kernel.join("vmlinuz")).unwrap();
    fs::write(copy.join("vmlinuz"), &octets[..octets.len() / 2]).unwrap();
    let arguments = ["compare", "tcp", "--world", "kernel"];
    let output = command(cache.path(), &arguments).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    let said = error_output(&output, 1);
    assert!(said.contains("truncated") && said.contains("hol kernel fetch"), "{said}");
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn too_many_machines_for_the_memory_are_refused_at_the_start() {
    let dir = directory_with_sweep();
    let arguments = ["run", "sweep.toml", "--set", "repetitions=3000", "--jobs", "3000"];
    let said = error_output(&command(dir.path(), &arguments).output().unwrap(), 1);
    assert!(said.contains("3000 simultaneous virtual machines") && said.contains("MiB are free"), "{said}");
}

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn full_disk_leaves_no_incomplete_snapshot() {
        let cache = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=60m", "tmpfs"]).arg(cache.path());
        assert!(mount.status().unwrap().success(), "only root may mount a small disk");
        share_kernels(cache.path());
        let arguments = ["compare", "tcp", "--world", "kernel", "--count", "100", "--repetitions", "1"];
        let output =
            command(Path::new("/"), &arguments).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
        let states = fs::read_dir(cache.path().join("headofline/snapshots")).unwrap().flatten();
        let left: Vec<_> = states.map(|entry| entry.file_name()).filter(|name| name != "lock").collect();
        assert!(Command::new("umount").arg(cache.path()).status().unwrap().success());
        let said = error_output(&output, 1);
        assert!(said.contains("free some space") && said.contains("headofline/snapshots"), "{said}");
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn truncated_snapshot_is_created_again() {
        let cache = tempfile::tempdir().unwrap();
        share_kernels(cache.path());
        let states = cache.path().join("headofline/snapshots");
        let run = || {
            let arguments =
                ["compare", "tcp", "--world", "kernel", "--count", "100", "--repetitions", "1", "--json"];
            let output =
                command(cache.path(), &arguments).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
            assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        };
        let state = || -> PathBuf {
            let names = fs::read_dir(&states).unwrap().map(|entry| entry.unwrap().path());
            names.into_iter().find(|path| path.extension().is_some_and(|end| end == "state")).unwrap()
        };
        run();
        let whole = fs::metadata(state()).unwrap().len();
        fs::File::options().write(true).open(state()).unwrap().set_len(whole / 2).unwrap();
        run();
        let again = fs::metadata(state()).unwrap().len();
        assert!(again > whole / 2, "{again} of {whole} octets");
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn killed_machine_is_a_failed_run_that_can_be_repeated() {
        let dir = directory_with_sweep();
        let sweep = command(dir.path(), &RUN).spawn().unwrap();
        kill("-KILL", machine(&sweep));
        let said = error_output(&sweep.wait_with_output().unwrap(), 1);
        assert!(said.contains("1 of 3 runs failed") && said.contains("SIGKILL"), "{said}");
        assert!(said.contains("same command again"), "{said}");
        assert_eq!(journal(dir.path()).len(), 3, "the others were done");
        let logs = || fs::read_dir(dir.path().join("out/failed")).unwrap().count();
        assert_eq!(logs(), 1);
        assert_eq!(code(&command(dir.path(), &RUN).output().unwrap()), 0);
        assert_eq!((journal(dir.path()).len(), logs()), (4, 0));
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn run_beyond_the_users_time_limit_fails() {
        let dir = directory_with_sweep();
        let limited = |limit: &str| command(dir.path(), &RUN).env("HOL_RUN_LIMIT", limit).output().unwrap();
        let said = error_output(&limited("10ms"), 1);
        assert!(said.contains("3 of 3 runs failed") && said.contains("HOL_RUN_LIMIT"), "{said}");
        assert!(error_output(&limited("soon"), 2).contains("HOL_RUN_LIMIT=soon"));
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn killed_sweep_leaves_no_machine_and_continues() {
        let dir = directory_with_sweep();
        let mut sweep = command(dir.path(), &RUN).spawn().unwrap();
        let machine = machine(&sweep);
        sweep.kill().unwrap();
        sweep.wait().unwrap();
        std::thread::park_timeout(Duration::from_millis(500));
        assert!(!is_running(machine), "QEMU outlived us");
        assert_eq!(code(&command(dir.path(), &RUN).output().unwrap()), 0);
        assert_eq!(journal(dir.path()).len(), 3);
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn interrupt_ends_the_sweep_and_its_current_run() {
        let dir = directory_with_sweep();
        let sweep = command(dir.path(), &RUN).spawn().unwrap();
        let machine = machine(&sweep);
        kill("-INT", sweep.id());
        let said = error_output(&sweep.wait_with_output().unwrap(), 1);
        assert!(said.contains("run the same command again"), "{said}");
        assert!(!is_running(machine));
        assert_eq!(journal(dir.path()).len(), 0);
        assert_eq!(code(&command(dir.path(), &RUN).output().unwrap()), 0);
        assert_eq!(journal(dir.path()).len(), 3);
    }
}
