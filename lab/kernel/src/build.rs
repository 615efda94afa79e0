//! Builds a kernel for User-Mode Linux from the distribution's source, in the cache; needs no privileges.
//!
//! Its configuration is the list `uml/options`; its changes are the patches in the same directory, which are
//! under the kernel's licence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::KernelError;
use crate::build_tools::check_installed;
use crate::cache::cache_directory;
use crate::image::Image;
use crate::package_source::{PackageQuery, PackageSource, run, source_archive};
use crate::scratch;

const OPTIONS: &str = include_str!("../uml/options");

const PATCHES: [(&str, &str); 11] = [
    ("give-way.patch", include_str!("../uml/give-way.patch")),
    ("host-state.patch", include_str!("../uml/host-state.patch")),
    ("instructions.patch", include_str!("../uml/instructions.patch")),
    ("nanosecond-clock.patch", include_str!("../uml/nanosecond-clock.patch")),
    ("no-host-entropy.patch", include_str!("../uml/no-host-entropy.patch")),
    ("orphans.patch", include_str!("../uml/orphans.patch")),
    ("program-clock.patch", include_str!("../uml/program-clock.patch")),
    ("socket-transport.patch", include_str!("../uml/socket-transport.patch")),
    ("tick.patch", include_str!("../uml/tick.patch")),
    ("tick-clock.patch", include_str!("../uml/tick-clock.patch")),
    ("extended-state.patch", include_str!("../uml/extended-state.patch")),
];

/// The prefix of the names of Debian packages with the source of Linux.
const SOURCE_PACKAGE_PREFIX: &str = "linux-source-";

/// The programs that the build needs, each with its Debian package.
const TOOLS: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("patch", "patch"),
    ("xz", "xz-utils"),
];

/// Environment variables that have the same values in all builds, because the kernel mixes the date and the host of its
/// build into its random numbers.
const SAME_FOR_ALL: [(&str, &str); 3] =
    [("KBUILD_BUILD_TIMESTAMP", "2020-01-01"), ("KBUILD_BUILD_USER", "hol"), ("KBUILD_BUILD_HOST", "hol")];

/// Builds Linux of `series`, such as 6.12, from a source package. Passes a description of each step to `report_step`
/// before the step.
pub fn build(series: &str, source: &PackageSource, report_step: impl Fn(&str)) -> Result<Image, KernelError> {
    check_installed(&TOOLS)?;
    let work = scratch::create_directory(&cache_directory(), "build")?;
    let package = format!("linux-source-{series}");
    let choose = |names: &[String]| names.contains(&package).then(|| vec![package.clone()]);
    let version = |name: &str| name.strip_prefix(SOURCE_PACKAGE_PREFIX).map(str::to_owned);
    let what = format!("package {package}");
    let wanted =
        PackageQuery { what, cure: "", prefix: SOURCE_PACKAGE_PREFIX, choose: &choose, version: &version };
    let unpacked = source.obtain(&wanted, work.path(), &report_step)?;
    let source = work.path().join("linux");
    unpack(&unpacked, &source)?;
    for (name, patch) in PATCHES {
        apply(name, patch, &source)?;
    }
    configure(&source)?;
    report_step("compiling, which takes five minutes of processor time");
    run(make(&source).arg(format!("-j{}", processors())).arg("linux"), "make")?;
    let release = run(make(&source).args(["-s", "kernelrelease"]), "make")?;
    Image::store_program(release.trim(), &source.join("linux"), &source.join("modules.builtin"))
}

/// Extracts the source of Linux from the archive in the unpacked package.
fn unpack(unpacked: &Path, source: &Path) -> Result<(), KernelError> {
    let archive = source_archive(unpacked)?;
    fs::create_dir(source).map_err(|e| KernelError::file("create", source, e))?;
    let mut tar = Command::new("tar");
    run(tar.arg("-xJf").arg(archive).arg("-C").arg(source).arg("--strip-components=1"), "tar").map(drop)
}

fn apply(name: &str, patch: &str, source: &Path) -> Result<(), KernelError> {
    let path = store(source, name, patch)?;
    // No fuzz and no offsets: a patch that does not apply exactly is for another kernel.
    let mut command = Command::new("patch");
    run(command.arg("-d").arg(source).args(["-p1", "--fuzz=0", "-i"]).arg(path), "patch").map(drop)
}

/// Creates a kernel configuration with exactly the options in `OPTIONS`.
fn configure(source: &Path) -> Result<(), KernelError> {
    let options = store(source, "options", OPTIONS)?;
    run(make(source).arg(format!("KCONFIG_ALLCONFIG={}", options.display())).arg("allnoconfig"), "make")?;
    let path = source.join(".config");
    let made = fs::read_to_string(&path).map_err(|e| KernelError::file("read", &path, e))?;
    match missing_option(&made) {
        Some(option) => {
            Err(KernelError::image(source, format!("this kernel does not support {option}; build 6.12")))
        }
        None => Ok(()),
    }
}

/// Returns the first wanted option that is missing from the configuration `made` by the kernel's own tools. They
/// remove an option if one of its dependencies is missing.
fn missing_option(made: &str) -> Option<&'static str> {
    let wanted = OPTIONS.lines().filter(|line| line.starts_with("CONFIG_"));
    wanted.into_iter().find(|option| !made.lines().any(|line| line == *option))
}

fn store(directory: &Path, name: &str, text: &str) -> Result<PathBuf, KernelError> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|e| KernelError::file("write", &path, e))?;
    Ok(path)
}

fn make(source: &Path) -> Command {
    let mut command = Command::new("make");
    command.arg("-C").arg(source).arg("ARCH=um").envs(SAME_FOR_ALL);
    command
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_a_configuration_lost_is_named() {
        assert_eq!(missing_option(OPTIONS), None);
        let without = OPTIONS.replace("CONFIG_IP_SCTP=y", "# CONFIG_IP_SCTP is not set");
        assert_eq!(missing_option(&without), Some("CONFIG_IP_SCTP=y"));
    }

    #[test]
    fn each_patch_has_a_licence_identifier() {
        assert!(PATCHES.iter().all(|(_, patch)| patch.starts_with("# SPDX-License-Identifier: GPL-2.0\n")));
    }
}
