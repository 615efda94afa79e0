//! Two hosts: network namespaces with a link between them, and `hol` on each.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::hol::BIN;

/// They are gone when this is.
pub struct Hosts {
    names: [String; 2],
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
pub const PEER: &str = "10.78.0.2";

impl Hosts {
    /// Makes them; `None`, said aloud, where that needs more than there is. With `HOL_REQUIRE_NAMESPACES` set that is a failure.
    pub fn if_possible(test: &str) -> Option<Self> {
        let hosts = Self::new();
        let missing = hosts.as_ref().err().map_or("", String::as_str);
        assert!(hosts.is_ok() || std::env::var_os("HOL_REQUIRE_NAMESPACES").is_none(), "{test}: {missing}");
        if hosts.is_err() {
            eprintln!("{test}: SKIPPED, for there are no namespaces here: {missing}");
        }
        hosts.ok()
    }

    /// Needs root and `ip`.
    fn new() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |side: char| format!("hol-live-{}-{number}{side}", std::process::id());
        let dir = tempfile::tempdir().map_err(|problem| problem.to_string())?;
        std::fs::write(dir.path().join("secret"), "only these two know\n")
            .map_err(|problem| problem.to_string())?;
        let hosts = Self { names: ['c', 's'].map(name), dir };
        let [client, server] = &hosts.names;
        for name in &hosts.names {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        ip(&format!("-n {client} link add to-peer type veth peer name to-peer netns {server}"))?;
        for (name, address) in hosts.names.iter().zip(["10.78.0.1", PEER]) {
            ip(&format!("-n {name} address add {address}/24 dev to-peer"))?;
            ip(&format!("-n {name} link set to-peer up"))?;
        }
        Ok(hosts)
    }

    /// Where the first host's files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host], BIN]).args(arguments).current_dir(self.dir());
        command.env_remove("HOL_LIVE_SECRET");
        command
    }

    /// `hol` on the first host, that knows the secret.
    pub fn client(&self, arguments: &[&str]) -> Command {
        self.command(0, &[arguments, &["--peer", PEER, "--secret-file", "secret"]].concat())
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
        let output =
            Command::new("ip").args(["netns", "exec", &self.names[1], "cat"]).args(files).output().unwrap();
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
        ip(&format!("-n {} link set to-peer down", self.names[1])).unwrap();
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

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            drop(ip(&format!("netns delete {name}")));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
