//! The live world over a router, end to end. Three nodes run in User-Mode Linux, because this machine's kernel may lack
//! netem, and because other processes share its clock.

use std::fs;
use std::path::PathBuf;

use crate::program::{BIN, code, hol};
use hol_base::Duration;
use serde_json::Value;

/// The files that the nodes wrote.
struct RouterResults {
    _dir: tempfile::TempDir,
    out: PathBuf,
}

impl RouterResults {
    /// Runs these scripts on client and router, in this network.
    fn behind(network: &str, client: &str, router: &str) -> Self {
        let measured = include_str!("measured.toml");
        Self::of(network, &[("router.sh", router), ("client.sh", client), ("measured.toml", measured)])
    }

    /// Runs programs in this network, with these files.
    fn of(network: &str, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let network = network.replace("\"HOL\"", &format!("{BIN:?}"));
        for (name, text) in files.iter().chain(&[("network.toml", network.as_str())]) {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let run = hol(dir.path(), &["run", "network.toml", "--out", "out"]);
        let out = dir.path().join("out");
        let journal = fs::read_to_string(out.join("runs.jsonl")).unwrap_or_default();
        assert_eq!(code(&run), 0, "{}\n{journal}", String::from_utf8_lossy(&run.stderr));
        let mut runs = fs::read_dir(out.join("out")).unwrap_or_else(|problem| panic!("{problem}: {journal}"));
        Self { out: runs.next().unwrap().unwrap().path(), _dir: dir }
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.out.join(file)).unwrap_or_else(|problem| panic!("{file}: {problem}"))
    }

    fn lines(&self, file: &str) -> Vec<Value> {
        self.text(file).lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

const NETWORK: &str = include_str!("network.toml");

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2, util-linux and mkfs.erofs (erofs-utils)"]
fn router_creates_the_path_and_restores_the_interfaces() {
    let results = RouterResults::behind(NETWORK, include_str!("client.sh"), include_str!("router.sh"));
    path_has_the_requested_settings(&results);
    previous_queues_are_restored(&results);
    failures_are_reported(&results);
}

/// The emulated path takes 20 ms each way, the links take 4 ms; of 4000 packets 3 % are lost, which is 120 ± 11.
fn path_has_the_requested_settings(results: &RouterResults) {
    let runs = results.lines("client/measured/runs.jsonl");
    assert_eq!(runs.len(), 3, "{}", results.text("client/said"));
    for run in &runs {
        let world_report = &run["facts"];
        let ways = ["client", "server"].map(|side| world_report["router"][side].as_str().unwrap());
        assert_eq!(ways, ["link1", "link2"], "{world_report}");
        for line in world_report["lines"].as_array().unwrap() {
            let [sent, dropped] = ["sent", "dropped"].map(|key| line[key].as_f64().unwrap());
            assert!((0.015..0.05).contains(&(dropped / sent)), "{line}");
        }
        // The clocks are compared before packets are delayed, and afterwards.
        let uncertainty: Duration = world_report["peer"]["uncertainty"].as_str().unwrap().parse().unwrap();
        assert!(uncertainty < Duration::from_millis(3), "{world_report}");
        assert!(
            world_report["provenance"].as_str().unwrap().contains("; over router: Linux "),
            "{world_report}"
        );
    }
    let points = results.text("client/measured/points.csv");
    let rows: Vec<Vec<&str>> = points.lines().map(|line| line.split(',').collect()).collect();
    let number = |row: usize, name: &str| -> f64 {
        let column = rows[0].iter().position(|column| *column == name).unwrap();
        rows[1 + row][column].parse().unwrap()
    };
    assert!((44.0..45.0).contains(&number(0, "p50_ms")), "{points}");
    assert!((85.0..155.0).contains(&(2000.0 - number(0, "completed"))), "{points}");
    assert_eq!([1, 2].map(|row| number(row, "completed")), [2000.0; 2], "{points}");
    let compared = results.text("client/compared");
    let said = "in live:server via router, over the router router, 5ms each way, loss 0%";
    assert!(compared.contains(said), "{compared}");
}

fn previous_queues_are_restored(results: &RouterResults) {
    let queues = |name: &str| results.text(&format!("router/{name}"));
    let before = queues("before");
    assert!(!before.contains("netem"), "{before}");
    assert_eq!(queues("put-back"), before);
    let under_way = queues("under-way");
    assert!(under_way.contains("netem 7640: dev link1 root"), "{under_way}");
    assert!(under_way.contains("netem 7640: dev link2 root"), "{under_way}");
    assert_eq!(queues("put-back-after-kill"), before);
    let chosen = queues("left-over-removed");
    assert!(!chosen.contains("netem") && chosen.contains("pfifo 1: dev link2"), "{chosen}");
    assert_eq!(queues("chosen-left-alone"), chosen);
}

fn failures_are_reported(results: &RouterResults) {
    for (file, words) in [
        ("client/interrupted", &["interrupted"][..]),
        ("client/died", &["router router: the other host closed the control channel"]),
        ("client/refused", &["on the router router", "link2", "pfifo 1:", "tc qdisc del dev link2 root"]),
        ("router/served", &["the other host sent no message for 10 s", "waiting for the next"]),
        ("router/unprivileged", &["CAP_NET_ADMIN", "as root"]),
        ("router/second", &["another `hol live route` runs on this host"]),
    ] {
        let said = results.text(file);
        assert!(words.iter().all(|word| said.contains(word)), "{file}: {said}");
    }
    assert!(!results.text("router/unprivileged").contains("listening"));
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2, util-linux and mkfs.erofs (erofs-utils)"]
fn path_around_the_router_is_refused() {
    let last = "{ from = \"router\", to = \"server\" }";
    let network = NETWORK.replace(last, &format!("{last}, {{ from = \"client\", to = \"server\" }}"));
    let results =
        RouterResults::behind(&network, include_str!("client_aside.sh"), include_str!("router_aside.sh"));
    let said = results.text("client/said");
    assert!(
        said.contains("router router: a round trip to the peer took") && said.contains("bypass it"),
        "{said}"
    );
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2, util-linux and mkfs.erofs (erofs-utils)"]
fn router_creates_ipv6_paths_too() {
    let network = NETWORK
        .replace("[network]", "[network]\nip = \"v6\"")
        .replace("live serve", "live serve --listen [::]:7640");
    let results = RouterResults::behind(&network, include_str!("client_v6.sh"), include_str!("router_v6.sh"));
    let said = results.text("client/said");
    let [line] = said.lines().filter(|line| line.starts_with("udp ")).collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    let median: f64 = line.split_whitespace().nth(2).unwrap().parse().expect(line);
    assert!((44.0..45.0).contains(&median), "{said}");
    assert_eq!(results.text("router/after"), results.text("router/before"));
}

/// Two pairs of hosts, one on each side of the router: a greedy flow of the first pair fills the queue in which the
/// echoes of the second wait.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), iproute2, util-linux and mkfs.erofs (erofs-utils)"]
fn router_creates_the_path_between_groups_of_five_hosts() {
    let files = [("hosts.sh", include_str!("hosts.sh")), ("measured.toml", include_str!("hosts.toml"))];
    let results = RouterResults::of(include_str!("hosts_network.toml"), &files);
    let runs = results.lines("client/measured/runs.jsonl");
    let [run] = &runs[..] else { panic!("{}", results.text("client/said")) };
    let beside = run["background"][0]["octets"].as_u64().unwrap();
    // Four seconds of 10 Mbit/s are 5 MB; a queue of 100 packets takes 120 ms to pass.
    assert!((3_000_000..5_000_000).contains(&beside), "{run}");
    let points = results.text("client/measured/points.csv");
    let rows: Vec<Vec<&str>> = points.lines().map(|line| line.split(',').collect()).collect();
    let column = rows[0].iter().position(|column| *column == "p50_ms").unwrap();
    let median: f64 = rows[1][column].parse().unwrap();
    assert!((60.0..170.0).contains(&median), "{points}");
    let world_report = &run["facts"];
    assert_eq!(
        world_report["others"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["other", "sink"],
        "{world_report}"
    );
    assert_eq!(results.text("router/after"), results.text("router/before"));
}
