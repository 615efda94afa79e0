//! `hol doctor`: what works on this machine, and what to do about the rest.

use std::env;
use std::path::Path;

use clap::Args;
use hol_kernel::Image;
use hol_lab::Host;

use crate::failure::Failure;
use crate::terminal::say;

/// Say what works on this machine.
#[derive(Debug, Args)]
pub struct Doctor {}

/// One thing that was looked at.
struct Finding {
    name: &'static str,
    /// What was found, or the cure.
    found: Result<String, &'static str>,
    /// Without it nothing works.
    needed: bool,
}

impl Doctor {
    /// Looks at everything; fails if something is missing that is needed.
    pub fn run(&self) -> Result<(), Failure> {
        let findings = examine();
        for Finding { name, found, needed } in &findings {
            let (word, text) = match found {
                Ok(text) => ("ok", text.as_str()),
                Err(cure) if *needed => ("MISSING", *cure),
                Err(cure) => ("missing", *cure),
            };
            say(&format!("{word:<8} {name:<14} {text}\n"));
        }
        match findings.iter().find(|finding| finding.needed && finding.found.is_err()) {
            None => Ok(()),
            Some(finding) => Err(Failure::Failed(format!("{} is needed", finding.name))),
        }
    }
}

fn examine() -> [Finding; 9] {
    let host = Host::this();
    let memory = host.memory / (1 << 20);
    let enough = if memory == 0 || memory >= 512 {
        Ok(format!("{memory} MiB"))
    } else {
        Err("a full study takes up to 500 MB; use --quick")
    };
    let filter = if hol_daemon::may_filter() {
        Ok("`hol simco serve` may change nftables".to_owned())
    } else {
        Err("`hol simco serve --filter nftables` needs CAP_NET_ADMIN; run it as root")
    };
    let optional = |name, program, cure| Finding { name, found: find(program).ok_or(cure), needed: false };
    [
        Finding { name: "system", found: Ok(host.os), needed: false },
        Finding { name: "cores", found: Ok(format!("{}, {}", host.cores, host.cpu)), needed: false },
        Finding { name: "memory", found: enough, needed: false },
        Finding { name: "results here", found: writable(), needed: true },
        optional("tshark", "tshark", "reads captures of `hol trace`; install the package tshark"),
        optional("qemu", "qemu-system-x86_64", "runs --world kernel; install the package qemu-system-x86"),
        optional("apt-get", "apt-get", "`hol kernel fetch` uses it; `hol kernel use PATH` takes any kernel"),
        Finding { name: "kernels", found: kernels(), needed: false },
        Finding { name: "packet filter", found: filter, needed: false },
    ]
}

/// The kernels of the kernel world, that which is taken first.
fn kernels() -> Result<String, &'static str> {
    let cure = "`hol kernel fetch` gets one for --world kernel";
    let chosen = Image::find(None).map_err(|_| cure)?.release;
    let mut releases: Vec<String> = Image::list().into_iter().map(|image| image.release).collect();
    releases.sort_by_key(|release| *release != chosen);
    Ok(releases.join(", "))
}

fn writable() -> Result<String, &'static str> {
    let path = Path::new(".").join(format!(".hol-doctor-{}", std::process::id()));
    let written = std::fs::write(&path, b"").and_then(|()| std::fs::remove_file(&path));
    let here = env::current_dir().map_or(".".to_owned(), |dir| dir.display().to_string());
    written
        .map(|()| format!("{here} can be written"))
        .map_err(|_| "this directory cannot be written; use --out DIR")
}

/// Where a program is.
fn find(program: &str) -> Option<String> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())?;
    Some(found.display().to_string())
}
