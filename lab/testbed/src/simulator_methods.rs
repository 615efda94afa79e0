//! The methods of the simulator object.

use hol_network::LinkChange;

use crate::network_builder::Node;
use crate::quantity::{bits_per_second, link_delay, link_rate, seconds};
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{Word, error_at, suggestion};

/// Supported methods of the simulator, each with its syntax.
const METHODS: [(&str, &str); 27] = [
    ("after", "$ns after 0.5 \"$ftp start\""),
    ("at", "$ns at 0.5 \"$ftp start\""),
    ("at-now", "$ns at-now \"$ftp start\""),
    ("attach-agent", "$ns attach-agent $node $tcp"),
    ("bandwidth", "$ns bandwidth $from $to 1Mb duplex"),
    ("cancel", "$ns cancel $event"),
    ("connect", "$ns connect $tcp $sink"),
    ("cost", "$ns cost $from $to 1"),
    ("create-connection", "$ns create-connection TCP $from TCPSink $to 1"),
    ("delay", "$ns delay $from $to 20ms duplex"),
    ("detach-agent", "$ns detach-agent $node $tcp"),
    ("node", "$ns node"),
    ("duplex-link-op", "$ns duplex-link-op $from $to down"),
    ("simplex-link-op", "$ns simplex-link-op $from $to down"),
    ("duplex-link", "$ns duplex-link $from $to 0.4Mb 25ms DropTail"),
    ("simplex-link", "$ns simplex-link $from $to 0.4Mb 25ms DropTail"),
    ("make-lan", "$ns make-lan \"$server $client\" 100Mb 0ms"),
    ("newLan", "$ns newLan \"$server $client\" 10Mb 1ms LL Queue/DropTail Mac/802_3"),
    ("link", "$ns link $from $to"),
    ("link-lossmodel", "$ns link-lossmodel $em $from $to"),
    ("lossmodel", "$ns lossmodel $em $from $to"),
    ("now", "$ns now"),
    ("queue-limit", "$ns queue-limit $from $to 6"),
    ("rtmodel-at", "$ns rtmodel-at 1.0 down $from $to"),
    ("rtproto", "$ns rtproto Static"),
    ("run", "$ns run"),
    ("halt", "$ns halt"),
];

/// Methods of the simulator that only draw or record.
const RECORDING_METHODS: [&str; 25] = [
    "add-agent-trace",
    "attach-fmon",
    "clearMemTrace",
    "color",
    "create-trace",
    "delete-agent-trace",
    "drop-trace",
    "eventtrace-all",
    "flush-trace",
    "gen-map",
    "get-nam-traceall",
    "get-ns-traceall",
    "makeflowmon",
    "monitor-agent-trace",
    "monitor-queue",
    "namtrace-all",
    "namtrace-queue",
    "namtrace-some",
    "puts-nam-config",
    "puts-nam-traceall",
    "puts-ns-traceall",
    "set-animation-rate",
    "trace-all",
    "trace-annotate",
    "trace-queue",
];

impl Simulator<'_> {
    pub(crate) fn simulator_command(&mut self, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("node", [] | [_]) => {
                self.draft.nodes.push(Node { name: None, at: method.at });
                Ok(self.add(Object::Node(self.draft.nodes.len() - 1)))
            }
            ("duplex-link" | "duplex-link-of-interfaces", [from, to, speed, time, discipline]) => {
                let (members, line) = self.line_between([from, to], speed, time, discipline)?;
                self.add_segment(method.at, members.to_vec(), vec![line.clone(), line])
            }
            ("simplex-link", [from, to, speed, time, discipline]) => {
                let (members, line) = self.line_between([from, to], speed, time, discipline)?;
                self.add_direction(members, line, method.at)
            }
            ("make-lan", [members, speed, time, layers @ ..]) => {
                if !layers.is_empty() {
                    self.ignore(words, "LANs of hol have no layers; use only the first three arguments")?;
                }
                self.make_lan(members, speed, time)
            }
            ("newLan", [members, speed, time, layers @ ..]) => {
                self.new_lan(members, speed, time, layers, words)
            }
            ("link", [from, to]) => {
                let (segment, line) = self.find_link(from, to)?;
                Ok(self.add(Object::Segment(segment, Some(line))))
            }
            // ns-lib.tcl: a method of the link, of both directions or of one.
            ("duplex-link-op", [from, to, operation, ..]) => {
                let (segment, _) = self.find_link(from, to)?;
                self.segment_command(segment, None, operation, words, &words[5..])
            }
            ("simplex-link-op", [from, to, operation, ..]) => {
                let (segment, line) = self.find_link(from, to)?;
                self.segment_command(segment, Some(line), operation, words, &words[5..])
            }
            ("queue-limit", [from, to, limit]) => {
                let (segment, line) = self.find_link(from, to)?;
                let word = Word { text: "limit_".to_owned(), ..method.clone() };
                self.set_queue(segment, line, &word, limit)
            }
            ("bandwidth" | "delay", [from, to, value, scope @ ..]) => {
                let (segment, line) = self.find_link(from, to)?;
                let is_duplex = scope.first().is_some_and(|scope| scope.text == "duplex");
                let change = if method.text == "delay" {
                    LinkChange::Delay(link_delay(value, self.is_emulab)?)
                } else {
                    LinkChange::Rate(link_rate(value, self.is_emulab)?.into())
                };
                self.change_link(segment, Some(line).filter(|_| !is_duplex), change);
                Ok(String::new())
            }
            ("lossmodel" | "link-lossmodel", [model, from, to]) => self.lossmodel(model, from, to),
            ("cost", [_, _, one]) if one.text == "1" => Ok(String::new()),
            ("cost", [from, to, _]) => {
                self.find_link(from, to)?;
                self.refuse_cost(method);
                Ok(String::new())
            }
            ("rtmodel-at", [time, verb, nodes @ ..]) => self.schedule_outage(time, verb, nodes),
            ("rtproto", [kind, ..]) if kind.text == "Static" => Ok(String::new()),
            // Without outages, the routes of this protocol have the fewest hops, too.
            ("rtproto", [kind]) if kind.text == "Session" => {
                self.draft.rerouting_command = Some(kind.at);
                Ok(String::new())
            }
            ("rtproto", [kind, ..]) => error_at(kind.at, "only static routes are supported; use Static"),
            ("attach-agent", [node, agent]) => self.attach(node, agent),
            ("detach-agent", [node, agent]) => self.detach(node, agent),
            ("connect", [one, other]) => self.connect(one, other),
            ("create-connection", [kind, from, sink, to, _]) => {
                self.create_connection([kind, from, sink, to])
            }
            ("after", [time, script]) => self.schedule_after(time, script),
            ("at-now", [script]) => Ok(self.schedule_at(self.schedule.now.unwrap_or_default(), script)),
            ("cancel", [event]) => Ok(self.cancel(event)),
            ("set", [attribute]) => self.simulator_attribute(attribute),
            ("set", [attribute, _]) => {
                let problem = format!("{:?} is a variable of ns itself; hol cannot set it", attribute.text);
                self.unknown(attribute.at, problem)
            }
            ("now", []) => Ok(self.schedule.now.unwrap_or_default().as_secs_f64().to_string()),
            ("at", [time, script]) => self.schedule(time, script),
            ("run", []) if self.schedule.is_running || self.schedule.now.is_some() => {
                error_at(method.at, "the run has already begun; remove this")
            }
            ("run", []) => Ok(self.start_run()),
            ("halt" | "stop" | "terminate" | "swapout", []) => self.exit(method.at),
            ("use-scheduler", _) => self.ignore(words, "how events are stored does not change results"),
            ("set-address-format", _) => self.ignore(words, "hol chooses the addresses"),
            // The numbers have a decimal point, as from `scan %f`.
            ("delay_parse", [time]) => Ok(format!("{:?}", seconds(time)?.as_secs_f64())),
            ("bw_parse", [speed]) => Ok(format!("{:?}", bits_per_second(speed)?)),
            (name, _) if RECORDING_METHODS.contains(&name) => {
                self.ignore(words, "the command only draws or records")?;
                Ok(self.add(Object::Recorder))
            }
            _ => {
                let problem = unknown(method);
                self.unknown(method.at, problem)
            }
        }
    }
}

/// Returns the error for an unknown method of the simulator, or one with wrong arguments.
fn unknown(method: &Word) -> String {
    let name = method.text.as_str();
    if let Some((_, form)) = METHODS.iter().find(|(known, _)| *known == name) {
        return format!("the syntax is {form}");
    }
    let cure = match suggestion(name, METHODS.map(|(known, _)| known)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "hol reads ns's methods for nodes, links, LANs, agents and times".to_owned(),
    };
    format!("unknown command \"{name}\"; {cure}")
}
