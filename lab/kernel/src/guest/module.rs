//! Loads modules of the guest's kernel.

use std::fs;

use nix::kmod::init_module;

use super::GuestError;
use crate::modules;

/// Loads a module if the kernel has it as a file. Removes the signature of the module unless the kernel requires
/// signatures.
pub(super) fn load(file: &str) -> Result<(), GuestError> {
    let Ok(module) = fs::read(format!("/modules/{file}")) else { return Ok(()) };
    let load = |module| init_module(module, c"");
    match load(modules::without_signature(&module)).or_else(|_| load(&module)) {
        Ok(()) | Err(nix::Error::EEXIST) => Ok(()),
        Err(problem) => Err(format!("cannot load {file}: {problem}").into()),
    }
}
