//! The terms of reports and help texts: `hol help p99`, and docs/guide/glossary.md.

/// All terms of the glossary, each with other names under which it is found, and its meaning.
const TERMS: [(&str, &[&str], &str); 37] = [
    (
        "axis",
        &["axes"],
        "a key with several values; each transport under each combination of the values of all axes is a point",
    ),
    (
        "carries the load",
        &["load", "overload"],
        "said of a transport that delivers messages as fast as they become due; otherwise messages pile up, and longer runs have a longer mean response time",
    ),
    (
        "CI",
        &["confidence", "interval"],
        "confidence interval: on average, 19 of 20 intervals (95 %) contain the true value",
    ),
    (
        "claim",
        &["claims", "verdict", "verdicts"],
        "a statement of a paper that a study tests; its verdict says whether it holds here",
    ),
    (
        "collapsed",
        &["collapse"],
        "said of a run that did not carry its load: it ended early, fell more than a second behind its schedule, or its backlog kept growing. On a path that changes, a growing backlog does not count, and falling behind counts only if the load exceeds the mean rate of the path",
    ),
    ("cwnd", &["window"], "congestion window: how much a sender may have in flight (RFC 5681 section 2)"),
    (
        "discipline",
        &["qdisc", "aqm"],
        "how a queue chooses the packets to send, to drop or to mark: droptail, RED, CoDel, FQ-CoDel, PIE, DualPI2",
    ),
    ("engine", &[], "what a kernel runs on: QEMU or User-Mode Linux"),
    ("experiment", &[], "one file: network, transports, workload and axes"),
    (
        "failed",
        &[],
        "said of messages that never arrived or got no reply. The mean does not include them; a quantile that falls on one of them is shown as \"-\"",
    ),
    ("fairness", &["jain"], "Jain's index of the throughputs of flows: 1 if all are equal"),
    (
        "goodput",
        &[],
        "throughput without headers and retransmissions: octets that the receiving application gets per second",
    ),
    (
        "head-of-line wait",
        &["hol", "blocking"],
        "time for which a complete message waits at the receiver for data that were sent before it",
    ),
    ("jitter", &[], "variation of the one-way delay (RFC 3393)"),
    (
        "late",
        &[],
        "said of a message that a disruption of the path delayed: it never arrived, or it took longer than 99 % of the messages before. The second case needs one more sign of the disruption: the message was already that old when a long time without deliveries ended, or it took more than twice as long as the fastest message afterwards",
    ),
    (
        "loss recovery",
        &["recovery"],
        "time from the first transmission of a message's last octet to the transmission (or retransmission) that completed the message at the receiver",
    ),
    (
        "message",
        &["request", "reply", "object", "page", "frame"],
        "what the application sends at once: a request, a reply, an object of a page, a frame",
    ),
    (
        "one-way delay",
        &["owd"],
        "time that a packet takes from one end to the other (RFC 7679); `--delay` sets its propagation part",
    ),
    ("outage", &["failover"], "longest time without a delivery around a disruption of the path"),
    (
        "p99",
        &["p50", "p90", "p999", "percentile", "quantile", "tail"],
        "99th percentile: 99 % of the messages of all runs take at most this long",
    ),
    (
        "paired",
        &["pairs"],
        "compared run by run: in the same repetition all transports meet the same random losses, so their difference varies less than each result",
    ),
    ("path", &["link"], "the link or links that packets cross between client and server"),
    ("point", &[], "one transport under one combination of the values of the axes"),
    ("record", &["records"], "what happened to one message: when it was due, sent, received and delivered"),
    (
        "response time",
        &["latency"],
        "time from when a message is due until its reply has arrived or, without replies, until it has been delivered",
    ),
    (
        "RTO",
        &["timeout", "timeouts"],
        "retransmission timeout: the wait for an acknowledgment before data are sent again (RFC 6298, RFC 9260 section 6.3)",
    ),
    (
        "RTT",
        &[],
        "round-trip time, from sending a packet until its acknowledgment arrives; `--rtt` sets the propagation part of the RTT",
    ),
    ("run, repetition", &["repetitions"], "one execution of a point with its own seed"),
    (
        "seed",
        &[],
        "the number from which all random numbers derive: the same seed gives the same run, except in the live world",
    ),
    (
        "ssthresh",
        &[],
        "slow-start threshold: above it the congestion window grows slowly (RFC 5681 section 3.1)",
    ),
    (
        "stack",
        &["stacks"],
        "a named set of defaults of the endpoints, such as linux-6.12; `hol list stacks` shows all",
    ),
    (
        "steady",
        &["steady-state", "unsteady"],
        "said of a point whose mean does not depend on the length of the runs, as far as the results show",
    ),
    (
        "stream",
        &["streams"],
        "an ordered sequence of messages; a loss delays only messages of its own stream",
    ),
    ("TSN", &["chunk"], "transmission sequence number of a data chunk of SCTP (RFC 9260 section 3.3.1)"),
    ("unconnected", &[], "number of runs in which the workload did not connect in time"),
    (
        "workload",
        &["workloads"],
        "what generates the messages: rpc, page, bulk, media and others; `hol list workloads` shows all",
    ),
    (
        "world",
        &["worlds"],
        "where a run takes place: model (simulated), kernel (Linux in virtual time), live (real networks)",
    ),
];

/// Returns the glossary entry of the term that `word` names.
pub fn explain(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    let is_named = |term: &str| term.to_lowercase().split(", ").any(|name| name == word);
    let (term, _, meaning) =
        TERMS.iter().find(|(term, others, _)| is_named(term) || others.contains(&word.as_str()))?;
    Some(format!("{term}: {meaning}.\n"))
}

/// Returns all glossary entries as Markdown.
pub fn all() -> String {
    TERMS.iter().map(|(term, _, meaning)| format!("- **{term}**: {meaning}.\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn terms_are_sorted_and_each_name_means_one_of_them() {
        let sorted = |pair: &[(&str, &[&str], &str)]| pair[0].0.to_lowercase() < pair[1].0.to_lowercase();
        assert!(TERMS.windows(2).all(sorted));
        let names: Vec<&str> = TERMS
            .iter()
            .flat_map(|(term, others, _)| term.split(", ").chain(others.iter().copied()))
            .collect();
        let different: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        assert!(names.iter().all(|name| explain(name).is_some()));
        assert_eq!(different.len(), names.len(), "{names:?}");
    }
}
