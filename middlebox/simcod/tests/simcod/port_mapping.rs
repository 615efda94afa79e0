//! Hosts behind a router request port mappings: with Debian's `natpmpc`, and with a PCP client written from the RFC.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::program::BIN;
use crate::world::Node::{Inside, Middlebox, Outside};
use crate::world::{Node, World, arrives};

/// A router between two networks.
struct Router {
    world: World,
    directory: tempfile::TempDir,
    daemon: Child,
}

impl Router {
    fn start(settings: &str) -> Self {
        let (world, directory) = (World::new(), tempfile::tempdir().unwrap());
        let settings = format!(
            "{settings}\nfilter = 'nftables'\npolicy = 'policy.toml'\nstate = 'rules'\n\
             [nftables]\ninside = 'in0'\noutside = 'out0'\n[nat]\noutside = ['192.0.2.77']\nports = [40000, 49999]\n\
             [pcp]\nlisten = ['10.1.0.1:5351']"
        );
        let policy = "anonymous = 'operator'\n[agents.lan]\nhosts = ['10.1.0.0/24']\n[agents.operator]\naccess = 'all'";
        fs::write(directory.path().join("settings.toml"), settings).unwrap();
        fs::write(directory.path().join("policy.toml"), policy).unwrap();
        let daemon = serve(&world, &directory);
        Self { world, directory, daemon }
    }

    fn restart(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        self.daemon = serve(&self.world, &self.directory);
    }

    /// Returns the output of a program, which must succeed.
    fn run(&self, node: Node, program: &str, arguments: &[&str]) -> String {
        self.world.run(node, program, arguments).unwrap()
    }

    fn list(&self) -> String {
        self.run(Middlebox, BIN, &["list"])
    }
}

fn serve(world: &World, directory: &tempfile::TempDir) -> Child {
    let mut serve: Command = world.command(Middlebox, BIN);
    serve.args(["serve", "--config", "settings.toml"]).current_dir(directory.path());
    let mut daemon = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(daemon.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on tcp "), "{line}");
    daemon
}

impl Drop for Router {
    fn drop(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }
}

/// A home router: flows that hosts begin pass, and those to mapped ports.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables) and natpmpc"]
fn natpmpc_learns_the_address_and_maps_ports() {
    let mut router = Router::start("firewall = false");
    let natpmpc = |router: &Router, arguments: &str| {
        let arguments: Vec<&str> =
            ["-g", "10.1.0.1"].into_iter().chain(arguments.split_whitespace()).collect();
        router.run(Inside, "natpmpc", &arguments)
    };
    let address = natpmpc(&router, "");
    assert!(address.contains("Public IP address : 192.0.2.77"), "{address}");
    let mapped = natpmpc(&router, "-a 40123 5004 udp 600");
    assert!(mapped.contains("Mapped public port 40123 protocol UDP to local port 5004"), "{mapped}");
    let page = natpmpc(&router, "-a 40080 8080 tcp 600");
    assert!(page.contains("Mapped public port 40080 protocol TCP to local port 8080"), "{page}");

    let (inside, outside) =
        (router.world.udp(Inside, "10.1.0.2:5004"), router.world.udp(Outside, "10.2.0.2:6000"));
    assert_eq!(arrives(&outside, "192.0.2.77:40123", &inside).as_deref(), Some("10.2.0.2:6000"));
    assert_eq!(arrives(&inside, "10.2.0.2:6000", &outside).as_deref(), Some("192.0.2.77:40123"));
    let pages = router.world.listen(Inside, "10.1.0.2:8080");
    let visitor = router.world.connect(Outside, "192.0.2.77:40080").unwrap();
    assert_eq!(pages.accept().unwrap().1, visitor.local_addr().unwrap());

    router.restart();
    let again = natpmpc(&router, "-a 0 5004 udp 600");
    assert!(again.contains("Mapped public port 40123"), "the same after a restart: {again}");
    assert_eq!(router.list().lines().count(), 3, "{}", router.list());
    natpmpc(&router, "-a 0 5004 udp 0");
    assert_eq!(arrives(&outside, "192.0.2.77:40123", &inside), None, "given back");
    let stranger = router.world.command(Outside, "natpmpc").args(["-g", "10.1.0.1"]).output().unwrap();
    let told = String::from_utf8_lossy(&stranger.stdout);
    assert!(!told.contains("Public IP address"), "the outside interface does not answer: {told}");
}

/// A firewall that also translates: only mapped flows pass, in both directions.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables) and python3"]
fn a_client_written_from_rfc_6887_is_served() {
    let router = Router::start("firewall = true");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simcod/pcp.py");
    let said = router.run(Inside, "python3", &[script, "10.1.0.1", "10.1.0.2", "192.0.2.77"]);
    assert_eq!(said, "all answers are as in RFC 6887\n");
    let list = router.list();
    assert_eq!(list.lines().count(), 1 + 4, "5004, 8080, 5008, 5012: {list}");
    let (mapped, peer) =
        (router.world.udp(Inside, "10.1.0.2:5004"), router.world.udp(Inside, "10.1.0.2:5008"));
    let (outside, other) =
        (router.world.udp(Outside, "10.2.0.2:6000"), router.world.udp(Outside, "10.2.0.3:6000"));
    assert_eq!(arrives(&other, "192.0.2.77:40123", &mapped).as_deref(), Some("10.2.0.3:6000"));
    assert_eq!(arrives(&mapped, "10.2.0.3:6000", &other).as_deref(), Some("192.0.2.77:40123"));
    let flow = arrives(&peer, "10.2.0.2:6000", &outside).expect("PEER lets the flow pass");
    assert!(flow.starts_with("192.0.2.77:4"), "{flow}");
    assert_eq!(arrives(&peer, "10.2.0.3:6000", &other), None, "other flows do not pass");
    let unmapped = router.world.udp(Inside, "10.1.0.2:5999");
    assert_eq!(arrives(&unmapped, "10.2.0.2:6000", &outside), None);
}
