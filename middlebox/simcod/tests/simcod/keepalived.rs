//! A failover pair whose floating address is moved by keepalived, as `docs/simco-failover.md` describes it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::certificates::Authority;
use crate::program::BIN;

/// How often a condition is checked, before the test fails. keepalived notices a failure after three seconds.
const MAX_CHECKS: usize = 300;
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
const FLOATING_ADDRESS: &str = "192.0.2.10";

/// Two middleboxes and an agent, each in its own namespace, on one link.
struct Pair {
    dir: tempfile::TempDir,
    prefix: String,
    hosts: Vec<Child>,
}

impl Pair {
    fn new() -> Self {
        let prefix = format!("hol-pair-{}", std::process::id());
        let pair = Self { dir: tempfile::tempdir().unwrap(), prefix, hosts: Vec::new() };
        let agent = pair.namespace("agent");
        let namespaces = ["agent", "fw1", "fw2"].map(|name| pair.namespace(name));
        for namespace in &namespaces {
            run("ip", &["netns", "add", namespace]);
            run("ip", &["-n", namespace, "link", "set", "lo", "up"]);
        }
        run("ip", &["-n", &agent, "link", "add", "lan", "type", "bridge"]);
        run("ip", &["-n", &agent, "address", "add", "192.0.2.1/24", "dev", "lan"]);
        run("ip", &["-n", &agent, "link", "set", "lan", "up"]);
        for (namespace, number) in namespaces[1..].iter().zip(1..) {
            let port = format!("port{number}");
            let peer = ["peer", "name", "eth1", "netns", namespace];
            run("ip", &[&["-n", &agent, "link", "add", &port, "type", "veth"][..], &peer].concat());
            run("ip", &["-n", &agent, "link", "set", &port, "master", "lan", "up"]);
            // The second address stands for the link between the middleboxes.
            for address in [format!("192.0.2.{}/24", 10 + number), format!("10.9.0.{number}/24")] {
                run("ip", &["-n", namespace, "address", "add", &address, "dev", "eth1"]);
            }
            run("ip", &["-n", namespace, "link", "set", "eth1", "up"]);
            run("ip", &["netns", "exec", namespace, "sysctl", "-qw", "net.ipv4.ip_nonlocal_bind=1"]);
        }
        pair
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Returns the directory of a host.
    fn host(&self, number: u8) -> PathBuf {
        self.dir.path().join(format!("fw{number}"))
    }

    /// Writes the files of a host, and starts its keepalived, which starts the rest.
    fn start(&mut self, number: u8) {
        let (host, other) = (self.host(number), 3 - number);
        fs::create_dir(&host).unwrap();
        let settings = format!(
            "listen = ['{FLOATING_ADDRESS}:7626']\nfilter = 'nftables'\nstate = 'state'\npolicy = 'policy.toml'\n\
             [tls]\ncertificate = '../10.9.0.{number}.pem'\nkey = '../10.9.0.{number}.key'\nagents = '../authority.pem'\n\
             [standby]\nlisten = '10.9.0.{number}:7627'\nname = 'fw{other}'\nrequired = true\npatience = '2s'\n"
        );
        fs::write(host.join("simcod.toml"), settings).unwrap();
        fs::write(host.join("policy.toml"), "anonymous = 'phone'\n[agents.phone]\n").unwrap();
        write_program(&host.join("systemctl"), &systemctl(number, other));
        let priority = if number == 1 { "priority 100" } else { "priority 90" };
        let systemctl = host.join("systemctl").display().to_string();
        let keepalived = configuration().replace("/usr/bin/systemctl", &systemctl);
        fs::write(host.join("keepalived.conf"), keepalived.replace("priority 100", priority)).unwrap();
        // A process namespace, because keepalived looks for a process of this host. Its shell waits for orphans.
        let commands = "keepalived --dont-fork --log-console --vrrp --use-file keepalived.conf --pid pid --vrrp_pid vrrp.pid & \
                        wait";
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(&format!("fw{number}"))]);
        command.args(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", commands]);
        let log = fs::File::create(host.join("keepalived.log")).unwrap();
        command.current_dir(&host).stdout(log.try_clone().unwrap()).stderr(log).stdin(Stdio::null());
        self.hosts.push(command.spawn().unwrap());
    }

    /// Returns the output of `simcod` at the agent; `None` if it fails.
    fn simcod(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace("agent"), BIN]).args(arguments);
        command.args(["--server", FLOATING_ADDRESS, "--timeout", "3s"]);
        let output = command.output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Sends SIGKILL to the middlebox or standby of a host.
    fn kill_middlebox(&self, number: u8) {
        let keepalived = self.hosts[usize::from(number) - 1].id();
        let children = fs::read_to_string(format!("/proc/{keepalived}/task/{keepalived}/children")).unwrap();
        let in_namespace = ["--target", children.split_whitespace().next().unwrap(), "--pid"];
        let pid = fs::read_to_string(self.host(number).join("running")).unwrap();
        run("nsenter", &[&in_namespace[..], &["kill", "-KILL", pid.trim()]].concat());
    }

    fn has_floating_address(&self, number: u8) -> bool {
        let namespace = self.namespace(&format!("fw{number}"));
        let output = Command::new("ip").args(["-n", &namespace, "address", "show", "dev", "eth1"]).output();
        String::from_utf8(output.unwrap().stdout).unwrap().contains(&format!("{FLOATING_ADDRESS}/"))
    }

    /// Returns true if the log of a host's middlebox reports the event.
    fn has_logged(&self, number: u8, event: &str) -> bool {
        let log = fs::read_to_string(self.host(number).join("log")).unwrap_or_default();
        log.contains(&format!("event={event}"))
    }

    /// Waits until the condition holds.
    #[track_caller]
    fn await_that(&self, what: &str, condition: impl Fn() -> bool) {
        for _ in 0..MAX_CHECKS {
            if condition() {
                return;
            }
            thread::park_timeout(CHECK_INTERVAL);
        }
        let log = |number: u8, name| fs::read_to_string(self.host(number).join(name)).unwrap_or_default();
        let logs = [1, 2].map(|number| [log(number, "keepalived.log"), log(number, "log")].concat());
        panic!("{what}: fw1:\n{}\nfw2:\n{}", logs[0], logs[1]);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            let _ = host.kill().and_then(|()| host.wait());
        }
        for name in ["agent", "fw1", "fw2"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(name)]).status();
        }
    }
}

/// Returns the configuration of keepalived in the document.
fn configuration() -> String {
    let page = include_str!("../../../../docs/simco-failover.md");
    let mut blocks = page.split("```\n").filter(|block| block.contains("vrrp_instance"));
    blocks.next().expect("the document has a configuration").to_owned()
}

/// Returns a program that starts and stops the two units as systemd does: at most one of them runs.
fn systemctl(number: u8, other: u8) -> String {
    format!(
        "#!/bin/sh
cd \"$(dirname \"$0\")\"
umask 077
exec 9>lock
flock 9
[ \"$1 $2\" = \"start $(cat unit)\" ] && kill -0 $(cat running) && exit
kill $(cat running)
while kill -0 $(cat running); do sleep 0.1; done
echo \"$2\" >unit
case \"$1 $2\" in
'start simcod') {BIN} serve --config simcod.toml ;;
'start simcod-standby')
    {BIN} standby --server 10.9.0.{other}:7627 --tls ../authority.pem --certificate ../fw{number}.pem \
     --key ../fw{number}.key --state state ;;
*) exit 1 ;;
esac 9>&- >>log 2>&1 &
echo $! >running
"
    )
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    let is_done = |status: io::Result<std::process::ExitStatus>| status.is_ok_and(|status| status.success());
    assert!(is_done(status), "needs root, iproute2, nftables and keepalived: {program} {arguments:?}");
}

#[test]
#[ignore = "needs keepalived, root and network namespaces (iproute2, nftables, util-linux, procps)"]
fn the_floating_address_moves_when_the_active_middlebox_dies() {
    let mut pair = Pair::new();
    let authority = Authority::new(pair.dir.path(), "authority");
    for name in ["10.9.0.1", "10.9.0.2", "fw1", "fw2"] {
        authority.certify(name);
    }
    pair.start(1);
    pair.await_that("fw1 is active", || pair.has_floating_address(1));
    pair.start(2);
    pair.await_that("fw2 has every rule", || pair.has_logged(1, "standby-synchronized"));
    let enable = ["enable", "10.0.0.5:5004", "198.51.100.7:6000", "--udp"];
    pair.await_that("a rule begins", || pair.simcod(&enable).is_some());
    assert!(!pair.has_floating_address(2));

    pair.kill_middlebox(1);
    pair.await_that("fw2 is active", || pair.has_floating_address(2));
    pair.await_that("fw2 has the rule", || {
        pair.simcod(&["list"]).is_some_and(|list| list.contains("10.0.0.5:5004"))
    });
    assert!(!pair.has_floating_address(1));
    pair.await_that("fw1 is the standby", || pair.has_logged(2, "standby-synchronized"));
}
