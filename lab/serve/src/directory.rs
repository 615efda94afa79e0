//! The files of a directory, as shown to clients.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use utoipa::ToSchema;

/// Maximum number of listed files.
const MAX_FILES: usize = 10_000;

/// A file of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileEntry {
    /// Path of the file, relative to the directory.
    pub path: String,
    /// Size in octets.
    pub size: u64,
}

/// Returns the path of a file in `directory`; `None` if there is no such file, or if the path leads outside, even by a
/// symbolic link.
pub fn resolve_inside(directory: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let directory = fs::canonicalize(directory).ok()?;
    let whole = fs::canonicalize(directory.join(relative)).ok()?;
    (whole.starts_with(&directory) && whole.is_file()).then_some(whole)
}

/// Lists the files of a directory and its subdirectories, in order of path. Returns an empty list if the directory does
/// not exist.
pub fn list_files(root: &Path) -> io::Result<Vec<FileEntry>> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // The file may have been deleted since.
            let Ok(metadata) = entry.metadata() else { continue };
            match entry.path().strip_prefix(root) {
                _ if metadata.is_dir() => left.push(entry.path()),
                Ok(path) if metadata.is_file() => {
                    found.push(FileEntry { path: path.to_string_lossy().into_owned(), size: metadata.len() });
                }
                _ => (),
            }
        }
        if found.len() >= MAX_FILES {
            break;
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns the number of octets that a directory occupies on the disk. Files that are deleted during the call
/// do not count.
pub fn occupied_octets(root: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut octets = 0;
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            // POSIX counts blocks of 512 octets.
            octets += 512 * metadata.blocks();
            if metadata.is_dir() {
                left.push(entry.path());
            }
        }
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_directory_are_not_found() {
        let root = tempfile::tempdir().unwrap();
        let results = root.path().join("results");
        fs::create_dir_all(results.join("sub")).unwrap();
        fs::write(root.path().join("secret"), "s").unwrap();
        fs::write(results.join("sub/a.csv"), "1").unwrap();
        std::os::unix::fs::symlink("../secret", results.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", results.join("etc")).unwrap();
        let outside = [
            "../secret",
            "/etc/passwd",
            "link",
            "etc/passwd",
            "sub/../../secret",
            "",
            ".",
            "sub",
            "a\0b",
            "..",
            "./sub/a.csv",
        ];
        for path in outside {
            assert_eq!(resolve_inside(&results, path), None, "{path:?}");
        }
        assert!(resolve_inside(&results, "sub/a.csv").is_some());
        assert_eq!(list_files(&results).unwrap(), [FileEntry { path: "sub/a.csv".to_owned(), size: 1 }]);
        assert_eq!(list_files(&root.path().join("nothing")).unwrap(), []);
    }
}
