//! Completions for shells and pages for `man`, generated from the commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::failure::Failure;
use crate::terminal::print;

/// Print the completions of commands for a shell: hol completions bash >> ~/.bash_completion
#[derive(Debug, Args)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    /// Prints the completion script of the chosen shell.
    pub fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "hol", &mut script);
        print(&String::from_utf8(script).map_err(Failure::failed)?);
        Ok(())
    }
}

/// Write the manual, one page per command: hol manual ~/.local/share/man/man1
#[derive(Debug, Args)]
pub struct Manual {
    /// Directory for the pages; created if missing
    directory: PathBuf,
}

impl Manual {
    /// Writes a page for `man` for each command to the directory.
    pub fn run(&self) -> Result<(), Failure> {
        let directory = self.directory.as_path();
        let failed = |error| Failure::failed(format!("{}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), directory).map_err(failed)
    }
}
