//! The daemon as a process that can be killed: another process of this test program.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hol_agent::{Server, Session};
use hol_base::Duration;
use hol_daemon::{FilterKind, Level, Log, Settings, Signals};
use hol_simco::{Pid, Reply, Request, Unauthenticated};
use rustix::process::{Resource, Rlimit, prlimit};

use super::expected_rules::KnownRule;

/// The packet filter of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    None,
    Nftables,
}

const STATE: &str = "HOL_TEST_STATE";
const FILTER: &str = "HOL_TEST_FILTER";
/// The text before the address.
const LISTENING: &str = "listening on ";

/// Serves, if another process has passed a directory; returns true in that case.
pub fn has_served() -> bool {
    let Some(state) = std::env::var_os(STATE) else { return false };
    let settings = Settings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        filter: if std::env::var_os(FILTER).is_some() { FilterKind::Nftables } else { FilterKind::None },
        state: Some(state.into()),
        max_lifetime: Duration::from_secs(u32::MAX.into()),
        ..Settings::default()
    };
    let signals = Signals::for_stop().unwrap();
    let mut daemon = settings.open(Log::new(Level::Error, Box::new(std::io::stderr()))).unwrap();
    let address = |daemon: &hol_daemon::Daemon| daemon.addresses().next().unwrap().address;
    daemon.run(signals, |daemon| println!("\n{LISTENING}{}", address(daemon))).unwrap();
    true
}

/// A running daemon.
pub struct Daemon {
    child: Child,
    server: Option<Server>,
}

impl Daemon {
    /// Starts a daemon without waiting until it serves.
    pub fn begin(state: &Path, filter: Filter) -> Self {
        // SIGXFSZ is ignored, so that a file above the limit fails like a full disk.
        let mut command = Command::new("sh");
        command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", super::SERVES, "--nocapture"]);
        command.env(STATE, state).stdout(Stdio::piped());
        if filter == Filter::Nftables {
            command.env(FILTER, "nftables");
        }
        Self { child: command.spawn().unwrap(), server: None }
    }

    /// Waits until the daemon serves.
    pub fn ready(mut self) -> Self {
        let out = BufReader::new(self.child.stdout.as_mut().unwrap());
        let mut lines = out.lines().map(Result::unwrap);
        let address = lines.find_map(|line| line.strip_prefix(LISTENING).map(str::to_owned));
        self.server = Some(address.expect("the daemon starts").parse().unwrap());
        self
    }

    pub fn server(&self) -> Server {
        self.server.clone().expect("the daemon serves")
    }

    /// Limits the size of files, as if the disk were full beyond it.
    pub fn limit_files(&self, octets: u64) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let limit = Rlimit { current: Some(octets), maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    }

    /// Returns every rule that the daemon lists.
    pub fn rules(&self) -> BTreeMap<Pid, KnownRule> {
        let mut session = Session::open(&self.server(), Box::new(Unauthenticated)).unwrap();
        let Reply::Prl(pids) = session.ask(Request::Prl).unwrap() else {
            panic!("PRL is answered by a list")
        };
        let mut rule = |pid| match session.ask(Request::Prs { pid }).unwrap() {
            Reply::Pes(rule) => (pid, KnownRule::from_status(&rule)),
            other => panic!("PRS is answered by {other:?}"),
        };
        pids.into_iter().map(&mut rule).collect()
    }

    /// Sends SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
