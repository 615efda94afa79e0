//! `hol topology --tc`: a network as lines of `tc`, for your own router.

use std::fmt::Write;

use hol_base::{Duration, QueueLimit, Ratio};
use hol_network::{
    CodelSpec, Discipline, Distribution, DualPi2Spec, FairSpec, LossSpec, Medium, PieSpec, PoliceSpec,
    Segment, Settings, Topology,
};
use hol_traffic::{Emulator, Loss, ShapedLink, Stage};

use super::ORDER_ONLY_RATE;

/// Number of octets by which the length of a packet in the kernel exceeds the IP packet: the Ethernet header.
const ETHERNET_HEADER: u64 = 14;
/// Size of tbf's bucket in addition to the MTU, in octets.
const BUCKET_HEADROOM: u64 = 100;
/// The default MTU of an interface.
const DEFAULT_MTU: u64 = 1500;

/// Returns a shell script that applies the links of `network` to interfaces. `file` is the name of the file that
/// contains the network. An error names the key that `tc` cannot express.
pub fn script(network: &Topology, file: &str) -> Result<String, String> {
    if !network.link_changes().is_empty() {
        return Err("tc cannot express a path that changes during a run (events, a trace, loss bursts with durations, a handover); remove these keys".to_owned());
    }
    let links =
        ShapedLink::from_topology_with_correlation(network).map_err(|unsupported| unsupported.to_string())?;
    let mut head = format!(
        "#!/bin/sh\n# The network of {}, by `hol topology --tc`. Run it on a router between the nodes, because the TCP of an end host \
        limits the packets in its own queues.\n\
         # Each variable names the interface by which the packets of a direction leave. `tc qdisc del dev INTERFACE root` undoes it.\nset -eu\n",
        sanitize(file)
    );
    let mut lines = String::new();
    let many = network.segments().len() > 1;
    for (number, segment) in (1..).zip(network.segments()) {
        let Medium::Link { up, down } = segment.medium else {
            let label = &segment.label;
            return Err(format!(
                "the stations of the LAN {label} share one transmitter, which tc cannot emulate; use links"
            ));
        };
        let [from, to] = ends(network, segment);
        for (word, link, from, to) in [("UP", up, &from, &to), ("DOWN", down, &to, &from)] {
            let variable = if many { format!("LINK{number}_{word}") } else { word.to_owned() };
            let _ = writeln!(head, ": \"${{{variable}:?set it to the interface from {from} to {to}}}\"");
            let _ = writeln!(lines, "\n# link {}, from {from} to {to}", sanitize(&segment.label));
            let chain =
                chain(&links[usize::from(link.0)]).map_err(|why| format!("{}: {why}", segment.label))?;
            let loses =
                |discipline: &String| discipline.contains(" loss ") || discipline.contains(" corrupt ");
            if chain.iter().any(loses) && !chain.last().is_some_and(|last| last.starts_with("netem")) {
                lines += "# Here packets are lost before the queue, because its discipline cannot contain netem.\n";
            }
            if !links[usize::from(link.0)].settings.jitter_correlation.is_zero() {
                lines += "# netem hardly correlates these delays: it takes its correlated number modulo twice the jitter.\n";
            }
            // Existing disciplines, such as those of an earlier run of this script, would keep their inner disciplines.
            let _ = writeln!(lines, "tc qdisc del dev \"${variable}\" root 2>/dev/null || :");
            for (place, discipline) in chain.iter().enumerate() {
                let parent = if place == 0 { "root".to_owned() } else { format!("parent {place}:1") };
                let _ = writeln!(
                    lines,
                    "tc qdisc add dev \"${variable}\" {parent} handle {}: {discipline}",
                    place + 1
                );
            }
        }
    }
    Ok(head + &lines)
}

/// Returns the names of the two nodes of a link.
fn ends(network: &Topology, segment: &Segment) -> [String; 2] {
    [0, 1].map(|place| {
        let interface = network.interfaces()[usize::from(segment.interfaces[place].0)];
        sanitize(&network.node_names()[usize::from(interface.node.0)])
    })
}

/// Returns a name in which characters that would end a comment or that are special in a shell are replaced.
fn sanitize(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.:/ ".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Returns the nested disciplines of a direction, in the order in which a packet passes them. They are the same as
/// in the kernel world, except that tbf replaces the kernel world's own shaper.
fn chain(link: &ShapedLink) -> Result<Vec<String>, String> {
    let settings = &link.settings;
    check_expressible(settings)?;
    let shaper = shaper(settings)?;
    let mut chain = Vec::new();
    for stage in link.stages(settings) {
        let Stage::Emulator(emulator) = stage else { continue };
        let is_transmitter = emulator.rate > 0 && emulator.delay.is_zero() && emulator.jitter.is_zero();
        if shaper.is_empty() || !is_transmitter {
            chain.extend(netem(&emulator, settings));
        }
    }
    // Nothing can be nested in tbf's queue, or in CoDel.
    chain.extend(shaper);
    Ok(chain)
}

/// Returns an error if the disciplines cannot express a setting; the error names the setting.
fn check_expressible(settings: &Settings) -> Result<(), String> {
    let Settings { jitter_distribution, police, duplicate, discipline, loss, mtu, reorder, .. } = settings;
    let holds_its_queue =
        *discipline != Discipline::DropTail || matches!(settings.queue, QueueLimit::Bytes(_));
    let (key, why) = if matches!(jitter_distribution, Distribution::File(_) | Distribution::Table(_)) {
        ("jitter_distribution", "tc reads distributions only from its own directory, /usr/lib/tc")
    } else if *police != PoliceSpec::default() {
        ("police", "tc polices packets before they enter the queue, hol after they leave it")
    } else if !duplicate.is_zero() {
        ("duplicate", "netem passes the duplicate through all disciplines again")
    } else if matches!(discipline, Discipline::Red(_)) {
        ("discipline = red", "tc computes RED's weight from `burst`, and cannot set it")
    } else if matches!(loss, LossSpec::Packets(_)) {
        ("loss = { drop = … }", "netem drops packets at random, not by number")
    } else if mtu.0 != DEFAULT_MTU {
        ("mtu", "tc cannot set the MTU of an interface, but `ip link set dev INTERFACE mtu` can")
    } else if holds_its_queue && !reorder.is_zero() {
        (
            "reorder",
            "a packet that netem reorders bypasses the disciplines inside netem, and the queue would be one of them",
        )
    } else {
        return Ok(());
    };
    Err(format!("`{key}`: {why}; remove the key, or use a world of hol"))
}

/// Returns the arguments of netem; `None` if netem would have no effect.
fn netem(emulator: &Emulator, settings: &Settings) -> Option<String> {
    let Emulator { delay, jitter, rate, overhead, limit, loss, overtaking, corrupt, .. } = emulator;
    let mut words = String::new();
    if !delay.is_zero() || !jitter.is_zero() {
        let _ = write!(words, "delay {} ", format_time(*delay));
    }
    if !jitter.is_zero() {
        let _ = write!(words, "{} ", format_time(*jitter));
        if !settings.jitter_correlation.is_zero() {
            let _ = write!(words, "{} ", percent(settings.jitter_correlation));
        }
        match settings.jitter_distribution {
            Distribution::Normal => words += "distribution normal ",
            Distribution::Pareto => words += "distribution pareto ",
            Distribution::ParetoNormal => words += "distribution paretonormal ",
            Distribution::Uniform | Distribution::File(_) | Distribution::Table(_) => {}
        }
    }
    if let Some(others) = overtaking {
        let _ = write!(words, "reorder {} ", percent(*others));
    }
    match loss {
        Loss::Independent(share) if share.is_zero() => {}
        Loss::Independent(share) => words += &format!("loss {} ", percent(*share)),
        Loss::Bursts([begins, ends, good, bad]) => {
            let [begins, ends, bad, good] = [begins, ends, bad, good].map(|share| percent(*share));
            let _ = write!(words, "loss gemodel {begins} {ends} {bad} {good} ");
        }
    }
    if !corrupt.is_zero() {
        let _ = write!(words, "corrupt {} ", percent(*corrupt));
    }
    if *rate > 0 {
        let overhead = if *overhead == 0 { String::new() } else { format!(" {overhead}") };
        let _ = write!(words, "rate {}bit{overhead} ", (8 * rate).min(ORDER_ONLY_RATE));
    }
    (!words.is_empty()).then(|| format!("netem {words}limit {limit}"))
}

/// Returns tbf with the queue inside it; empty if netem applies the rate and the queue is counted in packets.
fn shaper(settings: &Settings) -> Result<Vec<String>, String> {
    let Settings { rate, queue, overhead, discipline, mtu, .. } = settings;
    let (octets, waiting) = match (discipline, queue) {
        (Discipline::DropTail, QueueLimit::Packets(_)) => return Ok(Vec::new()),
        (Discipline::DropTail, QueueLimit::Bytes(octets)) => (*octets, None),
        (_, QueueLimit::Bytes(_)) => {
            return Err(
                "CoDel, PIE and DualPI2 count packets; give the queue in packets, as in queue = \"1000p\""
                    .to_owned(),
            );
        }
        // tbf's own limit has no effect with a discipline inside. tc-tbf(8)
        (discipline, QueueLimit::Packets(packets)) => {
            (1 << 20, Some(discipline_arguments(discipline, *packets)))
        }
    };
    if overhead.0 != ETHERNET_HEADER {
        return Err(format!(
            "`overhead`: tbf counts {ETHERNET_HEADER} octets of link-layer header per packet; set overhead = \"{ETHERNET_HEADER}B\", or give the queue in packets, with drop tail"
        ));
    }
    let bits = rate.bits_per_second();
    // The bucket holds a millisecond's worth of octets; a smaller one needs a finer clock than most machines have.
    let burst = (mtu.0 + BUCKET_HEADROOM).max(bits / 8 / 1000);
    let tbf = format!("tbf rate {bits}bit burst {burst}b limit {}b", octets.max(burst));
    Ok([tbf].into_iter().chain(waiting).collect())
}

fn discipline_arguments(discipline: &Discipline, packets: u64) -> String {
    let ecn = |ecn: bool| if ecn { " ecn" } else { " noecn" };
    let marked = |from: Option<Duration>| {
        from.map_or(String::new(), |from| format!(" ce_threshold {}", format_time(from)))
    };
    match discipline {
        Discipline::Codel(CodelSpec { target, interval, ecn: marks, ce_threshold }) => {
            let (target, interval, from) =
                (format_time(*target), format_time(*interval), marked(*ce_threshold));
            format!("codel limit {packets} target {target} interval {interval}{}{from}", ecn(*marks))
        }
        Discipline::FairCodel(FairSpec { target, interval, quantum, ecn: marks, ce_threshold, flows }) => {
            let (target, interval, from) =
                (format_time(*target), format_time(*interval), marked(*ce_threshold));
            format!(
                "fq_codel limit {packets} flows {flows} quantum {} target {target} interval {interval}{}{from}",
                quantum.0,
                ecn(*marks)
            )
        }
        Discipline::Pie(PieSpec { target, update, alpha, beta, ecn: marks }) => {
            let (target, update) = (format_time(*target), format_time(*update));
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
            any_ect,
        }) => {
            let any_ect = if *any_ect { " any_ect" } else { "" };
            let (target, update, step) = (format_time(*target), format_time(*update), format_time(*step));
            format!(
                "dualpi2 limit {packets} target {target} tupdate {update} alpha {alpha} beta {beta} step_thresh {step} \
                 coupling_factor {coupling} classic_protection {classic_protection}%{any_ect}"
            )
        }
        Discipline::DropTail | Discipline::Red(_) => {
            unreachable!("drop tail has no discipline, and RED is refused")
        }
    }
}

/// Formats a time; only newer versions of tc accept fractions of microseconds. tc(8), UNITS.
fn format_time(duration: Duration) -> String {
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
        script.lines().filter(|line| line.starts_with("tc qdisc add ")).map(str::to_owned).collect()
    }

    #[test]
    fn a_direction_is_a_chain_of_disciplines() {
        let text = "rate = '10Mbit'\ndelay = '40ms'\nqueue = '50p'\nloss = '1%'\noverhead = '14B'\n[down]\nloss = '0%'\n";
        assert_eq!(
            lines(text),
            [
                "tc qdisc add dev \"$UP\" root handle 1: netem delay 40000us limit 1000000",
                "tc qdisc add dev \"$UP\" parent 1:1 handle 2: netem rate 10000000bit limit 50",
                "tc qdisc add dev \"$UP\" parent 2:1 handle 3: netem loss 1% limit 1000000",
                "tc qdisc add dev \"$DOWN\" root handle 1: netem delay 40000us limit 1000000",
                "tc qdisc add dev \"$DOWN\" parent 1:1 handle 2: netem rate 10000000bit limit 50",
            ]
        );
    }

    /// `hol path tc` derives the same network from the lines of the script.
    #[test]
    fn script_converts_back_to_the_same_network() {
        for text in [
            "rate = '10Mbit'\ndelay = '40ms'\nqueue = '50p'\nloss = '1%'\noverhead = '14B'",
            "rate = '5Mbit'\ndelay = '30ms'\njitter = '2ms'\njitter_distribution = 'normal'\nqueue = '20p'\noverhead = '14B'",
            "rate = '5Mbit'\ndelay = '30ms'\njitter = '2ms'\njitter_correlation = '25%'\nqueue = '20p'\noverhead = '14B'",
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

    /// The script runs as root, so no part of a name may be interpreted as a command.
    #[test]
    fn names_cannot_inject_shell_commands() {
        let text = "nodes = ['client', 'server', 'x}\"; touch /tmp/x; : \"']\n[[links]]\nfrom = 'client'\nto = 'server'\nname = 'a\\nreboot'\n\
            [[links]]\nfrom = 'server'\nto = 'x}\"; touch /tmp/x; : \"'\nname = '$(reboot)'\n";
        let script = script(&network(text), "a\nreboot\n.toml").unwrap();
        let is_known = |line: &str| {
            line.starts_with("# ") || line.starts_with("#!/bin/sh") || line.starts_with("tc qdisc ")
        };
        for line in script.lines().filter(|line| !line.is_empty() && *line != "set -eu" && !is_known(line)) {
            assert!(
                line.starts_with(": \"${LINK")
                    && line.ends_with("}\"")
                    && line.matches(['"', '$', '}', '`']).count() == 4,
                "{line}"
            );
        }
        assert!(!script.contains("$("), "{script}");
    }

    #[test]
    fn settings_that_tc_cannot_express_are_named() {
        for (text, key) in [
            ("duplicate = '1%'", "duplicate"),
            ("events = [{ at = '1s', rate = '1Mbit' }]", "events"),
            ("loss = { drop = [3] }", "by number"),
            ("mtu = '9000B'", "mtu"),
            ("reorder = '1%'\nreorder_by = '5ms'\ndiscipline = 'codel'\noverhead = '14B'", "reorder"),
            ("delay = '4s'\njitter = '3s'", "2 s"),
            ("queue = '50kB'\noverhead = '0B'", "overhead"),
            ("queue = '50kB'\ndiscipline = 'codel'\noverhead = '14B'", "packets"),
            ("discipline = { red = { min = '7500B', max = '15000B' } }", "red"),
        ] {
            let problem = script(&network(text), "a.toml").unwrap_err();
            assert!(problem.contains(key), "{text}: {problem}");
        }
    }
}
