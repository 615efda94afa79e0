//! A limit on the size of files, which simulates a full disk, and a process of its own for it.

use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

const OWN_PROCESS_VARIABLE: &str = "HOL_TEST_WITHIN_LIMIT";

/// Returns true in a process that runs only this test. Otherwise starts such a process, which ignores SIGXFSZ, and
/// waits for its success.
pub fn is_own_process(test: &str) -> bool {
    if std::env::var_os(OWN_PROCESS_VARIABLE).is_some() {
        return true;
    }
    let output = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" --exact "$1" --nocapture 2>&1"#])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(OWN_PROCESS_VARIABLE, "")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}");
    false
}

pub fn limit_files(octets: Option<u64>) {
    setrlimit(Resource::Fsize, Rlimit { current: octets, maximum: None }).unwrap();
}
