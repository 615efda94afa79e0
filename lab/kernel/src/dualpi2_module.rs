//! Builds the module `sch_dualpi2` for a kernel of Debian, whose packages do not contain it, from Debian's source and headers.
//!
//! kbuild compiles the module as one from outside the kernel's tree. Programs of the package `linux-kbuild` that need the C library of a
//! newer Debian than this machine's are left out: objtool, without whose annotations a module works, and modpost, whose output for
//! a module without dependencies is [`MODULE_DESCRIPTION`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hol_stack::linux_version;

use crate::build_tools::check_installed;
use crate::cache::cache_directory;
use crate::check::DUALPI2_VERSION;
use crate::image::Image;
use crate::package_source::{PackageQuery, PackageSource, run, source_archive};
use crate::{KernelError, atomic_replace, modules, scratch};

/// The programs that the build needs, each with its Debian package.
const TOOLS: [(&str, &str); 4] = [("make", "make"), ("gcc", "gcc"), ("ld", "binutils"), ("xz", "xz-utils")];

/// The path of the module's source in the source of the kernel.
const SOURCE: &str = "net/sched/sch_dualpi2.c";

/// Source of the module descriptor, which kbuild's modpost would otherwise generate, for a kernel without
/// CONFIG_MODVERSIONS. `scripts/mod/modpost.c`, `add_header`.
const MODULE_DESCRIPTION: &str = r#"#include <linux/module.h>
MODULE_INFO(name, KBUILD_MODNAME);
__visible struct module __this_module __section(".gnu.linkonce.this_module") = {
	.name = KBUILD_MODNAME,
	.init = init_module,
	.exit = cleanup_module,
	.arch = MODULE_ARCH_INIT,
};
MODULE_INFO(depends, "");
"#;

/// A script that is run in place of kbuild's modpost.
const MODPOST: &str = "#!/bin/sh\n: > Module.symvers\ncp description.c sch_dualpi2.mod.c\n";

/// Adds the DualPI2 module to a kernel of the cache, unless the kernel has it. Passes a description of each step to
/// `report_step` before the step.
pub fn add_dualpi2(
    image: &Image,
    source: &PackageSource,
    report_step: impl Fn(&str),
) -> Result<(), KernelError> {
    if image.has_module(modules::DUALPI2) {
        return Ok(());
    }
    let release = image.version();
    if linux_version(release) < DUALPI2_VERSION {
        return Err(KernelError::Unsupported {
            what: format!("Linux {release}"),
            why: "Linux has DualPI2 since 6.17; use `hol kernel fetch 7.3 --dualpi2`".to_owned(),
        });
    }
    check_installed(&TOOLS)?;
    let work = scratch::create_directory(&cache_directory(), "module")?;
    let names = packages(release);
    let choose = |known: &[String]| names.iter().all(|name| known.contains(name)).then(|| names.to_vec());
    let version = |name: &str| name.strip_prefix("linux-headers-")?.strip_suffix("-amd64").map(str::to_owned);
    let what = format!("headers and source of {release}");
    let wanted = PackageQuery { what, cure: "", prefix: "linux-", choose: &choose, version: &version };
    let unpacked = source.obtain(&wanted, work.path(), &report_step)?;
    report_step("compiling sch_dualpi2");
    let module = compile(&unpacked, release)?;
    let octets = fs::read(&module).map_err(|e| KernelError::file("read", &module, e))?;
    atomic_replace::write_file(&image.modules().join(modules::file_name(modules::DUALPI2)), &octets)
}

/// Returns the names of the packages with the headers, the kbuild programs and the source of a release such as
/// `7.3.4+deb13-amd64`.
fn packages(release: &str) -> [String; 4] {
    let version = release.rsplit_once('-').map_or(release, |(version, _)| version);
    let [major, minor] = linux_version(release);
    [
        format!("linux-headers-{release}"),
        format!("linux-headers-{version}-common"),
        format!("linux-kbuild-{version}"),
        format!("linux-source-{major}.{minor}"),
    ]
}

/// Compiles the module of a release from the unpacked packages; returns the path of the module's file.
fn compile(unpacked: &Path, release: &str) -> Result<PathBuf, KernelError> {
    let [headers, common, ..] = packages(release).map(|name| unpacked.join("usr/src").join(name));
    // The package's Makefile has the paths of installed packages.
    let makefile = format!("KBUILD_OUTPUT={}\ninclude {}/Makefile\n", headers.display(), common.display());
    write(&headers.join("Makefile"), &makefile)?;
    let place = unpacked.join("module");
    fs::create_dir(&place).map_err(|e| KernelError::file("create", &place, e))?;
    extract(unpacked, &place)?;
    write(&place.join("Makefile"), "obj-m := sch_dualpi2.o\n")?;
    write(&place.join("description.c"), MODULE_DESCRIPTION)?;
    let modpost = place.join("modpost");
    write(&modpost, MODPOST)?;
    run(Command::new("chmod").arg("+x").arg(&modpost), "coreutils")?;
    let mut make = Command::new("make");
    let make = make.arg("-C").arg(&headers).args(["modules", "CC=gcc", "CROSS_COMPILE="]);
    let make = make.arg(format!("M={}", place.display())).arg(format!("MODPOST={}", modpost.display()));
    // Paths of this machine would end up in the module.
    let make = make.arg(format!("KCFLAGS=-ffile-prefix-map={}/=", unpacked.display()));
    // Empty values: no objtool, no type information for BPF, and no option that only newer compilers have.
    let without = [
        "objtool-enabled=",
        "CONFIG_DEBUG_INFO=",
        "CONFIG_DEBUG_INFO_BTF_MODULES=",
        "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
        "WARN_ON_UNUSED_TRACEPOINTS=",
    ];
    run(make.args(without), "make")?;
    Ok(place.join(modules::file_name(modules::DUALPI2)))
}

/// Extracts the module's source from the archive in the unpacked packages to `place`.
fn extract(unpacked: &Path, place: &Path) -> Result<(), KernelError> {
    let archive = source_archive(unpacked)?;
    let mut tar = Command::new("tar");
    let tar = tar.arg("-xJf").arg(archive).arg("-C").arg(place).args(["--strip-components=3", "--wildcards"]);
    run(tar.arg(format!("*/{SOURCE}")), "tar").map(drop)
}

fn write(path: &Path, text: &str) -> Result<(), KernelError> {
    fs::write(path, text).map_err(|e| KernelError::file("write", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_packages_have_the_version_of_the_kernel() {
        assert_eq!(
            packages("7.3.4+deb13-amd64").join(" "),
            "linux-headers-7.3.4+deb13-amd64 linux-headers-7.3.4+deb13-common linux-kbuild-7.3.4+deb13 linux-source-7.3"
        );
    }

    #[test]
    fn a_kernel_without_the_source_is_refused_before_the_download() {
        let image =
            Image { release: "6.12.117+deb12-amd64".to_owned(), directory: PathBuf::from("/nonexistent") };
        let source = PackageSource::default();
        let error = add_dualpi2(&image, &source, |step| panic!("{step}")).unwrap_err().to_string();
        assert!(error.contains("hol kernel fetch 7.3 --dualpi2"), "{error}");
    }

    #[test]
    fn only_the_source_of_the_module_is_extracted() {
        let work = tempfile::tempdir().unwrap();
        let sources = work.path().join("usr/src");
        let tree = sources.join("linux-source-7.3/net/sched");
        fs::create_dir_all(&tree).unwrap();
        for name in ["sch_dualpi2.c", "sch_pie.c"] {
            write(&tree.join(name), name).unwrap();
        }
        let archive = sources.join("linux-source-7.3.tar.xz");
        let mut tar = Command::new("tar");
        run(tar.arg("-cJf").arg(&archive).arg("-C").arg(&sources).arg("linux-source-7.3"), "tar").unwrap();
        let place = tempfile::tempdir().unwrap();
        extract(work.path(), place.path()).unwrap();
        let names: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["sch_dualpi2.c"]);
    }
}
