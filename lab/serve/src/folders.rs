//! Files that are stored for users and projects, independent of experiments.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use crate::directory::{FileEntry, list_files, resolve_inside};
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::Server;
use crate::store::Owner;

/// Maximum number of octets of all files of a folder.
const MAX_OCTETS: u64 = 1 << 30;
/// Maximum number of files of a folder.
const MAX_FILES: usize = 5000;
/// Maximum number of octets of the path of a file.
const MAX_PATH_LENGTH: usize = 500;

/// A folder, by its owner.
#[derive(Debug, Clone)]
pub enum Folder {
    /// The folder of the user.
    Mine,
    /// The folder of one of the user's projects, by name.
    Project(String),
}

impl Server {
    /// Returns the path of a folder, if `requester` may see it.
    pub(crate) fn folder(&self, requester: &Requester, folder: &Folder) -> Result<PathBuf, Refusal> {
        Ok(match self.project_of_folder(requester, folder)? {
            Some(project) => self.directory(Owner::Project, project)?,
            None => self.directory(Owner::User, requester.id)?,
        })
    }

    /// Returns the project of a folder, if it belongs to one.
    fn project_of_folder(&self, requester: &Requester, folder: &Folder) -> Result<Option<i64>, Refusal> {
        let Folder::Project(name) = folder else { return Ok(None) };
        let (project, _) = self.store.project(name, requester.id)?.ok_or_else(Refusal::not_found)?;
        Ok(Some(project))
    }

    /// Records the octets of a project's folder for its quota.
    fn record_files(&self, project: Option<i64>, root: &Path) -> Result<(), Refusal> {
        let Some(project) = project else { return Ok(()) };
        let octets = list_files(root)?.iter().map(|file| file.size).sum();
        Ok(self.store.record_files(project, octets)?)
    }

    /// Counts the files of projects whose files have not been counted. Files that cannot be counted now, for
    /// example on a full disk, are counted at the next change of a file.
    pub(crate) fn count_files(&self) {
        for project in self.store.uncounted_projects().unwrap_or_default() {
            if let Ok(root) = self.directory(Owner::Project, project)
                && root.is_dir()
            {
                let _ = self.record_files(Some(project), &root);
            }
        }
    }

    /// Stores a file atomically; replaces a file of the same name.
    pub(crate) fn store_file(
        &self,
        requester: &Requester,
        folder: &Folder,
        path: &str,
        content: &[u8],
    ) -> Result<(), Refusal> {
        let root = self.folder(requester, folder)?;
        let place = root.join(check_path(path)?);
        if !has_room(&list_files(&root)?, path, content.len() as u64) {
            let max =
                format!("the folder would have more than {MAX_FILES} files or {} MiB", MAX_OCTETS >> 20);
            return Err(Refusal::conflict(max, "delete some files first"));
        }
        let project = self.project_of_folder(requester, folder)?;
        if let Some(project) = project {
            let replaced = fs::metadata(&place).map_or(0, |file| file.len());
            self.check_disk(project, content.len().saturating_sub(replaced as usize))?;
        }
        let parent = place.parent().unwrap_or(&root);
        let taken = |error: io::Error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                Refusal::conflict("a directory in the path has the name of a file", "choose another name")
            }
            _ => error.into(),
        };
        fs::create_dir_all(parent).map_err(taken)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(content)?;
        file.persist(&place).map(drop).map_err(|error| match error.error.kind() {
            io::ErrorKind::IsADirectory => {
                Refusal::conflict("a directory has this name", "choose another name")
            }
            _ => error.error.into(),
        })?;
        self.record_files(project, &root)
    }

    /// Removes a file from a folder.
    pub(crate) fn delete_file(
        &self,
        requester: &Requester,
        folder: &Folder,
        path: &str,
    ) -> Result<(), Refusal> {
        let root = self.folder(requester, folder)?;
        let place = resolve_inside(&root, path).ok_or_else(Refusal::not_found)?;
        fs::remove_file(place)?;
        self.record_files(self.project_of_folder(requester, folder)?, &root)
    }
}

/// Returns a relative path without parent components.
fn check_path(path: &str) -> Result<&Path, Refusal> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if name.len() <= 255 && !name.as_encoded_bytes()[0].eq(&b'.'));
    let relative = Path::new(path);
    let leads_down = !path.is_empty() && path.len() <= MAX_PATH_LENGTH && !path.contains(char::is_control);
    if leads_down && !path.ends_with('/') && relative.components().all(is_plain) {
        return Ok(relative);
    }
    Err(Refusal::bad_request(
        "this is not a valid file path",
        "write names separated by /, none of which begins with a dot",
    ))
}

/// Returns whether a folder with these files has room for one of `octets` octets, which replaces a file at `path`.
fn has_room(files: &[FileEntry], path: &str, octets: u64) -> bool {
    let kept = || files.iter().filter(|file| file.path != path);
    kept().count() < MAX_FILES && kept().map(|file| file.size).sum::<u64>() + octets <= MAX_OCTETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_leave_the_folder() {
        for bad in
            ["", "/", "/a", "a/", "..", "a/../b", "./a", ".ssh/x", "a/.b", "a\nb", "a\0", &"x/".repeat(300)]
        {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b.ns", "é.toml", "a..b"] {
            assert!(check_path(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn full_folder_takes_no_further_file_but_replaces_one() {
        let files: Vec<_> =
            (0..MAX_FILES).map(|i| FileEntry { path: format!("{i}.csv"), size: 1 << 10 }).collect();
        assert!(!has_room(&files, "new.csv", 1));
        assert!(has_room(&files, "7.csv", 1 << 11));
        assert!(!has_room(&files, "7.csv", MAX_OCTETS));
        assert!(has_room(&files[1..], "new.csv", 1));
    }
}
