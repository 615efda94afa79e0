//! Converts an ns script to an experiment: its network, its first flow as the measured one, and the others as background.
//!
//! Alternatively the lines of a script that begin with `#hol ` are an experiment file; other programs read them as comments.

use std::ffi::OsStr;
use std::path::Path;

use hol_base::Duration;
use hol_network::Topology;
use hol_testbed::{Flow, FlowLoad, Program, Script};

use crate::error::InputError;

/// The world in which an experiment runs if its script starts programs.
const PROGRAM_WORLD: &str = "kernel";

/// Size of the headers of a TCP segment, in octets.
const HEADER_OCTETS: u64 = 40;

/// Number of octets that may wait in the queues of a path and in the sender when a greedy flow stops.
const MAX_QUEUED_OCTETS: f64 = 1e6;

/// Maximum number of packets of a CBR source that are listed one by one in the experiment.
const MAX_LISTED: u64 = 20_000;

/// The prefix of the lines in a script that contain an experiment.
pub const LINE_PREFIX: &str = "#hol ";

/// Returns whether a file is a script of ns or Emulab, by the extension of its name or, if that is inconclusive,
/// by its text.
pub fn is_script(path: &Path, text: &str) -> bool {
    match path.extension().and_then(OsStr::to_str) {
        Some("toml") => false,
        Some("ns" | "tcl") => true,
        _ => Script::looks_like_script(text),
    }
}

/// Returns the experiment in the `#hol` lines of a script; `None` if there are none. Each line keeps its line
/// number and its columns, so that errors refer to the script.
pub(crate) fn hol_lines(text: &str) -> Option<String> {
    let line = |line: &str| match line.strip_prefix(LINE_PREFIX) {
        Some(said) => format!("{:width$}{said}\n", "", width = LINE_PREFIX.len()),
        None => "\n".to_owned(),
    };
    text.lines().any(|line| line.starts_with(LINE_PREFIX)).then(|| text.lines().map(line).collect())
}

/// Converts the script to an experiment. The result contains `topology = name`, and the command line can
/// override its keys.
pub(crate) fn experiment_from_script(name: &str, script: &Script) -> Result<String, InputError> {
    let programs: String = script.programs.iter().map(|own| program(own, script)).collect();
    let Some((measured, beside)) = script.flows.split_first() else {
        if !programs.is_empty() {
            // Nodes may have any names, because the programs open their connections themselves.
            let [from, to] = [0, 1].map(|node| script.network.nodes.get(node).map_or("", String::as_str));
            return Ok(format!(
                "title = {}\ntransports = [\"tcp\"]\nworld = {PROGRAM_WORLD:?}\nrepetitions = 1\ntopology = {}\n\
                 workload = {{ kind = \"programs\", from = {}, to = {} }}\n{programs}",
                quoted(&format!("{name}: its programs")),
                quoted(name),
                quoted(from),
                quoted(to),
            ));
        }
        let problem = format!(
            "the script starts no application and no program; add traffic, or use its network in an experiment with topology = {name:?}"
        );
        return Err(InputError { place: name.to_owned(), problem });
    };
    // Created once, because computing the routes takes time and all flows need them.
    let topology = Topology::new(&script.network).expect("the network was read with its script");
    let workload = workload(measured);
    let world = if programs.is_empty() { String::new() } else { format!("world = {PROGRAM_WORLD:?}\n") };
    let mut text = format!(
        "{world}title = {}\ntransports = [{}]\nmessages = {}\nrepetitions = 1\ntopology = {}\nworkload = {workload}\n",
        quoted(&format!("{name}: what {} sends to {}", measured.from, measured.to)),
        transport(measured),
        messages(measured, &topology),
        quoted(name),
    );
    for flow in beside {
        // A greedy flow that lasts as long as the measured one needs no end of its own. A flow with packets at given
        // times needs one: it would otherwise repeat them while the measured flow waits for its last message.
        let is_counted = !matches!(flow.load, FlowLoad::Greedy { packets: None, .. });
        let ends = if flow.stop < measured.stop || is_counted {
            format!("messages = {}\n", messages(flow, &topology))
        } else {
            String::new()
        };
        let own = self::workload(flow);
        text += &format!(
            "[[background]]\ntransport = {:?}\nspread = \"0s\"\n{ends}workload = {own}\n",
            flow.transport
        );
    }
    Ok(text + &programs)
}

/// Returns a text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Returns the `[[program]]` table of a program. If the script has program agents, which start at given times, a
/// program that starts together with its node becomes a service. Otherwise the run ends when all programs have ended.
fn program(own: &Program, script: &Script) -> String {
    let Program { node, command, directory, start, stop, archives, .. } = own;
    let is_service = start.is_none() && script.programs.iter().any(|other| other.start.is_some());
    let mut text = format!("[[program]]\nnode = {}\ncommand = {}\n", quoted(node), quoted(command));
    if is_service {
        text += "ready = { after = \"0s\" }\n";
    }
    let stop = stop.filter(|_| !is_service);
    let times = [("start", *start), ("stop", stop)].map(|(key, time)| Some((key, time?.to_string())));
    let own = [directory.clone().map(|directory| ("directory", directory))];
    for (key, value) in times.into_iter().chain(own).flatten() {
        text += &format!("{key} = {}\n", quoted(&value));
    }
    for (directory, file) in archives {
        text += &format!("files.{} = {{ tar = {} }}\n", quoted(directory), quoted(file));
    }
    text
}

/// Returns the transport of a flow, labelled with the name of the agent whose settings it has.
fn transport(flow: &Flow) -> String {
    match flow.label {
        Some(label) => format!("{{ spec = {:?}, label = {label:?} }}", flow.transport),
        None => format!("{:?}", flow.transport),
    }
}

fn workload(flow: &Flow) -> String {
    let (Flow { from, to, .. }, mut start) = (flow, flow.start);
    let load = match &flow.load {
        FlowLoad::Greedy { size, packets: Some(_) } => format!("kind = \"bulk\", size = \"{size}B\""),
        FlowLoad::Greedy { size, packets: None } => {
            format!("kind = \"bulk\", size = \"{size}B\", lasts = \"{}\"", flow.stop - start)
        }
        FlowLoad::Every { size, interval, at_once, times } if start < *interval && *times <= MAX_LISTED => {
            let packets = (0..*times).map(|time| (interval.saturating_mul(time), *size));
            replay(packets.flat_map(|packet| std::iter::repeat_n(packet, usize::from(*at_once))))
        }
        FlowLoad::Every { size, interval, at_once, .. } => {
            // CBR of ns sends its first packet at its start, this workload one interval later. A source that starts within its
            // first interval is listed, unless it sends too often.
            start = start.saturating_sub(*interval);
            let sources = if *at_once > 1 { format!(", sources = {at_once}") } else { String::new() };
            format!("kind = \"oneway\", size = \"{size}B\", interval = \"{interval}\"{sources}")
        }
        FlowLoad::Scripted(packets) => replay(packets.iter().copied()),
    };
    format!("{{ {load}, from = {}, to = {}, start = \"{start}\" }}", quoted(from), quoted(to))
}

/// Returns a workload that sends packets of given sizes at given times.
fn replay(packets: impl Iterator<Item = (Duration, u64)>) -> String {
    let all: Vec<String> = packets.map(|(at, size)| format!("\"{at} {size}B\"")).collect();
    format!("kind = \"replay\", exchanges = [{}]", all.join(", "))
}

/// Returns the number of messages between the start and the stop of a flow. For a greedy flow it is the number that the
/// narrowest link can carry in this time, but at least one.
fn messages(flow: &Flow, topology: &Topology) -> u64 {
    let lasts = flow.stop - flow.start;
    let count = match &flow.load {
        FlowLoad::Every { at_once, times, .. } => u64::from(*at_once).saturating_mul(*times),
        FlowLoad::Scripted(packets) => packets.len() as u64,
        FlowLoad::Greedy { packets: Some(packets), .. } => *packets,
        // The number includes messages that the queues can hold, so that the flow ends by its duration and not by this number.
        FlowLoad::Greedy { size, packets: None } => {
            let octets = lasts.as_secs_f64() * narrowest(flow, topology) / 8.0 + MAX_QUEUED_OCTETS;
            (octets / (size + HEADER_OCTETS) as f64) as u64
        }
    };
    count.max(1)
}

/// Returns the lowest link rate on the flow's route, in bit/s.
fn narrowest(flow: &Flow, topology: &Topology) -> f64 {
    let ends = topology.node(&flow.from).zip(topology.node(&flow.to));
    let path = ends.map(|(from, to)| topology.path(from, to)).unwrap_or_default();
    let rates = path.iter().map(|line| line.settings.rate.bits_per_second());
    rates.min().unwrap_or_default() as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Experiment, Permission, Source};

    const NETWORK: &str = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
        $ns duplex-link $a $b 1.04Mb 10ms DropTail\nproc finish {} { exec nam out.nam &; exit 0 }\n";

    /// Returns the ns commands of an application of this class over an agent, from a to b.
    fn application(number: u32, class: &str, agent: &str, sink: &str, times: [&str; 2]) -> String {
        format!(
            "set t{number} [new Agent/{agent}]\nset s{number} [new Agent/{sink}]\nset f{number} [new Application/{class}]\n\
             $ns attach-agent $a $t{number}\n$ns attach-agent $b $s{number}\n$ns connect $t{number} $s{number}\n\
             $f{number} attach-agent $t{number}\n$ns at {} \"$f{number} start\"\n$ns at {} \"$f{number} stop\"\n",
            times[0], times[1]
        )
    }

    fn parse(text: &str) -> Result<Experiment, InputError> {
        Experiment::parse("a", &Source::of_script("a.ns", text, &Permission::default())?)
    }

    #[test]
    fn the_first_flow_is_measured_and_the_others_are_background() {
        let ftp = application(1, "FTP", "TCP", "TCPSink", ["1.0", "5.0"]);
        let cbr = application(2, "Traffic/CBR", "UDP", "Null", ["0.5", "2.5"]);
        let text = format!("{NETWORK}{ftp}{cbr}$f2 set interval_ 0.01\n$ns at 6.0 \"finish\"\n$ns run\n");
        let points = parse(&text).unwrap().points;
        let [point] = &points[..] else { panic!("one point") };
        assert_eq!((point.workload.to_string().contains("bulk"), point.messages), (true, 1461));
        assert_eq!(
            (point.workload.client_node(), point.workload.server_node(), &*point.label),
            ("a", "b", "Agent/TCP")
        );
        // ns sends the last packet at 2.5 s, because the sum of 200 intervals is slightly less.
        assert_eq!((point.background.len(), point.background[0].messages), (1, Some(201)));
        assert_eq!(point.background[0].workload.start.to_string(), "490ms");
    }

    /// A source that sends at two rates is one flow that is replayed packet by packet.
    #[test]
    fn a_flow_that_changes_is_replayed() {
        let cbr = application(1, "Traffic/CBR", "UDP", "Null", ["0.0", "0.1"]);
        let change =
            "$f1 set packetSize_ 128\n$f1 set interval_ 0.02\n$ns at 0.05 \"$f1 set rate_ 102.4kb\"\n";
        let points = parse(&format!("{NETWORK}{cbr}{change}")).unwrap().points;
        assert_eq!((points[0].workload.kind.workload().name(), points[0].messages), ("replay", 8));
    }

    /// Background packets at given times are sent once, however long the measured flow waits.
    #[test]
    fn background_packets_at_given_times_are_sent_once() {
        let cbr = application(1, "Traffic/CBR", "UDP", "Null", ["0.0", "1.0"]);
        let bursts = application(2, "Traffic/Exponential", "UDP", "Null", ["0.0", "1.0"]);
        let points = parse(&format!("{NETWORK}{cbr}{bursts}$ns at 1.0 finish\n$ns run\n")).unwrap().points;
        // The first packet is sent at the start, the last one at 997.5 ms.
        assert_eq!(points[0].messages, 267);
        let background = &points[0].background[0];
        assert_eq!(background.workload.kind.workload().name(), "replay");
        // ns sends as many: one every 26.25 ms from 0.31985 s on.
        assert_eq!(background.messages, Some(26));
    }

    /// The messages of an experiment are divided among its repetitions.
    #[test]
    fn each_repetition_plays_the_whole_script() {
        let cbr = application(1, "Traffic/CBR", "UDP", "Null", ["0.5", "2.5"]);
        let text = format!("{NETWORK}{cbr}$f1 set interval_ 0.01\n$ns at 6.0 \"finish\"\n$ns run\n");
        let source = |set: &[(&str, &str)]| {
            let mut source = Source::of_script("a.ns", &text, &Permission::default()).unwrap();
            set.iter().for_each(|(key, value)| source.set("--set", key, value).unwrap());
            source
        };
        let numbers = |source: &Source| {
            let points = Experiment::parse("a", source).unwrap().points;
            points.iter().map(|point| (point.messages, point.repetitions.min)).collect::<Vec<_>>()
        };
        for (set, expected) in [
            (&[][..], &[(201, 1)][..]),
            (&[("repetitions", "3")], &[(603, 3)]),
            (&[("repetitions", "3"), ("repetitions", "5")], &[(1005, 5)]),
            (&[("repetitions", "5..20"), ("precision", "5%")], &[(1005, 5)]),
            // The user's number counts.
            (&[("repetitions", "3"), ("messages", "9")], &[(9, 3)]),
            (&[("messages", "9"), ("repetitions", "3")], &[(9, 3)]),
            (&[("sweep", "{ messages = [12, 24] }"), ("repetitions", "3")], &[(12, 3), (24, 3)]),
            (&[("repetitions", "3"), ("sweep", "{ messages = [12, 24] }")], &[(12, 3), (24, 3)]),
            (&[("sweep", "{ seed = [1, 2] }"), ("repetitions", "3")], &[(603, 3); 2]),
            (&[("zip", "{ repetitions = [1, 3], messages = [7, 9] }")], &[(7, 1), (9, 3)]),
        ] {
            let source = source(set);
            assert_eq!(numbers(&source), expected, "{set:?}");
            let file = Source::new("a.toml", source.merged().unwrap().to_string());
            assert_eq!(numbers(&file), expected, "the same as one file: {set:?}");
        }
        let swept = source(&[("sweep.repetitions", "[1, 3]")]);
        assert_eq!(numbers(&swept), [(201, 1), (603, 3)]);
        assert!(swept.merged().unwrap_err().problem.contains("sweep both together"));
    }

    /// ns sends the first packet at the start, also of a source that starts before its first interval has passed.
    #[test]
    fn cbr_sends_its_first_packet_at_its_start() {
        for (start, first, packets) in [("0.0", "0s", 101), ("0.004", "4ms", 101), ("0.01", "0s", 101)] {
            let stop = start.parse::<f64>().unwrap() + 1.0001;
            let cbr = application(1, "Traffic/CBR", "UDP", "Null", [start, &stop.to_string()]);
            let text = format!("{NETWORK}{cbr}$f1 set interval_ 0.01\n$ns at 6.0 \"finish\"\n$ns run\n");
            let point = &parse(&text).unwrap().points[0];
            let is_listed = point.workload.kind.workload().name() == "replay";
            assert_eq!(is_listed, start != "0.01", "{start}");
            assert_eq!((point.workload.start.to_string(), point.messages), (first.to_owned(), packets));
        }
    }

    #[test]
    fn programs_run_on_nodes_of_any_names() {
        let experiment = Source::of_script(
            "a.ns",
            &format!("{NETWORK}tb-set-node-startcmd $a \"sleep 1\"\n"),
            &Permission::default(),
        )
        .unwrap();
        assert!(experiment.text().contains("workload = { kind = \"programs\", from = \"a\", to = \"b\" }"));
        assert!(Experiment::parse_for_any_machine("a", &experiment).is_ok());
    }

    #[test]
    fn a_script_may_contain_its_experiment_in_hol_lines() {
        let said = "#hol transports = ['tcp', 'sctp']\n#hol messages = 100\n#hol [network.links.link0]\n#hol jitter = '2ms'\n\
                    #hol [workload]\n#hol kind = 'oneway'\n#hol size = '64B'\n#hol from = 'b'\n#hol to = 'a'\n";
        let points = parse(&format!("{NETWORK}{said}")).unwrap().points;
        assert_eq!((points.len(), points[1].workload.client_node()), (2, "b"));
        let topology = Topology::new(&points[0].network).unwrap();
        assert_eq!(topology.links()[0].settings.jitter.to_string(), "2ms");
        let error = parse(&format!("{NETWORK}#hol transports = ['tpc']\n")).unwrap_err();
        assert_eq!(error.place, "a.ns:6:20");
    }

    #[test]
    fn a_script_without_traffic_has_an_error_with_a_remedy() {
        let problem = parse(NETWORK).unwrap_err().to_string();
        assert!(
            problem.starts_with("a.ns: the script starts no application and no program")
                && problem.contains("topology = \"a.ns\"")
        );
        assert!(parse("set ns [new Simulatr]").unwrap_err().place.starts_with("a.ns:1:"));
        assert!(Source::read(Path::new("none.ns")).is_err());
    }
}
