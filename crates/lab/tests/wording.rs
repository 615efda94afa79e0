//! What is wrong in an experiment is said in the words of its writer: over all keys and values of every type.

use hol_lab::{Experiment, Source};

/// Every key of an experiment with a value that it takes; one line a key.
const KEYS: &str = "
title = 'a'
seed = 1
messages = 100
repetitions = '2..4'
precision = '5%'
records = 'none'
world = 'model'
transports = ['tcp']
transports = [{ spec = 'tcp', label = 'a', sources = 2 }]
topology = 'none.ns'
network.rate = '1Mbit'
network.delay = '10ms'
network.jitter = '1ms'
network.loss = '1%'
network.loss.good_to_bad = '1%'
network.loss.bad_to_good = '1%'
network.loss.loss_good = '1%'
network.loss.loss_bad = '1%'
network.loss.drop = [1]
network.duplicate = '1%'
network.reorder = '1%'
network.reorder_by = '1ms'
network.corrupt = '1%'
network.queue = '10p'
network.discipline = 'droptail'
network.discipline.red.min = '5p'
network.discipline.red.max = '15p'
network.discipline.red.weight = 0.1
network.discipline.red.drop = '10%'
network.discipline.red.gentle = true
network.discipline.red.packet = '500B'
network.mtu = '1500B'
network.overhead = '14B'
network.up.delay = '10ms'
network.down.loss = '1%'
network.events = [{ at = '1s', down = true }]
network.paths = [{ delay = '10ms' }]
network.nodes = ['client', 'server']
network.links = [{ from = 'client', to = 'server' }]
network.lans = [{ nodes = ['client', 'server'] }]
hosts.server.filter = 'none'
workload.kind = 'echo'
workload.from = 'client'
workload.to = 'server'
workload.start = '0s'
workload.connect_timeout = '10s'
workload.listens = true
workload.rate = '1/s'
workload.interval = '1s'
workload.arrivals = 'poisson'
workload.sources = 2
workload.late_limit = '1s'
workload.size = '100B'
workload.mix = { enable = 1 }
workload.mix.enable = 1
workload.mix.lifetime = 1
background = [{ count = 1 }]
sweep = { seed = [1] }
sweep.seed = [1]
zip = [{ seed = [1] }]
";

/// Keys of the tables in lists.
const INSIDE: [(&str, &[&str]); 6] = [
    (
        "background",
        &["transport", "workload", "messages", "count", "spread", "workload.kind", "workload.size"],
    ),
    ("network.events", &["at", "direction", "path", "link", "down", "rate", "loss", "delay"]),
    ("network.paths", &["delay", "up", "down.loss"]),
    ("network.links", &["from", "to", "name", "addresses", "rate", "up"]),
    ("network.lans", &["nodes", "name", "addresses", "queue"]),
    ("transports", &["spec", "label", "sources"]),
];

const VALUES: [&str; 28] = [
    "true",
    "0",
    "1",
    "-1",
    "10",
    "1000000",
    "70000",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "1.5",
    "-0.0",
    "inf",
    "nan",
    "''",
    "'x'",
    "'0B'",
    "'1000000d'",
    "'99999999999/s'",
    "'red'",
    "'100mbps'",
    "[]",
    "[1]",
    "[['a']]",
    "{}",
    "{ x = 1 }",
    "1979-05-27",
];

/// Words of the program's source, and of the library that reads files.
const INTERNAL: [&str; 25] = [
    "struct",
    "variant",
    "tuple",
    "Spanned",
    "untagged",
    "newtype",
    "enum ",
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i64",
    "i128",
    "f64",
    "a map",
    "sequence",
    "invalid type",
    "invalid value",
    "invalid length",
    "expected",
    "Option",
    "serde",
    "wanted",
    "$__",
];

/// The problem with an experiment in which `key` is `value`, if there is one.
fn problem(key: &str, value: &str) -> Option<String> {
    let mut source = Source::new("a.toml", "");
    source.set("default", "transports", "['tcp']").expect("a good key");
    if let Err(problem) = source.set(&format!("--set {key}"), key, value) {
        return Some(problem.to_string());
    }
    Experiment::parse("a", &source).err().map(|problem| problem.to_string())
}

#[test]
fn no_word_of_the_program_reaches_its_user() {
    let keys = KEYS.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    let mut wrong = std::collections::BTreeSet::new();
    let mut check = |key: &str, value: &str| {
        if let Some(problem) = problem(key, value) {
            let (_, said) = problem.split_once(": ").expect("a place and a problem");
            if INTERNAL.iter().any(|word| said.contains(word)) {
                wrong.insert(format!("{key} = {value}: {said}"));
            }
        }
    };
    for value in VALUES {
        for key in keys.clone() {
            check(key, value);
        }
        for (list, inner) in INSIDE {
            for key in inner {
                check(list, &format!("[{{ {key} = {value} }}]"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are not in the user's words:\n{}",
        wrong.len(),
        Vec::from_iter(wrong).join("\n")
    );
}

#[test]
fn values_that_are_listed_are_taken() {
    for line in KEYS.lines().filter(|line| !line.is_empty()) {
        let (key, value) = line.split_once(" = ").expect("a key with a value");
        if let Some(problem) = problem(key, value) {
            assert!(!problem.contains("unknown"), "{line}: {problem}");
        }
    }
}

#[test]
fn a_problem_is_placed_at_the_key_that_it_names() {
    let text = "transports = ['tcp']\n[workload]\nkind = 'echo'\nsize = '0B'\n[network]\njitter = '1s'\n";
    let place = |text: &str| Experiment::parse("a", &Source::new("a.toml", text)).unwrap_err().place;
    assert_eq!(place(text), "a.toml:6:10");
    assert_eq!(place(&text.replace("1s", "1ms")), "a.toml:4:8");
}
