//! Every command line is planned or refused: no panic, no endless loop, no more memory than stated here.
//!
//! `PROPTEST_CASES=1000000 cargo test -p headofline --test command_lines` takes minutes.

use std::alloc::System;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use cap::Cap;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Maximum number of allocated octets at a time, over all cases.
const MAX_MEMORY: usize = 256 << 20;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MAX_MEMORY);

/// Files that a command line may name.
static FILES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a place for files");
    let script = "set ns [new Simulator]\nset client [$ns node]\nset server [$ns node]\n\
                  $ns duplex-link $client $server 1Mb 1ms DropTail\n";
    for (name, text) in [
        (
            "good.toml",
            "transports = ['tcp', 'sctp']\nmessages = 100\n[sweep]\n'network.loss' = ['0%', '1%']\n",
        ),
        ("bad.toml", "transports = ['tcp'\n"),
        ("script.toml", "transports = ['tcp']\ntopology = 'a.ns'\n"),
        ("a.ns", script),
        ("nothing.toml", ""),
    ] {
        fs::write(dir.path().join(name), text).expect("a file");
    }
    dir
});

const COMMANDS: [&str; 15] = [
    "compare",
    "run",
    "trace",
    "init",
    "reproduce",
    "report",
    "share",
    "verify",
    "validate",
    "topology",
    "bench",
    "list",
    "doctor",
    "live",
    "rnu",
];

const OPTIONS: [&str; 36] = [
    "--workload",
    "--rate",
    "--arrivals",
    "--size",
    "--mix",
    "--filter",
    "--count",
    "--delay",
    "--loss",
    "--bandwidth",
    "--queue",
    "--repetitions",
    "--seed",
    "--world",
    "--peer",
    "--router",
    "--secret-file",
    "--listen",
    "--once",
    "--set",
    "--json",
    "--jobs",
    "--experiment",
    "--point",
    "--repetition",
    "--pcap",
    "--at",
    "--ns2",
    "--plan",
    "--records",
    "--out",
    "--help",
    "--quick",
    "--only",
    "-x",
    "--",
];

const KEYS: [&str; 24] = [
    "messages",
    "seed",
    "repetitions",
    "precision",
    "title",
    "records",
    "world",
    "transports",
    "network.loss",
    "network.delay",
    "network.rate",
    "network.queue",
    "network.discipline",
    "network.up.delay",
    "network.events",
    "network.paths",
    "workload.kind",
    "workload.rate",
    "workload.sources",
    "workload.mix.enable",
    "background",
    "background.count",
    "sweep.seed",
    "a.b..c",
];

const VALUES: [&str; 53] = [
    "",
    "0",
    "1",
    "-1",
    "10",
    "1000000",
    "18446744073709551615",
    "99999999999999999999",
    "1.5",
    "nan",
    "tcp",
    "sctp",
    "udp",
    "mptcp",
    "tcp:cc=reno",
    "sctp:streams=0",
    "sctp:streams=65535,associations=1024",
    "tcp:",
    ":",
    "tcp:stack=rfc",
    "echo",
    "oneway",
    "bulk",
    "pingpong",
    "simco",
    "poisson",
    "nftables",
    "0B",
    "128B",
    "99999999GB",
    "100mbps",
    "1Mbit",
    "10ms",
    "0s",
    "1000000d",
    "99999999999/s",
    "0.5%",
    "101%",
    "1000p",
    "[]",
    "[1,2]",
    "{x=1}",
    "5..40",
    "kernel:none",
    "live",
    "live:192.0.2.1",
    "live::",
    "live:192.0.2.1 via 192.0.2.2",
    "live: via ",
    "192.0.2.1:0",
    "192.0.2.1:7640",
    "serve",
    "route",
];

fn value() -> impl Strategy<Value = String> {
    let file = select(vec!["good.toml", "bad.toml", "script.toml", "a.ns", "nothing.toml", "none.toml", ""]);
    prop_oneof![
        8 => select(VALUES.to_vec()).prop_map(str::to_owned),
        2 => file.prop_map(|name| FILES.path().join(name).display().to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => "\\PC{0,12}",
    ]
    // A command that reads standard input would wait for it.
    .prop_filter("reads standard input", |value| value != "-")
}

fn arguments() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        3 => (select(OPTIONS.to_vec()), value()).prop_map(|(option, value)| vec![option.to_owned(), value]),
        3 => (select(KEYS.to_vec()), value()).prop_map(|(key, value)| vec!["--set".to_owned(), format!("{key}={value}")]),
        2 => value().prop_map(|value| vec![value]),
        1 => select(OPTIONS.to_vec()).prop_map(|option| vec![option.to_owned()]),
        2 => select(vec!["tcp", "sctp:streams=8", "udp"]).prop_map(|transport| vec![transport.to_owned()]),
    ]
}

/// Returns a command with its required arguments and further ones.
fn line() -> impl Strategy<Value = Vec<OsString>> {
    (select(COMMANDS.to_vec()), any::<bool>(), vec(arguments(), 0..6)).prop_map(|(command, whole, more)| {
        let needs = match command {
            "compare" | "trace" if whole => vec!["tcp".to_owned()],
            "run" if whole => vec![FILES.path().join("good.toml").display().to_string()],
            _ => Vec::new(),
        };
        let words =
            ["hol".to_owned(), command.to_owned()].into_iter().chain(needs).chain(more.into_iter().flatten());
        words.map(OsString::from).collect()
    })
}

fn cases(default: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(default), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(700))]
    #[test]
    fn arbitrary_command_line_is_planned_or_refused(line in line()) {
        if let Err(problem) = headofline::parse_and_plan(line.clone()) {
            prop_assert!(!problem.is_empty());
            for internal in ["struct ", "unit variant", "invalid type", "expected u", "Spanned"] {
                prop_assert!(!problem.contains(internal), "{line:?}: {problem}");
            }
        }
    }
}

/// Words of lines of tc.
const TC_WORDS: [&str; 60] = [
    "qdisc",
    "class",
    "add",
    "change",
    "replace",
    "dev",
    "eth0",
    "root",
    "parent",
    "1:1",
    "1:",
    "handle",
    "2:",
    "classid",
    "netem",
    "tbf",
    "htb",
    "red",
    "pfifo",
    "bfifo",
    "codel",
    "fq_codel",
    "pie",
    "dualpi2",
    "noqueue",
    "clsact",
    "delay",
    "loss",
    "gemodel",
    "random",
    "rate",
    "limit",
    "duplicate",
    "corrupt",
    "reorder",
    "distribution",
    "normal",
    "burst",
    "latency",
    "ceil",
    "min",
    "max",
    "avpkt",
    "bandwidth",
    "target",
    "interval",
    "ecn",
    "flows",
    "quantum",
    "0",
    "1",
    "1%",
    "10ms",
    "99999999999999999999",
    "1gbit",
    "18446744073709551615bit",
    "1kb",
    "1e308",
    ";",
    "\n",
];

/// Generates lines of tc; most begin with a discipline.
fn tc_lines() -> impl Strategy<Value = String> {
    let number =
        (any::<u64>(), 0..64_u32, select(vec!["", "ms", "us", "s", "%", "bit", "mbit", "gbps", "kb", "p"]))
            .prop_map(|(number, shift, unit)| format!("{}{unit}", number >> shift));
    let option = select(vec![
        "delay", "rate", "limit", "loss", "burst", "latency", "min", "max", "avpkt", "ceil", "target",
    ]);
    let option = (option, number).prop_map(|(name, number)| format!("{name} {number}"));
    let word =
        prop_oneof![2 => select(TC_WORDS.to_vec()).prop_map(str::to_owned), 3 => option, 1 => "\\PC{0,6}"];
    let kind = select(vec![
        "netem",
        "tbf",
        "htb",
        "red",
        "codel",
        "pie",
        "qdisc change dev eth0 root netem",
        "class add classid 1:1 htb",
    ]);
    let line = (kind, vec(word, 0..8)).prop_map(|(kind, words)| format!("{kind} {}", words.join(" ")));
    vec(line, 1..4).prop_map(|lines| lines.join("; "))
}

proptest! {
    #![proptest_config(cases(1000))]
    #[test]
    fn arbitrary_lines_of_tc_are_converted_or_refused(up in tc_lines(), down in tc_lines()) {
        let words = ["hol", "path", "tc", &up, "--down", &down].map(OsString::from);
        if let Err(problem) = headofline::parse_and_plan(words) {
            prop_assert!(!problem.is_empty());
        }
    }
}

/// Generates JSON with the keys of iperf3 and flent.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let keys = vec![
        "start",
        "end",
        "streams",
        "sender",
        "mean_rtt",
        "sum_received",
        "sum_received_bidir_reverse",
        "bits_per_second",
        "error",
        "results",
        "metadata",
        "SERIES_META",
        "UNITS",
        "MEAN_VALUE",
        "x_values",
        "a",
    ];
    let leaf = prop_oneof![
        1 => Just(serde_json::Value::Null),
        1 => any::<bool>().prop_map(Into::into),
        3 => any::<f64>().prop_map(Into::into),
        1 => any::<u64>().prop_map(Into::into),
        2 => select(vec!["ms", "Mbits/s", "bits/s", "", "x"]).prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            3 => vec((select(keys.clone()), inner), 0..6)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(cases(1000))]
    #[test]
    fn arbitrary_result_of_another_tool_is_read_or_refused(end in json(), results in json(), meta in json(), cut in any::<prop::sample::Index>()) {
        let whole = serde_json::json!({ "end": end, "results": results, "metadata": { "SERIES_META": meta } }).to_string();
        let flent = serde_json::json!({ "results": { "a": results, "end": end }, "metadata": { "SERIES_META": { "a": meta, "end": { "UNITS": "ms" } } } });
        let cut = &whole[..cut.index(whole.len())];
        for text in [&whole, &flent.to_string(), cut] {
            if let Err(problem) = hol_report::OtherMeasurement::read("a.json", text) {
                prop_assert!(!problem.is_empty());
            }
        }
    }
}

#[test]
fn valid_command_lines_are_planned() {
    let good = FILES.path().join("good.toml");
    let good = |rest: &[&str]| -> Vec<OsString> {
        ["hol", "run"]
            .iter()
            .map(OsString::from)
            .chain([Path::new(&good).into()])
            .chain(rest.iter().map(OsString::from))
            .collect()
    };
    assert_eq!(headofline::parse_and_plan(good(&["--set", "network.delay=5ms"])), Ok(()));
    assert!(
        headofline::parse_and_plan(good(&["--set", "network.delay=5"])).unwrap_err().contains("has no unit")
    );
}

/// The command line is refused before anything is sent to another host.
#[test]
fn peer_needs_the_live_world_an_address_and_a_secret() {
    let question = |rest: &[&str]| {
        let words = ["hol", "compare", "tcp", "udp"].iter().chain(rest);
        headofline::parse_and_plan(words.map(OsString::from)).unwrap_err()
    };
    assert!(question(&["--peer", "192.0.2.1", "--world", "model"]).contains("omit one of the two"));
    assert!(question(&["--peer", "192.0.2.1:x"]).contains("HOST:PORT"));
    assert!(question(&["--peer", "192.0.2.1", "--peer", "192.0.2.2"]).contains("would be on two hosts"));
    assert!(question(&["--peer", "server=192.0.2.1", "--peer", "a=192.0.2.2"]).contains("--secret-file"));
    assert!(question(&["--world", "live:192.0.2.1:0"]).contains("HOST:PORT"));
    for right in [&["--peer", "192.0.2.1"][..], &["--world", "live", "--peer", "192.0.2.1"]] {
        assert!(question(right).contains("--secret-file"), "{}", question(right));
    }
    assert!(question(&["--peer", "192.0.2.1", "--router", "192.0.2.2:x"]).contains("HOST:PORT"));
    assert!(question(&["--router", "192.0.2.2"]).contains("--peer"));
    for right in [
        &["--peer", "192.0.2.1", "--router", "192.0.2.2:7641", "--loss", "3%"][..],
        &["--world", "live:192.0.2.1 via 192.0.2.2"],
    ] {
        assert!(question(right).contains("--secret-file"), "{}", question(right));
    }
    assert_eq!(headofline::parse_and_plan(["hol", "live", "route", "--once"].map(OsString::from)), Ok(()));
    assert_eq!(headofline::parse_and_plan(["hol", "live", "serve", "--once"].map(OsString::from)), Ok(()));
    assert!(
        headofline::parse_and_plan(["hol", "live", "serve", "--listen", "x"].map(OsString::from)).is_err()
    );
    assert_eq!(
        headofline::parse_and_plan(["hol", "live", "serve", "--ports", "7641-7650"].map(OsString::from)),
        Ok(())
    );
    assert!(
        headofline::parse_and_plan(["hol", "live", "serve", "--ports", "7650-7641"].map(OsString::from))
            .is_err()
    );
}
