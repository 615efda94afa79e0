//! Converts an ns script to an experiment: its network, its first flow as the measured one, and the others as background.
//!
//! Alternatively the lines of a script that begin with `#hol ` are an experiment file; other programs read them as comments.

use hol_network::Topology;
use hol_testbed::{Flow, FlowLoad, Program, Script};

use crate::error::InputError;

/// The world in which programs run.
const WORLD: &str = "kernel";

/// Octets of an FTP message, and of a segment of ns with its headers.
const SEGMENT: [u64; 2] = [1000, 1040];

/// The prefix of an experiment's lines in a script.
pub const MARK: &str = "#hol ";

/// Returns the experiment in the `#hol` lines of a script, each at its line and column, so that errors refer to the script.
pub(crate) fn spoken(text: &str) -> Option<String> {
    let line = |line: &str| match line.strip_prefix(MARK) {
        Some(said) => format!("{:width$}{said}\n", "", width = MARK.len()),
        None => "\n".to_owned(),
    };
    text.lines().any(|line| line.starts_with(MARK)).then(|| text.lines().map(line).collect())
}

/// Returns the script as an experiment. It contains `topology = name`, and the command line can override it like any other.
pub(crate) fn experiment(name: &str, script: &Script) -> Result<String, InputError> {
    let programs: String = script.programs.iter().map(|own| program(own, script)).collect();
    let Some((measured, beside)) = script.flows.split_first() else {
        if !programs.is_empty() {
            return Ok(format!(
                "title = {:?}\ntransports = [\"tcp\"]\nworld = {WORLD:?}\nrepetitions = 1\ntopology = {name:?}\n{programs}",
                format!("{name}: its programs")
            ));
        }
        let problem = format!(
            "the script starts no FTP, CBR or program, so there is nothing to run; name its network in an experiment with \
             topology = {name:?}, or let it start traffic"
        );
        return Err(InputError { place: name.to_owned(), problem });
    };
    let workload = workload(measured);
    let world = if programs.is_empty() { String::new() } else { format!("world = {WORLD:?}\n") };
    let mut text = format!(
        "{world}title = {:?}\ntransports = [{:?}]\nmessages = {}\nrepetitions = 1\ntopology = {name:?}\nworkload = {workload}\n",
        format!("{name}: what {} sends to {}", measured.from, measured.to),
        measured.transport,
        messages(measured, script),
    );
    for flow in beside {
        // A flow that lasts as long as the measured one needs no end of its own.
        let ends = if flow.stop < measured.stop {
            format!("messages = {}\n", messages(flow, script))
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

/// Returns a program's table. If the script has agents, which start at a given time, programs that start with their node serve these;
/// otherwise the run ends when all programs have ended.
fn program(own: &Program, script: &Script) -> String {
    let Program { node, command, directory, start, stop, archives, .. } = own;
    let is_service = start.is_none() && script.programs.iter().any(|other| other.start.is_some());
    let quoted = |text: &str| toml::Value::from(text).to_string();
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

fn workload(flow: &Flow) -> String {
    let Flow { from, to, start, .. } = flow;
    let load = match flow.load {
        FlowLoad::Greedy => format!("kind = \"bulk\", size = \"{}B\"", SEGMENT[0]),
        FlowLoad::Every { size, interval } => {
            format!("kind = \"oneway\", size = \"{size}B\", interval = \"{interval}\"")
        }
    };
    format!("{{ {load}, from = {from:?}, to = {to:?}, start = \"{start}\" }}")
}

/// Returns the number of messages between start and stop; for a greedy flow what the narrowest link carries, but at least one.
fn messages(flow: &Flow, script: &Script) -> u64 {
    let lasts = flow.stop - flow.start;
    let count = match flow.load {
        FlowLoad::Every { interval, .. } => lasts.as_nanos() / interval.as_nanos(),
        FlowLoad::Greedy => (lasts.as_secs_f64() * narrowest(flow, script) / 8.0 / SEGMENT[1] as f64) as u64,
    };
    count.max(1)
}

/// Returns the lowest link rate of the flow's route, in bit/s.
fn narrowest(flow: &Flow, script: &Script) -> f64 {
    let topology = Topology::new(&script.network).expect("it was read with its script");
    let ends = topology.node(&flow.from).zip(topology.node(&flow.to));
    let path = ends.map(|(from, to)| topology.path(from, to)).unwrap_or_default();
    let rates = path.iter().map(|line| line.settings.rate.bits_per_second());
    rates.min().unwrap_or_default() as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Experiment, Source};

    const NETWORK: &str = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
        $ns duplex-link $a $b 1.04Mb 10ms DropTail\nproc finish {} { exec nam out.nam & }\n";

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
        Experiment::parse("a", &Source::of_script("a.ns", text.to_owned())?)
    }

    #[test]
    fn the_first_flow_is_measured_and_the_others_go_on_beside_it() {
        let ftp = application(1, "FTP", "TCP", "TCPSink", ["1.0", "5.0"]);
        let cbr = application(2, "Traffic/CBR", "UDP", "Null", ["0.5", "2.5"]);
        let text = format!("{NETWORK}{ftp}{cbr}$f2 set interval_ 0.01\n$ns at 6.0 \"finish\"\n$ns run\n");
        let points = parse(&text).unwrap().points;
        let [point] = &points[..] else { panic!("one point") };
        assert_eq!((point.workload.to_string().contains("bulk"), point.messages), (true, 500));
        assert_eq!(
            (point.workload.from(), point.workload.to(), point.transport.to_string()),
            ("a", "b", "tcp:cc=reno".to_owned())
        );
        assert_eq!((point.background.len(), point.background[0].messages), (1, Some(200)));
        assert_eq!(point.background[0].workload.start.to_string(), "500ms");
    }

    #[test]
    fn a_script_may_say_what_is_sent_in_lines_of_its_own() {
        let said = "#hol transports = ['tcp', 'sctp']\n#hol messages = 100\n#hol [network.links.link0]\n#hol jitter = '2ms'\n\
                    #hol [workload]\n#hol kind = 'oneway'\n#hol size = '64B'\n#hol from = 'b'\n#hol to = 'a'\n";
        let points = parse(&format!("{NETWORK}{said}")).unwrap().points;
        assert_eq!((points.len(), points[1].workload.from()), (2, "b"));
        let topology = Topology::new(&points[0].network).unwrap();
        assert_eq!(topology.links()[0].settings.jitter.to_string(), "2ms");
        let error = parse(&format!("{NETWORK}#hol transports = ['tpc']\n")).unwrap_err();
        assert_eq!(error.place, "a.ns:6:20");
    }

    #[test]
    fn a_script_without_traffic_is_told_where_it_can_stand() {
        let problem = parse(NETWORK).unwrap_err().to_string();
        assert!(
            problem.starts_with("a.ns: the script starts no FTP, CBR or program")
                && problem.contains("topology = \"a.ns\"")
        );
        assert!(parse("set ns [new Simulatr]").unwrap_err().place.starts_with("a.ns:1:"));
        assert!(Source::read(Path::new("none.ns")).is_err());
    }
}
