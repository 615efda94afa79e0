//! The daemon as a child process, with a policy of two agents.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hol_base::Duration;
use hol_daemon::{Daemon, FilterKind, Level, Log, Settings};

use crate::peer::SECRETS;

/// The argument that makes this program the daemon.
pub const ROLE: &str = "be-the-daemon";

const POLICY: &str = "
[agents.attacker]
may = ['reserve', 'enable', 'disable', 'lifetime', 'status', 'list']
access = 'all'
[agents.innocent]
[agents.watcher]
may = ['list']
access = 'all'
quota = { sessions = 5000 }
";

/// Serves until standard input is closed. The journal is in memory, where there is a place for it: the disk of a machine
/// that does other work is not what is tried.
pub fn run() {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory } else { Path::new(".") };
    let directory = tempfile::tempdir_in(place).expect("room for a journal");
    let [policy, secrets] = ["policy.toml", "secrets.toml"].map(|name| directory.path().join(name));
    fs::write(&policy, POLICY).expect("room");
    fs::write(&secrets, SECRETS).expect("room");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let settings = Settings {
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        filter: FilterKind::Nftables,
        policy: Some(policy),
        secrets: Some(secrets),
        state: Some(directory.path().join("state")),
        ..Settings::default()
    };
    let log = Log::new(Level::Error, Box::new(std::io::stderr()));
    let mut daemon = settings.open(log).expect("the namespace is ours");
    let tell = |daemon: &Daemon| println!("{}", daemon.addresses().next().expect("it listens").address);
    daemon.run(std::io::stdin(), tell).expect("it serves");
}

/// A daemon, as long as it lasts.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        let command = command.arg(ROLE).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(out).read_line(&mut line).expect("it says where it listens");
        Self { child, address: line.trim().parse().expect("an address") }
    }

    /// What it has used of a processor, in user and kernel mode: proc(5), `schedstat`.
    pub fn processor_clock(&self) -> impl Fn() -> Duration + Send + 'static {
        let path = format!("/proc/{}/schedstat", self.child.id());
        move || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
            Duration::from_nanos(nanos.unwrap_or_default())
        }
    }

    /// Octets that were resident at most: proc(5), `VmHWM`.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be busy with what it was made to do: that is not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let table = ["delete", "table", "inet", "simco"];
        let _ = Command::new("nft").args(table).status();
    }
}
