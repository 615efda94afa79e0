//! The flags of a question, and the keys of an experiment that they stand for.

/// A flag of `hol compare` and the key that it sets, in the order in which people ask.
pub const FLAGS: [(&str, &str); 14] = [
    ("--workload", "workload.kind"),
    ("--rate", "workload.rate"),
    ("--arrivals", "workload.arrivals"),
    ("--size", "workload.size"),
    ("--mix", "workload.mix"),
    ("--delay", "network.delay"),
    ("--loss", "network.loss"),
    ("--bandwidth", "network.rate"),
    ("--queue", "network.queue"),
    ("--count", "messages"),
    ("--repetitions", "repetitions"),
    ("--seed", "seed"),
    ("--world", "world"),
    ("--filter", "hosts.server.filter"),
];
