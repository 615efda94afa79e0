//! `simcod` as an agent of a real middlebox.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::program::{self, BIN};

/// A middlebox, and the directory in which `simcod` runs as its agent.
struct TestSetup {
    middlebox: Daemon,
    dir: tempfile::TempDir,
}

impl TestSetup {
    /// Starts a firewall that grants at most an hour.
    fn new() -> Self {
        Self::with("max-lifetime = '1h'")
    }

    fn with(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("settings.toml"), settings).unwrap();
        Self { middlebox: Daemon::start(dir.path(), &["--config", "settings.toml"]), dir }
    }

    fn arguments<'a>(&'a self, line: &'a str) -> Vec<&'a str> {
        line.split_whitespace().chain(["--server", &self.middlebox.address]).collect()
    }

    /// Returns the output of a command that succeeds.
    fn ok(&self, line: &str) -> String {
        program::ok(self.dir.path(), &self.arguments(line))
    }

    /// Returns the JSON objects in the output of a command that succeeds.
    fn json(&self, line: &str) -> Vec<Value> {
        self.ok(&format!("{line} --json")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the exit code and the error output of a command that fails.
    fn failure(&self, line: &str) -> (i32, String) {
        program::failure(self.dir.path(), &self.arguments(line))
    }
}

#[test]
fn a_rule_is_enabled_listed_extended_and_ended() {
    let setup = TestSetup::new();
    let enabled = setup.ok("enable 10.0.0.5:5004 198.51.100.7:6000 --udp --both-ways --lifetime 5m");
    assert_eq!(
        enabled,
        "PID  GID  STATE    PROTOCOL  INTERNAL            EXTERNAL           LEFT\n  \
           1    1  enabled  udp       10.0.0.5:5004  <->  198.51.100.7:6000    5m\n"
    );
    let listed = setup.ok("list");
    assert!(
        listed.contains("198.51.100.7:6000") && ["5m\n", "s\n"].iter().any(|left| listed.ends_with(left)),
        "{listed}"
    );
    assert_eq!(setup.ok("lifetime 1 2h"), "PID  LEFT\n  1    1h\n");
    assert_eq!(setup.ok("disallow 1"), "PID  STATE\n  1  ended\n");
    assert_eq!(setup.ok("list"), "");
}

#[test]
fn json_has_the_documented_format() {
    let setup = TestSetup::new();
    let end = |address: &str, prefix_length: u8, port: Option<u16>, ports: u16| json!({"address": address, "prefix_length": prefix_length, "port": port, "ports": ports});
    let enabled = setup.json("enable 10.0.0.5:5004+2 198.51.100.0/24 --udp --lifetime 5m");
    let (internal, external) = (end("10.0.0.5", 32, Some(5004), 2), end("198.51.100.0", 24, None, 1));
    let mut expected = json!({
        "pid": 1, "gid": 1, "state": "enabled", "protocol": "udp", "direction": "inbound",
        "internal": internal, "inside": external, "outside": internal, "external": external,
        "lifetime_s": 300, "owner": null,
    });
    assert_eq!(enabled, [expected.clone()]);
    expected["owner"] = "".into();
    for order in ["list", "status 1"] {
        let mut rule = setup.json(order);
        let left = rule[0]["lifetime_s"].take().as_u64().unwrap();
        assert!((280..=300).contains(&left), "{left}");
        expected["lifetime_s"] = Value::Null;
        assert_eq!(rule, [expected.clone()], "{order}");
    }
    let [ended] = &setup.json("disallow 1")[..] else { panic!("not one object") };
    assert_eq!(
        (&ended["pid"], &ended["state"], &ended["internal"]),
        (&json!(1), &json!("ended"), &Value::Null)
    );
}

#[test]
fn a_refusal_is_printed_with_advice_and_exits_with_1() {
    let setup = TestSetup::new();
    let (code, message) = setup.failure("status 7");
    assert_eq!(code, 1);
    let expected = "error: rule 7: the middlebox refused the request: 0x0343 Specified policy rule does not exist; \
                    the rule may have ended; `simcod list` shows the existing rules\n";
    assert_eq!(message, expected);
    let output = program::simcod(setup.dir.path(), &setup.arguments("status 7 --json"));
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({"pid": 7, "refused": "0x0343", "meaning": "Specified policy rule does not exist"});
    assert_eq!((refused, program::code(&output)), (expected, 1));
}

#[test]
fn granted_and_refused_requests_are_both_shown() {
    let setup = TestSetup::new();
    setup.ok("enable 10.0.0.5:5004 198.51.100.7:6000 --udp");
    let output = program::simcod(setup.dir.path(), &setup.arguments("status 1 2"));
    assert_eq!(program::code(&output), 1);
    assert!(String::from_utf8_lossy(&output.stdout).contains("10.0.0.5:5004"));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("rule 2: the middlebox refused the request: 0x0343")
    );
}

#[test]
fn a_disabled_flow_ends_rules_and_prevents_others() {
    let setup = TestSetup::new();
    setup.ok("enable 10.0.0.5:5004 198.51.100.7:6000 --udp");
    let disabled = setup.ok("disable any 198.51.100.7 --lifetime 1h");
    assert!(disabled.contains("disabled  any       any       -x-  198.51.100.7    1h\n"), "{disabled}");
    assert!(disabled.ends_with("\n  1  ended\n"), "the rule that the block has ended: {disabled}");
    let (code, message) = setup.failure("enable 10.0.0.6:80 198.51.100.7:7 --tcp");
    assert!(code == 1 && message.contains("0x0350") && message.contains("a blocking rule"), "{message}");
    assert_eq!(setup.json("list").len(), 1);
}

#[test]
fn groups_ipv6_and_other_protocols_are_supported() {
    let setup = TestSetup::new();
    setup.ok("enable [2001:db8::5]:80 [2001:db8:9::/48] --tcp");
    let rules = setup.json("enable [2001:db8::5]:81 any --tcp --group 1");
    assert_eq!(rules[0]["gid"], 1);
    assert_eq!(rules[0]["external"]["address"], "::", "`any` has the IP version of the other end");
    let rules = setup.json("enable 10.0.0.5 198.51.100.7 --protocol 50 --outbound");
    assert_eq!((&rules[0]["protocol"], &rules[0]["direction"]), (&json!("esp"), &json!("outbound")));
    let text = setup.ok("list");
    assert!(text.contains("[2001:db8::5]:80  <-  [2001:db8:9::/48]"), "{text}");
    let (code, message) = setup.failure("enable 10.0.0.5:80 any --tcp --group 99");
    assert!(code == 1 && message.contains("0x0344") && message.contains("--group"), "{message}");
}

#[test]
fn a_nat_reserves_and_binds_addresses() {
    let setup = TestSetup::with("[nat]\noutside = ['192.0.2.1']");
    let reserved = setup.json("reserve --udp --ports 2 --even");
    assert_eq!(reserved[0]["state"], "reserved");
    let port = reserved[0]["outside"]["port"].as_u64().unwrap();
    assert!(port.is_multiple_of(2) && reserved[0]["outside"]["ports"] == 2, "{port}");
    let enabled = setup
        .json("enable 10.0.0.5:5004+2 198.51.100.7:6000+2 --udp --both-ways --same-parity --reservation 1");
    assert_eq!((&enabled[0]["pid"], &enabled[0]["outside"]), (&json!(1), &reserved[0]["outside"]));
    let text = setup.ok("list");
    assert!(text.contains(&format!("192.0.2.1:{port}-{}", port + 1)), "{text}");
}

#[test]
fn usage_errors_are_reported_before_anything_is_sent() {
    let setup = TestSetup::new();
    for (line, expected) in [
        ("enable 10.0.0.5:5004 198.51.100.7:6000", "--udp"),
        ("enable 10.0.0.5:5004 198.51.100.7 --protocol any", "--udp"),
        ("enable 10.0.0.5:5004+2 198.51.100.7:6000 --udp", "has 2 ports"),
        ("enable 10.0.0.5:70000 any --udp", "1 to 65535"),
        ("enable 2001:db8::1 any --udp", "brackets"),
        ("enable 10.0.0.5:1 any --udp --lifetime 5", "1h30m"),
        ("enable 10.0.0.5:1 any --udp --tcp", "cannot be used with"),
        ("enable 10.0.0.5:1 any --protocol ipx", "udplite"),
        ("reserve --ports 2", "--udp"),
        ("disallow", "required"),
        ("list --name caller", "--secret"),
        ("list --over carrier-pigeon", "sctp"),
        ("list --timeout 0s", "such as 10s"),
    ] {
        let (code, message) = setup.failure(line);
        assert!(code == 2 && message.contains(expected), "{line}: {message}");
    }
    assert_eq!(setup.ok("list"), "");
}

#[test]
fn without_a_session_the_exit_code_is_3() {
    let setup = TestSetup::new();
    let dir = setup.dir.path();
    let fail = |arguments: &[&str]| program::failure(dir, arguments);
    let (code, message) = fail(&["list", "--server", "127.0.0.1:1"]);
    assert!(code == 3 && message.contains("cannot connect to 127.0.0.1:1 (TCP)"), "{message}");
    let (code, message) = fail(&["list", "--server", "no-such-host.invalid"]);
    assert!(code == 3 && message.contains("check the name"), "{message}");
    let (code, message) = fail(&["list", "--server", "a:b:c"]);
    assert!(code == 2 && message.contains("--server: `a:b:c` is not a server"), "{message}");
    let (code, message) = fail(&["list", "--server", "::1:7626"]);
    assert!(code == 2 && message.contains("write [::1]:7626"), "{message}");
    let output = Command::new(BIN).args(["list"]).env("HOL_SIMCO", &setup.middlebox.address).output();
    assert_eq!(program::code(&output.unwrap()), 0, "the environment names the middlebox as well");
}

#[test]
fn an_agent_authenticates_with_a_secret_from_a_private_file() {
    const SECRETS: &str = "caller = '0123456789abcdef'\n";
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_owned();
    let write = |name: &str, text: &str, mode| {
        let path = place.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    write("secrets", SECRETS, 0o600);
    write("policy", "[agents.caller]", 0o644);
    let middlebox = Daemon::start(dir.path(), &["--policy", "policy", "--secrets", "secrets"]);
    let write = |text, mode| write("secret", text, mode);
    let setup = TestSetup { middlebox, dir };
    let (code, message) = setup.failure("list");
    assert!(code == 3 && message.contains("0x0323 Authentication failed; give --secret FILE"), "{message}");
    write(SECRETS, 0o644);
    let (code, message) = setup.failure("list --secret secret --name caller");
    assert!(code == 3 && message.contains("secret: other users may access it (mode 644)"), "{message}");
    write("caller = 'not the right secret'\n", 0o600);
    let (code, message) = setup.failure("list --secret secret --name caller");
    assert!(code == 3 && message.contains("failed to authenticate; check the secret"), "{message}");
    let (code, message) = setup.failure("list --secret secret --name guest");
    assert!(code == 3 && message.contains("secret: no secret for `guest`"), "{message}");
    write(SECRETS, 0o600);
    setup.ok("enable 10.0.0.5:5004 any --udp --secret secret --name caller");
    assert_eq!(setup.json("list --secret secret --name caller")[0]["owner"], "caller");
}

#[test]
fn without_a_policy_agents_with_secrets_have_all_rights() {
    let dir = tempfile::tempdir().unwrap();
    let secrets = dir.path().join("secrets");
    fs::write(&secrets, "caller = '0123456789abcdef'\noperator = 'fedcba9876543210'\n").unwrap();
    fs::set_permissions(&secrets, Permissions::from_mode(0o600)).unwrap();
    let setup = TestSetup { middlebox: Daemon::start(dir.path(), &["--secrets", "secrets"]), dir };
    let (code, message) = setup.failure("list");
    assert!(code == 3 && message.contains("0x0323 Authentication failed; give --secret FILE"), "{message}");
    setup.ok("enable 10.0.0.5:5004 any --udp --secret secrets --name caller");
    setup.ok("disable any any --secret secrets --name operator");
    assert_eq!(setup.json("list --secret secrets --name caller").len(), 1, "the rule that blocks");
}

#[test]
fn a_batch_is_one_session_and_errors_name_their_line() {
    let setup = TestSetup::new();
    let write = |text: &str| fs::write(setup.dir.path().join("rules"), text).unwrap();
    let lines = (1..=1000).map(|port| format!("enable 10.0.0.5:{port} 198.51.100.7:{port} --udp\n"));
    write(&(String::from("# a thousand\n\n") + &lines.collect::<String>()));
    assert_eq!(setup.json("batch rules").len(), 1000);
    for (text, expected) in [
        ("status 0\nenable 10.0.0.5:0 any --udp", "rules:2: invalid value '10.0.0.5:0'"),
        ("status 0\nenabel 10.0.0.5:1 any --udp", "rules:2: unrecognized subcommand 'enabel'"),
        ("status 0\nenable 10.0.0.5:1 any", "rules:2: a flow with ports needs a protocol"),
        ("watch", "rules:1: a batch file may contain only enable"),
        ("status 0 --server elsewhere", "rules:1: options that select the middlebox"),
    ] {
        write(text);
        let (code, message) = setup.failure("batch rules");
        assert!(code == 2 && message.contains(expected), "{message}");
    }
    write("status 1\nstatus 4711");
    let (code, message) = setup.failure("batch rules");
    assert!(
        code == 1 && message.contains("error: rules:2: rule 4711: the middlebox refused the request: 0x0343"),
        "{message}"
    );
    let (code, message) = setup.failure("batch none");
    assert!(code == 1 && message.contains("none: No such file"), "{message}");
}

/// A running `simcod watch`.
struct Watch {
    child: Child,
    errors: BufReader<ChildStderr>,
    events: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    /// Starts the command, and waits until it watches.
    fn start(setup: &TestSetup, line: &str) -> Self {
        let mut command = Command::new(BIN);
        command.args(setup.arguments(line)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut ready = String::new();
        errors.read_line(&mut ready).unwrap();
        assert_eq!(ready, format!("watching {} (TCP)\n", setup.middlebox.address));
        Self { child, errors, events }
    }

    fn event(&mut self) -> Option<String> {
        self.events.next().map(Result::unwrap)
    }

    /// Returns its exit code and its last line.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

#[test]
fn a_watch_shows_rules_that_begin_change_and_end() {
    let setup = TestSetup::new();
    let mut watch = Watch::start(&setup, "watch --count 4");
    setup.ok("enable 10.0.0.5:5004 any --udp");
    assert_eq!(watch.event().unwrap(), "rule 1 has a lifetime of 5m  enabled udp 10.0.0.5:5004 <- any");
    setup.ok("lifetime 1 1m");
    assert!(watch.event().unwrap().starts_with("rule 1 has a lifetime of 1m"));
    let mut objects = Watch::start(&setup, "watch --json --count 1");
    setup.ok("disallow 1");
    assert_eq!(watch.event().unwrap(), "rule 1 has ended");
    assert_eq!(objects.event().unwrap(), r#"{"pid":1,"lifetime_s":0,"rule":null}"#);
    setup.ok("enable 10.0.0.5:5004 any --udp --lifetime 1s");
    assert!(watch.event().unwrap().starts_with("rule 2 has a lifetime of 1s"));
    assert_eq!((watch.event(), objects.event()), (None, None), "both have ended after their events");
    assert_eq!([watch.end(), objects.end()].map(|(code, _)| code), [Some(0), Some(0)]);
}

/// RFC 4540 section 7.5.
#[test]
fn a_watch_ends_with_the_middlebox() {
    let setup = TestSetup::new();
    let watch = Watch::start(&setup, "watch");
    setup.middlebox.terminate();
    let (code, said) = watch.end();
    assert_eq!(code, Some(3));
    assert!(said.contains("error: the middlebox has ended the session"), "{said}");
}

/// RFC 4540 section 7.4.
#[test]
fn a_watch_that_is_interrupted_ends_its_session() {
    let setup = TestSetup::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let middlebox = TcpStream::connect(&setup.middlebox.address).unwrap();
    // Relays between the two, and records the agent's messages.
    let between = thread::spawn(move || {
        let (mut agent, _) = listener.accept().unwrap();
        let (mut from, mut to) = (middlebox.try_clone().unwrap(), agent.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut from, &mut to).map(drop).unwrap_or_default());
        let (mut said, mut piece) = (Vec::<u8>::new(), [0; 64]);
        while let Ok(count @ 1..) = agent.read(&mut piece) {
            said.extend(&piece[..count]);
            (&middlebox).write_all(&piece[..count]).unwrap();
        }
        said
    });
    let mut command = Command::new(BIN);
    let command = command.args(["watch", "--server", &address]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success() && child.wait().unwrap().success());
    let said = between.join().unwrap();
    const ST: [u8; 4] = [1, 3, 0, 0];
    assert_eq!(said[said.len() - 8..][..4], ST);
}
