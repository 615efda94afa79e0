//! `simcod serve` as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::BIN;

/// A middlebox, which is killed if the test does not end it.
pub struct Daemon {
    /// The process.
    pub child: Child,
    /// The address for agents.
    pub address: String,
}

impl Daemon {
    /// Starts a middlebox on a free port of the loopback interface.
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_as(Command::new(BIN), dir, arguments)
    }

    /// Starts a middlebox by a command that includes more than the program.
    pub fn start_as(mut command: Command, dir: &Path, arguments: &[&str]) -> Self {
        command.current_dir(dir).args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        Self::spawn(command)
    }

    /// Starts a middlebox, and waits until agents can connect.
    pub fn spawn(mut serve: Command) -> Self {
        let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on tcp ").map(str::to_owned);
        let mut daemon = Self { child, address: address.unwrap_or_default() };
        assert!(!daemon.address.is_empty(), "{}", daemon.kill());
        daemon
    }

    /// Ends it with SIGTERM, as systemd does; returns its log.
    pub fn terminate(mut self) -> String {
        let kill = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(kill.success() && self.child.wait().unwrap().success(), "exit code 0");
        self.log()
    }

    /// Ends it with SIGKILL; returns its log.
    pub fn kill(&mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.log()
    }

    fn log(&mut self) -> String {
        let mut log = String::new();
        self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut log).unwrap());
        log
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
