//! The start-up time of a daemon with a million recorded rules: until agents can connect, until one is
//! answered, and until all rules are in force; with and without the nftables table of its predecessor. As
//! root: `cargo bench -p hol-daemon --bench restart`; a number after `--` is another number of rules.

#[path = "../serve/client.rs"]
#[allow(dead_code, reason = "this benchmark uses only a part of the client")]
mod client;
#[path = "../serve/network.rs"]
mod network;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{Client, now};
use hol_daemon::{FilterKind, Level, LimitSettings, Log, Settings};

const ROLE: &str = "be-the-daemon";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == ROLE) {
        return serve(Path::new(&arguments[at + 1]));
    }
    let given = arguments[1..].iter().find_map(|argument| argument.parse().ok());
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let rules = given.unwrap_or(if is_test { 20_000 } else { 1_000_000 });
    if let Err(error) = network::enter_new_namespace() {
        return println!("skipped: no network namespace: {error}");
    }
    let directory = tempfile::tempdir_in(".").expect("a directory for the journal can be created");
    let mut first = Daemon::start(directory.path());
    Client::connect(first.address).enable(256, rules);
    first.kill();
    println!("{rules} rules recorded, and in the packet filter");
    Daemon::start(directory.path()).report();
    let table = ["delete", "table", "inet", "simco"];
    assert!(Command::new("nft").args(table).status().expect("nft").success());
    println!("{rules} rules recorded, and none in the packet filter");
    Daemon::start(directory.path()).report();
}

/// Runs the daemon until it is killed.
fn serve(state: &Path) {
    let limits = LimitSettings { rules: 2_000_000, elements: 2_000_000, ..LimitSettings::default() };
    let settings = Settings {
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        limits,
        filter: FilterKind::Nftables,
        state: Some(state.to_owned()),
        ..Settings::default()
    };
    let log = Log::new(Level::Info, Box::new(std::io::stdout()));
    let mut daemon = settings.open(log).expect("the daemon may change this network namespace");
    daemon.run(std::io::stdin(), |_| {}).expect("the daemon serves");
}

struct Daemon {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    address: std::net::SocketAddr,
    start: hol_base::Time,
}

impl Daemon {
    /// Starts the daemon in another process, and waits until agents can connect.
    fn start(state: &Path) -> Self {
        let start = now();
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        let command = command.arg(ROLE).arg(state).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the daemon starts");
        let mut lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        let listening = await_event(&mut lines, "listening");
        let address =
            listening.rsplit(' ').next().expect("an address").trim_matches('"').parse().expect("an address");
        Self { child, lines, address, start }
    }

    /// Prints the time until an agent gets an answer, and the time until all rules are in force.
    fn report(mut self) {
        let passed = |start| now().since(start).as_millis();
        println!("  agents can connect after {} ms", passed(self.start));
        let _client = Client::connect(self.address);
        println!("  and are answered after {} ms", passed(self.start));
        await_event(&mut self.lines, "in-force");
        println!("  all rules are in force, and no others, after {} ms", passed(self.start));
        println!("  {}", self.peak_memory());
        self.kill();
    }

    /// Returns the daemon's peak memory from proc(5).
    fn peak_memory(&self) -> String {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the daemon runs");
        status.lines().find(|line| line.starts_with("VmHWM")).expect("Linux tells it").to_owned()
    }

    fn kill(&mut self) {
        self.child.kill().expect("the daemon runs");
        self.child.wait().expect("the daemon has ended");
    }
}

fn await_event(lines: &mut std::io::Lines<BufReader<std::process::ChildStdout>>, event: &str) -> String {
    let wanted = format!("event={event}");
    lines
        .map(|line| line.expect("text"))
        .find(|line| line.contains(&wanted))
        .expect("the daemon logs the event")
}
