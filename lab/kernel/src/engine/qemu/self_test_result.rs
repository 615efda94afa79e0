//! The stored result of the self-test for a QEMU version, library and processor speed. A file in the
//! directory of snapshots exists if two runs differed; the self-test of the next snapshot writes or removes
//! it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hol_base::Digester;

use super::installed_qemu::InstalledQemu;
use super::lockstep::LIBRARY;
use super::processor_speed::ProcessorSpeed;
use super::snapshot_path::{digest_with_length, snapshot_directory};
use crate::KernelError;

/// The reason for a virtual time that is not exact if the self-test failed.
pub(super) const SELF_TEST_FAILED: &str = "two runs of the same job differed";

/// Returns whether the last self-test failed, that is, whether its two runs differed.
pub(super) fn has_failed(qemu: &InstalledQemu, pace: ProcessorSpeed) -> bool {
    path(&snapshot_directory(), qemu, pace).exists()
}

/// Records the result of the self-test: whether its two runs differed.
pub(super) fn record(qemu: &InstalledQemu, pace: ProcessorSpeed, differ: bool) -> Result<(), KernelError> {
    put(&path(&snapshot_directory(), qemu, pace), differ)
}

fn put(path: &Path, differ: bool) -> Result<(), KernelError> {
    if differ {
        return fs::write(path, SELF_TEST_FAILED).map_err(|e| KernelError::file("write", path, e));
    }
    match fs::remove_file(path) {
        Err(problem) if problem.kind() != ErrorKind::NotFound => {
            Err(KernelError::file("remove", path, problem))
        }
        _ => Ok(()),
    }
}

fn path(snapshot_directory: &Path, qemu: &InstalledQemu, pace: ProcessorSpeed) -> PathBuf {
    let mut digester = Digester::new();
    let clock = pace.clock_arguments().concat();
    [qemu.file_version.as_bytes(), LIBRARY, clock.as_bytes()]
        .into_iter()
        .for_each(|part| digest_with_length(&mut digester, part));
    snapshot_directory.join(format!("{}.differs", digester.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepExactness;

    #[test]
    fn a_result_of_the_self_test_is_valid_until_the_next() {
        let place = tempfile::tempdir().unwrap();
        let qemu = |file_version: &str| InstalledQemu {
            version: "7.2.22".to_owned(),
            file_version: file_version.to_owned(),
            stepping: StepExactness::Exact,
            supports_other_speeds: true,
        };
        let [this, other] = ["this", "other"]
            .map(|file_version| path(place.path(), &qemu(file_version), ProcessorSpeed::ONE));
        put(&this, true).unwrap();
        assert!(this.exists() && !other.exists());
        put(&this, false).unwrap();
        put(&other, false).unwrap();
        assert!(!this.exists());
    }
}
