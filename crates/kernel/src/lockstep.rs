//! The library that keeps QEMU's threads in step. Its source, `lockstep/lockstep.rs`, tells what for.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::KernelError;

/// The library; empty where it could not be built.
pub(crate) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lockstep.so"));

/// Lets `qemu` load it from a copy in `directory`, and name its threads so that the library knows them. A loader
/// that cannot says so among QEMU's messages, and goes on without it.
pub(crate) fn load(qemu: &mut Command, directory: &Path) -> Result<(), KernelError> {
    const PRELOAD: &str = "LD_PRELOAD";
    if LIBRARY.is_empty() {
        return Ok(());
    }
    let path = directory.join("lockstep.so");
    fs::write(&path, LIBRARY).map_err(|e| KernelError::file("write", &path, e))?;
    let mut libraries = path.into_os_string();
    if let Some(others) = env::var_os(PRELOAD) {
        libraries.push(":");
        libraries.push(others);
    }
    qemu.args(["-name", "hol,debug-threads=on"]).env(PRELOAD, libraries);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_gets_the_library_and_names_its_threads() {
        let directory = tempfile::tempdir().unwrap();
        let mut qemu = Command::new("qemu");
        load(&mut qemu, directory.path()).unwrap();
        let (_, preload) = qemu.get_envs().next().expect("one variable");
        let path = directory.path().join("lockstep.so");
        assert!(preload.unwrap().to_string_lossy().starts_with(path.to_str().unwrap()));
        assert!(qemu.get_args().any(|argument| argument == "hol,debug-threads=on"));
        assert!(fs::read(path).unwrap().starts_with(b"\x7fELF"));
    }
}
