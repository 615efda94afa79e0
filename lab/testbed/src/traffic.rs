//! Agents and applications of ns with their start and stop times: the traffic as flows.

use hol_base::Duration;

use crate::quantity::{bits_per_second, positive, seconds};
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{Complaint, Word, complain};

/// The traffic of one application to another node.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Where the script makes its application: `file:line`.
    pub place: String,
    /// The transport most similar to the agent's, such as `"tcp:cc=reno"`.
    pub transport: &'static str,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// What is sent.
    pub load: FlowLoad,
    /// When it starts.
    pub start: Duration,
    /// When it stops; at the end of the script at the latest.
    pub stop: Duration,
}

/// The traffic of an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowLoad {
    /// FTP: as much as the transport takes.
    Greedy,
    /// CBR: a packet of this many octets per interval.
    Every {
        /// Octets of a packet, without its headers.
        size: u64,
        /// Interval.
        interval: Duration,
    },
}

/// Agents by class: the transport of those that send.
const AGENTS: [(&str, Option<&str>); 14] = [
    ("Agent/TCP", Some("tcp:cc=reno")),
    ("Agent/TCP/Reno", Some("tcp:cc=reno,sack=false")),
    ("Agent/TCP/Newreno", Some("tcp:cc=reno,sack=false")),
    ("Agent/TCP/Sack1", Some("tcp:cc=reno")),
    ("Agent/TCP/Linux", Some("tcp")),
    ("Agent/SCTP", Some("sctp")),
    ("Agent/UDP", Some("udp")),
    ("Agent/TCPSink", None),
    ("Agent/TCPSink/DelAck", None),
    ("Agent/TCPSink/Sack1", None),
    ("Agent/TCPSink/Sack1/DelAck", None),
    ("Agent/Null", None),
    ("Agent/LossMonitor", None),
    ("Agent/SCTPSink", None),
];

/// Agents, applications, and the end of the script.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    agents: Vec<Agent>,
    applications: Vec<Application>,
    pub end: Option<Duration>,
}

#[derive(Debug)]
struct Agent {
    transport: Option<&'static str>,
    node: Option<usize>,
    peer: Option<usize>,
}

#[derive(Debug)]
struct Application {
    /// Where it is made.
    at: usize,
    greedy: bool,
    agent: Option<usize>,
    size: u64,
    rate: f64,
    interval: Option<Duration>,
    start: Option<Duration>,
    stop: Option<Duration>,
}

/// Creates an object of a class of agents or applications; `None` if it is neither.
pub(crate) fn make(simulator: &mut Simulator<'_>, class: &Word) -> Option<String> {
    if let Some((_, transport)) = AGENTS.iter().find(|(name, _)| *name == class.text) {
        let agents = &mut simulator.traffic.agents;
        agents.push(Agent { transport: *transport, node: None, peer: None });
        let agent = agents.len() - 1;
        return Some(simulator.add(Object::Agent(agent)));
    }
    let greedy = match class.text.as_str() {
        "Application/FTP" | "Source/FTP" => true,
        "Application/Traffic/CBR" => false,
        _ => return None,
    };
    Some(application(simulator, class.at, greedy, None))
}

fn application(simulator: &mut Simulator<'_>, at: usize, greedy: bool, agent: Option<usize>) -> String {
    // ns-default.tcl: packetSize_ 210, rate_ 448Kb.
    let (size, rate) = (210, 448e3);
    let applications = &mut simulator.traffic.applications;
    applications.push(Application { at, greedy, agent, size, rate, interval: None, start: None, stop: None });
    let application = applications.len() - 1;
    simulator.add(Object::Application(application))
}

impl Simulator<'_> {
    /// A command of an agent.
    pub(crate) fn agent(&mut self, agent: usize, method: &Word, words: &[Word]) -> Outcome {
        match (method.text.as_str(), &words[2..]) {
            ("set", [_]) | ("set", [_, _]) => self.ignore(words, "agents are those of the transport here"),
            ("attach-source" | "attach-app", [kind]) if kind.text == "FTP" => {
                Ok(application(self, method.at, true, Some(agent)))
            }
            _ => self.unknown(method.at, format!("{:?} is no command of an agent here", method.text)),
        }
    }

    /// A command of an application.
    pub(crate) fn application(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        let application = &mut self.traffic.applications[index];
        match (method.text.as_str(), &words[2..]) {
            ("attach-agent", [agent]) => {
                let agent = self.agent_of(agent)?;
                self.traffic.applications[index].agent = Some(agent);
            }
            ("set", [name]) => {
                return Ok(match name.text.as_str() {
                    "packetSize_" | "packet_size_" => application.size.to_string(),
                    "rate_" => application.rate.to_string(),
                    "interval_" => application.interval().as_secs_f64().to_string(),
                    _ => String::new(),
                });
            }
            ("set", [name, value]) => match name.text.as_str() {
                "packetSize_" | "packet_size_" => application.size = positive(value)?,
                "interval_" => application.interval = Some(seconds(value)?),
                "rate_" => application.rate = bits_per_second(value)?,
                _ => return self.ignore(words, "applications have packetSize_, interval_ and rate_ here"),
            },
            ("start", []) => application.start = Some(Duration::ZERO),
            _ => {
                return self
                    .unknown(method.at, format!("{:?} is no command of an application here", method.text));
            }
        }
        Ok(String::new())
    }

    /// `attach-agent` and `connect` of the simulator.
    pub(crate) fn attach(&mut self, node: &Word, agent: &Word) -> Outcome {
        let (node, agent) = (self.node(node)?, self.agent_of(agent)?);
        self.traffic.agents[agent].node = Some(node);
        Ok(String::new())
    }

    pub(crate) fn connect(&mut self, one: &Word, other: &Word) -> Outcome {
        let (one, other) = (self.agent_of(one)?, self.agent_of(other)?);
        self.traffic.agents[one].peer = Some(other);
        self.traffic.agents[other].peer = Some(one);
        Ok(String::new())
    }

    /// `$ns at 0.5 "$cbr start"`.
    pub(crate) fn schedule(&mut self, time: &Word, script: &Word, words: &[Word]) -> Outcome {
        let at = seconds(time)?;
        let parts: Vec<&str> = script.text.split_whitespace().collect();
        let object = parts.first().and_then(|word| self.object_called(word));
        match (object, &parts[..]) {
            (Some(Object::Application(index)), [_, "start"]) => {
                self.traffic.applications[index].start = Some(at);
            }
            (Some(Object::Application(index)), [_, "stop"]) => {
                self.traffic.applications[index].stop = Some(at);
            }
            (Some(Object::Program(index)), [_, verb @ ("start" | "run" | "stop" | "kill")]) => {
                let verb = if matches!(*verb, "stop" | "kill") { "stop" } else { "start" };
                return self.schedule_program(index, time, verb);
            }
            (Some(Object::Simulator), [_, "halt" | "stop" | "terminate" | "swapout"])
            | (None, ["finish" | "exit", ..]) => {
                let end = self.traffic.end.map_or(at, |end| end.min(at));
                self.traffic.end = Some(end);
            }
            (Some(Object::Unknown), _) => (),
            _ => {
                return self.ignore(
                    words,
                    "during a run applications and programs start and stop, and nothing else happens",
                );
            }
        }
        Ok(String::new())
    }

    fn agent_of(&self, word: &Word) -> Result<usize, Complaint> {
        match self.object_called(&word.text) {
            Some(Object::Agent(agent)) => Ok(agent),
            _ => {
                complain(word.at, "this is not an agent that is known; make one with set tcp [new Agent/TCP]")
            }
        }
    }
}

impl Traffic {
    /// Returns the flows in the order of their applications in the script, between nodes called by `names`,
    /// without applications that never start.
    pub fn flows(&self, names: &[String], place: impl Fn(usize) -> String) -> Result<Vec<Flow>, Complaint> {
        let started =
            self.applications.iter().filter_map(|application| Some((application, application.start?)));
        started.map(|(application, start)| self.flow(application, start, names, &place)).collect()
    }

    fn flow(
        &self,
        application: &Application,
        start: Duration,
        names: &[String],
        place: impl Fn(usize) -> String,
    ) -> Result<Flow, Complaint> {
        let wrong = |problem: &str| Complaint { at: application.at, problem: problem.to_owned() };
        let agent = application.agent.map(|agent| &self.agents[agent]);
        let agent =
            agent.ok_or_else(|| wrong("this application has no agent; add $ftp attach-agent $tcp"))?;
        let peer = agent.peer.map(|peer| &self.agents[peer]);
        let peer = peer.ok_or_else(|| wrong("its agent has no other end; add $ns connect $tcp $sink"))?;
        let nodes = agent.node.zip(peer.node);
        let (from, to) =
            nodes.ok_or_else(|| wrong("its agents are on no node; add $ns attach-agent $node $tcp"))?;
        let transport =
            agent.transport.ok_or_else(|| wrong("its agent only receives; attach it to the other one"))?;
        let ends = [application.stop, self.end].into_iter().flatten().min();
        let stop = ends.filter(|stop| *stop > start);
        let stop = stop
            .ok_or_else(|| wrong("it starts and never stops; add $ns at 5.0 \"finish\" after its start"))?;
        if application.greedy && transport == "udp" {
            return Err(wrong("UDP takes all that FTP has at once; send with Application/Traffic/CBR"));
        }
        let load = if application.greedy { FlowLoad::Greedy } else { application.paced(transport) };
        let [from, to] = [from, to].map(|node| names[node].clone());
        Ok(Flow { place: place(application.at), transport, from, to, load, start, stop })
    }
}

impl Application {
    fn paced(&self, transport: &str) -> FlowLoad {
        // ns includes UDP headers in the packet size.
        let headers = if transport == "udp" { 28 } else { 0 };
        FlowLoad::Every { size: self.size.saturating_sub(headers).max(8), interval: self.interval() }
    }

    fn interval(&self) -> Duration {
        let own = Duration::from_secs_f64(self.size as f64 * 8.0 / self.rate);
        self.interval.unwrap_or(own).max(Duration::from_nanos(1))
    }
}
