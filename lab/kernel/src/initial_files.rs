//! The initial file system of a guest.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::archive::CpioArchive;
use crate::{Image, KernelError, modules, program};

/// The directories and files of the initial file system, by paths without the leading slash. All files are executable.
#[derive(Debug, Default)]
pub(crate) struct InitialFiles {
    pub(crate) directories: Vec<String>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Directories of the initial file system: mount points of guests, and the directory of kernel modules.
const INITIAL_DIRECTORIES: [&str; 9] =
    ["dev", "proc", "sys", "host", "lent", "lower", "places", "cells", "modules"];

/// Returns an initramfs with the kernel's modules and the given programs; the kernel starts the program at `init`.
pub fn initramfs(image: &Image, programs: &[(&str, &Path)]) -> Result<Vec<u8>, KernelError> {
    Ok(InitialFiles::of(image, programs)?.archive())
}

impl InitialFiles {
    /// Collects the modules of a kernel in `/modules`, and the programs with the libraries that they need.
    pub(crate) fn of(image: &Image, programs: &[(&str, &Path)]) -> Result<Self, KernelError> {
        let mut initial =
            Self { directories: INITIAL_DIRECTORIES.map(str::to_owned).to_vec(), files: Vec::new() };
        for file in modules::module_files() {
            if let Ok(octets) = fs::read(image.modules().join(&file)) {
                initial.files.push((format!("modules/{file}"), octets));
            }
        }
        for (place, path) in programs {
            initial.files.extend(program::guest_files(path, place)?);
        }
        Ok(initial)
    }

    /// Returns the files as an initramfs, with a console device for the first process.
    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut archive = CpioArchive::default();
        self.directories.iter().for_each(|directory| archive.add_directory(directory));
        archive.add_device("dev/console", 5, 1);
        for (place, octets) in &self.files {
            if let Some((directory, _)) = place.rsplit_once('/') {
                archive.add_directory(directory);
            }
            archive.add_file(place, octets);
        }
        archive.finish()
    }

    /// Writes the files to a directory of the host.
    pub(crate) fn write_to(&self, directory: &Path) -> Result<(), KernelError> {
        let create = |path: &Path| fs::create_dir_all(path).map_err(|e| KernelError::file("create", path, e));
        self.directories.iter().try_for_each(|place| create(&directory.join(place)))?;
        for (place, octets) in &self.files {
            let path = directory.join(place);
            path.parent().map_or(Ok(()), create)?;
            // Two programs may share a library.
            if !path.exists() {
                put(&path, octets).map_err(|e| KernelError::file("write", &path, e))?;
            }
        }
        Ok(())
    }

    /// Returns whether a directory contains all files as [`write_to`](Self::write_to) wrote them. They may differ:
    /// after a power failure a file may be shorter, and Linux lets a process in a Landlock sandbox change file
    /// modes.
    pub(crate) fn is_in(&self, directory: &Path) -> bool {
        let is_there = |(place, octets): &(String, Vec<u8>)| {
            let is_whole = |found: fs::Metadata| {
                found.len() == octets.len() as u64 && found.permissions().mode() & 0o7777 == FILE_MODE
            };
            fs::metadata(directory.join(place)).is_ok_and(is_whole)
        };
        self.directories.iter().all(|place| directory.join(place).is_dir()) && self.files.iter().all(is_there)
    }
}

/// The file mode of each file: readable and executable, but not writable.
const FILE_MODE: u32 = 0o555;

fn put(path: &Path, octets: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(octets)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_files_and_changed_modes_are_detected() {
        let directory = tempfile::tempdir().unwrap();
        let file = ("lib/loader".to_owned(), b"12345".to_vec());
        let initial = InitialFiles { directories: vec!["dev".to_owned()], files: vec![file.clone(), file] };
        assert!(!initial.is_in(directory.path()));
        initial.write_to(directory.path()).unwrap();
        assert!(initial.is_in(directory.path()));
        let path = directory.path().join("lib/loader");
        assert_eq!(fs::read(&path).unwrap(), b"12345");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        assert!(!initial.is_in(directory.path()));
        fs::write(&path, "123").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(FILE_MODE)).unwrap();
        assert!(!initial.is_in(directory.path()));
        let text = String::from_utf8_lossy(&initial.archive()).into_owned();
        assert!(text.find("lib\0").unwrap() < text.find("lib/loader\0").unwrap());
    }
}
