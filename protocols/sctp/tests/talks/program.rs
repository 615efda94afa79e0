//! Peers that are written in C.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes the program of a peer with this library, and says aloud why that cannot be; with `required` in the environment it has to be.
pub fn make(program: &Path, source: &[u8], library: &str, required: &str) -> bool {
    let says = made(program, source, library).err();
    assert!(says.is_none() || std::env::var_os(required).is_none(), "the peer cannot be made: {says:?}");
    if let Some(why) = &says {
        eprintln!("SKIPPED, for the peer cannot be made (apt-get install lib{library}-dev gcc): {why}");
    }
    says.is_none()
}

fn made(program: &Path, source: &[u8], library: &str) -> Result<(), String> {
    let mut compiler = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-x", "c", "-", "-o"])
        .arg(program)
        .args([&format!("-l{library}"), "-lpthread"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cc: {error}"))?;
    compiler.stdin.take().unwrap().write_all(source).unwrap();
    let made = compiler.wait_with_output().unwrap();
    if made.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&made.stderr).into_owned()) }
}
