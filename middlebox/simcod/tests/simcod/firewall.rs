//! All parts together: between two hosts is a middlebox with nftables, and an agent lets flows pass. All actions use
//! the program, as users do.

use std::env;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::daemon::Daemon;
use crate::program::{BIN, code};
use crate::world::Node::{self, Inside, Middlebox, Outside};
use crate::world::{World, arrives, wait};

const HOST: &str = "10.1.0.2";
const PEER: &str = "10.2.0.2";

/// A middlebox between two hosts, and a directory for its files.
struct Firewall {
    world: World,
    dir: tempfile::TempDir,
    middlebox: Option<Daemon>,
}

impl Firewall {
    /// Starts a firewall with these settings of the daemon.
    fn start(settings: &str) -> Self {
        Self::with_files(settings, &[])
    }

    /// Starts a firewall with these settings, and files that they name.
    fn with_files(settings: &str, files: &[(&str, &str)]) -> Self {
        let mut firewall = Self { world: World::new(), dir: tempfile::tempdir().unwrap(), middlebox: None };
        for (name, text) in [("settings.toml", settings)].iter().chain(files) {
            let path = firewall.dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
        firewall.serve();
        firewall
    }

    fn serve(&mut self) {
        let mut serve = self.world.command(Middlebox, BIN);
        serve.args(["serve", "--config", "settings.toml"]).current_dir(self.dir.path());
        self.middlebox = Some(Daemon::spawn(serve));
    }

    fn agent(&self, line: &str) -> Command {
        let mut agent = self.world.command(Middlebox, BIN);
        agent.args(line.split(' ')).current_dir(self.dir.path());
        agent
    }

    /// Returns the output of the agent's command, which must succeed.
    fn simcod(&self, line: &str) -> String {
        let output = self.agent(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.simcod(&format!("{line} --json"))).unwrap()
    }

    /// Waits at most ten seconds until the flow is blocked.
    fn is_blocked_soon(&self, from: &UdpSocket, to: &UdpSocket) -> bool {
        let address = to.local_addr().unwrap().to_string();
        (0..100).any(|_| {
            wait(Duration::from_millis(100));
            arrives(from, &address, to).is_none()
        })
    }
}

/// Returns how many packets of one second of a call arrive, one each 20 ms. RFC 3550 section 5.1: version 2,
/// G.711.
fn talk(from: &UdpSocket, to: &UdpSocket) -> usize {
    let address = to.local_addr().unwrap();
    let packet = |number: u16| {
        let mut packet = vec![0; 12 + 160];
        packet[0] = 0x80;
        packet[2..4].copy_from_slice(&number.to_be_bytes());
        packet
    };
    let arrives = |number: &u16| {
        from.send_to(&packet(*number), address).unwrap();
        let mut received = [0; 256];
        to.recv(&mut received).is_ok_and(|length| received[..length] == packet(*number))
    };
    // Each lost packet takes a timeout, so the count ends at the first one.
    (0..50).take_while(arrives).count()
}

/// Returns whether a page arrives over the connection.
fn download(mut from: &TcpStream, mut to: &TcpStream) -> bool {
    let mut arrives = |segment: &[u8; 1000]| {
        let mut received = [0; 1000];
        from.write_all(segment).is_ok() && to.read_exact(&mut received).is_ok() && received == *segment
    };
    (0..100).all(|number| arrives(&[number; 1000]))
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn calls_and_connections_pass_only_while_a_rule_lasts() {
    let firewall = Firewall::start("filter = 'nftables'");
    let world = &firewall.world;
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6000"));
    let pages = world.listen(Inside, "10.1.0.2:8080");
    assert_eq!((talk(&outside, &inside), talk(&inside, &outside)), (0, 0), "no call passes without a rule");
    world.connect(Outside, "10.1.0.2:8080").expect_err("no connection passes without a rule");

    firewall.simcod(&format!("enable {HOST}:5004 {PEER}:6000 --udp --both-ways --lifetime 3s"));
    firewall.simcod(&format!("enable {HOST}:8080 {PEER} --tcp --lifetime 1h"));
    assert_eq!((talk(&outside, &inside), talk(&inside, &outside)), (50, 50));
    let visitor = world.connect(Outside, "10.1.0.2:8080").unwrap();
    let (server, _) = pages.accept().unwrap();
    server.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(download(&server, &visitor) && download(&visitor, &server));

    assert!(firewall.is_blocked_soon(&outside, &inside), "the lifetime has ended");
    firewall.simcod("disallow 2");
    assert!(!download(&server, &visitor) && !download(&visitor, &server), "the connection is cut");
    world.connect(Outside, "10.1.0.2:8080").expect_err("no new connection passes");
    assert_eq!(firewall.simcod("list"), "");
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_nat_binds_and_releases_a_reservation() {
    let settings = "filter = 'nftables'\n[nat]\noutside = ['192.0.2.77']";
    let firewall = Firewall::start(settings);
    let world = &firewall.world;
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6000"));
    let reserved = firewall.json("reserve --udp --even");
    let outside_of_host = format!("192.0.2.77:{}", reserved["outside"]["port"]);
    assert_eq!(arrives(&outside, &outside_of_host, &inside), None, "a reservation lets no packets pass");
    firewall.simcod(&format!("enable {HOST}:5004 {PEER}:6000 --udp --both-ways --reservation 1"));
    assert_eq!(arrives(&outside, &outside_of_host, &inside).as_deref(), Some("10.2.0.2:6000"));
    assert_eq!(arrives(&inside, "10.2.0.2:6000", &outside), Some(outside_of_host.clone()));
    firewall.simcod("disallow 1");
    assert_eq!(arrives(&outside, &outside_of_host, &inside), None);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_twice_nat_translates_both_hosts() {
    let settings = "filter = 'nftables'\n[nat]\noutside = ['192.0.2.77']\ninside = ['198.51.100.77']";
    let firewall = Firewall::start(settings);
    let world = &firewall.world;
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6000"));
    let rule = firewall.json(&format!("enable {HOST}:5004 {PEER}:6000 --udp --both-ways"));
    let outside_of_host = format!("192.0.2.77:{}", rule["outside"]["port"]);
    let inside_of_peer = format!("198.51.100.77:{}", rule["inside"]["port"]);
    assert_eq!(arrives(&outside, &outside_of_host, &inside), Some(inside_of_peer.clone()));
    assert_eq!(arrives(&inside, &inside_of_peer, &outside), Some(outside_of_host));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn one_of_ten_thousand_rules_lets_its_flow_pass() {
    let firewall = Firewall::start("filter = 'nftables'");
    let world = &firewall.world;
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6000"));
    let enable = |port| format!("enable {HOST}:{port} {PEER}:6000 --udp --both-ways --lifetime 1h\n");
    let ports = (10_001..20_000).chain([5004]);
    fs::write(firewall.dir.path().join("rules"), ports.map(enable).collect::<String>()).unwrap();
    let granted = firewall.simcod("batch rules --json");
    assert_eq!(granted.lines().count(), 10_000);
    assert_eq!((talk(&outside, &inside), talk(&inside, &outside)), (50, 50));
    let blocked = world.udp(Inside, "10.1.0.2:20000");
    assert_eq!(talk(&outside, &blocked), 0);
    firewall.simcod("disallow 10000");
    assert_eq!(talk(&outside, &inside), 0);
    let other = world.udp(Inside, "10.1.0.2:10001");
    assert_eq!(talk(&outside, &other), 50);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn rules_outlive_a_killed_middlebox_and_end_in_time() {
    let mut firewall = Firewall::start("filter = 'nftables'\nstate = 'rules'");
    let (short, long) =
        (firewall.world.udp(Inside, "10.1.0.2:5004"), firewall.world.udp(Inside, "10.1.0.2:5006"));
    let outside = firewall.world.udp(Outside, "10.2.0.2:6000");
    firewall.simcod(&format!("enable {HOST}:5004 {PEER}:6000 --udp --lifetime 3s"));
    firewall.simcod(&format!("enable {HOST}:5006 {PEER}:6000 --udp --lifetime 1h"));
    firewall.middlebox.take().unwrap().kill();
    assert_eq!((talk(&outside, &short), talk(&outside, &long)), (50, 50), "the rules are still in force");
    assert!(firewall.is_blocked_soon(&outside, &short), "only the kernel can have ended the rule");
    firewall.serve();
    assert_eq!(firewall.json("list")["pid"], 2);
    assert_eq!((talk(&outside, &short), talk(&outside, &long)), (0, 50));
    firewall.simcod("disallow 2");
    assert_eq!(talk(&outside, &long), 0);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn flushed_rules_are_restored_soon() {
    let firewall = Firewall::start("filter = 'nftables'");
    let world = &firewall.world;
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6000"));
    let blocked = world.udp(Inside, "10.1.0.2:5006");
    firewall.simcod(&format!("enable {HOST}:5004 {PEER}:6000 --udp --lifetime 1h"));
    for script in ["flush ruleset", "delete table inet simco", "flush table inet simco"] {
        let _ = world.run(Middlebox, "nft", &script.split(' ').collect::<Vec<_>>());
        assert!(firewall.is_blocked_soon(&outside, &blocked), "{script}");
        assert_eq!(talk(&outside, &inside), 50, "{script}");
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), and Linux 6.9 for tables with an owner"]
fn a_second_middlebox_does_not_get_the_table() {
    let firewall = Firewall::start("filter = 'nftables'");
    let mut second = firewall.world.command(Middlebox, "timeout");
    second.args(["5", BIN, "serve", "--filter=nftables", "--listen=127.0.0.1:0"]);
    let output = second.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("table inet simco") && said.contains("[nftables] table = NAME"), "{said}");
}

/// The agent runs like a softphone on its own host, over the network that the middlebox protects.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn an_internal_agent_opens_the_firewall_only_for_its_own_host() {
    let settings = "filter = 'nftables'\nlisten = ['10.1.0.1:7626']\npolicy = 'policy'\nsecrets = 'secrets'";
    let files = [
        ("policy", "[agents.phone]\ninternal = ['10.1.0.2/32']"),
        ("secrets", "phone = 'a secret of the phone'"),
    ];
    let firewall = Firewall::with_files(settings, &files);
    let world = &firewall.world;
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6000"));
    let ask = |line: &str| {
        let mut agent = world.command(Inside, BIN);
        agent.args(line.split(' ')).args(["--udp", "--server", "10.1.0.1"]);
        agent.args(["--secret", "secrets", "--name", "phone"]).current_dir(firewall.dir.path());
        let output = agent.output().unwrap();
        (code(&output), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(ask(&format!("enable {HOST}:5004 {PEER}:6000")), (0, String::new()));
    assert_eq!(talk(&outside, &inside), 50);
    let (code, complaint) = ask(&format!("enable 10.1.0.3:5004 {PEER}:6000"));
    assert!(
        code == 1
            && complaint.contains("0x034A")
            && complaint.contains("in the policy file of the middlebox"),
        "{complaint}"
    );
    let other = world.udp(Inside, "10.1.0.3:5004");
    assert_eq!(talk(&outside, &other), 0);
}

/// Executes every command of the page in order.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), bash, curl and python3"]
fn the_commands_of_the_quick_start_work() {
    let page = include_str!("../../../../docs/simco-quickstart.md");
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<&str> = blocks.collect();
    let dir = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", Path::new(BIN).parent().unwrap().display(), env::var("PATH").unwrap());
    let run = |commands: &str| {
        let mut shell = Command::new("timeout");
        shell.args(["60", "bash", "-c", commands]).env("PATH", &path).current_dir(dir.path());
        shell.output().unwrap()
    };
    let output = run(&blocks.concat());
    if !output.status.success() {
        run(blocks.last().unwrap());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let mut rest = &*said;
    for expected in [
        "a router passes everything\n",
        "a firewall drops everything\n",
        "10.1.0.2:8080  <-  10.2.0.2",
        "the rule lets it pass\n",
        "the rule has ended\n",
        "timeout 1m5s expires",
        "the rule works without the middlebox\n",
        "reserved",
        "192.0.2.77:1024",
        "the NAT translates\n",
    ] {
        let found = rest.split_once(expected);
        (_, rest) = found.unwrap_or_else(|| panic!("{expected:?} is missing: {said}{output:?}"));
    }
    assert!(output.status.success(), "{output:?}");
}

/// The interface determines what is protected below IP: traffic of another one does not reach this address.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_protected_address_is_reached_only_over_its_interface() {
    let settings = "listen = ['127.0.0.1:7626']\npolicy = 'policy'\nsecrets = 'secrets'\n
                    [protected]\ninterface = 'in0'\nlisten = ['10.1.0.1:7626']";
    let policy = "secure-only = true\n[agents.web]";
    let files = [("policy", policy), ("secrets", "web = 'a secret of 16 octets'")];
    let firewall = Firewall::with_files(settings, &files);
    let ask = |from: Node, server: &str| {
        let mut agent = firewall.world.command(from, BIN);
        agent.args(["list", "--name", "web", "--secret", "secrets", "--timeout", "5s"]);
        let output = agent.args(["--server", server]).current_dir(firewall.dir.path()).output().unwrap();
        (code(&output), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(ask(Inside, "10.1.0.1"), (0, String::new()));
    let (code, complaint) = ask(Outside, "10.1.0.1");
    assert!(code == 3 && complaint.contains("cannot connect"), "{complaint}");
    let (code, complaint) = ask(Middlebox, "127.0.0.1");
    assert!(code == 3 && complaint.contains("--tls FILE"), "{complaint}");
}

/// The table of a killed middlebox drops all packets; `clear` removes it, and no rules of other programs.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn clear_removes_only_the_table_of_the_middlebox() {
    let mut firewall = Firewall::start("filter = 'nftables'");
    firewall.middlebox.take().expect("the daemon serves").kill();
    firewall.world.nft("add table inet theirs");
    let (inside, outside) =
        (firewall.world.udp(Inside, "10.1.0.2:5004"), firewall.world.udp(Outside, "10.2.0.2:6000"));
    assert_eq!(arrives(&outside, "10.1.0.2:5004", &inside), None, "the table drops all packets");
    for _ in 0..2 {
        firewall.simcod("clear --config settings.toml");
        assert_eq!(arrives(&outside, "10.1.0.2:5004", &inside).as_deref(), Some("10.2.0.2:6000"));
    }
    assert!(firewall.world.listing().contains("theirs"));
}
