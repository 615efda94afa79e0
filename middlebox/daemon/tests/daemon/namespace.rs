//! A network and mount namespace for a test.

use std::process::Command;

const NAMESPACE_VARIABLE: &str = "HOL_TEST_NAMESPACE";

/// Returns true in a network and mount namespace of this test's own; otherwise runs the test in one.
pub fn in_a_namespace(test: &str) -> bool {
    if std::env::var_os(NAMESPACE_VARIABLE).is_some() {
        return true;
    }
    let output = Command::new("unshare")
        .args([
            "--net",
            "--mount",
            "sh",
            "-c",
            r#"ip link set lo up && exec "$0" --exact "$1" --ignored --nocapture 2>&1"#,
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(NAMESPACE_VARIABLE, "")
        .output()
        .expect("unshare (util-linux) is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "needs root, iproute2, nftables: {text}");
    false
}
