//! Gets a distribution's kernel package into the cache: downloaded and unpacked, not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::KernelError;
use crate::cache::cache;
use crate::image::{Image, version_key};
use crate::scratch;

/// The series that is fetched by default.
pub const DEFAULT_SERIES: &str = "6.12";

/// Fetches the newest kernel whose version begins with `wanted`.
pub fn fetch(wanted: &str) -> Result<Image, KernelError> {
    let listed = names(&format!("linux-image-{wanted}"))?;
    let package = newest(&listed, wanted).ok_or_else(|| {
        unknown(
            &format!("linux-image-{wanted}*-amd64"),
            ", or take a kernel that you have with `hol kernel use PATH`",
        )
    })?;
    let work = scratch::directory(&cache(), "fetch")?;
    let unpacked = download(&package, work.path())?;
    let boot = unpacked.join("boot");
    let images = fs::read_dir(&boot).map_err(|e| KernelError::file("read", &boot, e))?;
    let is_image =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("vmlinuz"));
    let image = images.flatten().map(|entry| entry.path()).find(is_image);
    let image = image.ok_or_else(|| KernelError::image(&boot, format!("{package} holds no kernel image")))?;
    Image::adopt(&image, None)
}

/// Returns the packages whose names start with `start`, one per line.
pub(crate) fn names(start: &str) -> Result<String, KernelError> {
    run(Command::new("apt-cache").args(["pkgnames", start]), "apt")
}

/// Returns the error of an unknown package; `more` is further advice.
pub(crate) fn unknown(package: &str, more: &str) -> KernelError {
    KernelError::Program {
        program: "apt-cache".to_owned(),
        said: format!(
            "no package {package} is known; `apt-get update` may help, or add the distribution's backports{more}"
        ),
    }
}

/// Downloads `package` to the directory `work` and unpacks it there; returns the directory.
pub(crate) fn download(package: &str, work: &Path) -> Result<PathBuf, KernelError> {
    // As root apt would drop its privileges to a user who may not write here; this keeps them.
    let mut apt = Command::new("apt-get");
    let apt = apt.current_dir(work).args(["-o", "APT::Sandbox::User=root", "download", package]);
    run(apt, "apt")?;
    let (archive, unpacked) = (only_file(work)?, work.join("unpacked"));
    run(Command::new("dpkg").arg("-x").arg(&archive).arg(&unpacked), "dpkg")?;
    Ok(unpacked)
}

/// Returns the newest standard kernel in a list of package names.
fn newest(names: &str, wanted: &str) -> Option<String> {
    let standard = |name: &&str| {
        let Some(version) = name.strip_prefix("linux-image-").and_then(|name| name.strip_suffix("-amd64"))
        else {
            return false;
        };
        // 6.1 is not a prefix of 6.12 here.
        let rest = version.strip_prefix(wanted);
        let whole_number = rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
        whole_number && !["cloud", "rt", "dbg", "unsigned"].iter().any(|word| version.contains(word))
    };
    let standard = names.lines().map(str::trim).filter(standard);
    standard.max_by_key(|name| version_key(name)).map(str::to_owned)
}

/// Returns the first file in a directory.
pub(crate) fn only_file(directory: &Path) -> Result<PathBuf, KernelError> {
    let mut entries = fs::read_dir(directory).map_err(|e| KernelError::file("read", directory, e))?.flatten();
    entries.next().map(|entry| entry.path()).ok_or_else(|| KernelError::Program {
        program: "apt-get".to_owned(),
        said: "it downloaded nothing".to_owned(),
    })
}

/// Returns what a program of `package` prints, if it succeeds.
pub(crate) fn run(command: &mut Command, package: &'static str) -> Result<String, KernelError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output();
    let output = output.map_err(|_| KernelError::ProgramMissing { program: program.clone(), package })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(KernelError::Program { program, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "linux-image-6.12.9+deb12-amd64\nlinux-image-6.12.41+deb12-amd64\n\
        linux-image-6.12.43+deb12-amd64-unsigned\nlinux-image-6.12.44+deb12-cloud-amd64\n\
        linux-image-6.1.0-47-amd64\nlinux-image-6.1.0-54-amd64\nlinux-image-6.1.0-55-rt-amd64";

    #[test]
    fn the_newest_standard_kernel_of_the_series_is_taken() {
        assert_eq!(newest(NAMES, "6.12").as_deref(), Some("linux-image-6.12.41+deb12-amd64"));
        assert_eq!(newest(NAMES, "6.1").as_deref(), Some("linux-image-6.1.0-54-amd64"));
        assert_eq!(newest(NAMES, "6.12.9+deb12").as_deref(), Some("linux-image-6.12.9+deb12-amd64"));
        assert_eq!(newest(NAMES, "5.10"), None);
    }
}
