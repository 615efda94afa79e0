//! `hol serve` and `hol simco`, which start other programs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::program::{BIN, code};

/// Runs a copy of `hol` in a directory without other programs.
fn alone(dir: &Path, arguments: &[&str]) -> Output {
    let hol = dir.join("hol");
    // A child process of another test may inherit a file that this process has open for writing (ETXTBSY), so `cp` writes it.
    assert!(Command::new("cp").arg(BIN).arg(&hol).status().unwrap().success());
    Command::new(hol).args(arguments).env("PATH", dir).output().unwrap()
}

#[test]
fn missing_companion_program_is_an_error_with_a_remedy() {
    for (command, program, crate_of_it) in
        [("serve", "hol-serve", "lab/serve"), ("simco", "simcod", "middlebox/simcod")]
    {
        let dir = tempfile::tempdir().unwrap();
        let output = alone(dir.path(), &[command, "--help"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(code(&output), 1, "{message}");
        for words in
            [&format!("{program}: program not found"), &format!("cargo install --path {crate_of_it}")]
        {
            assert!(message.contains(words), "{words}: {message}");
        }
    }
}

#[test]
fn a_program_of_another_version_is_not_started() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("hol-serve");
    // Another process writes the script, for the same reason.
    let write = "printf '#!/bin/sh\\necho hol-serve 0.0.1\\n' >\"$0\"";
    assert!(Command::new("sh").args(["-c", write]).arg(&old).status().unwrap().success());
    fs::set_permissions(&old, Permissions::from_mode(0o755)).unwrap();
    let output = alone(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(&output), 1, "{message}");
    for words in ["hol-serve", "0.0.1", env!("CARGO_PKG_VERSION"), "cargo install --path lab/serve"] {
        assert!(message.contains(words), "{words}: {message}");
    }
}
