//! Downloads a distribution's kernel and unpacks it into the cache, without installing it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::cache_directory;
use crate::image::{Image, version_key};
use crate::package_source::{PackageQuery, PackageSource};
use crate::{KernelError, scratch};

/// The series that is fetched by default.
pub const DEFAULT_SERIES: &str = "6.12";

/// Fetches the newest kernel whose version begins with `wanted` from the first suite of `source` that has one. Passes a description of each
/// step to `report_step` before the step.
pub fn fetch(wanted: &str, source: &PackageSource, report_step: impl Fn(&str)) -> Result<Image, KernelError> {
    let work = scratch::create_directory(&cache_directory(), "fetch")?;
    let what = format!("kernel {wanted} for amd64");
    let cure = ", or use your own kernel with `hol kernel use PATH`";
    let choose = |names: &[String]| packages(names, wanted);
    let kernel = PackageQuery { what, cure, prefix: "linux-", choose: &choose, version: &series };
    let unpacked = source.obtain(&kernel, work.path(), &report_step)?;
    let image = image(&unpacked).ok_or_else(|| {
        KernelError::image(
            &unpacked,
            format!("the packages of {wanted} contain no kernel image; choose another version"),
        )
    })?;
    Image::import(&image, None)
}

/// Name prefixes of the Debian packages that together contain a kernel from 6.19 on: the image, the modules, and, after
/// 7.1, the list of what is built in. The package `linux-image-VERSION` of such a kernel is empty.
const PACKAGE_PREFIXES: [&str; 3] = ["linux-binary-", "linux-modules-", "linux-base-"];

/// Returns the names of the packages of the newest standard kernel in `names` whose version begins with `wanted`;
/// `None` if there is none.
fn packages(names: &[String], wanted: &str) -> Option<Vec<String>> {
    let versions = names.iter().filter_map(|name| version(name)).filter(|version| is_wanted(version, wanted));
    let version = versions.max_by_key(|version| version_key(version))?;
    let parts = PACKAGE_PREFIXES.map(|part| format!("{part}{version}-amd64"));
    let is_in_parts = names.contains(&parts[0]);
    let parts = parts.into_iter().filter(|name| names.contains(name)).collect();
    Some(if is_in_parts { parts } else { vec![format!("linux-image-{version}-amd64")] })
}

/// Returns the version in the name of a package with a standard kernel; `None` for other packages.
fn version(name: &str) -> Option<&str> {
    let version = name.strip_prefix("linux-image-")?.strip_suffix("-amd64")?;
    let is_special = ["cloud", "rt", "dbg", "unsigned"].iter().any(|word| version.contains(word));
    (version.starts_with(|c: char| c.is_ascii_digit()) && !is_special).then_some(version)
}

/// Returns whether a version begins with `wanted`. The versions are compared part by part, so that 6.12 does not
/// begin with 6.1.
fn is_wanted(version: &str, wanted: &str) -> bool {
    version.strip_prefix(wanted).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the series of the standard kernel in a package, such as 6.12 for the version 6.12.41.
fn series(name: &str) -> Option<String> {
    let mut numbers = version(name)?.splitn(3, '.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

/// Returns the path of the kernel image in unpacked packages: it is in `boot` or, since 6.19, next to the kernel's
/// modules.
fn image(unpacked: &Path) -> Option<PathBuf> {
    let below = |place: &str| fs::read_dir(unpacked.join(place)).into_iter().flatten().flatten();
    let in_boot = below("boot").map(|entry| entry.path());
    let beside = ["usr/lib/modules", "lib/modules"].into_iter().flat_map(below);
    let mut images = in_boot.chain(beside.map(|entry| entry.path().join("vmlinuz")));
    let is_image = |path: &PathBuf| {
        path.is_file() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    };
    images.find(is_image)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "linux-image-6.12.9+deb12-amd64\nlinux-image-6.12.41+deb12-amd64\n\
        linux-image-6.12.43+deb12-amd64-unsigned\nlinux-image-6.12.44+deb12-cloud-amd64\nlinux-image-amd64\n\
        linux-image-6.1.0-47-amd64\nlinux-image-6.1.0-54-amd64\nlinux-image-6.1.0-55-rt-amd64\n\
        linux-image-7.0.4+deb13-amd64\nlinux-binary-7.0.4+deb13-amd64\nlinux-modules-7.0.4+deb13-amd64\n\
        linux-image-7.3.4+deb13-amd64\nlinux-binary-7.3.4+deb13-amd64\nlinux-modules-7.3.4+deb13-amd64\n\
        linux-base-7.3.4+deb13-amd64\nlinux-binary-unsigned-7.3.4+deb13-amd64\nlinux-image-7.3.9+deb13-rt-amd64";

    fn names() -> Vec<String> {
        NAMES.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_newest_standard_kernel_of_the_series_is_taken() {
        let newest = |wanted| packages(&names(), wanted).map(|packages| packages.join(" "));
        assert_eq!(newest("6.12").as_deref(), Some("linux-image-6.12.41+deb12-amd64"));
        assert_eq!(newest("6.1").as_deref(), Some("linux-image-6.1.0-54-amd64"));
        assert_eq!(newest("6.12.9+deb12").as_deref(), Some("linux-image-6.12.9+deb12-amd64"));
        assert_eq!(newest("5.10"), None);
    }

    #[test]
    fn all_packages_of_a_kernel_are_chosen() {
        let parts = |wanted| packages(&names(), wanted).unwrap();
        assert_eq!(parts("7.0"), ["linux-binary-7.0.4+deb13-amd64", "linux-modules-7.0.4+deb13-amd64"]);
        assert_eq!(
            parts("7"),
            [
                "linux-binary-7.3.4+deb13-amd64",
                "linux-modules-7.3.4+deb13-amd64",
                "linux-base-7.3.4+deb13-amd64"
            ]
        );
    }

    #[test]
    fn the_image_is_found_in_both_layouts_of_packages() {
        for place in ["boot/vmlinuz-6.12", "usr/lib/modules/7.3.4/vmlinuz", "lib/modules/7.3.4/vmlinuz"] {
            let unpacked = tempfile::tempdir().unwrap();
            let path = unpacked.path().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert_eq!(image(unpacked.path()), None);
            fs::write(path.with_file_name("config-6.12"), "").unwrap();
            fs::write(&path, "").unwrap();
            assert_eq!(image(unpacked.path()), Some(path));
        }
    }

    #[test]
    fn a_series_is_the_first_two_numbers() {
        let known: Vec<_> = names().iter().filter_map(|name| series(name)).collect();
        assert_eq!(known, ["6.12", "6.12", "6.1", "6.1", "7.0", "7.3"]);
    }
}
