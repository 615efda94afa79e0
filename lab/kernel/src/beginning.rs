//! The files that a guest begins with.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::archive::Archive;
use crate::{Image, KernelError, modules, program};

/// Directories and files, at places without their first slash. All files may be executed.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    pub(crate) directories: Vec<String>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Where guests mount something, and where what is loaded into a kernel lies.
const PLACES: [&str; 9] = ["dev", "proc", "sys", "host", "lent", "lower", "places", "cells", "modules"];

/// An archive of it for the kernel, which starts the program at `init`.
pub fn initramfs(image: &Image, programs: &[(&str, &Path)]) -> Result<Vec<u8>, KernelError> {
    Ok(Beginning::of(image, programs)?.archive())
}

impl Beginning {
    /// The modules of a kernel in `/modules`, and the programs at their places with the libraries that they need.
    pub(crate) fn of(image: &Image, programs: &[(&str, &Path)]) -> Result<Self, KernelError> {
        let mut beginning = Self { directories: PLACES.map(str::to_owned).to_vec(), files: Vec::new() };
        for file in modules::files() {
            if let Ok(octets) = fs::read(image.modules().join(&file)) {
                beginning.files.push((format!("modules/{file}"), octets));
            }
        }
        for (place, path) in programs {
            beginning.files.extend(program::parts(path, place)?);
        }
        Ok(beginning)
    }

    /// As an initramfs, with a console for the first process.
    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut archive = Archive::default();
        self.directories.iter().for_each(|directory| archive.directory(directory));
        archive.device("dev/console", 5, 1);
        for (place, octets) in &self.files {
            if let Some((directory, _)) = place.rsplit_once('/') {
                archive.directory(directory);
            }
            archive.file(place, octets);
        }
        archive.finish()
    }

    /// As files in a directory of the host.
    pub(crate) fn lay(&self, directory: &Path) -> Result<(), KernelError> {
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

    /// Whether it is in a directory, as it was laid. A host that lost its power may have kept names and not all that they are of, and
    /// Linux has a process that is confined change modes.
    pub(crate) fn is_at(&self, directory: &Path) -> bool {
        let is_there = |(place, octets): &(String, Vec<u8>)| {
            let is_whole = |found: fs::Metadata| {
                found.len() == octets.len() as u64 && found.permissions().mode() & 0o7777 == MODE
            };
            fs::metadata(directory.join(place)).is_ok_and(is_whole)
        };
        self.directories.iter().all(|place| directory.join(place).is_dir()) && self.files.iter().all(is_there)
    }
}

/// Of each file: nobody writes to it.
const MODE: u32 = 0o555;

fn put(path: &Path, octets: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(octets)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_is_there_as_long_as_nobody_cuts_it_short_or_changes_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let file = ("lib/loader".to_owned(), b"12345".to_vec());
        let beginning = Beginning { directories: vec!["dev".to_owned()], files: vec![file.clone(), file] };
        assert!(!beginning.is_at(directory.path()));
        beginning.lay(directory.path()).unwrap();
        assert!(beginning.is_at(directory.path()));
        let path = directory.path().join("lib/loader");
        assert_eq!(fs::read(&path).unwrap(), b"12345");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        assert!(!beginning.is_at(directory.path()));
        fs::write(&path, "123").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(MODE)).unwrap();
        assert!(!beginning.is_at(directory.path()));
        let text = String::from_utf8_lossy(&beginning.archive()).into_owned();
        assert!(text.find("lib\0").unwrap() < text.find("lib/loader\0").unwrap());
    }
}
