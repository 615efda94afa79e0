//! `hol simco` as an agent, against a middlebox behind a socket.

mod hol;
#[path = "../../agent/tests/middlebox/mod.rs"]
mod middlebox;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hol_agent::nonces;
use hol_base::Duration;
use hol_simco::{Capabilities, Config, Lifetime, Policy, SharedSecrets, Unauthenticated};
use middlebox::Server;
use serde_json::{Value, json};

/// A middlebox, and a place to ask it from.
struct Bench {
    middlebox: Server,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let capabilities = Capabilities::firewall(Lifetime(3600));
        let capabilities = Capabilities {
            middlebox_type: capabilities.middlebox_type | Capabilities::PDR,
            flags: capabilities.flags | Capabilities::IPV6,
            ..capabilities
        };
        Self::with(Config { capabilities, ..Config::firewall(Lifetime(3600)) })
    }

    fn with(config: Config) -> Self {
        let middlebox = Server::start(config, Policy::open(), Box::new(Unauthenticated));
        Self { middlebox, dir: tempfile::tempdir().unwrap() }
    }

    fn arguments<'a>(&self, line: &'a str, server: &'a str) -> Vec<&'a str> {
        ["simco"].into_iter().chain(line.split_whitespace()).chain(["--server", server]).collect()
    }

    /// What a command that succeeds prints.
    fn ok(&self, line: &str) -> String {
        let server = self.middlebox.address.to_string();
        hol::ok(self.dir.path(), &self.arguments(line, &server))
    }

    /// The objects that a command that succeeds prints.
    fn json(&self, line: &str) -> Vec<Value> {
        self.ok(&format!("{line} --json")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Exit code and complaint of a command that fails.
    fn failure(&self, line: &str) -> (i32, String) {
        let server = self.middlebox.address.to_string();
        hol::failure(self.dir.path(), &self.arguments(line, &server))
    }
}

#[test]
fn a_rule_is_enabled_listed_prolonged_and_ended() {
    let bench = Bench::new();
    let enabled = bench.ok("enable 10.0.0.5:5004 198.51.100.7:6000 --udp --both-ways --lifetime 5m");
    assert_eq!(
        enabled,
        "PID  GID  STATE    PROTOCOL  INTERNAL            EXTERNAL           LEFT\n  \
           0    0  enabled  udp       10.0.0.5:5004  <->  198.51.100.7:6000    5m\n"
    );
    bench.middlebox.pass(Duration::from_secs(1));
    let listed = bench.ok("list");
    assert!(listed.ends_with("198.51.100.7:6000  4m59s\n"), "{listed}");
    assert_eq!(bench.ok("lifetime 0 2h"), "PID  LEFT\n  0    1h\n");
    assert_eq!(bench.ok("disallow 0"), "PID  STATE\n  0  ended\n");
    assert_eq!(bench.ok("list"), "");
}

#[test]
fn json_has_the_documented_shape() {
    let bench = Bench::new();
    let end = |address: &str, prefix_length: u8, port: Option<u16>, ports: u16| json!({"address": address, "prefix_length": prefix_length, "port": port, "ports": ports});
    let enabled = bench.json("enable 10.0.0.5:5004+2 198.51.100.0/24 --udp --lifetime 5m");
    let (internal, external) = (end("10.0.0.5", 32, Some(5004), 2), end("198.51.100.0", 24, None, 1));
    let mut expected = json!({
        "pid": 0, "gid": 0, "state": "enabled", "protocol": "udp", "direction": "inbound",
        "internal": internal, "inside": external, "outside": internal, "external": external,
        "lifetime_s": 300, "owner": null,
    });
    assert_eq!(enabled, [expected.clone()]);
    expected["owner"] = "".into();
    assert_eq!(bench.json("list"), [expected.clone()]);
    assert_eq!(bench.json("status 0"), [expected]);
    let [ended] = &bench.json("disallow 0")[..] else { panic!("not one object") };
    assert_eq!(
        (&ended["pid"], &ended["state"], &ended["internal"]),
        (&json!(0), &json!("ended"), &Value::Null)
    );
}

#[test]
fn a_refusal_is_named_with_code_text_and_cure_and_exits_with_1() {
    let bench = Bench::new();
    let (code, message) = bench.failure("status 7");
    assert_eq!(code, 1);
    let expected = "error: rule 7: the middlebox refuses: 0x0343 Specified policy rule does not exist; \
                    it may have ended; `hol simco list` shows those that there are\n";
    assert_eq!(message, expected);
    let server = bench.middlebox.address.to_string();
    let output = hol::hol(bench.dir.path(), &bench.arguments("status 7 --json", &server));
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({"pid": 7, "refused": "0x0343", "meaning": "Specified policy rule does not exist"});
    assert_eq!((refused, hol::code(&output)), (expected, 1));
}

#[test]
fn what_was_granted_is_shown_beside_what_was_refused() {
    let bench = Bench::new();
    bench.ok("enable 10.0.0.5:5004 198.51.100.7:6000 --udp");
    let server = bench.middlebox.address.to_string();
    let output = hol::hol(bench.dir.path(), &bench.arguments("status 0 2", &server));
    assert_eq!(hol::code(&output), 1);
    assert!(String::from_utf8_lossy(&output.stdout).contains("10.0.0.5:5004"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("rule 2: the middlebox refuses: 0x0343"));
}

#[test]
fn a_disabled_flow_ends_rules_and_prevents_others() {
    let bench = Bench::new();
    bench.ok("enable 10.0.0.5:5004 198.51.100.7:6000 --udp");
    let disabled = bench.ok("disable any 198.51.100.7 --lifetime 1h");
    assert!(disabled.contains("disabled  any       any       -x-  198.51.100.7    1h\n"), "{disabled}");
    let (code, message) = bench.failure("enable 10.0.0.6:80 198.51.100.7:7 --tcp");
    assert!(code == 1 && message.contains("0x0350") && message.contains("a rule that blocks"), "{message}");
    assert_eq!(bench.json("list").len(), 1);
}

#[test]
fn groups_ipv6_and_other_protocols_go_through() {
    let bench = Bench::new();
    bench.ok("enable [2001:db8::5]:80 [2001:db8:9::/48] --tcp");
    let rules = bench.json("enable [2001:db8::5]:81 any --tcp --group 0");
    assert_eq!(rules[0]["gid"], 0);
    assert_eq!(rules[0]["external"]["address"], "::", "`any` has the IP version of the other end");
    let rules = bench.json("enable 10.0.0.5 198.51.100.7 --protocol 50 --outbound");
    assert_eq!((&rules[0]["protocol"], &rules[0]["direction"]), (&json!("esp"), &json!("outbound")));
    let text = bench.ok("list");
    assert!(text.contains("[2001:db8::5]:80  <-  [2001:db8:9::/48]"), "{text}");
    let (code, message) = bench.failure("enable 10.0.0.5:80 any --tcp --group 99");
    assert!(code == 1 && message.contains("0x0344") && message.contains("--group"), "{message}");
}

#[test]
fn a_nat_reserves_and_binds_addresses() {
    let capabilities = Capabilities::firewall(Lifetime(3600));
    let nat = Capabilities::NAT | Capabilities::PORT_TRANSLATION;
    let capabilities = Capabilities { middlebox_type: capabilities.middlebox_type | nat, ..capabilities };
    let outside = vec!["192.0.2.1".parse().unwrap()];
    let bench = Bench::with(Config { capabilities, outside, ..Config::firewall(Lifetime(3600)) });
    let reserved = bench.json("reserve --udp --ports 2 --even");
    assert_eq!(reserved[0]["state"], "reserved");
    let port = reserved[0]["outside"]["port"].as_u64().unwrap();
    assert!(port.is_multiple_of(2) && reserved[0]["outside"]["ports"] == 2, "{port}");
    let enabled = bench
        .json("enable 10.0.0.5:5004+2 198.51.100.7:6000+2 --udp --both-ways --same-parity --reservation 0");
    assert_eq!((&enabled[0]["pid"], &enabled[0]["outside"]), (&json!(0), &reserved[0]["outside"]));
    let text = bench.ok("list");
    assert!(text.contains(&format!("192.0.2.1:{port}-{}", port + 1)), "{text}");
}

#[test]
fn usage_is_refused_before_anything_is_sent() {
    let bench = Bench::new();
    for (line, expected) in [
        ("enable 10.0.0.5:5004 198.51.100.7:6000", "--udp"),
        ("enable 10.0.0.5:5004 198.51.100.7 --protocol any", "--udp"),
        ("enable 10.0.0.5:5004+2 198.51.100.7:6000 --udp", "has 2 ports"),
        ("enable 10.0.0.5:70000 any --udp", "from 1 to 65535"),
        ("enable 2001:db8::1 any --udp", "brackets"),
        ("enable 10.0.0.5:1 any --udp --lifetime 5", "1h30m"),
        ("enable 10.0.0.5:1 any --udp --tcp", "cannot be used with"),
        ("enable 10.0.0.5:1 any --protocol ipx", "udplite"),
        ("reserve --ports 2", "--udp"),
        ("disallow", "required"),
        ("list --name caller", "--secret"),
        ("list --over carrier-pigeon", "sctp"),
    ] {
        let (code, message) = bench.failure(line);
        assert!(code == 2 && message.contains(expected), "{line}: {message}");
    }
    assert_eq!(bench.ok("list"), "");
}

#[test]
fn without_a_session_the_exit_code_is_3() {
    let bench = Bench::new();
    let dir = bench.dir.path();
    let fail = |arguments: &[&str]| hol::failure(dir, &[&["simco"], arguments].concat());
    let (code, message) = fail(&["list", "--server", "127.0.0.1:1"]);
    assert!(code == 3 && message.contains("cannot connect to 127.0.0.1:1 (TCP)"), "{message}");
    let (code, message) = fail(&["list", "--server", "no-such-host.invalid"]);
    assert!(code == 3 && message.contains("check the name"), "{message}");
    let (code, message) = fail(&["list", "--server", "a:b:c"]);
    assert!(code == 2 && message.contains("--server: `a:b:c` is no server"), "{message}");
    let output = Command::new(hol::BIN)
        .args(["simco", "list"])
        .env("HOL_SIMCO", bench.middlebox.address.to_string())
        .output();
    assert_eq!(hol::code(&output.unwrap()), 0, "the environment names the middlebox as well");
}

#[test]
fn an_agent_proves_who_it_is_with_a_secret_that_nobody_else_reads() {
    const SECRETS: &str = "caller = '0123456789abcdef'\n";
    let secrets = SharedSecrets::parse(SECRETS, nonces()).unwrap();
    let policy = Policy::parse("[agents.caller]").unwrap();
    let middlebox = Server::start(Config::firewall(Lifetime(3600)), policy, Box::new(secrets));
    let bench = Bench { middlebox, dir: tempfile::tempdir().unwrap() };
    let write = |text: &str, mode| {
        let path = bench.dir.path().join("secret");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    let (code, message) = bench.failure("list");
    assert!(code == 3 && message.contains("0x0323 Authentication failed; give --secret FILE"), "{message}");
    write(SECRETS, 0o644);
    let (code, message) = bench.failure("list --secret secret --name caller");
    assert!(code == 3 && message.contains("secret: others may access it (mode 644)"), "{message}");
    write("caller = 'not the right secret'\n", 0o600);
    let (code, message) = bench.failure("list --secret secret --name caller");
    assert!(code == 3 && message.contains("did not authenticate itself; check the secret"), "{message}");
    let (code, message) = bench.failure("list --secret secret --name guest");
    assert!(code == 3 && message.contains("secret: there is no secret of `guest`"), "{message}");
    write(SECRETS, 0o600);
    bench.ok("enable 10.0.0.5:5004 any --udp --secret secret --name caller");
    assert_eq!(bench.json("list --secret secret --name caller")[0]["owner"], "caller");
}

#[test]
fn a_batch_is_one_session_and_names_the_line_that_is_wrong() {
    let bench = Bench::new();
    let write = |text: &str| fs::write(bench.dir.path().join("rules"), text).unwrap();
    let lines = (1..=1000).map(|port| format!("enable 10.0.0.5:{port} 198.51.100.7:{port} --udp\n"));
    write(&(String::from("# a thousand\n\n") + &lines.collect::<String>()));
    assert_eq!(bench.json("batch rules").len(), 1000);
    for (text, expected) in [
        ("status 0\nenable 10.0.0.5:0 any --udp", "rules:2: invalid value '10.0.0.5:0'"),
        ("status 0\nenabel 10.0.0.5:1 any --udp", "rules:2: unrecognized subcommand 'enabel'"),
        ("status 0\nenable 10.0.0.5:1 any", "rules:2: ports belong to a protocol"),
        ("watch", "rules:1: list, watch and batch are no orders"),
        ("status 0 --server elsewhere", "rules:1: how to reach the middlebox"),
    ] {
        write(text);
        let (code, message) = bench.failure("batch rules");
        assert!(code == 2 && message.contains(expected), "{message}");
    }
    write("status 0\nstatus 4711");
    let (code, message) = bench.failure("batch rules");
    assert!(
        code == 1 && message.contains("error: rules:2: rule 4711: the middlebox refuses: 0x0343"),
        "{message}"
    );
    let (code, message) = bench.failure("batch none");
    assert!(code == 1 && message.contains("none: No such file"), "{message}");
}

/// Lines as a program prints them.
fn lines(dir: &Path, arguments: &[&str]) -> impl Iterator<Item = String> + use<> {
    let child = Command::new(hol::BIN).current_dir(dir).args(arguments).stdout(Stdio::piped()).spawn();
    BufReader::new(child.unwrap().stdout.unwrap()).lines().map(Result::unwrap)
}

#[test]
fn a_watch_shows_rules_that_begin_change_and_end() {
    let bench = Bench::new();
    let server = bench.middlebox.address.to_string();
    // One rule before the watch, so that its first event says that it watches.
    bench.ok("enable 10.0.0.4:1 any --udp --lifetime 1s");
    let mut events = lines(bench.dir.path(), &bench.arguments("watch --count 4", &server));
    while bench.middlebox.sessions() == 0 {
        std::thread::yield_now();
    }
    bench.middlebox.pass(Duration::from_secs(2));
    assert_eq!(events.next().unwrap(), "rule 0 has ended");
    bench.ok("enable 10.0.0.5:5004 any --udp");
    assert_eq!(events.next().unwrap(), "rule 1 has 5m  enabled udp 10.0.0.5:5004 <- any");
    bench.ok("lifetime 1 1m");
    assert!(events.next().unwrap().starts_with("rule 1 has 1m"));
    let mut objects = lines(bench.dir.path(), &bench.arguments("watch --json --count 1", &server));
    while bench.middlebox.sessions() < 2 {
        std::thread::yield_now();
    }
    bench.ok("disallow 1");
    assert_eq!(events.next().unwrap(), "rule 1 has ended");
    assert_eq!(objects.next().unwrap(), r#"{"pid":1,"lifetime_s":0,"rule":null}"#);
    assert_eq!((events.next(), objects.next()), (None, None), "each has seen what it was to see");
}
