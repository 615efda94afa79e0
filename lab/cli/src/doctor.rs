//! `hol doctor`: checks what works on this machine, and explains how to get the rest.

use std::env;
use std::path::Path;

use clap::Args;
use hol_kernel::Image;
use hol_lab::Host;
use hol_lab::WorldName;
use hol_live::Namespaces;

use crate::failure::Failure;
use crate::row::json;
use crate::terminal::say;

/// Check what works on this machine.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// The result of one check.
struct Finding {
    name: &'static str,
    found: Found,
    /// Whether hol works only with it.
    needed: bool,
}

enum Found {
    /// Available, with a description.
    Whole(String),
    /// Available with restrictions: the consequence and the remedy.
    Part(String),
    /// Missing, with the remedy.
    Nothing(String),
}

impl Doctor {
    /// Checks everything; returns an error if something necessary is missing.
    pub fn run(&self) -> Result<(), Failure> {
        let findings = examine();
        for Finding { name, found, needed } in &findings {
            let (word, text) = match found {
                Found::Whole(text) => ("ok", text),
                Found::Part(text) => ("partly", text),
                Found::Nothing(cure) if *needed => ("MISSING", cure),
                Found::Nothing(cure) => ("missing", cure),
            };
            if self.json {
                let state = word.to_lowercase();
                say(&json(
                    &serde_json::json!({ "name": name, "state": state, "needed": needed, "detail": text }),
                ));
            } else {
                say(&format!("{word:<8} {name:<14} {text}\n"));
            }
        }
        let lacks = |finding: &&Finding| finding.needed && matches!(finding.found, Found::Nothing(_));
        match findings.iter().find(lacks) {
            None => Ok(()),
            Some(finding) => Err(Failure::Failed(format!("{} is needed", finding.name))),
        }
    }
}

fn examine() -> [Finding; 11] {
    let host = Host::this();
    let memory = host.memory / (1 << 20);
    let enough = if memory == 0 || memory >= 512 {
        Found::Whole(format!("{memory} MiB"))
    } else {
        Found::Nothing("a full study takes up to 330 MB; use --quick".to_owned())
    };
    let optional =
        |name, program, cure| Finding { name, found: find(program).ok_or(cure).into(), needed: false };
    [
        Finding { name: "system", found: Found::Whole(host.os), needed: false },
        Finding {
            name: "cores",
            found: Found::Whole(format!("{}, {}", host.cores, host.cpu)),
            needed: false,
        },
        Finding { name: "memory", found: enough, needed: false },
        Finding { name: "results here", found: writable().into(), needed: true },
        optional("tshark", "tshark", "reads captures of `hol trace`; install the package tshark"),
        Finding { name: "kernel engine", found: engine(), needed: false },
        optional("apt-get", "apt-get", "`hol kernel fetch` uses it; `hol kernel use PATH` takes any kernel"),
        Finding { name: "kernels", found: kernels().into(), needed: false },
        Finding { name: "engines' wall", found: wall(), needed: false },
        Finding { name: "live", found: live(), needed: false },
        Finding { name: "live:namespaces", found: namespaces(), needed: false },
    ]
}

impl From<Result<String, &str>> for Found {
    fn from(found: Result<String, &str>) -> Self {
        found.map_or_else(|cure| Self::Nothing(cure.to_owned()), Self::Whole)
    }
}

/// Checks the live world on this machine's loopback.
fn live() -> Found {
    let host = WorldName::of("live", "").open().and_then(|world| world.provenance());
    host.map_or_else(|problem| Found::Nothing(problem.to_string()), Found::Whole)
}

/// Checks whether hol can build a path from network namespaces.
fn namespaces() -> Found {
    let lacks =
        Namespaces::new().missing_prerequisites().map(|what| format!("--world live:namespaces: {what}"));
    lacks.map_or_else(|| Found::Whole("network namespaces and netem".to_owned()), Found::Nothing)
}

/// Checks the engine that runs guest kernels, and whether it steps threads exactly.
fn engine() -> Found {
    match hol_kernel::provenance() {
        Ok(provenance) => provenance.warning().map_or(Found::Whole(provenance.to_string()), Found::Part),
        Err(problem) => Found::Nothing(format!("runs --world kernel: {problem}")),
    }
}

/// Checks the confinement of a program that escapes a guest.
fn wall() -> Found {
    match hol_kernel::confinement() {
        None => Found::Nothing(
            "a program that escapes a guest of --world kernel runs with your privileges; use a kernel with Landlock (`lsm=landlock,…`)"
                .to_owned(),
        ),
        Some(version @ ..6) => Found::Part(format!(
            "Landlock {version} does not restrict the files, TCP and signals of guests completely; Linux 6.12 does"
        )),
        Some(version) => Found::Whole(format!("Landlock {version} restricts the files, TCP and signals of guests")),
    }
}

/// Returns the releases of the available kernels, the default first.
fn kernels() -> Result<String, &'static str> {
    let cure = "`hol kernel fetch` downloads one for --world kernel";
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

/// Returns the path of a program, if it is in a directory of `PATH`.
fn find(program: &str) -> Option<String> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())?;
    Some(found.display().to_string())
}
