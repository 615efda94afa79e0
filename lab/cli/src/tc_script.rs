//! `hol topology --tc`: a network as lines of `tc`, for a router of one's own.

use std::fmt::Write;

use hol_base::{Duration, QueueLimit, Ratio};
use hol_network::{
    CodelSpec, Discipline, Distribution, DualPi2Spec, FairSpec, LinkId, LossSpec, Medium, PieSpec,
    PoliceSpec, Segment, Settings, Topology,
};

/// Packets for which netem has room where no queue is meant: all that are under way.
const UNDER_WAY: u32 = 10_000_000;
/// Octets that the kernel counts of a packet beyond IP: Ethernet's header.
const ETHERNET: i64 = 14;
/// Least octets of tbf's bucket: a full packet of Ethernet.
const LEAST_BURST: u64 = 1600;

/// Returns a shell script that makes interfaces have the links of `network`; an error names the key that `tc` cannot express. `file` is where
/// it comes from.
pub fn script(network: &Topology, file: &str) -> Result<String, String> {
    if !network.changes().is_empty() {
        return Err("a path that changes during a run (events, a trace, bursts of time, a handover) is no setting of tc; remove what changes".to_owned());
    }
    let mut head = format!(
        "#!/bin/sh\n# The network of {file}, by `hol topology --tc`. Run it on a router between the nodes: on an end host, TCP takes note of its own queues.\n\
         # Each variable names the interface by which the packets of a direction leave. `tc qdisc del dev INTERFACE root` undoes it.\nset -eu\n"
    );
    let mut lines = String::new();
    let many = network.segments().len() > 1;
    for segment in network.segments() {
        let Medium::Link { up, down } = segment.medium else {
            return Err(format!(
                "the stations of the LAN {} share one transmitter, which tc does not have; use links",
                segment.label
            ));
        };
        let [from, to] = ends(network, segment);
        for (word, link, from, to) in [("UP", up, &from, &to), ("DOWN", down, &to, &from)] {
            let variable =
                if many { format!("{}_{word}", variable(&segment.label)) } else { word.to_owned() };
            let _ = writeln!(head, ": \"${{{variable}:?set it to the interface to {to}}}\"");
            let _ = writeln!(lines, "\n# {}, from {from} to {to}", segment.label);
            let chain = chain(settings(network, link)).map_err(|why| format!("{}: {why}", segment.label))?;
            for (place, discipline) in chain.iter().enumerate() {
                let parent = if place == 0 { "root".to_owned() } else { format!("parent {place}:1") };
                let verb = if place == 0 { "replace" } else { "add" };
                let _ = writeln!(
                    lines,
                    "tc qdisc {verb} dev \"${variable}\" {parent} handle {}: {discipline}",
                    place + 1
                );
            }
        }
    }
    Ok(head + &lines)
}

fn settings(network: &Topology, link: LinkId) -> &Settings {
    &network.links()[usize::from(link.0)].settings
}

/// Returns the names of the two nodes of a link.
fn ends(network: &Topology, segment: &Segment) -> [String; 2] {
    [0, 1].map(|place| {
        let interface = network.interfaces()[usize::from(segment.interfaces[place].0)];
        network.node_names()[usize::from(interface.node.0)].clone()
    })
}

fn variable(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = label.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("LINK_{name}") } else { name }
}

/// Returns the nested disciplines of a direction: delay, rate with its queue, loss, reordering. A packet passes them in this order, as it
/// does in the model, unless the queue is one that nothing can be nested in (tbf's, CoDel's): then it is lost and reordered before.
fn chain(settings: &Settings) -> Result<Vec<String>, String> {
    refuse(settings)?;
    let Settings { delay, jitter, loss, corrupt, reorder, reorder_by, .. } = settings;
    let mut chain = Vec::new();
    if !delay.is_zero() || !jitter.is_zero() {
        chain.push(format!("netem {}limit {UNDER_WAY}", delayed(*delay, settings)));
    }
    let transmitter = transmitter(settings)?;
    let holds_its_queue = transmitter.iter().any(|discipline| !discipline.starts_with("netem"));
    if !holds_its_queue {
        chain.extend(transmitter.iter().cloned());
    }
    let lost = lost(loss)?;
    if !lost.is_empty() || !corrupt.is_zero() {
        let corrupted =
            if corrupt.is_zero() { String::new() } else { format!("corrupt {} ", percent(*corrupt)) };
        chain.push(format!("netem {lost}{corrupted}limit {UNDER_WAY}"));
    }
    if !reorder.is_zero() {
        // netem names those that are not delayed.
        let others = Ratio::new(1.0 - reorder.value()).unwrap_or_default();
        chain.push(format!(
            "netem delay {} reorder {} limit {UNDER_WAY}",
            time(*reorder_by),
            percent(others)
        ));
    }
    if holds_its_queue {
        chain.extend(transmitter);
    }
    Ok(chain)
}

/// Names what a chain of disciplines does not express.
fn refuse(settings: &Settings) -> Result<(), String> {
    let Settings { jitter_correlation, jitter_distribution, channel, police, duplicate, discipline, .. } =
        settings;
    let cure = "remove it, or let hol run the path";
    let key = if !jitter_correlation.is_zero() {
        "jitter_correlation (netem's own loses the variation)"
    } else if matches!(jitter_distribution, Distribution::File(_) | Distribution::Table(_)) {
        "jitter_distribution of one's own (tc reads it from /usr/lib/tc)"
    } else if *channel != Settings::OWN_CHANNEL {
        "a shared channel"
    } else if *police != PoliceSpec::default() {
        "police behind the queue"
    } else if !duplicate.is_zero() {
        "duplicate (netem sends the second packet through the whole chain)"
    } else if matches!(discipline, Discipline::Red(_)) {
        "red, whose weight tc derives from a burst"
    } else {
        return Ok(());
    };
    Err(format!("tc has no {key}; {cure}"))
}

/// The delay of netem, with its deviation. A rate keeps packets in order that are not equally late.
fn delayed(delay: Duration, settings: &Settings) -> String {
    let Settings { jitter, jitter_distribution, .. } = settings;
    if jitter.is_zero() {
        return format!("delay {} ", time(delay));
    }
    let distribution = match jitter_distribution {
        Distribution::Normal => "distribution normal ",
        Distribution::Pareto => "distribution pareto ",
        Distribution::ParetoNormal => "distribution paretonormal ",
        Distribution::Uniform | Distribution::File(_) | Distribution::Table(_) => "",
    };
    format!("delay {} {} {distribution}rate 10tbit ", time(delay), time(*jitter))
}

/// The rate and the queue before it.
fn transmitter(settings: &Settings) -> Result<Vec<String>, String> {
    let Settings { rate, queue, overhead, discipline, .. } = settings;
    let beyond = overhead.0 as i64 - ETHERNET;
    let bits = rate.bits_per_second();
    if let (Discipline::DropTail, QueueLimit::Packets(packets)) = (discipline, queue) {
        let overhead = if beyond == 0 { String::new() } else { format!(" {beyond}") };
        return Ok(vec![format!("netem rate {bits}bit{overhead} limit {packets}")]);
    }
    if beyond != 0 {
        return Err(format!(
            "tbf counts {ETHERNET} octets beyond IP; set overhead = \"{ETHERNET}B\", or give the queue in packets"
        ));
    }
    // What passes in a millisecond may pass at once; a smaller bucket needs a finer clock than most machines have.
    let burst = LEAST_BURST.max(bits / 8 / 1000);
    let shaper = |limit: u64| format!("tbf rate {bits}bit burst {burst}b limit {limit}b");
    let waiting = match (discipline, queue) {
        (Discipline::DropTail, QueueLimit::Bytes(octets)) => return Ok(vec![shaper(*octets)]),
        (_, QueueLimit::Bytes(_)) => {
            return Err(
                "CoDel, PIE and DualPI2 count packets; give the queue in packets, as in queue = \"1000p\""
                    .to_owned(),
            );
        }
        (discipline, QueueLimit::Packets(packets)) => managed(discipline, *packets),
    };
    // Its limit is of no effect with a discipline inside. tc-tbf(8)
    Ok(vec![shaper(burst.max(1 << 20)), waiting])
}

fn managed(discipline: &Discipline, packets: u64) -> String {
    let ecn = |ecn: bool| if ecn { " ecn" } else { " noecn" };
    let marked =
        |from: Option<Duration>| from.map_or(String::new(), |from| format!(" ce_threshold {}", time(from)));
    match discipline {
        Discipline::Codel(CodelSpec { target, interval, ecn: marks, ce_threshold }) => {
            let (target, interval, from) = (time(*target), time(*interval), marked(*ce_threshold));
            format!("codel limit {packets} target {target} interval {interval}{}{from}", ecn(*marks))
        }
        Discipline::FairCodel(FairSpec { target, interval, quantum, ecn: marks, ce_threshold, flows }) => {
            let (target, interval, from) = (time(*target), time(*interval), marked(*ce_threshold));
            format!(
                "fq_codel limit {packets} flows {flows} quantum {} target {target} interval {interval}{}{from}",
                quantum.0,
                ecn(*marks)
            )
        }
        Discipline::Pie(PieSpec { target, update, alpha, beta, ecn: marks }) => {
            let (target, update) = (time(*target), time(*update));
            format!(
                "pie limit {packets} target {target} tupdate {update} alpha {alpha} beta {beta}{}",
                ecn(*marks)
            )
        }
        Discipline::DualPi2(DualPi2Spec {
            target,
            update,
            alpha,
            beta,
            step,
            coupling,
            classic_protection,
        }) => {
            let (target, update, step) = (time(*target), time(*update), time(*step));
            format!(
                "dualpi2 limit {packets} target {target} tupdate {update} alpha {alpha} beta {beta} step_thresh {step} \
                 coupling_factor {coupling} classic_protection {classic_protection}%"
            )
        }
        Discipline::DropTail | Discipline::Red(_) => {
            unreachable!("drop tail has no discipline, and RED is refused")
        }
    }
}

fn lost(loss: &LossSpec) -> Result<String, String> {
    match loss {
        LossSpec::Independent(share) if share.is_zero() => Ok(String::new()),
        LossSpec::Independent(share) => Ok(format!("loss {} ", percent(*share))),
        LossSpec::Bursts(bursts) => {
            let [begins, ends, bad, good] =
                [bursts.good_to_bad, bursts.bad_to_good, bursts.loss_bad, bursts.loss_good].map(percent);
            Ok(format!("loss gemodel {begins} {ends} {bad} {good} "))
        }
        LossSpec::TimedBursts(_) | LossSpec::Packets(_) => {
            Err("netem loses by chance and by packet; a loss by number or by time is none of its settings"
                .to_owned())
        }
    }
}

/// tc(8), UNITS: microseconds have a fraction only in newer versions.
fn time(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos.is_multiple_of(1000) { format!("{}us", nanos / 1000) } else { format!("{nanos}ns") }
}

fn percent(share: Ratio) -> String {
    format!("{}%", 100.0 * share.value())
}

#[cfg(test)]
mod tests {
    use hol_network::NetworkSpec;

    use super::*;
    use crate::tc;

    fn network(text: &str) -> Topology {
        Topology::new(&toml::from_str::<NetworkSpec>(text).unwrap()).unwrap()
    }

    fn lines(text: &str) -> Vec<String> {
        let script = script(&network(text), "a.toml").unwrap();
        script.lines().filter(|line| line.starts_with("tc ")).map(str::to_owned).collect()
    }

    #[test]
    fn a_direction_is_a_chain_of_disciplines() {
        let text = "rate = '10Mbit'\ndelay = '40ms'\nqueue = '50p'\nloss = '1%'\noverhead = '14B'\n[down]\nloss = '0%'\n";
        assert_eq!(
            lines(text),
            [
                "tc qdisc replace dev \"$UP\" root handle 1: netem delay 40000us limit 10000000",
                "tc qdisc add dev \"$UP\" parent 1:1 handle 2: netem rate 10000000bit limit 50",
                "tc qdisc add dev \"$UP\" parent 2:1 handle 3: netem loss 1% limit 10000000",
                "tc qdisc replace dev \"$DOWN\" root handle 1: netem delay 40000us limit 10000000",
                "tc qdisc add dev \"$DOWN\" parent 1:1 handle 2: netem rate 10000000bit limit 50",
            ]
        );
    }

    /// What `hol path tc` reads of these lines is the network that they were made of.
    #[test]
    fn lines_lead_back_to_the_network() {
        for text in [
            "rate = '10Mbit'\ndelay = '40ms'\nqueue = '50p'\nloss = '1%'\noverhead = '14B'",
            "rate = '5Mbit'\ndelay = '0s'\nqueue = '20p'\noverhead = '14B'\ncorrupt = '0.1%'",
            "rate = '2Mbit'\ndelay = '7ms'\nqueue = '30kB'\noverhead = '14B'",
            "rate = '1Gbit'\ndelay = '1ms'\nqueue = '100p'\noverhead = '14B'\nloss = { good_to_bad = '1%', bad_to_good = '10%', loss_bad = '50%' }",
        ] {
            let read: Vec<_> = lines(text).iter().map(|line| tc::read(line).unwrap()).collect();
            let (up, down) = read.split_at(read.len() / 2);
            let again = tc::network(up, down)
                .unwrap()
                .replace("[network]", "overhead = '14B'")
                .replace("[network.", "[");
            let again: NetworkSpec = toml::from_str(&again).unwrap();
            let (own, again) = (network(text), Topology::new(&again).unwrap());
            for (own, again) in own.links().iter().zip(again.links()) {
                assert_eq!(own.settings, again.settings, "{text}");
            }
        }
    }

    #[test]
    fn what_tc_cannot_express_is_named() {
        for (text, key) in [
            ("duplicate = '1%'", "duplicate"),
            ("events = [{ at = '1s', rate = '1Mbit' }]", "events"),
            ("loss = { drop = [3] }", "by number"),
            ("queue = '50kB'\noverhead = '0B'", "overhead"),
            ("queue = '50kB'\ndiscipline = 'codel'\noverhead = '14B'", "packets"),
            ("discipline = { red = { min = '7500B', max = '15000B' } }", "red"),
        ] {
            let problem = script(&network(text), "a.toml").unwrap_err();
            assert!(problem.contains(key), "{text}: {problem}");
        }
    }
}
