//! A file system under construction: paths, each with the origin of its content.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use hol_base::{Digest, Digester};

use crate::KernelError;

/// The directory of the image with the files that all nodes share.
pub(crate) const SHARED_DIRECTORY: &str = "root";
/// The directory of the image with one directory for each node, by name, which contains the node's own files.
pub(crate) const NODES_DIRECTORY: &str = "nodes";

/// The entries of a file system by path, without a leading slash.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<PathBuf, Entry>);

/// The entry at a path of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A directory; contains its permissions.
    Directory(u32),
    /// A symbolic link; contains its target.
    Link(PathBuf),
    /// A copy of a file of this machine; contains the path of that file, and the permissions.
    Copy { of: PathBuf, mode: u32 },
    /// A new file; contains its content.
    Generated(Vec<u8>),
}

/// The default permissions of a directory.
pub(super) const DIRECTORY_MODE: u32 = 0o755;
/// Directories whose contents are temporary and are not added.
const TEMPORARY_DIRECTORIES: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];
/// The bits of a file mode that are permissions.
const PERMISSION_BITS: u32 = 0o7777;
/// Maximum number of symbolic links in one path; if there are more, they are considered a loop.
/// path_resolution(7).
const MAX_LINKS: usize = 40;

impl Tree {
    /// Inserts an entry at `place`. Everything below `place` is removed unless the entry is a directory.
    fn insert(&mut self, place: PathBuf, entry: Entry) {
        if !matches!(entry, Entry::Directory(_)) {
            self.remove(&place);
        }
        self.0.insert(place, entry);
    }

    /// Returns whether all ancestors of a path are directories, so that a file written there stays within the tree.
    pub(super) fn has_real_ancestors(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        above.all(|above| matches!(self.0.get(above), Some(Entry::Directory(_))))
    }

    /// Returns the paths of the tree with their entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    /// Adds a file with this content.
    pub(super) fn write(&mut self, place: &str, octets: Vec<u8>) {
        self.ensure_ancestor_directories(Path::new(place));
        self.insert(place.into(), Entry::Generated(octets));
    }

    /// Adds a symbolic link at `place` to the path `target`.
    pub(super) fn add_link(&mut self, place: &str, target: &Path) {
        self.ensure_ancestor_directories(Path::new(place));
        self.insert(place.into(), Entry::Link(target.to_owned()));
    }

    /// Adds a directory, and the missing directories above it.
    pub(super) fn add_directory(&mut self, place: &str, mode: u32) {
        self.ensure_ancestor_directories(Path::new(place));
        self.insert(place.into(), Entry::Directory(mode));
    }

    /// Copies this machine's file at `path` to the same path in the tree, together with every symbolic link in the
    /// path and its target. Missing and unreadable files are skipped.
    pub(super) fn add_host_file(&mut self, path: &Path) {
        let mut way: Vec<PathBuf> = component_names(path).rev().collect();
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        while let Some(name) = way.pop() {
            if name.as_os_str() == ".." {
                here.pop();
                continue;
            }
            let there = here.join(&name);
            let Ok(metadata) = fs::symlink_metadata(&there) else { return };
            if metadata.is_symlink() {
                let Ok(target) = fs::read_link(&there) else { return };
                self.insert(shared_path(&there), Entry::Link(target.clone()));
                links += 1;
                if links > MAX_LINKS {
                    return;
                }
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                way.extend(component_names(&target).rev());
                continue;
            }
            if metadata.is_file() && File::open(&there).is_err() {
                return;
            }
            self.add(shared_path(&there), &there, &metadata);
            if TEMPORARY_DIRECTORIES.iter().any(|passing| there == Path::new(passing)) {
                return;
            }
            here = there;
        }
    }

    /// Adds the symbolic link of this machine at `path` to the same path in the tree, without its target.
    pub(super) fn add_host_link(&mut self, path: &Path) {
        if let Ok(target) = fs::read_link(path) {
            self.insert(shared_path(path), Entry::Link(target));
        }
    }

    /// Adds a directory of this machine with everything in it, at the same path.
    pub(super) fn add_host_directory(&mut self, path: &Path) {
        self.add_host_file(path);
        let Ok(whole) = fs::canonicalize(path) else { return };
        if TEMPORARY_DIRECTORIES.iter().any(|passing| whole.starts_with(passing)) {
            return;
        }
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&whole).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for entry in entries {
            match fs::symlink_metadata(&entry) {
                Ok(metadata) if metadata.is_dir() => self.add_host_directory(&entry),
                Ok(_) => self.add_host_file(&entry),
                Err(_) => {}
            }
        }
    }

    /// Copies the file or directory at `path` on this machine to another path of the tree; links stay links.
    pub(super) fn copy_from_host(&mut self, path: &Path, place: &str) -> Result<(), KernelError> {
        self.ensure_ancestor_directories(Path::new(place));
        self.copy_into(path, PathBuf::from(place)).map_err(|e| KernelError::file("read", path, e))
    }

    fn copy_into(&mut self, path: &Path, place: PathBuf) -> io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_symlink() {
            self.insert(place, Entry::Link(fs::read_link(path)?));
            return Ok(());
        }
        if metadata.is_dir() {
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                self.copy_into(&entry.path(), place.join(entry.file_name()))?;
            }
        }
        self.add(place, path, &metadata);
        Ok(())
    }

    /// Adds a file or directory of this machine at `place`; devices, sockets and pipes are skipped.
    fn add(&mut self, place: PathBuf, of: &Path, metadata: &Metadata) {
        let mode = metadata.permissions().mode() & PERMISSION_BITS;
        if metadata.is_dir() {
            self.insert(place, Entry::Directory(mode));
        } else if metadata.is_file() {
            self.insert(place, Entry::Copy { of: of.to_owned(), mode });
        }
    }

    /// Removes the entry at a path, and everything below the path.
    pub(super) fn remove(&mut self, place: &Path) {
        self.clear(place);
        self.0.remove(place);
    }

    /// Removes everything below a path.
    pub(super) fn clear(&mut self, place: &Path) {
        let after = self.0.range::<Path, _>((Bound::Excluded(place), Bound::Unbounded));
        let below: Vec<PathBuf> =
            after.map(|(path, _)| path).take_while(|path| path.starts_with(place)).cloned().collect();
        below.iter().for_each(|path| drop(self.0.remove(path)));
    }

    fn ensure_ancestor_directories(&mut self, place: &Path) {
        for ancestor in place.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()) {
            if !matches!(self.0.get(ancestor), Some(Entry::Directory(_))) {
                self.0.insert(ancestor.to_owned(), Entry::Directory(DIRECTORY_MODE));
            }
        }
    }

    /// Returns a digest of all paths, permissions, times and contents.
    pub(super) fn digest(&self) -> Result<Digest, KernelError> {
        let mut digester = Digester::new();
        let mut add = |octets: &[u8]| {
            digester.add(octets.len() as u64);
            digester.add_octets(octets);
        };
        for (path, entry) in &self.0 {
            add(path.as_os_str().as_encoded_bytes());
            match entry {
                Entry::Directory(mode) => add(&[b"directory".as_slice(), &mode.to_le_bytes()].concat()),
                Entry::Link(target) => add(&[b"link", target.as_os_str().as_encoded_bytes()].concat()),
                Entry::Generated(octets) => {
                    add(b"fresh");
                    add(octets);
                }
                Entry::Copy { of, mode } => {
                    let read = || Ok((fs::metadata(of)?.mtime(), fs::read(of)?));
                    let (time, octets) = read().map_err(|e| KernelError::file("read", of, e))?;
                    add(&[mode.to_le_bytes().as_slice(), &time.to_le_bytes()].concat());
                    add(&octets);
                }
            }
        }
        Ok(digester.finish())
    }
}

/// Returns the path in the image for a path of this machine.
fn shared_path(path: &Path) -> PathBuf {
    Path::new(SHARED_DIRECTORY).join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the components of a path.
fn component_names(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_is_added_with_the_links_on_its_way() {
        let directory = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(place.join("usr")).unwrap();
        fs::write(place.join("usr/program"), "x").unwrap();
        symlink("usr", place.join("bin")).unwrap();
        symlink("../bin/program", place.join("usr/name")).unwrap();
        let mut tree = Tree::default();
        tree.add_host_file(&place.join("bin/name"));
        let found = |name: &str| tree.0.get(&shared_path(&place.join(name)));
        assert_eq!(found("bin"), Some(&Entry::Link("usr".into())));
        assert_eq!(found("usr/name"), Some(&Entry::Link("../bin/program".into())));
        assert!(matches!(found("usr/program"), Some(Entry::Copy { .. })));
    }

    #[test]
    fn links_cannot_lead_out_of_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let [lower, upper] = ["lower", "upper"].map(|name| directory.path().join(name));
        fs::create_dir_all(lower.join("x")).unwrap();
        fs::write(lower.join("x/keys"), "mine").unwrap();
        fs::create_dir(&upper).unwrap();
        symlink(&lower, upper.join("x")).unwrap();
        let mut tree = Tree::default();
        tree.copy_from_host(&lower, SHARED_DIRECTORY).unwrap();
        tree.copy_from_host(&upper, SHARED_DIRECTORY).unwrap();
        assert!(matches!(tree.0.get(Path::new("root/x")), Some(Entry::Link(_))));
        assert!(tree.entries().all(|(path, _)| tree.has_real_ancestors(path)), "{tree:?}");
        tree.write("root/x/page", Vec::new());
        assert!(
            tree.has_real_ancestors(Path::new("root/x/page"))
                && tree.entries().all(|(path, _)| tree.has_real_ancestors(path))
        );
    }

    #[test]
    fn virtual_file_systems_are_not_added() {
        let mut tree = Tree::default();
        tree.add_host_file(Path::new("/proc/self/mounts"));
        let paths: Vec<_> = tree.entries().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(paths, [Path::new("root/proc")]);
    }

    #[test]
    fn link_loops_and_missing_files_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(directory.path()).unwrap();
        symlink("b", place.join("a")).unwrap();
        symlink("a", place.join("b")).unwrap();
        let mut tree = Tree::default();
        tree.add_host_file(&place.join("a"));
        tree.add_host_file(&place.join("none"));
        assert!(tree.entries().all(|(_, entry)| matches!(entry, Entry::Directory(_) | Entry::Link(_))));
    }

    #[test]
    fn the_digest_changes_with_octets_places_and_permissions() {
        let tree = |place: &str, octets: &[u8]| {
            let mut tree = Tree::default();
            tree.write(place, octets.to_vec());
            tree
        };
        let digest = |tree: Tree| tree.digest().unwrap();
        let first = digest(tree("root/a", b"1"));
        assert_eq!(first, digest(tree("root/a", b"1")));
        assert_ne!(first, digest(tree("root/a", b"2")));
        assert_ne!(first, digest(tree("root/b", b"1")));
        let mut other = tree("root/a", b"1");
        other.add_directory("root", 0o700);
        assert_ne!(first, digest(other));
    }
}
