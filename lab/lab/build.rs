//! Embeds the studies and the compiler's version in the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets this variable")).join("../../studies");
    println!("cargo::rerun-if-changed={}", root.display());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets this variable")).join("studies.rs");
    fs::write(&out, studies(&root)).expect("the build directory can be written");

    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output().map(|output| output.stdout);
    let version = String::from_utf8(version.unwrap_or_default()).unwrap_or_default();
    println!("cargo::rustc-env=HOL_RUSTC={}", version.trim());
    println!("cargo::rustc-env=HOL_COMMIT={}", commit().unwrap_or_default());
}

/// Returns the commit that is checked out, or `HOL_COMMIT` if that is set. Debug builds contain no commit by
/// default, because each commit would otherwise rebuild this crate.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=HOL_COMMIT");
    if let Ok(commit) = env::var("HOL_COMMIT") {
        return Some(commit);
    }
    if env::var("PROFILE").ok()? != "release" {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // If the sources are an untracked copy in another repository, the commit of that repository does not describe them.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&head).exists() {
        println!("cargo::rerun-if-changed={head}");
    }
    git(&["rev-parse", "HEAD"])
}

/// Returns the definition of a constant that contains the name and the files of every study, in order of name.
fn studies(root: &Path) -> String {
    let mut code = String::from("/// Every study with its files.\nconst STUDIES: &[(&str, Files)] = &[\n");
    for study in entries(root).into_iter().filter(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", study.display());
        writeln!(code, "    ({:?}, &[", name(&study)).expect("writing to a string does not fail");
        for file in entries(&study).into_iter().filter(|path| is_text(path)) {
            writeln!(code, "        ({:?}, include_str!({file:?})),", name(&file))
                .expect("writing to a string does not fail");
        }
        code.push_str("    ]),\n");
    }
    code + "];\n"
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("names of studies are UTF-8")
}

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml" || ending == "md" || ending == "ns")
}
