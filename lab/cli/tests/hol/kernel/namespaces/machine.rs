//! A virtual machine for tests that need root: User-Mode Linux with this host's files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::kernel::engine::user_mode_image;
use crate::program::BIN;

/// The commands of the first process before and after the script.
const BEGIN: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=DIR
mount -t proc proc /proc
mount -t sysfs sys /sys
ip link set lo up
cd DIR
";
const END: &str = "
python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
";

/// Runs a script in `dir` as root of a machine; `HOL` in it is replaced by the path of hol.
pub fn run(dir: &Path, script: &str) {
    let script = [BEGIN, script, END]
        .concat()
        .replace("DIR", dir.to_str().unwrap())
        .replace("HOL ", &format!("{BIN} "));
    let init = dir.join("init.sh");
    fs::write(&init, script).unwrap();
    fs::set_permissions(&init, Permissions::from_mode(0o755)).unwrap();
    // All users may read the results of root.
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let kernel = user_mode_image().file();
    let booted = Command::new("timeout")
        .args(["300", "setarch", "-R", kernel.to_str().unwrap(), "mem=1024M"])
        .args([
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "rw",
            &format!("init={}", init.display()),
        ])
        .args(["time-travel=inf-cpu", "time-travel-start=1577836800000000000", "uml_dir=./", "umid=uml"])
        .args(["con=null", "con0=null,fd:1", "panic=-1"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&booted.stdout);
    assert!(booted.status.success() && console.contains("Power down"), "{console}");
}
