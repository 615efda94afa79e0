//! `hol-serve`: the lab in the browser. `hol serve` starts it.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::{Parser, Subcommand};
use hol_serve::{Limits, MailDestination, Options, Quota, Registration, Tls};
use hol_terminal::{find_companion, note, print};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The lab in the browser: submit experiments, which wait for free cores, and watch them run.
///
/// On 127.0.0.1 there is no login: everybody who can connect, including other users of this machine, can run programs with your privileges.
/// Elsewhere users have accounts.
#[derive(Debug, Parser)]
#[command(name = "hol-serve", version, max_term_width = 100)]
struct Serve {
    /// Address and port on which to listen; port 0 chooses a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4540")]
    listen: SocketAddr,
    /// Directory of experiments, results and the database [default: $XDG_STATE_HOME/headofline, or
    /// ~/.local/state/headofline]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Cores shared by all experiments [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    cores: Option<u32>,
    /// Host name by which browsers reach this server, in addition to localhost and IP addresses; may be repeated
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Encrypt connections with this certificate and private key (PEM); users must log in
    #[arg(long, num_args = 2, value_names = ["CERTIFICATES", "KEY"], conflicts_with = "proxy")]
    tls: Option<Vec<PathBuf>>,
    /// Serve behind a reverse proxy that encrypts the connections; users must log in
    #[arg(long)]
    proxy: bool,
    /// Allow logged-in users' experiments to run programs; these can read everything that the server's own user can read
    #[arg(long)]
    programs: bool,
    /// Allow logged-in users' experiments to use this world, such as live:HOST or live; may be repeated
    #[arg(long, value_name = "WORLD")]
    live: Vec<String>,
    /// Maximum disk space of a project's experiments, in GiB, if users log in
    #[arg(long, value_name = "GIB", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    project_disk: u64,
    /// Maximum number of runs of a project's experiments, if users log in
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..1 << 50))]
    project_runs: u64,
    /// Maximum core hours of a project, if users log in
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..1 << 30))]
    project_core_hours: u64,
    /// Write the e-mails about changes of an experiment's state to files in this directory instead of sending them
    #[arg(long, value_name = "DIR", conflicts_with = "smtp")]
    mail: Option<PathBuf>,
    /// Mail server that sends the owner of an experiment an e-mail when its state changes: smtp://HOST:PORT or
    /// smtps://USER:PASSWORD@HOST
    #[arg(long, value_name = "URL", requires = "from")]
    smtp: Option<String>,
    /// Sender address of the e-mails
    #[arg(long, value_name = "NAME@HOST")]
    from: Option<String>,
    /// Create the account of an administrator (who approves projects), read its password from standard input, and exit
    #[arg(long, value_name = "NAME")]
    administrator: Option<String>,
    #[command(subcommand)]
    task: Option<Task>,
    /// The `hol` that runs experiments [default: next to this program, or else on PATH]
    #[arg(long, value_name = "PROGRAM")]
    hol: Option<PathBuf>,
}

/// A command other than serving.
#[derive(Debug, Subcommand)]
enum Task {
    /// Copy the state directory to a new directory, while the server runs, and exit.
    ///
    /// The copy is a state directory: `hol-serve --state DIR` serves it.
    Backup {
        /// Directory for the copy; it must be new or empty
        to: PathBuf,
    },
    /// Run the computation on standard input with limits. The server starts this command.
    #[command(hide = true)]
    Compute { mebibytes: u64, seconds: u64 },
}

/// Why the server ended.
enum Failure {
    /// A usage error: exit code 2.
    Usage(String),
    /// A failure: exit code 1.
    Failed(String),
}

impl Failure {
    fn failed(problem: impl Display) -> Self {
        Self::Failed(problem.to_string())
    }
}

fn main() -> ExitCode {
    let serve = Serve::parse();
    if let Some(Task::Compute { mebibytes, seconds }) = serve.task {
        return hol_serve::run_worker_process(Limits { mebibytes, seconds });
    }
    let (problem, code) = match serve.run() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(problem)) => (problem, 2),
        Err(Failure::Failed(problem)) => (problem, 1),
    };
    note!("error: {problem}");
    ExitCode::from(code)
}

impl Serve {
    /// Serves until Ctrl-C.
    fn run(&self) -> Result<(), Failure> {
        if let Some(Task::Backup { to }) = &self.task {
            return hol_serve::back_up(&self.state()?, to).map_err(Failure::failed);
        }
        let options = self.options()?;
        if let Some(name) = &self.administrator {
            return add_administrator(&options, name);
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let ready = |address| print(&format!("{scheme}://{address}/\n"));
        hol_serve::serve(&options, ready).map_err(Failure::failed)
    }

    fn options(&self) -> Result<Options, Failure> {
        let tls = match (self.tls.as_deref(), self.proxy) {
            (Some([certificates, key]), _) => Tls::Files(certificates.clone(), key.clone()),
            (_, true) => Tls::Proxy,
            (_, false) => Tls::None,
        };
        let mail = match (&self.mail, &self.smtp, &self.from) {
            (Some(dir), ..) => MailDestination::Directory(dir.clone()),
            (None, Some(url), Some(from)) => MailDestination::Smtp(url.clone(), from.clone()),
            (None, ..) => MailDestination::None,
        };
        Ok(Options {
            listen: self.listen,
            state: self.state()?,
            program: self.program()?,
            cores: self.cores.unwrap_or_else(cores),
            names: self.names.clone(),
            tls,
            programs: self.programs,
            live: self.live.clone(),
            quota: Quota {
                octets: self.project_disk << 30,
                runs: self.project_runs,
                core_seconds: 3600 * self.project_core_hours,
            },
            mail,
        })
    }

    fn state(&self) -> Result<PathBuf, Failure> {
        self.state.clone().or_else(default_state_directory).ok_or_else(no_state_directory)
    }

    fn program(&self) -> Result<PathBuf, Failure> {
        match &self.hol {
            Some(program) => Ok(program.clone()),
            None => find_companion("hol", VERSION).map_err(|problem| {
                Failure::Usage(format!(
                    "{problem}. The server runs experiments with `hol`; install hol and hol-serve of the same version, or choose the program with --hol PROGRAM"
                ))
            }),
        }
    }
}

/// Returns the number of cores of this machine.
fn cores() -> u32 {
    available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

fn add_administrator(options: &Options, name: &str) -> Result<(), Failure> {
    note!("password of {name}:");
    let mut password = String::new();
    std::io::stdin().read_line(&mut password).map_err(Failure::failed)?;
    let password = password.trim_end_matches(['\r', '\n']).to_owned();
    let registration = Registration { name: name.to_owned(), mail: String::new(), password, project: None };
    hol_serve::add_administrator(options, &registration).map_err(Failure::failed)
}

/// Returns the default state directory. <https://specifications.freedesktop.org/basedir-spec/latest/>
fn default_state_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("headofline"))
}

fn no_state_directory() -> Failure {
    Failure::Usage(
        "no state directory: neither XDG_STATE_HOME nor HOME is an absolute path; choose a directory with --state DIR"
            .to_owned(),
    )
}
