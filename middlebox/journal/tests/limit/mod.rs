//! A limit on the size of files, which stands for a disk without room.

use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

pub const INNER: &str = "HOL_TEST_WITHIN_LIMIT";

/// Runs the test of this name again where the signal that goes with the limit is ignored.
pub fn without_signal(test: &str) {
    let status = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" --exact "$1""#])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(INNER, "")
        .status()
        .unwrap();
    assert!(status.success());
}

pub fn limit_files(octets: Option<u64>) {
    setrlimit(Resource::Fsize, Rlimit { current: octets, maximum: None }).unwrap();
}
