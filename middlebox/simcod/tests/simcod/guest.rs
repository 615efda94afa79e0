//! `simcod` over SCTP, in a virtual machine whose kernel supports it.
//!
//! The guest's first process is this test program again: it starts the middlebox, acts as its agents, and reports the
//! result on the console.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hol_kernel::{Image, initramfs};
use hol_netlink::{Message, Socket};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, init_module, reboot};

use crate::program::BIN;

/// The last output of the guest after success.
const DONE: &str = "the middlebox has served";
/// The path of `simcod` in the guest.
const PROGRAM: &str = "bin/simcod";
/// The name of the test.
const TEST: &str = "guest::agents_are_served_over_sctp";

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn agents_are_served_over_sctp() {
    if std::process::id() == 1 {
        return guest();
    }
    host();
}

/// Runs the guest until it restarts, at which QEMU exits (`-no-reboot`).
fn host() {
    let dir = tempfile::tempdir().unwrap();
    let image = Image::find(None).unwrap_or_else(|error| panic!("{error}"));
    let itself = std::env::current_exe().unwrap();
    let programs = [("init", &*itself), (PROGRAM, Path::new(BIN))];
    let initrd = dir.path().join("initramfs");
    fs::write(&initrd, initramfs(&image, &programs).unwrap()).unwrap();
    let mut machine = Command::new("timeout");
    machine.args(["300", "qemu-system-x86_64", "-accel", "tcg", "-m", "768", "-display", "none"]);
    machine.args(["-nodefaults", "-no-user-config", "-no-reboot", "-serial", "stdio"]);
    // The kernel passes arguments after `--` to the first process.
    let again = format!("--exact {TEST} --ignored --nocapture --test-threads 1");
    let line = format!("console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init -- {again}");
    machine.args(["-append", &line]);
    machine.arg("-kernel").arg(image.file()).arg("-initrd").arg(&initrd);
    let console = String::from_utf8_lossy(&machine.output().unwrap().stdout).into_owned();
    assert!(console.contains(DONE), "{console}");
}

/// Runs in the first process. If it fails the kernel panics, and the machine restarts.
fn guest() {
    mount("proc", "/proc", "proc", MountFlags::empty(), None).unwrap();
    mount("dev", "/dev", "devtmpfs", MountFlags::empty(), None).unwrap();
    load_modules();
    switch_loopback_on();
    let (middlebox, address) = serve("sctp", "127.0.0.1:7626");
    let ask = |line: &str| ask("sctp", &address, line);

    let enabled = ask("enable 10.0.0.5:5004 198.51.100.7:6000 --udp --lifetime 5m");
    assert!(enabled.contains("enabled") && enabled.contains("198.51.100.7:6000"));
    let lines: String = (1..=2000).map(|port| format!("enable 10.0.0.6:{port} any --udp\n")).collect();
    fs::write("/rules", lines).unwrap();
    assert_eq!(ask("batch /rules --json").lines().count(), 2000);
    let listed = ask("list --json");
    assert_eq!(listed.lines().count(), 2001, "a list of several packets");
    let blocked = ask("disable 10.0.0.6 any --lifetime 1m --json");
    assert_eq!(blocked.lines().count(), 2001, "the rule that blocks, and those that it has ended");
    assert_eq!(ask("list --json").lines().count(), 2);
    terminate(middlebox);
    serve_the_kernel_over_udp();
    println!("{DONE}");
    reboot(RebootCommand::Restart).unwrap();
}

/// The kernel's endpoint, which has SCTP over UDP since Linux 5.11, is the agent of ours. RFC 6951.
fn serve_the_kernel_over_udp() {
    let set = |name: &str, port: &str| fs::write(format!("/proc/sys/net/sctp/{name}"), port).unwrap();
    // The middlebox is on the same host, so the kernel needs another UDP port.
    set("udp_port", "9900");
    set("encap_port", "9899");
    let (middlebox, _) = serve("sctp-udp", "127.0.0.1:9899");
    let ask = |line: &str| ask("sctp", "127.0.0.1:7626", line);
    assert_eq!(ask("batch /rules --json").lines().count(), 2000);
    assert_eq!(ask("list --json").lines().count(), 2000, "a list of several packets");
    terminate(middlebox);
    println!("the kernel has sent datagrams");
}

/// Loads the kernel modules. They depend on each other, so failed ones are tried again after the others.
fn load_modules() {
    let files = fs::read_dir("/modules").unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let mut waiting: Vec<Vec<u8>> = files.collect();
    for _ in 0..4 {
        waiting.retain(|module| init_module(module, c"").is_err());
    }
}

/// Activates the loopback interface, the first of every namespace. linux/rtnetlink.h, linux/if.h
fn switch_loopback_on() {
    const RTM_NEWLINK: u16 = 16;
    const UP: [u8; 4] = 1u32.to_ne_bytes();
    let index = 1u32.to_ne_bytes();
    let link = [[0; 4], index, UP, UP].concat();
    Socket::routing().unwrap().execute(Message::new(RTM_NEWLINK, 0, &link)).unwrap();
}

fn simcod() -> Command {
    Command::new(Path::new("/").join(PROGRAM))
}

/// Starts a middlebox that listens over this transport; returns its address.
fn serve(transport: &str, address: &str) -> (Child, String) {
    // A process may open 4,096 files in the guest.
    fs::write("/simco.toml", "[limits]\nconnections = 64\n").unwrap();
    let listen = format!("--listen-{transport}");
    let arguments = ["serve", "--config", "/simco.toml", "--listen", "127.0.0.1:0", &listen, address];
    let mut child = simcod().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let address = lines.map(Result::unwrap).find_map(|line| {
        println!("{line}");
        line.strip_prefix(&format!("listening on {transport} ")).map(str::to_owned)
    });
    (child, address.expect("the middlebox listens"))
}

/// Returns the output of an agent's command.
fn ask(transport: &str, address: &str, line: &str) -> String {
    let over = ["--over", transport, "--server", address];
    let output = simcod().args(line.split(' ')).args(over).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        for file in ["sctp/snmp", "udp", "snmp", "sctp/eps", "sctp/assocs"] {
            println!("{}", fs::read_to_string(format!("/proc/net/{file}")).unwrap_or_default());
        }
    }
    assert!(output.status.success(), "{line}: {complaint}");
    println!("{line}: done");
    String::from_utf8(output.stdout).unwrap()
}

fn terminate(mut child: Child) {
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success(), "the middlebox ends normally");
}
