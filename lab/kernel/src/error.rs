//! Errors of the kernel world.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::cache::cache_directory;

/// An error of the kernel world; its message contains a remedy.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A program is missing on the host.
    #[error("{program} is missing; install it with `apt-get install {package}`")]
    ProgramMissing {
        /// The name of the missing program.
        program: String,
        /// The package that contains the program.
        package: &'static str,
    },
    /// No kernel has been fetched or imported.
    #[error(
        "no kernel is available; download one with `hol kernel fetch`, or use your own with `hol kernel use PATH`"
    )]
    NoKernel,
    /// No available kernel has the requested name.
    #[error("no kernel {wanted:?}; use one of {known}, or download one with `hol kernel fetch`")]
    UnknownKernel {
        /// The name that the user requested.
        wanted: String,
        /// The names of the available kernels.
        known: String,
    },
    /// No available kernel for User-Mode Linux has the requested name.
    #[error(
        "no kernel {wanted:?} for User-Mode Linux is available; build one with `hol kernel build` (takes some minutes)"
    )]
    NotBuilt {
        /// The name that the user requested.
        wanted: String,
    },
    /// Programs that a build needs are missing.
    #[error("not installed: {}; run `apt-get install {}`", .programs.join(", "), .packages.join(" "))]
    ToolsMissing {
        /// The names of the missing programs.
        programs: Vec<&'static str>,
        /// The packages that contain the programs.
        packages: Vec<&'static str>,
    },
    /// Packages could not be downloaded from the distribution.
    #[error("{what}; {cure}")]
    Packages {
        /// The problem.
        what: String,
        /// The remedy.
        cure: String,
    },
    /// A file is not a kernel image, or it is truncated.
    #[error("{}: {problem}", path.display())]
    Image {
        /// The path of the file.
        path: PathBuf,
        /// The problem, and the remedy.
        problem: String,
    },
    /// A kernel module that is required is missing.
    #[error("{}: no module {module}; {cure}", directory.display())]
    ModuleMissing {
        /// The directory that was searched.
        directory: PathBuf,
        /// The name of the missing module.
        module: &'static str,
        /// The remedy.
        cure: &'static str,
    },
    /// A program of the host failed.
    #[error("{program} failed: {error_output}")]
    Program {
        /// The program.
        program: String,
        /// The error message of the program.
        error_output: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}{cure}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The action that failed, such as "read".
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
        /// The remedy: empty, or with a semicolon and a space in front.
        cure: &'static str,
    },
    /// The kernel does not support a key of the scenario.
    #[error("the kernel world does not support `{what}`: {why}")]
    Unsupported {
        /// The unsupported key, with its value.
        what: String,
        /// The reason why the key is not supported, and the remedy.
        why: String,
    },
    /// There is not enough memory for several virtual machines.
    #[error(
        "{machines} simultaneous virtual machines need {needed} MiB of memory, but only {free} MiB are free; {}",
        memory_cure(*.fitting)
    )]
    Memory {
        /// The number of machines that should run at the same time.
        machines: usize,
        /// The memory that all machines together need, in MiB.
        needed: u64,
        /// The memory that is free, in MiB.
        free: u64,
        /// The number of machines for which the free memory suffices.
        fitting: u64,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The virtual machine failed.
    #[error("{fault}{console}")]
    Machine {
        /// The kind of the failure.
        fault: MachineFault,
        /// The console output of the machine.
        console: ConsoleOutput,
    },
}

/// A failure of a virtual machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineFault {
    /// The virtual machine ended unexpectedly; contains the reason.
    #[error("the virtual machine ended before its job was done: {0}")]
    Ended(String),
    /// The virtual machine took longer than the limit.
    #[error(
        "the virtual machine was still {doing} after {seconds} s and was stopped; set a longer limit with the environment variable {LIMIT_VARIABLE}"
    )]
    TooLong {
        /// What the machine was doing, as a participle for the error message.
        doing: &'static str,
        /// The limit that was exceeded, in seconds of wall-clock time.
        seconds: u64,
    },
    /// QEMU refused a command.
    #[error("QEMU rejected the command `{command}`: {message}")]
    Refused {
        /// The command that QEMU refused.
        command: String,
        /// The error message of QEMU.
        message: String,
    },
    /// The program in the guest failed; contains the reason.
    #[error("inside the virtual machine: {0}")]
    Guest(String),
    /// One of the user's programs could not be run, or failed; contains the reason.
    #[error("{0}")]
    Program(String),
    /// The run is invalid, because its own measurements show that the path was not as configured; contains the
    /// details.
    #[error("the run is not valid: {0}")]
    Invalid(String),
}

/// Name of the environment variable with the wall-clock limit of a run.
pub(crate) const LIMIT_VARIABLE: &str = "HOL_RUN_LIMIT";

/// The console output of a guest. Displayed as text, it is shortened to its last lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsoleOutput(String);

impl ConsoleOutput {
    /// Creates the console output of a guest from its octets.
    pub(crate) fn new(octets: &[u8]) -> Self {
        Self(String::from_utf8_lossy(octets).into_owned())
    }

    /// Returns the whole console output.
    pub fn full_text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConsoleOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Number of last lines of the console output that are shown.
        const MAX_LINES: usize = 20;
        let lines: Vec<&str> = self.0.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(MAX_LINES)..];
        match last {
            [] => Ok(()),
            last => write!(f, "\nlast lines of its console:\n{}", last.join("\n")),
        }
    }
}

fn memory_cure(fitting: u64) -> String {
    match fitting {
        0 => "free some memory".to_owned(),
        fitting => format!("run fewer machines with --jobs {fitting}"),
    }
}

impl From<hol_traffic::Unsupported> for KernelError {
    fn from(hol_traffic::Unsupported { what, why }: hol_traffic::Unsupported) -> Self {
        Self::Unsupported { what, why }
    }
}

impl From<MachineFault> for KernelError {
    fn from(fault: MachineFault) -> Self {
        Self::Machine { fault, console: ConsoleOutput::default() }
    }
}

impl KernelError {
    /// Returns whether the user has to change the input; otherwise something on this machine causes the error.
    pub const fn is_usage_error(&self) -> bool {
        matches!(self, Self::Unsupported { .. } | Self::UnknownKernel { .. })
    }

    /// Adds the console output to the error.
    pub(crate) fn with_console(self, console: ConsoleOutput) -> Self {
        match self {
            Self::Machine { fault, .. } => Self::Machine { fault, console },
            other => other,
        }
    }

    /// Creates the error that `action` failed on the file at `path`, with a remedy.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let full = matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        let passing = path.starts_with(std::env::temp_dir()) && !path.starts_with(cache_directory());
        let cure = match (action, full, passing) {
            (_, true, true) => "; free some space, or set TMPDIR to a directory with space",
            (_, true, false) => "; free some space, or set XDG_CACHE_HOME to a directory with space",
            ("read" | "wait for the process in" | "wait for the process of", ..) => "",
            (_, false, true) => "; set TMPDIR to a writable directory",
            (_, false, false) => "; set XDG_CACHE_HOME to a writable directory",
        };
        Self::File { path: path.to_owned(), action, source, cure }
    }

    /// Creates an error about the file or directory at `path`; `problem` says what is wrong and, if anything helps, what
    /// to do.
    pub(crate) fn image(path: &Path, problem: impl Into<String>) -> Self {
        Self::Image { path: path.to_owned(), problem: problem.into() }
    }
}
