//! Files stored next to experiments: each user's own, and those of a project.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use crate::directory::{directory, inside};
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::Server;
use crate::store::Owner;

/// Maximum octets and files of a folder.
const LARGEST: u64 = 1 << 30;
const MAX: usize = 5000;
const LONGEST_PATH: usize = 500;

/// The owner of files.
#[derive(Debug, Clone)]
pub enum Folder {
    /// The user.
    Mine,
    /// A project of the user.
    Project(String),
}

impl Server {
    /// Returns the path of a folder, if `requester` may see it.
    pub(crate) fn folder(&self, requester: &Requester, folder: &Folder) -> Result<PathBuf, Refusal> {
        let (owner, id) = match folder {
            Folder::Mine => (Owner::User, requester.id),
            Folder::Project(name) => {
                let (id, _) = self.store.project(name, requester.id)?.ok_or_else(Refusal::not_found)?;
                (Owner::Project, id)
            }
        };
        Ok(self.directory(owner, id)?)
    }

    /// Stores a file, completely or not at all; replaces one of the same name.
    pub(crate) fn keep(
        &self,
        requester: &Requester,
        folder: &Folder,
        path: &str,
        content: &[u8],
    ) -> Result<(), Refusal> {
        let root = self.folder(requester, folder)?;
        let place = root.join(checked(path)?);
        let files = directory(&root)?;
        let used: u64 = files.iter().filter(|file| file.path != path).map(|file| file.size).sum();
        if files.len() >= MAX || used + content.len() as u64 > LARGEST {
            let max = format!("a folder has at most {MAX} files and {} MiB", LARGEST >> 20);
            return Err(Refusal::conflict(max, "remove some"));
        }
        let parent = place.parent().unwrap_or(&root);
        let taken = |error: io::Error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                Refusal::conflict("a file has the name of a directory", "choose another name")
            }
            _ => error.into(),
        };
        fs::create_dir_all(parent).map_err(taken)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(content)?;
        file.persist(&place).map(drop).map_err(|error| match error.error.kind() {
            io::ErrorKind::IsADirectory => Refusal::conflict("there is a directory", "choose another name"),
            _ => error.error.into(),
        })
    }

    /// Removes a file.
    pub(crate) fn discard(&self, requester: &Requester, folder: &Folder, path: &str) -> Result<(), Refusal> {
        let root = self.folder(requester, folder)?;
        let place = inside(&root, path).ok_or_else(Refusal::not_found)?;
        Ok(fs::remove_file(place)?)
    }
}

/// Returns a relative path without parent components.
fn checked(path: &str) -> Result<&Path, Refusal> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if name.len() <= 255 && !name.as_encoded_bytes()[0].eq(&b'.'));
    let relative = Path::new(path);
    let leads_down = !path.is_empty() && path.len() <= LONGEST_PATH && !path.contains(char::is_control);
    if leads_down && !path.ends_with('/') && relative.components().all(is_plain) {
        return Ok(relative);
    }
    Err(Refusal::bad("this is no path of a file", "names with / between them, none of which begins with a ."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_down() {
        for bad in
            ["", "/", "/a", "a/", "..", "a/../b", "./a", ".ssh/x", "a/.b", "a\nb", "a\0", &"x/".repeat(300)]
        {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b.ns", "é.toml", "a..b"] {
            assert!(checked(good).is_ok(), "{good:?}");
        }
    }
}
