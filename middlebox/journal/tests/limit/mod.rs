//! A limit on the size of files, which simulates a full disk, and a process of its own for it.

use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

const INNER: &str = "HOL_TEST_WITHIN_LIMIT";

/// Returns true in a process of this test's own. Otherwise runs the test of this name in one, where SIGXFSZ is ignored.
pub fn is_alone(test: &str) -> bool {
    if std::env::var_os(INNER).is_some() {
        return true;
    }
    let output = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" --exact "$1" --nocapture 2>&1"#])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(INNER, "")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}");
    false
}

pub fn limit_files(octets: Option<u64>) {
    setrlimit(Resource::Fsize, Rlimit { current: octets, maximum: None }).unwrap();
}
