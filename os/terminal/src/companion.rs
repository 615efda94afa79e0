//! Finds programs that are installed together, and checks their version.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Why a companion program cannot be started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompanionError {
    /// The program is neither in the directory of the running program nor on PATH.
    #[error("{name}: program not found (looked next to this program and on PATH)")]
    NotFound {
        /// File name of the companion program.
        name: String,
    },
    /// The program cannot be run, or does not print a version.
    #[error("{}: {problem}", .program.display())]
    Unusable {
        /// Path of the companion program.
        program: PathBuf,
        /// Why the program is unusable.
        problem: String,
    },
    /// The companion program has another version than the running program.
    #[error(
        "{}: version {found_version}, but this program has version {own_version}; install both from the same release",
        .program.display()
    )]
    Version {
        /// Path of the companion program.
        program: PathBuf,
        /// The version that the companion program prints.
        found_version: String,
        /// The version of the running program.
        own_version: String,
    },
}

/// Returns the path of the program `name`: in the directory of the running program, or else the first on
/// PATH. With `--version`, the program found must print `NAME VERSION` with the required version.
pub fn find_companion(name: &str, version: &str) -> Result<PathBuf, CompanionError> {
    let program = find(name).ok_or_else(|| CompanionError::NotFound { name: name.to_owned() })?;
    let unusable = |problem: String| CompanionError::Unusable { program: program.clone(), problem };
    let output = Command::new(&program).arg("--version").output().map_err(|e| unusable(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(found_version) = text
        .trim()
        .strip_prefix(name)
        .map(str::trim)
        .filter(|found_version| output.status.success() && !found_version.contains(char::is_whitespace))
    else {
        return Err(unusable(format!(
            "`{name} --version` does not print `{name} VERSION`; install it again from the release of this program"
        )));
    };
    if found_version == version {
        return Ok(program);
    }
    Err(CompanionError::Version {
        program,
        found_version: found_version.to_owned(),
        own_version: version.to_owned(),
    })
}

fn find(name: &str) -> Option<PathBuf> {
    let own_dir = env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    own_dir.into_iter().chain(env::split_paths(&path)).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_as_not_found() {
        let error = find_companion("hol-no-such-program", "1.0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "hol-no-such-program: program not found (looked next to this program and on PATH)"
        );
    }

    #[test]
    fn a_program_that_does_not_print_its_version_is_unusable() {
        assert!(matches!(find_companion("true", "1.0"), Err(CompanionError::Unusable { .. })));
    }
}
