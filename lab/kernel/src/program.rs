//! Finds the loader and the libraries of a dynamically linked program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::KernelError;

/// A file for a guest: its path and its content.
pub(crate) type GuestFile = (String, Vec<u8>);

/// Returns the files that a guest needs to run the program at `path`: the program itself at `place`, its loader
/// and its libraries at their own paths.
pub(crate) fn guest_files(path: &Path, place: &str) -> Result<Vec<GuestFile>, KernelError> {
    let mut parts = vec![(place.to_owned(), loaded_part(path)?)];
    for library in libraries(path)? {
        let place = library.strip_prefix("/").unwrap_or(&library).display().to_string();
        parts.push((place, loaded_part(&library)?));
    }
    Ok(parts)
}

/// Returns the paths of the loader and the libraries of a program, as the loader itself finds them.
pub(crate) fn libraries(path: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let missing = |_| KernelError::ProgramMissing { program: "ldd".to_owned(), package: "libc-bin" };
    let mut ldd = Command::new("ldd");
    // With LD_PRELOAD, the list would contain the preloaded libraries of this machine.
    ldd.arg(path).env("LC_ALL", "C").env_remove("LD_PRELOAD");
    let listed = ldd.output().map_err(missing)?;
    let text = String::from_utf8_lossy(&listed.stdout);
    if text.contains("not found") {
        return Err(KernelError::Program { program: "ldd".to_owned(), error_output: text.into_owned() });
    }
    Ok(paths(&text))
}

/// Returns the absolute paths in the output of `ldd`, whose lines are `name => path (address)` or `path
/// (address)`.
fn paths(listing: &str) -> Vec<PathBuf> {
    let words = listing.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

/// Returns the part of an ELF file that is loaded into memory. The remaining part is for debuggers, and is larger.
fn loaded_part(path: &Path) -> Result<Vec<u8>, KernelError> {
    let mut octets = fs::read(path).map_err(|e| KernelError::file("read", path, e))?;
    let end = loaded_end(&octets).ok_or_else(|| {
        KernelError::image(
            path,
            "the file is not a 64-bit ELF program; give a program for \
        x86-64",
        )
    })?;
    octets.truncate(end);
    Ok(octets)
}

/// Returns the offset of the end of the last loaded segment in an ELF file. System V ABI, "Program Header".
fn loaded_end(octets: &[u8]) -> Option<usize> {
    const PT_LOAD: u64 = 1;
    let number = |at: usize, length: usize| {
        let field = octets.get(at..at + length)?;
        Some(field.iter().rev().fold(0_u64, |value, octet| value << 8 | u64::from(*octet)))
    };
    if !octets.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut end = usize::try_from(table + size * count).ok()?;
    for index in 0..count {
        let header = usize::try_from(table + index * size).ok()?;
        if number(header, 4)? == PT_LOAD {
            let (offset, length) = (number(header + 8, 8)?, number(header + 32, 8)?);
            end = end.max(usize::try_from(offset + length).ok()?);
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_and_the_libraries_are_found_in_the_listing() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let found = paths(listing);
        assert_eq!(
            found,
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_program_without_its_debugging_sections_is_smaller() {
        let own = std::env::current_exe().unwrap();
        let (whole, loaded) = (fs::read(&own).unwrap(), loaded_part(&own).unwrap());
        assert!(loaded.len() < whole.len(), "{} of {}", loaded.len(), whole.len());
        assert!(loaded.len() > 100_000);
    }

    #[test]
    fn a_text_is_no_program() {
        assert_eq!(loaded_end(b"#!/bin/sh\n"), None);
        assert_eq!(loaded_end(b"\x7fELF\x02\x01"), None);
    }
}
