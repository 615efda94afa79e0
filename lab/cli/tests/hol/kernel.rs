//! Where the kernel world is, if it is here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::BIN;

/// Where the kernels of this machine are; `None`, said aloud, where there is no kernel world. With
/// `HOL_REQUIRE_KERNEL` set that is a failure.
pub fn kernels(test: &str) -> Option<PathBuf> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output().is_ok_and(|o| o.status.success());
    let listed = Command::new(BIN).args(["kernel", "list"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let first = text.split_whitespace().find(|word| word.starts_with('/') && !word.ends_with("-uml"));
    let first = first.map(PathBuf::from);
    let found = first.filter(|_| qemu).and_then(|kernel| Some(kernel.parent()?.to_owned()));
    assert!(
        found.is_some() || std::env::var_os("HOL_REQUIRE_KERNEL").is_none(),
        "{test}: no QEMU, or no `hol kernel fetch`"
    );
    if found.is_none() {
        eprintln!("{test}: SKIPPED, for there is no QEMU, or no kernel (`hol kernel fetch`)");
    }
    found
}

/// Whether the kernel of `series` is among them, said aloud or required in the same way.
#[allow(dead_code, reason = "not every test file needs a certain kernel")]
pub fn has(series: &str, test: &str) -> bool {
    let Some(kernels) = kernels(test) else { return false };
    let first = format!("{series}.");
    let kernels = fs::read_dir(kernels).unwrap().map(|entry| entry.unwrap());
    let mut stock = kernels.filter(|kernel| kernel.path().join("vmlinuz").is_file());
    let found = stock.any(|kernel| kernel.file_name().to_string_lossy().starts_with(&first));
    let cure = format!("there is no Linux {series} (`hol kernel fetch {series}`)");
    assert!(found || std::env::var_os("HOL_REQUIRE_KERNEL").is_none(), "{test}: {cure}");
    if !found {
        eprintln!("{test}: SKIPPED, for {cure}");
    }
    found
}

/// Whether there is a kernel for User-Mode Linux, said aloud; with `HOL_REQUIRE_UML` set there has to be one.
#[allow(dead_code, reason = "not every test file runs User-Mode Linux")]
pub fn has_user_mode(test: &str) -> bool {
    let listed = Command::new(BIN).args(["kernel", "list"]).output().unwrap();
    let found = String::from_utf8_lossy(&listed.stdout).split_whitespace().any(|word| word.ends_with("-uml"));
    assert!(found || std::env::var_os("HOL_REQUIRE_UML").is_none(), "{test}: no `hol kernel build`");
    if !found {
        eprintln!("{test}: SKIPPED, for there is no kernel for User-Mode Linux (`hol kernel build`)");
    }
    found
}

/// Whether these programs are here, and what makes a root of them, said aloud; with `HOL_REQUIRE_PROGRAMS` set they have to be.
#[allow(dead_code, reason = "not every test file runs programs")]
pub fn has_programs(programs: &[&str], test: &str) -> bool {
    let is_there = |program: &str| {
        Command::new("sh")
            .args(["-c", &format!("PATH=$PATH:/usr/sbin command -v {program}")])
            .output()
            .is_ok_and(|found| found.status.success())
    };
    let missing = programs.iter().chain(&["mkfs.erofs"]).find(|program| !is_there(program));
    assert!(
        missing.is_none() || std::env::var_os("HOL_REQUIRE_PROGRAMS").is_none(),
        "{test}: there is no {missing:?}"
    );
    if let Some(program) = missing {
        eprintln!("{test}: SKIPPED, for there is no {program}");
    }
    missing.is_none()
}

/// Makes `cache` a cache of its own with the same kernels, and no snapshot.
#[allow(dead_code, reason = "not every test file has a cache of its own")]
pub fn share(kernels: &Path, cache: &Path) {
    fs::create_dir_all(cache.join("headofline")).unwrap();
    symlink(kernels, cache.join("headofline/kernels")).unwrap();
}
