//! Commands that are separate programs, so that `hol` builds without them: `hol serve` starts `hol-serve`,
//! `hol simco` starts `simcod`.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use hol_terminal::find_companion;

use crate::failure::Failure;

/// The arguments of a command that another program executes.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct External {
    /// Arguments of that program; see `hol serve --help` or `hol simco --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

impl External {
    /// Replaces this process with `hol-serve`, which runs experiments with this `hol`.
    pub fn serve(&self) -> Result<(), Failure> {
        let hol = env::current_exe().map_err(Failure::failed)?;
        self.replace(
            "hol-serve",
            "cargo install --path lab/serve",
            "headofline",
            &["--hol".into(), hol.into()],
        )
    }

    /// Replaces this process with `simcod`.
    pub fn simco(&self) -> Result<(), Failure> {
        self.replace("simcod", "cargo install --path middlebox/simcod", "simcod", &[])
    }

    /// Replaces this process with the program `name`, so that signals and exit codes are those of the program. `first`
    /// are arguments before the user's. If the program is missing, the error names the command `install`, which builds
    /// it, and the Debian package that contains it.
    fn replace(&self, name: &str, install: &str, package: &str, first: &[OsString]) -> Result<(), Failure> {
        let program = find_companion(name, env!("CARGO_PKG_VERSION")).map_err(|problem| {
            Failure::Failed(format!(
                "{problem}. This command is a separate program: build it with `{install}` in a clone of the repository, or install the \
                package {package}"
            ))
        })?;
        let error = Command::new(&program).args(first).args(&self.arguments).exec();
        Err(Failure::failed(format!("{}: {error}", program.display())))
    }
}
