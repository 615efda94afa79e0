//! Two hosts: network namespaces with a link between them, and `hol` on each.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use super::pair::{Pair, ip};
use crate::program::BIN;

/// They are gone when this is.
pub struct Hosts {
    pair: Pair,
    dir: tempfile::TempDir,
}

/// `hol live serve` on the second, ended when this is gone.
pub struct Serving {
    child: Child,
    out: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    /// What it said first.
    pub greeting: String,
}

/// The second host's address.
pub const PEER: &str = "10.77.0.2";

impl Hosts {
    /// Makes them.
    pub fn new() -> Self {
        let pair = Pair::new();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "only these two know\n").unwrap();
        Self { pair, dir }
    }

    /// Where the first host's files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.pair.names[host], BIN]).args(arguments).current_dir(self.dir());
        command.env_remove("HOL_LIVE_SECRET");
        command
    }

    /// `hol` on the first host, that knows the secret.
    pub fn client(&self, arguments: &[&str]) -> Command {
        self.command(0, &[arguments, &["--peer", PEER, "--secret-file", "secret"]].concat())
    }

    /// That under way, in one repetition.
    pub fn begin(&self, arguments: &[&str]) -> Child {
        let mut client = self.client(&[arguments, &["--repetitions", "1"]].concat());
        client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What that comes to.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        self.client(arguments).output().unwrap()
    }

    /// What that prints; it has to succeed.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The second host serves.
    pub fn serve(&self, more: &[&str]) -> Serving {
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
        Serving { child, out, errors, greeting }
    }

    /// What the second host's sockets are, but for the one that waits for clients.
    pub fn open_sockets(&self) -> Vec<String> {
        let files = ["tcp", "udp"].map(|name| PathBuf::from(format!("/proc/self/net/{name}")));
        let output = Command::new("ip")
            .args(["netns", "exec", &self.pair.names[1], "cat"])
            .args(files)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // Local address, remote address, state; TIME_WAIT (06) is nobody's.
        let sockets = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, state, ..] = words[..] else { return None };
            (local.contains(':') && state != "06" && !local.ends_with(":1DD8")).then(|| line.to_owned())
        });
        sockets.collect()
    }

    /// Waits until a run is under way there: a socket listens, and one is a client's.
    pub fn wait_for_run(&self) {
        assert!((0..1000).any(|_| self.open_sockets().len() >= 2), "no run begins");
    }

    /// Nothing goes from the one to the other from now on.
    pub fn cut(&self) {
        ip(&format!("-n {} link set to-peer down", self.pair.names[1])).unwrap();
    }
}

impl Serving {
    /// Ends it at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// All that it said until it ended by itself.
    pub fn said(mut self) -> (bool, String) {
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        self.errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().success(), said)
    }

    /// Waits until it says these words of its clients.
    pub fn complains_of(&mut self, words: &str) {
        let mut said = String::new();
        while !said.contains(words) {
            assert_ne!(self.errors.read_line(&mut said).unwrap(), 0, "no {words:?} in {said:?}");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
