//! Keys and values of experiments, for random files.

/// Every key of an experiment with values that it accepts; one line per key.
pub const KEYS: &str = "
title = 'a'
seed = 1
messages = 100
repetitions = '2..4'
precision = '5%'
records = 'none'
world = 'model'
transports = ['tcp']
transports = [{ spec = 'tcp', label = 'a', workload = { sources = 2 } }]
topology = 'none.ns'
network.rate = '1Mbit'
network.delay = '10ms'
network.jitter = '1ms'
network.jitter_distribution = 'normal'
network.jitter_distribution.file = 'none.dist'
network.jitter_distribution.table = [-8192, 8192]
network.jitter_correlation = '50%'
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
network.police = 'none'
network.police.rate = '1Mbit'
network.police.burst = '10kB'
network.channel = 'air'
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
network.trace_start = 'random'
network.handover = { speed = 12.5, overlap = 5, at = '1s' }
network.handover.speed = 10
network.handover.overlap = 5
network.handover.at = '1s'
network.handover.attach = '1s'
network.handover.changes = 'route'
network.paths = [{ delay = '10ms' }]
network.nodes = ['client', 'server']
network.links = [{ from = 'client', to = 'server' }]
network.lans = [{ nodes = ['client', 'server'] }]
hosts.server.filter = 'none'
hosts.server.service = '1ms'
workload.kind = 'echo'
workload.from = 'client'
workload.to = 'server'
workload.start = '0s'
workload.spread = '0s'
workload.connect_timeout = '10s'
workload.listens = true
workload.rate = '1/s'
workload.interval = '1s'
workload.arrivals = 'poisson'
workload.sources = 2
workload.late_limit = '1s'
workload.size = '100B'
workload.mix = { enable = 1 }
workload.size = { median = '10kB', sigma = 1.5 }
workload.way = 'close'
workload.document = '10kB'
workload.objects = 3
workload.waves = 2
workload.request = '100B'
workload.head = '100B'
workload.think = '1ms'
workload.pause = '1s'
workload.early = true
workload.pair = true
workload.files = 2
workload.block = '1kB'
workload.operations = ['put']
workload.reopen = true
workload.exchanges = ['1ms 100B 100B']
workload.mix.enable = 1
workload.mix.lifetime = 1
background = [{ count = 1 }]
onward = [{ workload = { kind = 'echo' } }]
sweep = { seed = [1] }
sweep.seed = [1]
zip = [{ seed = [1] }]
";

/// Keys of the tables in lists.
pub const KEYS_OF_LISTS: [(&str, &[&str]); 7] = [
    (
        "background",
        &["transport", "workload", "messages", "count", "spread", "workload.kind", "workload.size"],
    ),
    ("onward", &["transport", "workload", "workload.kind", "workload.from", "workload.to"]),
    ("network.events", &["at", "direction", "path", "link", "down", "rate", "loss", "delay"]),
    ("network.paths", &["delay", "up", "down.loss"]),
    ("network.links", &["from", "to", "name", "addresses", "rate", "up"]),
    ("network.lans", &["nodes", "name", "addresses", "queue"]),
    ("transports", &["spec", "label", "sources"]),
];

pub const VALUES: [&str; 28] = [
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

/// Words of the program's source, and of the library that parses files, which users do not know.
pub const INTERNAL: [&str; 25] = [
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
