//! `hol doctor`: checks what works on this machine, and explains how to install missing parts.

use std::env;
use std::path::Path;

use clap::Args;
use hol_kernel::Image;
use hol_lab::Host;
use hol_lab::WorldName;
use hol_live::Namespaces;

use crate::executable;
use crate::failure::Failure;
use crate::point_row::json;
use crate::terminal::print;

/// Check what works on this machine.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print a JSON object for each check, one per line
    #[arg(long)]
    json: bool,
}

/// A check of this machine, with its result.
struct Check {
    name: &'static str,
    result: CheckResult,
    /// Whether hol needs this part to work at all.
    is_required: bool,
}

/// The result of a check of this machine.
enum CheckResult {
    /// The part is available; contains its description.
    Available(String),
    /// The part is available with restrictions; contains their consequence and the remedy.
    Limited(String),
    /// The part is missing; contains the remedy.
    Missing(String),
}

impl Doctor {
    /// Checks everything; returns an error if something necessary is missing.
    pub fn run(&self) -> Result<(), Failure> {
        let checks = run_checks();
        for Check { name, result, is_required } in &checks {
            let (word, text) = match result {
                CheckResult::Available(text) => ("ok", text),
                CheckResult::Limited(text) => ("partly", text),
                CheckResult::Missing(remedy) if *is_required => ("MISSING", remedy),
                CheckResult::Missing(remedy) => ("missing", remedy),
            };
            if self.json {
                let state = word.to_lowercase();
                print(&json(
                    &serde_json::json!({ "name": name, "state": state, "needed": is_required, "detail": text }),
                ));
            } else {
                print(&format!("{word:<8} {name:<14} {text}\n"));
            }
        }
        let lacks = |check: &&Check| check.is_required && matches!(check.result, CheckResult::Missing(_));
        match checks.iter().find(lacks) {
            None => Ok(()),
            Some(check) => Err(Failure::Failed(format!("a required check failed: {}", check.name))),
        }
    }
}

fn run_checks() -> [Check; 11] {
    let host = Host::current();
    let memory = host.memory / (1 << 20);
    let enough = if memory == 0 || memory >= 512 {
        CheckResult::Available(format!("{memory} MiB"))
    } else {
        CheckResult::Missing("a full study uses up to 330 MB of memory; run studies with --quick".to_owned())
    };
    let optional = |name, program, remedy| Check {
        name,
        result: executable::find(program).map(|path| path.display().to_string()).ok_or(remedy).into(),
        is_required: false,
    };
    [
        Check { name: "system", result: CheckResult::Available(host.os), is_required: false },
        Check {
            name: "cores",
            result: CheckResult::Available(format!("{}, {}", host.cores, host.cpu)),
            is_required: false,
        },
        Check { name: "memory", result: enough, is_required: false },
        Check { name: "results here", result: check_directory().into(), is_required: true },
        optional("tshark", "tshark", "tshark displays captures of `hol trace`; install the package tshark"),
        Check { name: "kernel engine", result: check_engine(), is_required: false },
        optional(
            "apt-get",
            "apt-get",
            "`hol kernel fetch` needs apt-get; without it, give a kernel of your own to `hol kernel use PATH`",
        ),
        Check { name: "kernels", result: check_kernels().into(), is_required: false },
        Check { name: "guest sandbox", result: check_confinement(), is_required: false },
        Check { name: "live", result: check_live(), is_required: false },
        Check { name: "live:namespaces", result: check_namespaces(), is_required: false },
    ]
}

impl From<Result<String, &str>> for CheckResult {
    fn from(result: Result<String, &str>) -> Self {
        result.map_or_else(|remedy| Self::Missing(remedy.to_owned()), Self::Available)
    }
}

/// Checks the live world on this machine's loopback.
fn check_live() -> CheckResult {
    let host = WorldName::of("live", "").open().and_then(|world| world.provenance());
    host.map_or_else(|problem| CheckResult::Missing(problem.to_string()), CheckResult::Available)
}

/// Checks whether hol can build a path from network namespaces.
fn check_namespaces() -> CheckResult {
    let lacks =
        Namespaces::new().missing_prerequisites().map(|what| format!("--world live:namespaces: {what}"));
    lacks.map_or_else(
        || CheckResult::Available("network namespaces and netem".to_owned()),
        CheckResult::Missing,
    )
}

/// Checks whether an engine can run guest kernels, and whether its threads run in a fixed order.
fn check_engine() -> CheckResult {
    match hol_kernel::provenance() {
        Ok(provenance) => {
            provenance.warning().map_or(CheckResult::Available(provenance.to_string()), CheckResult::Limited)
        }
        Err(problem) => CheckResult::Missing(format!("--world kernel does not work: {problem}")),
    }
}

/// Checks whether Landlock confines a program that escapes from a guest.
fn check_confinement() -> CheckResult {
    match hol_kernel::landlock_version() {
        None => CheckResult::Missing(
            "a program that escapes a guest of --world kernel runs with your privileges; use a kernel with Landlock (`lsm=landlock,…`)"
                .to_owned(),
        ),
        Some(version @ ..6) => CheckResult::Limited(format!(
            "Landlock {version} does not restrict the files, TCP and signals of guests completely; use Linux 6.12 or later"
        )),
        Some(version) => CheckResult::Available(format!("Landlock {version} restricts the files, TCP and signals of guests")),
    }
}

/// Returns the releases of the available kernels, the default first.
fn check_kernels() -> Result<String, &'static str> {
    let remedy = "`hol kernel fetch` downloads one for --world kernel";
    let chosen = Image::find(None).map_err(|_| remedy)?.release;
    let mut releases: Vec<String> = Image::list().into_iter().map(|image| image.release).collect();
    releases.sort_by_key(|release| *release != chosen);
    Ok(releases.join(", "))
}

fn check_directory() -> Result<String, &'static str> {
    let path = Path::new(".").join(format!(".hol-doctor-{}", std::process::id()));
    let written = std::fs::write(&path, b"").and_then(|()| std::fs::remove_file(&path));
    let here = env::current_dir().map_or(".".to_owned(), |dir| dir.display().to_string());
    written
        .map(|()| format!("{here} is writable"))
        .map_err(|_| "the current directory is not writable; change to another one, or use --out DIR")
}
