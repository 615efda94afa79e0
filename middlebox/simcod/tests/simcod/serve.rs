//! `simcod serve` with `simcod` as its agent.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::daemon::Daemon;
use crate::program::{self, BIN};

/// Returns the output of an agent's command.
fn ask(middlebox: &Daemon, dir: &Path, line: &str) -> String {
    let arguments: Vec<&str> = line.split(' ').chain(["--server", &middlebox.address]).collect();
    program::ok(dir, &arguments)
}

#[test]
fn a_rule_survives_the_restart_of_the_middlebox() {
    let dir = tempfile::tempdir().unwrap();
    let first = Daemon::start(dir.path(), &["--state", "rules"]);
    ask(&first, dir.path(), "enable 10.0.0.5:5004 198.51.100.7:6000 --udp --lifetime 5m");
    let log = first.terminate();
    assert!(log.contains("event=listening at=\"tcp 127.0.0.1:") && log.ends_with("event=stopped\n"), "{log}");
    let second = Daemon::start(dir.path(), &["--state", "rules"]);
    let list = ask(&second, dir.path(), "list");
    assert!(list.contains("10.0.0.5:5004") && list.contains("198.51.100.7:6000"), "{list}");
}

/// Sends SIGHUP to a process, and returns its log line about the reload.
fn hang_up(pid: &str, log: &mut impl Iterator<Item = String>) -> String {
    assert!(Command::new("kill").args(["-HUP", pid]).status().unwrap().success());
    log.find(|line| line.contains("reloaded")).unwrap()
}

#[test]
fn a_hangup_reloads_policy_and_secrets_unless_they_are_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).unwrap();
        fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o600)).unwrap();
    };
    for (name, secret) in
        [("served", "the first secret"), ("old", "the first secret"), ("new", "the second secret")]
    {
        write(name, &format!("web = '{secret}'"));
    }
    write("policy", "[agents.web]");
    write("settings", "max-lifetime = '1h'\n");
    let arguments = ["--config", "settings", "--policy", "policy", "--secrets", "served"];
    let mut middlebox = Daemon::start(dir.path(), &arguments);
    let mut log = BufReader::new(middlebox.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let pid = middlebox.child.id().to_string();
    let agent = |line: &str, secret: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let as_web = ["--server", &middlebox.address, "--name", "web", "--secret", secret];
        let output = program::simcod(dir.path(), &[&arguments[..], &as_web].concat());
        (program::code(&output), format!("{output:?}"))
    };
    let enable = "enable 10.0.0.5:5004 198.51.100.7:6000 --udp --lifetime 5m";
    assert_eq!(agent(enable, "old").0, 0);

    write("policy", "[agents.web]\nmay = ['fly']");
    let complaint = hang_up(&pid, &mut log);
    for part in ["event=not-reloaded", "policy: ", "line 2"] {
        assert!(complaint.contains(part), "{complaint}");
    }
    assert_eq!(agent(enable, "old").0, 0);

    // Some settings are reloaded, and the log names the others.
    write("settings", "format = 'json'\nmax-lifetime = '1h'\nsync = false\n[limits]\nrules = 7\n");
    write("policy", "[agents.web]\nmay = ['list', 'status']");
    write("served", "web = 'the second secret'");
    let done = hang_up(&pid, &mut log);
    assert!(done.starts_with("{\"time\":\"") && done.contains("\"event\":\"reloaded\""), "{done}");
    let named = log.next().unwrap();
    assert!(named.contains("\"event\":\"needs-restart\",\"settings\":\"sync, [limits]\""), "{named}");
    let (code, complaint) = agent(enable, "new");
    assert!(code == 1 && complaint.contains("0x0341"), "{complaint}");
    assert!(agent("list", "new").1.contains("10.0.0.5:5004"));
    assert_ne!(agent("list", "old").0, 0);
}

/// RFC 4540 section 8.7: the length of a reply has 16 bits.
#[test]
fn more_rules_than_fit_a_list_are_shown_from_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("settings.toml"), "state = \"rules\"\nsync = false\n").unwrap();
    let mut middlebox = Daemon::start(dir.path(), &["--config", "settings.toml"]);
    ask(&middlebox, dir.path(), "enable 10.0.0.5:1 198.51.100.7:6000 --udp --both-ways --lifetime 1h");
    let rules = |options: &[&str]| program::ok(dir.path(), &[&["rules", "rules"], options].concat());
    assert!(rules(&[]).contains("enabled  udp       10.0.0.5:1  <->  198.51.100.7:6000"), "{}", rules(&[]));
    let without_time = |text: String| {
        let mut rule: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(rule["lifetime_s"].take().as_u64().is_some_and(|left| (3000..=3600).contains(&left)));
        rule
    };
    let listed = ask(&middlebox, dir.path(), "list --json");
    assert_eq!(without_time(rules(&["--json"])), without_time(listed));
    let lines: String = (2..=8192).map(|port| format!("enable 10.0.0.5:{port} any --udp\n")).collect();
    fs::write(dir.path().join("many"), lines).unwrap();
    ask(&middlebox, dir.path(), "batch many");
    let (code, problem) = program::failure(dir.path(), &["list", "--server", &middlebox.address.clone()]);
    assert!(code == 1 && problem.contains("0x0313") && problem.contains("`simcod rules DIR`"), "{problem}");
    assert_eq!(rules(&["--json"]).lines().count(), 8192);
    middlebox.kill();
    assert_eq!(rules(&["--json"]).lines().count(), 8192, "whether the middlebox runs or not");
    let (code, problem) = program::failure(dir.path(), &["rules", "."]);
    assert!(code == 1 && problem.contains("contains no journal"), "{problem}");
}

/// The status is from proc_pid_status(5).
#[test]
fn systemd_is_notified_and_privileges_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let supervisor = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    supervisor.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let told = || {
        let mut buffer = [0; 64];
        let count = supervisor.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    };
    let mut command = Command::new(BIN);
    command.env("NOTIFY_SOCKET", dir.path().join("notify")).env("WATCHDOG_USEC", "100000");
    let middlebox = Daemon::start_as(command, dir.path(), &["--state", "rules"]);
    assert_eq!([told(), told(), told()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    let status = fs::read_to_string(format!("/proc/{}/status", middlebox.child.id())).unwrap();
    for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line} is not in\n{status}");
    }
    // The middlebox can still write its journal.
    ask(&middlebox, dir.path(), "enable 10.0.0.5:5004 198.51.100.7:6000 --udp --lifetime 5m");
    middlebox.terminate();
    let last = std::iter::repeat_with(told).find(|state| state != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
}

#[test]
fn invalid_settings_are_refused_with_position_and_advice() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("typo.toml"), "listen = []\nlisten-on = 3\n").unwrap();
    fs::write(dir.path().join("policy.toml"), "[agents.web]\n").unwrap();
    fs::write(dir.path().join("secrets.toml"), "web = \"0123456789abcdef\"\n").unwrap();
    fs::copy(dir.path().join("secrets.toml"), dir.path().join("mine.toml")).unwrap();
    fs::set_permissions(dir.path().join("mine.toml"), Permissions::from_mode(0o600)).unwrap();
    fs::write(dir.path().join("ghost.toml"), "[agents.ghost]\n").unwrap();
    fs::write(dir.path().join("deaf.toml"), "[limits]\nconnections = 0\n").unwrap();
    fs::write(dir.path().join("brief.toml"), "max-lifetime = \"10ms\"\n").unwrap();
    fs::write(dir.path().join("nameless.toml"), "\nlisten = [\"localhost\"]\n").unwrap();
    fs::write(dir.path().join("twice.toml"), "[nat]\noutside = [\"192.0.2.1\", \"192.0.2.1\"]\n").unwrap();
    fs::write(dir.path().join("any.toml"), "[nat]\noutside = [\"::\"]\n").unwrap();
    fs::write(dir.path().join("empty.toml"), "").unwrap();
    fs::set_permissions(dir.path().join("empty.toml"), Permissions::from_mode(0o600)).unwrap();
    for (arguments, parts) in [
        (
            "--config typo.toml",
            &["typo.toml", "line 2", "unknown key \"listen-on\"; did you mean \"listen\"?"][..],
        ),
        ("--config none.toml", &["none.toml"]),
        ("--listen 0.0.0.0:0", &["0.0.0.0:0", "policy = FILE", "secrets = FILE"]),
        ("--listen ::1:7626", &["--listen", "write 127.0.0.1:7626, [::1]:7626"]),
        ("--config nameless.toml", &["nameless.toml", "line 2", "localhost", "write 127.0.0.1:7626"]),
        ("--config twice.toml", &["192.0.2.1 is listed twice", "[nat]"]),
        ("--config any.toml", &[":: is not a host address", "[nat]"]),
        ("--secrets empty.toml", &["empty.toml: the file contains no secret", "NAME = \"SECRET\""]),
        ("--policy policy.toml", &["policy.toml", "secrets"]),
        ("--policy policy.toml --secrets secrets.toml", &["secrets.toml", "chmod 600"]),
        ("--policy ghost.toml --secrets mine.toml", &["ghost.toml", "secret in mine.toml", "anonymous"]),
        ("--inside eth0 --outside eth0", &["[nftables]", "`inside` and `outside`", "set two interfaces"]),
        ("--config deaf.toml", &["[limits] connections", "at least 1"]),
        ("--config brief.toml", &["max-lifetime", "at least 1s"]),
    ] {
        let arguments: Vec<&str> = ["serve", "--check"].into_iter().chain(arguments.split(' ')).collect();
        let (code, problem) = program::failure(dir.path(), &arguments);
        assert_eq!(code, 2, "{problem}");
        assert!(parts.iter().all(|part| problem.contains(part)), "{arguments:?}: {problem}");
    }
    fs::write(dir.path().join("good.toml"), "max-lifetime = \"2d\"\n").unwrap();
    for arguments in
        [&[][..], &["--config", "good.toml"], &["--secrets", "mine.toml", "--listen", "0.0.0.0:0"]]
    {
        let check = [&["serve", "--check"], arguments].concat();
        let text = program::ok(dir.path(), &check);
        let named =
            ["max-lifetime", "listen"].map(|name| text.contains(&format!("need a restart: {name}\n")));
        assert!(text.ends_with("the settings are valid\n"), "{text}");
        assert_eq!(named, [arguments.contains(&"good.toml"), arguments.contains(&"--listen")], "{text}");
    }
    // Of two agents, one may have more sessions than it leaves for the other.
    fs::write(dir.path().join("mine.toml"), "web = \"0123456789abcdef\"\nvoip = \"fedcba9876543210\"\n")
        .unwrap();
    fs::write(dir.path().join("policy.toml"), "[agents.web]\nquota = { sessions = 9000 }\n[agents.voip]\n")
        .unwrap();
    let check = ["serve", "--check", "--policy", "policy.toml", "--secrets", "mine.toml"];
    let warned = program::ok(dir.path(), &check);
    let warning =
        "warning: [limits] connections = 10000: the agent web alone may open 7500 sessions, which leaves";
    assert!(warned.starts_with(warning), "{warned}");
}

#[test]
fn a_middlebox_that_cannot_open_a_socket_does_not_report_readiness() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    fs::write(dir.path().join("settings.toml"), format!("metrics = \"{taken}\"\n")).unwrap();
    let serve = ["serve", "--config", "settings.toml", "--listen", "127.0.0.1:0"];
    let (code, log) = program::failure(dir.path(), &serve);
    assert!(code == 1 && log.contains("cannot serve metrics"), "{log}");
    assert!(!log.contains("event=listening"), "{log}");
}

/// Every command has a page, as `man` reads it.
#[test]
fn each_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    program::ok(dir.path(), &["manual", "man"]);
    let page = |name: &str| fs::read_to_string(dir.path().join("man").join(name)).unwrap();
    assert!(page("simcod.1").contains(".TH simcod 1"));
    assert!(page("simcod-serve.1").contains("Interface to internal hosts"));
    let help = program::ok(dir.path(), &["--help"]);
    let commands = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    for command in commands.lines().filter_map(|line| line.split_whitespace().next()) {
        if command != "help" {
            assert!(page(&format!("simcod-{command}.1")).starts_with(".ie"), "{command}");
        }
    }
}
