//! Compiles peers written in C.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Compiles the program of a peer, which uses this library.
pub fn make(program: &Path, source: &[u8], library: &str) {
    let cure = format!("apt-get install lib{library}-dev gcc");
    let mut compiler = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-x", "c", "-", "-o"])
        .arg(program)
        .args([&format!("-l{library}"), "-lpthread"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cc: {error} ({cure})"));
    compiler.stdin.take().unwrap().write_all(source).unwrap();
    let made = compiler.wait_with_output().unwrap();
    assert!(made.status.success(), "{} ({cure})", String::from_utf8_lossy(&made.stderr));
}
