//! The file system that a guest begins with.

use std::fs;
use std::path::Path;

use crate::archive::Archive;
use crate::{Image, KernelError, modules, program};

/// The modules in `/modules`, the programs at their places with the libraries that they need, and what the kernel needs
/// to start the one at `init`. Places are without their first slash.
pub fn initramfs(image: &Image, programs: &[(&str, &Path)]) -> Result<Vec<u8>, KernelError> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "sys", "host", "modules"] {
        archive.directory(directory);
    }
    archive.device("dev/console", 5, 1);
    for file in modules::files() {
        if let Ok(octets) = fs::read(image.modules().join(&file)) {
            archive.file(&format!("modules/{file}"), &octets);
        }
    }
    for (place, path) in programs {
        for (place, octets) in program::parts(path, place)? {
            if let Some((directory, _)) = place.rsplit_once('/') {
                archive.directory(directory);
            }
            archive.file(&place, &octets);
        }
    }
    Ok(archive.finish())
}
