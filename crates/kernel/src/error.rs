//! What can go wrong around a virtual machine.

use std::io;
use std::path::{Path, PathBuf};

/// Why the kernel world did not run something; each names the cure.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A program of the host is missing.
    #[error("{program} is missing; install it with `apt-get install {package}`")]
    ProgramMissing {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// No kernel has been fetched or named.
    #[error(
        "there is no kernel yet; `hol kernel fetch` gets one, `hol kernel use PATH` takes one that you have"
    )]
    NoKernel,
    /// No kernel of this name.
    #[error("no kernel {wanted:?}; there are {known}")]
    UnknownKernel {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// A file that is no kernel image, or part of one.
    #[error("{}: {problem}", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; what to do.
        problem: String,
    },
    /// A module that the kernel needs is not among its modules.
    #[error("{}: no module {module}; {cure}", directory.display())]
    ModuleMissing {
        /// Where it was looked for.
        directory: PathBuf,
        /// The module.
        module: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// A program of the host failed.
    #[error("{program} failed: {said}")]
    Program {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}{cure}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system answered.
        source: io::Error,
        /// What to do; empty, or beginning with "; ".
        cure: &'static str,
    },
    /// The scenario asks for something that the kernel cannot do.
    #[error("the kernel world cannot do `{what}`: {why}")]
    Unsupported {
        /// The key, with its value.
        what: String,
        /// Why not; what to do.
        why: String,
    },
    /// The virtual machine ended by itself.
    #[error(
        "the virtual machine ended before the run did: {said}\nthe last it wrote to its console:\n{console}"
    )]
    Crashed {
        /// What QEMU said.
        said: String,
        /// The end of the console.
        console: String,
    },
    /// The virtual machine took too long.
    #[error(
        "the virtual machine was still {doing} after {seconds} s and was ended; the last it wrote to its console:\n{console}"
    )]
    TooLong {
        /// What it was doing.
        doing: &'static str,
        /// The limit.
        seconds: u64,
        /// The end of the console.
        console: String,
    },
    /// QEMU refused something.
    #[error("QEMU refused `{command}`: {said}")]
    Refused {
        /// The command.
        command: String,
        /// What it said.
        said: String,
    },
    /// The program inside the virtual machine failed.
    #[error("inside the virtual machine: {0}")]
    Guest(String),
    /// The run measured itself and found its own conditions outside the limits.
    #[error("the run is not valid: {0}")]
    Invalid(String),
}

impl KernelError {
    /// The user has to change what was asked, rather than the machine its state.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Unsupported { .. } | Self::UnknownKernel { .. })
    }

    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let cure = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space, or set XDG_CACHE_HOME to a place that has it"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; set XDG_CACHE_HOME to a directory that can be written"
            }
            _ => "",
        };
        Self::File { path: path.to_owned(), action, source, cure }
    }

    pub(crate) fn image(path: &Path, problem: impl Into<String>) -> Self {
        Self::Image { path: path.to_owned(), problem: problem.into() }
    }
}
