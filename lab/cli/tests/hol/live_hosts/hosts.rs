//! Two hosts: network namespaces with a link between them, and `hol` on each.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use super::pair::{Pair, ip};
use crate::program::BIN;

/// Two hosts, which are removed with this value.
pub struct Hosts {
    pair: Pair,
    dir: tempfile::TempDir,
}

/// A `hol live serve` on the second host, which ends with this value.
pub struct LiveServer {
    child: Child,
    out: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    /// The first output of the server.
    pub greeting: String,
}

/// The second host's address.
pub const PEER: &str = "10.77.0.2";

impl Hosts {
    /// Creates the hosts.
    pub fn new() -> Self {
        let pair = Pair::new();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "only these two know\n").unwrap();
        Self { pair, dir }
    }

    /// Returns the directory with the first host's files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.pair.names[host], BIN]).args(arguments).current_dir(self.dir());
        command.env_remove("HOL_LIVE_SECRET");
        command
    }

    /// Returns the command for `hol` on the first host, with the secret.
    pub fn client(&self, arguments: &[&str]) -> Command {
        self.command(0, &[arguments, &["--peer", PEER, "--secret-file", "secret"]].concat())
    }

    /// Starts that command with one repetition.
    pub fn begin(&self, arguments: &[&str]) -> Child {
        let mut client = self.client(&[arguments, &["--repetitions", "1"]].concat());
        client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs that command, and returns its output.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        self.client(arguments).output().unwrap()
    }

    /// Runs that command, which must succeed, and returns its standard output.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the server on the second host.
    pub fn serve(&self, more: &[&str]) -> LiveServer {
        let mut child = self
            .command(1, &[&["live", "serve", "--secret-file", "secret"], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut greeting = String::new();
        out.read_line(&mut greeting).unwrap();
        assert!(greeting.starts_with("listening on"), "{greeting:?}");
        LiveServer { child, out, errors, greeting }
    }

    /// Returns the second host's sockets, except for the one that listens for clients.
    pub fn open_sockets(&self) -> Vec<String> {
        let files = ["tcp", "udp"].map(|name| PathBuf::from(format!("/proc/self/net/{name}")));
        let output = Command::new("ip")
            .args(["netns", "exec", &self.pair.names[1], "cat"])
            .args(files)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // The columns are local address, remote address and state; sockets in TIME_WAIT (06) belong to no process.
        let sockets = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, state, ..] = words[..] else { return None };
            (local.contains(':') && state != "06" && !local.ends_with(":1DD8")).then(|| line.to_owned())
        });
        sockets.collect()
    }

    /// Waits until a run has begun on the second host: a socket listens, and another belongs to a client.
    pub fn wait_for_run(&self) {
        assert!((0..1000).any(|_| self.open_sockets().len() >= 2), "no run begins");
    }

    /// Drops all packets from one host to the other from now on.
    pub fn cut(&self) {
        ip(&format!("-n {} link set to-peer down", self.pair.names[1])).unwrap();
    }
}

impl LiveServer {
    /// Kills the server.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of the server; returns whether it succeeded, and its output.
    pub fn output(mut self) -> (bool, String) {
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        self.errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().success(), said)
    }

    /// Waits until the server reports this problem of a client.
    pub fn wait_for_problem(&mut self, words: &str) {
        let mut said = String::new();
        while !said.contains(words) {
            assert_ne!(self.errors.read_line(&mut said).unwrap(), 0, "no {words:?} in {said:?}");
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
