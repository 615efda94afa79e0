//! The flags of `hol compare`, and the keys of experiment files that they set.

/// Each flag with the key that it sets, in the order of the help text.
pub const FLAGS: [(&str, &str); 18] = [
    ("--workload", "workload.kind"),
    ("--rate", "workload.rate"),
    ("--arrivals", "workload.arrivals"),
    ("--request", "workload.request"),
    ("--reply", "workload.reply"),
    ("--size", "workload.size"),
    ("--mix", "workload.mix"),
    ("--path", "network.path"),
    ("--delay", "network.delay"),
    ("--rtt", "network.rtt"),
    ("--loss", "network.loss"),
    ("--bandwidth", "network.rate"),
    ("--queue", "network.queue"),
    ("--count", "messages"),
    ("--repetitions", "repetitions"),
    ("--seed", "seed"),
    ("--world", "world"),
    ("--filter", "hosts.server.filter"),
];
