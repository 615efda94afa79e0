//! How the program is linked.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|set| set.split(',').any(|one| one == value));
    let is_usual = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !is("CARGO_CFG_TARGET_FEATURE", "crt-static");
    // This program is the first of each guest, too. At an address that is known its loader has nothing to relocate, which would touch 1 MB
    // page by page: a fifth of what a run in User-Mode Linux takes to begin.
    if is_usual {
        println!("cargo::rustc-link-arg-bin=hol=-no-pie");
    }
}
