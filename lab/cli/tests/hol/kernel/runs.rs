//! The kernel world in QEMU, end to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::engine::share_kernels;
use crate::program::{self, BIN, code};

fn hol(arguments: &[&str]) -> Output {
    program::hol(Path::new("."), arguments)
}

/// Runs `hol` with a separate cache that contains no kernel.
fn hol_in(cache: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(BIN);
    command.args(arguments).env("XDG_CACHE_HOME", cache).output().expect("hol starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn comparison(transport: &str, count: &str, more: &[&str]) -> Command {
    let fixed = ["compare", transport, "--json", "--repetitions", "1", "--count", count];
    let named = more.iter().any(|argument| argument.starts_with("--world"));
    let mut command = Command::new(BIN);
    command.args(fixed).args((!named).then_some("--world=kernel")).args(more);
    command
}

fn compare(transport: &str, more: &[&str]) -> Output {
    let output = comparison(transport, "100", more).output().expect("hol starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

fn digest(transport: &str, more: &[&str]) -> String {
    digest_in(&compare(transport, more))
}

fn digest_in(output: &Output) -> String {
    let lines = text(&output.stdout);
    let (_, rest) = lines.split_once("\"digest\":\"").unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    rest[..32].to_owned()
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn the_same_seed_gives_the_same_digest_and_another_seed_another() {
    let lossy = |seed| digest("sctp:streams=8", &["--loss", "5%", "--seed", seed]);
    assert_eq!(lossy("1"), lossy("1"));
    assert_ne!(lossy("1"), lossy("2"));
}

/// The emulators of 6.1 have no seeds of their own, and its clock source is trusted later. The packages of 7.3 are in parts.
#[test]
#[ignore = "needs QEMU and kernels (hol kernel fetch, of 6.1, 7.3 and 6.12)"]
fn other_kernels_run_the_same_experiment_repeatably() {
    for transport in ["tcp", "sctp:streams=8"] {
        let usual = digest(transport, &["--loss", "5%", "--world=kernel:6.12"]);
        for world in ["--world=kernel:6.1", "--world=kernel:7.3"] {
            let [once, again] = [(); 2].map(|()| digest(transport, &["--loss", "5%", world]));
            assert_eq!(once, again, "{transport} {world}");
            assert_ne!(once, usual, "{transport} {world}: the kernels are not the same");
        }
    }
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn run_is_repeatable_despite_interruptions_of_qemu() {
    let directory = tempfile::tempdir().unwrap();
    let pause = pause(directory.path());
    let lossy = || comparison("tcp", "600", &["--loss", "5%"]);
    let undisturbed = digest_in(&lossy().output().expect("hol starts"));
    let disturbed = digest_in(&lossy().env("LD_PRELOAD", pause).output().expect("hol starts"));
    assert_eq!(undisturbed, disturbed);
}

/// Builds a library that pauses QEMU's processor thread at critical instructions.
fn pause(directory: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/lockstep/pause.rs");
    let library = directory.join("pause.so");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "opt-level=2", "-C", "panic=abort"]);
    assert!(rustc.arg(source).arg("-o").arg(&library).status().expect("rustc starts").success());
    library
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn unsupported_functions_of_the_kernel_are_refused_by_name() {
    let output = hol(&["compare", "tcp", "--world", "kernel", "--set", "network.mtu=70000B"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("network.mtu"), "{}", text(&output.stderr));
    let handover = "network.handover={ speed = 10, overlap = 5, at = '1s' }";
    let paths = "network.paths=[{}, {}]";
    let output = hol(&["compare", "udp", "--world", "kernel", "--set", paths, "--set", handover]);
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("network.handover"), "{}", text(&output.stderr));
}

#[test]
fn without_a_kernel_the_error_names_the_command() {
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("one.toml");
    fs::write(&file, "transports = ['tcp']\n").unwrap();
    for arguments in [&["compare", "tcp", "--world", "kernel"][..], &["validate", file.to_str().unwrap()]] {
        let output = hol_in(cache.path(), arguments);
        assert!(text(&output.stderr).contains("hol kernel fetch"), "{}", text(&output.stderr));
    }
}

#[test]
fn truncated_images_and_text_files_are_not_kernels() {
    let cache = tempfile::tempdir().unwrap();
    let image = cache.path().join("vmlinuz");
    fs::write(&image, "hello").unwrap();
    let output = hol_in(cache.path(), &["kernel", "use", image.to_str().unwrap()]);
    assert!(text(&output.stderr).contains("bzImage"), "{}", text(&output.stderr));
    assert_eq!(code(&output), 1);
}

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn two_boots_give_the_same_digest() {
        let fresh = tempfile::tempdir().unwrap();
        share_kernels(fresh.path());
        let run = |command: &mut Command| digest_in(&command.output().expect("hol starts"));
        let lossy = || comparison("sctp:streams=8", "200", &["--loss", "5%"]);
        assert_eq!(run(&mut lossy()), run(lossy().env("XDG_CACHE_HOME", fresh.path())));
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn every_effect_of_the_network_runs() {
        for setting in [
            "network.jitter=2ms",
            "network.loss={ good_to_bad = \"1%\", bad_to_good = \"25%\" }",
            "network.corrupt=1%",
            "network.paths=[{}, {delay = \"20ms\"}]",
            "network.overhead=38B",
        ] {
            compare("sctp", &["--set", setting]);
        }
        compare("tcp", &["--set", "network.reorder=5%", "--set", "network.reorder_by=3ms"]);
    }
}
