//! Temporary directories. A killed process cannot remove its directories, so the next process does.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::KernelError;

/// Creates a directory in `place`, named after `purpose` and this process. Removes the directories of
/// processes that no longer exist.
pub(crate) fn create_directory(place: &Path, purpose: &str) -> Result<TempDir, KernelError> {
    fs::create_dir_all(place).map_err(|e| KernelError::file("create", place, e))?;
    sweep(place, purpose);
    let prefix = format!("{purpose}-{}-", std::process::id());
    let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(place);
    made.map_err(|e| KernelError::file("create a directory in", place, e))
}

fn sweep(place: &Path, purpose: &str) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if owner(&name, purpose).is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the process ID in a directory name of the form `purpose-PROCESS-RANDOM`.
fn owner<'n>(name: &'n str, purpose: &str) -> Option<&'n str> {
    let (process, _) = name.strip_prefix(purpose)?.strip_prefix('-')?.split_once('-')?;
    process.bytes().all(|octet| octet.is_ascii_digit()).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_ended_processes_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let dead = place.path().join("hol-run-4194305-x");
        fs::create_dir(&dead).unwrap();
        fs::create_dir(place.path().join("hol-run-notes-x")).unwrap();
        let first = create_directory(place.path(), "hol-run").unwrap();
        let _second = create_directory(place.path(), "hol-run").unwrap();
        assert!(!dead.exists() && first.path().exists());
        assert!(place.path().join("hol-run-notes-x").exists());
    }
}
