//! An active middlebox and its standby. The active one is killed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use hol_agent::{FlowEnd, Session, tuples};
use hol_simco::{Direction, Enable, Lifetime, PerParameters, PortParity, Reply, Request, Unauthenticated};

use crate::certificates::Authority;
use crate::daemon::Daemon;
use crate::program::{self, BIN};

const UDP: u8 = 17;
/// Maximum time until an event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// Two directories, and the authority of both sides.
struct Pair {
    dir: tempfile::TempDir,
    port: u16,
}

/// A standby, which is killed when the test ends.
struct Standby(Child);

impl Drop for Standby {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Pair {
    fn new(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(dir.path(), "authority");
        for name in ["localhost", "fw2", "stranger"] {
            authority.certify(name);
        }
        // The port is still free a moment later.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "[tls]\ncertificate = 'localhost.pem'\nkey = 'localhost.key'\nagents = 'authority.pem'\n[standby]\n\
             listen = '127.0.0.1:{port}'\nname = 'fw2'\n{settings}\n"
        );
        fs::write(dir.path().join("settings.toml"), text).unwrap();
        fs::write(dir.path().join("policy.toml"), "anonymous = 'phone'\n[agents.phone]\n").unwrap();
        Self { dir, port }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Starts the active middlebox; also returns its log.
    fn active(&self) -> (Daemon, Receiver<String>) {
        let arguments = ["--config", "settings.toml", "--state", "active", "--policy", "policy.toml"];
        let mut daemon = Daemon::start(self.path(), &arguments);
        let log = lines(daemon.child.stderr.take().unwrap());
        (daemon, log)
    }

    fn standby(&self, name: &str) -> (Standby, Receiver<String>) {
        let server = format!("localhost:{}", self.port);
        let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
        let arguments = ["standby", "--server", &server, "--tls", "authority.pem", "--state", "copy"];
        let mut command = Command::new(BIN);
        command.args(arguments).args(["--certificate", &certificate, "--key", &key]);
        let mut child = command.current_dir(self.path()).stderr(Stdio::piped()).spawn().unwrap();
        let log = lines(child.stderr.take().unwrap());
        (Standby(child), log)
    }
}

fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    let mut out = BufReader::new(stderr).lines();
    thread::spawn(move || out.try_for_each(|line| send.send(line.unwrap_or_default())));
    lines
}

/// Waits for an event.
fn await_event(log: &Receiver<String>, event: &str) -> String {
    let mut seen = Vec::new();
    loop {
        match log.recv_timeout(EVENT_TIMEOUT) {
            Ok(line) if line.contains(&format!("event={event}")) => return line,
            Ok(line) => seen.push(line),
            Err(_) => panic!("no {event} in {seen:?}"),
        }
    }
}

/// Enables a flow of this host; returns false if it is refused, and `None` without an answer.
fn enable(session: &mut Session, host: u32) -> Option<bool> {
    let host = std::net::Ipv4Addr::from_bits(10 << 24 | host);
    let (internal, external): (FlowEnd, FlowEnd) =
        (format!("{host}:5004").parse().unwrap(), "198.51.100.7:6000".parse().unwrap());
    let (internal, external) = tuples(&internal, &external, UDP);
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::Inbound };
    let enable = Enable { parameters, internal, external, lifetime: Lifetime(3600) };
    let tid = session.send(Request::Per { enable, gid: None }).ok()?;
    Some(matches!(session.answer(tid).ok()?, Ok(Reply::Per(_))))
}

fn session(middlebox: &Daemon) -> Session {
    Session::open(&middlebox.address.parse().unwrap(), Box::new(Unauthenticated)).unwrap()
}

/// Returns the hosts of all rules in a directory.
fn hosts(pair: &Pair, directory: &str) -> BTreeSet<u32> {
    let rules = program::ok(pair.path(), &["rules", directory, "--json"]);
    let host = |line: &str| {
        let rule: serde_json::Value = serde_json::from_str(line).unwrap();
        let address: std::net::Ipv4Addr = rule["internal"]["address"].as_str().unwrap().parse().unwrap();
        address.to_bits() & 0x00ff_ffff
    };
    rules.lines().map(host).collect()
}

#[test]
fn a_required_standby_has_every_acknowledged_rule() {
    let pair = Pair::new("required = true");
    let mut next = 0;
    let mut acknowledged = BTreeSet::new();
    // Each time the active middlebox is killed, its successor starts with the copy.
    for round in 0..3 {
        let (mut active, log) = pair.active();
        let mut agent = session(&active);
        assert_eq!(enable(&mut agent, 1 << 20), Some(false), "changes are refused without a standby");
        let (standby, standby_log) = pair.standby("fw2");
        await_event(&log, "standby-synchronized");
        await_event(&standby_log, "synchronized");
        let (count, counted) = mpsc::channel();
        let first = next;
        let asking = thread::spawn(move || {
            let mut hosts = BTreeSet::new();
            for host in first.. {
                match enable(&mut agent, host) {
                    Some(true) => drop(hosts.insert(host)),
                    Some(false) => panic!("host {host} was refused"),
                    None => break,
                }
                let _ = count.send(());
            }
            hosts
        });
        assert_eq!(counted.iter().take(50 + 37 * round).count(), 50 + 37 * round);
        active.child.kill().unwrap();
        active.child.wait().unwrap();
        acknowledged.extend(asking.join().unwrap());
        next = acknowledged.last().unwrap() + 2;
        await_event(&standby_log, "disconnected");
        drop(standby);
        let copied = hosts(&pair, "copy");
        let lost: Vec<_> = acknowledged.difference(&copied).collect();
        assert!(lost.is_empty(), "acknowledged and not copied: {lost:?}");
        assert!(
            copied.len() <= acknowledged.len() + 1 + round,
            "the only other rules are of unanswered requests"
        );
        fs::remove_dir_all(pair.path().join("active")).unwrap();
        fs::rename(pair.path().join("copy"), pair.path().join("active")).unwrap();
    }
    let (active, _log) = pair.active();
    let restored = program::ok(pair.path(), &["list", "--json", "--server", &active.address.clone()]);
    assert!(restored.lines().count() >= acknowledged.len());
}

#[test]
fn a_middlebox_continues_without_its_standby_and_copies_later() {
    let pair = Pair::new("patience = '200ms'");
    let (active, log) = pair.active();
    let mut agent = session(&active);
    assert_eq!(enable(&mut agent, 1), Some(true), "the standby is not connected yet");
    let (standby, _) = pair.standby("fw2");
    await_event(&log, "standby-synchronized");
    assert_eq!(enable(&mut agent, 2), Some(true));
    assert_eq!(hosts(&pair, "copy"), BTreeSet::from([1, 2]));
    drop(standby);
    await_event(&log, "standby-lost");
    assert_eq!(enable(&mut agent, 3), Some(true));
    let (_standby, _) = pair.standby("fw2");
    await_event(&log, "standby-synchronized");
    assert_eq!(enable(&mut agent, 4), Some(true));
    assert_eq!(hosts(&pair, "copy"), BTreeSet::from([1, 2, 3, 4]));
}

/// Ends of rules are times of the active side's clock: with its own correct clock the standby would end them an hour
/// too early.
#[test]
fn a_takeover_continues_the_clock_of_the_active_side() {
    let pair = Pair::new("");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::create_dir(pair.path().join("active")).unwrap();
    // The wall clock was half a century slow when the middlebox started first.
    fs::write(pair.path().join("active/clock"), format!("{} 0\n", boot.trim_end())).unwrap();
    let (active, log) = pair.active();
    let mut agent = session(&active);
    assert_eq!(enable(&mut agent, 1), Some(true));
    let (standby, _) = pair.standby("fw2");
    await_event(&log, "standby-synchronized");
    assert_eq!(enable(&mut agent, 2), Some(true));
    drop((active, standby));
    fs::remove_dir_all(pair.path().join("active")).unwrap();
    fs::rename(pair.path().join("copy"), pair.path().join("active")).unwrap();
    let (active, _log) = pair.active();
    let restored = program::ok(pair.path(), &["list", "--json", "--server", &active.address.clone()]);
    assert_eq!(restored.lines().count(), 2, "{restored}");
}

/// More peers than there may be handshakes at once send an octet a second.
#[test]
fn slow_handshakes_do_not_keep_the_standby_out() {
    let pair = Pair::new("");
    let (_active, log) = pair.active();
    let mut strangers: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(("127.0.0.1", pair.port)).unwrap()).collect();
    thread::spawn(move || {
        for octet in [0x16, 3, 1, 4, 0].into_iter().chain([1; 40]) {
            // The middlebox has closed some of the connections.
            strangers.iter_mut().for_each(|stranger| drop(stranger.write(&[octet])));
            thread::park_timeout(Duration::from_secs(1));
        }
    });
    let (_standby, _) = pair.standby("fw2");
    await_event(&log, "standby-synchronized");
}

#[test]
fn rules_are_copied_only_to_the_named_standby() {
    let pair = Pair::new("");
    let (_active, log) = pair.active();
    let (_standby, _) = pair.standby("stranger");
    let refused = await_event(&log, "standby-refused");
    assert!(refused.contains("does not name fw2"), "{refused}");
    assert!(hosts(&pair, "copy").is_empty());
    for lacking in ["--state active", "--config settings.toml"] {
        let arguments: Vec<&str> = ["serve", "--check"].into_iter().chain(lacking.split(' ')).collect();
        let is_right = lacking.starts_with("--state");
        let output = program::simcod(pair.path(), &arguments);
        assert_eq!(program::code(&output) == 0, is_right, "{output:?}");
    }
}
