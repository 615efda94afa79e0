//! Builds the library that keeps QEMU's threads in step, and the library that tests it, and embeds both in
//! the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The source files of the libraries, each with the name of the library that is built from it.
const LIBRARIES: [(&str, &str); 2] =
    [("lockstep/lockstep.rs", "lockstep.so"), ("lockstep/pause.rs", "pause.so")];

fn main() {
    println!("cargo::rerun-if-changed=lockstep");
    for (source, library) in LIBRARIES {
        let library = PathBuf::from(variable("OUT_DIR")).join(library);
        if !build_library(source, &library) {
            println!(
                "cargo::warning={source} was not built, so runs of the kernel world may not be repeatable on a busy machine"
            );
            fs::write(&library, []).expect("the build directory can be written");
        }
    }
}

/// Builds a shared library from `source`. Returns false if the compiler failed, because some targets have no
/// shared libraries.
fn build_library(source: &str, library: &Path) -> bool {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--target", &variable("TARGET")]);
    rustc.args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols"]);
    // QEMU would not start with a library that has an unresolved symbol.
    rustc.args(["-C", "link-arg=-Wl,-z,defs"]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    rustc.arg("-o").arg(library).arg(source);
    rustc.status().is_ok_and(|status| status.success())
        && fs::metadata(library).is_ok_and(|file| file.len() > 0)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets the variable {name}"))
}
