//! The daemon as a child process.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use hol_base::Duration;
use hol_daemon::{Daemon, FilterKind, Level, LimitSettings, Log, Settings};

/// The argument with which this program acts as the daemon; more arguments configure it.
pub const ROLE: &str = "be-the-daemon";
const FILTER: &str = "with-nftables";
const JOURNAL: &str = "with-journal";

/// Which parts of the daemon are used: changes may be applied to nftables, and written to a journal.
#[derive(Debug, Clone, Copy)]
pub struct DaemonParts {
    pub filter: bool,
    pub journal: bool,
}

/// Runs the daemon until standard input is closed.
pub fn run(arguments: &[String]) {
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let directory = tempfile::tempdir_in(".").expect("a directory for the journal can be created");
    let limits = LimitSettings { rules: 2_000_000, elements: 2_000_000, ..LimitSettings::default() };
    let listen = vec!["127.0.0.1:0".parse().expect("an address")];
    let settings = Settings {
        listen,
        limits,
        filter: if has(FILTER) { FilterKind::Nftables } else { FilterKind::None },
        state: has(JOURNAL).then(|| directory.path().to_owned()),
        ..Settings::default()
    };
    let log = Log::new(Level::Error, Box::new(std::io::stderr()));
    let mut daemon = settings.open(log).expect("the loopback interface exists");
    let print_address =
        |daemon: &Daemon| println!("{}", daemon.addresses().next().expect("the daemon listens").address);
    daemon.run(std::io::stdin(), print_address).expect("the daemon serves");
}

impl fmt::Display for DaemonParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.filter, self.journal) {
            (false, false) => "no filter",
            (false, true) => "journal",
            (true, false) => "nftables",
            (true, true) => "nftables and journal",
        })
    }
}

/// A daemon that runs in another process.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(parts: DaemonParts) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let command = &mut Command::new(program);
        command.args(
            [(parts.filter, FILTER), (parts.journal, JOURNAL)]
                .iter()
                .filter(|(is_so, _)| *is_so)
                .map(|(_, word)| word),
        );
        let mut child = command
            .arg(ROLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the daemon starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("the output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("the daemon prints its address");
        Self { child, address: line.trim().parse().expect("an address") }
    }

    /// Returns the processor time of the daemon in user and kernel mode: proc(5), `schedstat`.
    pub fn processor_time(&self) -> Duration {
        Duration::from_nanos(self.number("schedstat", 0))
    }

    /// Returns the resident memory of the daemon in octets: proc(5), `statm`.
    pub fn memory(&self) -> u64 {
        self.number("statm", 1) * rustix::param::page_size() as u64
    }

    fn number(&self, file: &str, field: usize) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("the daemon runs");
        text.split_whitespace().nth(field).and_then(|field| field.parse().ok()).expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("the daemon ends when its input is closed");
    }
}
