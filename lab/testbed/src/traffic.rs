//! Applications of ns with the times at which they send: the traffic as flows.

use hol_base::{BitRate, Duration, QueueLimit};
use hol_network::{NetworkSpec, Topology};

use crate::agents::{Agent, Class, packets};
use crate::bursts::{Bursts, Pattern};
use crate::quantity::{any_number, bits_per_second, positive, seconds, switch};
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{MEASURED, Word, WordError, error_at};

/// The traffic from one application to another node.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Where the script creates the application: `file:line`.
    pub place: String,
    /// The transport most similar to the agent's, such as `"tcp:cc=reno"`.
    pub transport: String,
    /// Class of the agent, if the transport has its settings.
    pub label: Option<&'static str>,
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// Messages that are sent.
    pub load: FlowLoad,
    /// Start of the traffic.
    pub start: Duration,
    /// End of the traffic, not after the end of the script.
    pub stop: Duration,
}

/// The traffic of an application.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowLoad {
    /// FTP: as much as the transport takes.
    Greedy {
        /// Octets of a packet, without its headers.
        size: u64,
        /// Number of packets; `None`: as many as the time allows.
        packets: Option<u64>,
    },
    /// CBR: a packet of this many octets per interval.
    Every {
        /// Octets of a packet, without its headers.
        size: u64,
        /// Interval.
        interval: Duration,
        /// As many such packets are sent at once: one of the application, which the agent cuts.
        at_once: u16,
    },
    /// CBR that stops or changes and goes on, on/off sources, and packets that the script counts out: each
    /// packet's time since the start, and its octets without headers.
    Scripted(Vec<(Duration, u64)>),
}

/// Octets of the headers of UDP and TCP, as ns and IPv4 count them.
const UDP_HEADERS: u64 = 28;
const TCP_HEADERS: u64 = 40;

/// Packets of a flow that changes.
pub(crate) const MOST_SCRIPTED: usize = 100_000;

impl Flow {
    /// Returns the octets of the application's longest IP packet.
    pub(crate) fn longest_packet(&self) -> u64 {
        match &self.load {
            _ if self.label.is_none() && self.transport != "udp" => 0,
            FlowLoad::Greedy { size, .. } => size + TCP_HEADERS,
            // TCP cuts messages, UDP does not.
            FlowLoad::Every { size, .. } if self.transport == "udp" => size + UDP_HEADERS,
            FlowLoad::Scripted(packets) if self.transport == "udp" => {
                packets.iter().map(|(_, size)| size + UDP_HEADERS).max().unwrap_or_default()
            }
            _ => 0,
        }
    }
}

/// Agents, applications, and the end of the script.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub agents: Vec<Agent>,
    pub applications: Vec<Application>,
    pub end: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Application {
    /// Where it is made.
    pub at: usize,
    class: &'static str,
    greedy: bool,
    agent: Option<usize>,
    pub size: u64,
    pub rate: f64,
    /// Emulab's; ns's sets the rate.
    interval: Option<Duration>,
    /// Packets after which it stops.
    most: Option<u64>,
    pub running: Option<Duration>,
    pieces: Vec<Piece>,
    /// The packets that a greedy one is to send, with their times: `produce`.
    produced: Vec<(Duration, u64)>,
    /// Its bursts, if its times are random.
    pub bursts: Option<Bursts>,
}

/// A time in which an application sends alike.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: Duration,
    stop: Option<Duration>,
    size: u64,
    interval: Duration,
}

/// What an application sends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Greedy,
    Constant,
    Random(Pattern),
}

/// The datagrams of `$udp send`.
const DATAGRAMS: &str = "Application";

/// Applications by class: the name that they have here, and what they send.
const APPLICATIONS: [(&str, &str, Kind); 10] = [
    ("Application/FTP", "Application/FTP", Kind::Greedy),
    ("Source/FTP", "Source/FTP", Kind::Greedy),
    ("Application/Traffic/CBR", "Application/Traffic/CBR", Kind::Constant),
    ("Traffic/CBR", "Application/Traffic/CBR", Kind::Constant),
    (
        "Application/Traffic/Exponential",
        "Application/Traffic/Exponential",
        Kind::Random(Pattern::Exponential),
    ),
    ("Traffic/Expoo", "Application/Traffic/Exponential", Kind::Random(Pattern::Exponential)),
    ("Application/Traffic/Pareto", "Application/Traffic/Pareto", Kind::Random(Pattern::Pareto)),
    ("Traffic/Pareto", "Application/Traffic/Pareto", Kind::Random(Pattern::Pareto)),
    ("Application/Telnet", "Application/Telnet", Kind::Random(Pattern::Keys)),
    ("Source/Telnet", "Application/Telnet", Kind::Random(Pattern::Keys)),
];

/// Variables of applications in ns; others are a script's.
pub(crate) const ATTRIBUTES: [&str; 17] = [
    "agent_",
    "burst_time_",
    "class_",
    "dst_",
    "fid_",
    "flags_",
    "idle_time_",
    "interval_",
    "maxpkts_",
    "packetSize_",
    "packet_size_",
    "prio_",
    "random_",
    "rate_",
    "shape_",
    "type_",
    "enableRecv_",
];

fn no_agent(at: usize) -> WordError {
    WordError { at, problem: "this application has no agent; add $ftp attach-agent $tcp".to_owned() }
}

impl Simulator<'_> {
    /// Creates an object of a class of agents or applications; `None` if it is neither.
    pub(crate) fn make_end(&mut self, class: &Word) -> Option<Outcome> {
        if let Some(agent) = Agent::new(&class.text, class.at, self.defaults.of(&class.text)) {
            if agent.is_tahoe() && !self.is_emulab {
                let word = std::slice::from_ref(class);
                // Its loss recovery differs; without losses nothing does.
                let _ = self.ignore(
                    word,
                    "it is Tahoe in ns, which returns to slow start after each loss; hol uses NewReno",
                );
            }
            for _ in 0..if self.is_emulab { 0 } else { agent.draws() } {
                self.randoms.generators[0].uniform();
            }
            self.traffic.agents.push(agent);
            return Some(Ok(self.add(Object::Agent(self.traffic.agents.len() - 1))));
        }
        let (_, known, kind) = APPLICATIONS.iter().find(|(name, ..)| *name == class.text)?;
        let object = self.application_of(class.at, known, *kind, None);
        let Some(Object::Application(index)) = self.object_called(&object) else { return None };
        for (attribute, value) in self.defaults.of(&class.text) {
            let attribute = Word { text: attribute, ..value.clone() };
            let words = [class.clone(), attribute.clone(), attribute.clone(), value.clone()];
            if let Err(complaint) = self.set_application(index, &attribute, &value, &words) {
                return Some(Err(complaint));
            }
        }
        Some(Ok(object))
    }

    /// Returns the application of an agent.
    fn application_of(&mut self, at: usize, class: &'static str, kind: Kind, agent: Option<usize>) -> String {
        // ns-default.tcl: packetSize_ 210, and the rate of each.
        let rate = if class == "Application/Traffic/CBR" { 448e3 } else { 64e3 };
        let (size, pieces, produced) = (210, Vec::new(), Vec::new());
        let (interval, most, running) = (None, None, None);
        let greedy = kind == Kind::Greedy;
        let bursts = match kind {
            Kind::Random(pattern) => Some(Bursts::new(pattern)),
            _ => None,
        };
        let application = Application {
            at,
            class,
            greedy,
            agent,
            size,
            rate,
            interval,
            most,
            running,
            pieces,
            produced,
            bursts,
        };
        self.traffic.applications.push(application);
        self.add(Object::Application(self.traffic.applications.len() - 1))
    }

    /// `$tcp attach-app FTP`, `$tcp attach-source FTP`.
    pub(crate) fn attach_kind(&mut self, agent: usize, method: &str, kind: &Word) -> Outcome {
        let prefix = if method == "attach-app" { "Application" } else { "Source" };
        let class = Word { text: format!("{prefix}/{}", kind.text), ..kind.clone() };
        let Some(object) = self.make_end(&class) else {
            return self.unknown(kind.at, unknown_class(&class.text));
        };
        let object = object?;
        if let Some(Object::Application(index)) = self.object_called(&object) {
            self.traffic.applications[index].agent = Some(agent);
        }
        Ok(object)
    }

    /// `$tcp advanceby 100`, `$ftp produce 100`: so many packets, from now on; what is not `by` counts all
    /// since the beginning.
    pub(crate) fn produce(
        &mut self,
        agent: usize,
        from: Option<usize>,
        method: &Word,
        count: u64,
    ) -> Outcome {
        let now = self.now.unwrap_or_default();
        // All packets of an agent are those of one connection.
        let mut all = self.traffic.applications.iter();
        let known = all.position(|own| own.agent == Some(agent) && !own.produced.is_empty());
        let index = known.or(from).unwrap_or_else(|| {
            self.application_of(method.at, "Application/FTP", Kind::Greedy, Some(agent));
            self.traffic.applications.len() - 1
        });
        let application = &mut self.traffic.applications[index];
        let earlier: u64 = application.produced.iter().map(|(_, count)| count).sum();
        let is_total = matches!(method.text.as_str(), "produce" | "advance");
        let more = if is_total { count.saturating_sub(earlier) } else { count };
        if more > 0 {
            application.produced.push((now, more));
        }
        Ok(String::new())
    }

    /// `$tcp send 2048`, `$udp send 500`: as many packets as they fill, from now on.
    pub(crate) fn send_octets(&mut self, agent: usize, method: &Word, octets: &Word) -> Outcome {
        let own = &self.traffic.agents[agent];
        let size = own.packet()?;
        match own.class {
            Class::Tcp { .. } if octets.text == "-1" => {
                self.application_of(method.at, "Application/FTP", Kind::Greedy, Some(agent));
                let now = self.now.unwrap_or_default();
                self.traffic.applications.last_mut().expect("it was made").start(now);
                Ok(String::new())
            }
            // tcp/tcp.cc, TcpAgent::sendmsg.
            Class::Tcp { .. } => {
                let count = packets(octets)?.div_ceil(size);
                self.produce(agent, None, method, count)
            }
            Class::Udp => {
                let now = self.now.unwrap_or_default();
                let octets = positive(octets)?;
                let mut all = self.traffic.applications.iter();
                let known = all.position(|own| own.agent == Some(agent) && own.class == DATAGRAMS);
                let index = known.unwrap_or_else(|| {
                    self.application_of(method.at, DATAGRAMS, Kind::Random(Pattern::Given), Some(agent));
                    self.traffic.applications.len() - 1
                });
                self.traffic.applications[index].send_one(now, octets);
                Ok(String::new())
            }
            _ => self.unknown(method.at, "this agent cannot send by itself".to_owned()),
        }
    }

    /// Executes `$udp attach-traffic $cbr`.
    pub(crate) fn attach_traffic(&mut self, agent: usize, traffic: &Word) -> Outcome {
        let Some(Object::Application(index)) = self.object_called(&traffic.text) else {
            return error_at(
                traffic.at,
                "this is not an application; create one with new Application/Traffic/CBR",
            );
        };
        self.traffic.applications[index].agent = Some(agent);
        Ok(String::new())
    }

    /// Executes a command of an application.
    pub(crate) fn application(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        let now = self.now.unwrap_or_default();
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
                    "maxpkts_" if application.most.is_some() => {
                        application.most.unwrap_or_default().to_string()
                    }
                    _ => MEASURED.to_owned(),
                });
            }
            ("set", [name, value]) => return self.set_application(index, name, value, words),
            ("start", []) => self.start_application(index, now),
            ("stop", []) => application.stop(now),
            ("produce" | "producemore", [count]) if application.greedy => {
                let agent = application.agent.ok_or_else(|| no_agent(application.at))?;
                return self.produce(agent, Some(index), method, packets(count)?);
            }
            ("send", [octets]) if application.greedy => {
                let agent = application.agent.ok_or_else(|| no_agent(application.at))?;
                return self.send_octets(agent, method, octets);
            }
            ("use-rng", [generator]) if application.bursts.is_some() => {
                let Some(Object::Generator(generator)) = self.object_called(&generator.text) else {
                    return error_at(generator.at, "this is not a generator; create one with new RNG");
                };
                let bursts = self.traffic.applications[index].bursts.as_mut();
                bursts.expect("it was looked at").generator = generator;
            }
            ("agent", []) => {
                let agent = application.agent.map(Object::Agent);
                return Ok(agent.map_or_else(|| MEASURED.to_owned(), |agent| self.add(agent)));
            }
            _ => {
                return self.unknown(
                    method.at,
                    format!("{:?} is not a supported command of an application", method.text),
                );
            }
        }
        Ok(String::new())
    }

    fn set_application(&mut self, index: usize, name: &Word, value: &Word, words: &[Word]) -> Outcome {
        let (now, is_emulab) = (self.now.unwrap_or_default(), self.is_emulab);
        let application = &mut self.traffic.applications[index];
        let is_running = application.running.is_some();
        match name.text.as_str() {
            "agent_" => {
                let agent = self.agent_of(value)?;
                self.traffic.applications[index].agent = Some(agent);
                return Ok(value.text.clone());
            }
            "type_" | "fid_" | "class_" | "flags_" | "prio_" | "dst_" => {
                return self.ignore(words, "it only marks packets for traces");
            }
            "random_" if application.class == "Application/Traffic/CBR" => {
                // ns reads no number as 0, such as the `null` that NSG2 writes.
                let is_number = |number: f64| number != 0.0;
                let is_random = match value.text.as_str() {
                    "null" => false,
                    _ => switch(value).or_else(|_| any_number(value).map(is_number))?,
                };
                application.bursts = is_random.then(|| Bursts::new(Pattern::Scattered));
                return Ok(value.text.clone());
            }
            _ if application.bursts.is_some() && is_running => {
                let problem = format!(
                    "{:?} of a random source cannot change while it sends; set it before its start",
                    name.text
                );
                return self.unknown(name.at, problem);
            }
            "burst_time_" | "idle_time_" | "shape_" | "interval_"
                if application.bursts.as_mut().is_some_and(|bursts| bursts.has(&name.text)) =>
            {
                let bursts = application.bursts.as_mut().expect("it was looked at");
                bursts.set(name, value)?;
                return Ok(value.text.clone());
            }
            "packetSize_" | "packet_size_" | "interval_" | "rate_" | "maxpkts_" => {}
            _ => {
                let problem = format!(
                    "{:?} of an application is not supported; supported are packetSize_, interval_, rate_ and maxpkts_",
                    name.text
                );
                return self.unknown(name.at, problem);
            }
        }
        if is_running {
            application.stop(now);
        }
        match name.text.as_str() {
            "packetSize_" | "packet_size_" => application.size = positive(value)?,
            "rate_" => application.rate = bits_per_second(value)?,
            // ns-source.tcl: only the older Source/FTP reads it.
            "maxpkts_" if application.class == "Application/FTP" => {}
            "maxpkts_" => application.most = Some(packets(value)?),
            _ if is_emulab => application.interval = Some(seconds(value)?),
            // ns-lib.tcl, Application/Traffic/CBR set: an interval sets the rate, with the size of that moment.
            _ => {
                let interval = seconds(value)?.max(Duration::from_nanos(1));
                application.rate = application.size as f64 * 8.0 / interval.as_secs_f64();
            }
        }
        if is_running {
            application.start(now);
        }
        Ok(value.text.clone())
    }

    /// Executes `attach-agent` of the simulator.
    pub(crate) fn attach(&mut self, node: &Word, agent: &Word) -> Outcome {
        let (node, agent) = (self.node(node)?, self.agent_of(agent)?);
        self.traffic.agents[agent].node = Some(node);
        Ok(String::new())
    }

    /// Executes `connect` of the simulator.
    pub(crate) fn connect(&mut self, one: &Word, other: &Word) -> Outcome {
        let (one, other) = (self.agent_of(one)?, self.agent_of(other)?);
        self.traffic.agents[one].peer = Some(other);
        self.traffic.agents[other].peer = Some(one);
        Ok(String::new())
    }

    /// Executes `$ns detach-agent $node $agent`: the agent neither sends nor receives from then on.
    pub(crate) fn detach(&mut self, node: &Word, agent: &Word) -> Outcome {
        let now = self.now.unwrap_or_default();
        let (_, index) = (self.node(node)?, self.agent_of(agent)?);
        self.traffic.agents[index].detached = Some(now);
        let of_agent = self.traffic.applications.iter_mut().filter(|own| own.agent == Some(index));
        of_agent.for_each(|application| application.stop(now));
        Ok(String::new())
    }

    /// Executes `$ns create-connection TCP $from TCPSink $to 1`: creates two connected agents on their
    /// nodes, and returns the first.
    pub(crate) fn create_connection(&mut self, [kind, from, sink, to]: [&Word; 4]) -> Outcome {
        let mut ends = Vec::new();
        for (class, node) in [(kind, from), (sink, to)] {
            let class = Word { text: format!("Agent/{}", class.text), ..class.clone() };
            let Some(end) = self.make_end(&class) else {
                return self.unknown(class.at, unknown_class(&class.text));
            };
            let end = Word { text: end?, at: class.at, verbatim: None };
            self.attach(node, &end)?;
            ends.push(end);
        }
        self.connect(&ends[0], &ends[1])?;
        Ok(ends.swap_remove(0).text)
    }

    fn agent_of(&self, word: &Word) -> Result<usize, WordError> {
        match self.object_called(&word.text) {
            Some(Object::Agent(agent)) => Ok(agent),
            _ => error_at(word.at, "this is not a known agent; create one with set tcp [new Agent/TCP]"),
        }
    }
}

/// Describes an unsupported class.
pub(crate) fn unknown_class(class: &str) -> String {
    let kind = match class.split('/').next().unwrap_or_default() {
        "Agent" => {
            "an unsupported agent; supported are Agent/TCP with Reno, Newreno, Sack1, Linux and FullTcp, Agent/UDP, Agent/SCTP and their sinks"
        }
        "Application" | "Traffic" | "Source" => {
            "unsupported traffic; use FTP, CBR, Exponential, Pareto or Telnet, or define it in an experiment file"
        }
        "RandomVariable" | "RNG" => "an unsupported random variable; write the numbers instead",
        "Queue" => "an unsupported queue; supported are DropTail, RED, GRED, CoDel, sfqCoDel and PIE",
        "ErrorModel" => "an unsupported error model; for bursts use [network.links.NAME] loss",
        _ => {
            "an unsupported class; supported are nodes, links, LANs, agents of TCP, UDP and SCTP, FTP and CBR"
        }
    };
    format!("{class:?} is {kind}")
}

impl Traffic {
    /// Returns the class of an application.
    pub fn class_of(&self, application: usize) -> &'static str {
        self.applications[application].class
    }

    /// Returns the flows in the order of their applications in the script, without those that never start.
    pub fn flows(
        &self,
        network: &NetworkSpec,
        is_emulab: bool,
        place: impl Fn(usize) -> String,
    ) -> Result<Vec<Flow>, WordError> {
        self.agents.iter().filter(|agent| agent.node.is_some()).try_for_each(Agent::check)?;
        let started = self.applications.iter().filter(|application| application.starts().is_some());
        let flows = started.map(|application| self.flow(application, network, is_emulab, &place));
        // A random source may be stopped before its first packet.
        let is_silent = |flow: &Flow| flow.load == FlowLoad::Scripted(Vec::new());
        flows.filter(|flow| !flow.as_ref().is_ok_and(is_silent)).collect()
    }

    fn flow(
        &self,
        application: &Application,
        network: &NetworkSpec,
        is_emulab: bool,
        place: impl Fn(usize) -> String,
    ) -> Result<Flow, WordError> {
        let wrong = |problem: &str| WordError { at: application.at, problem: problem.to_owned() };
        let agent = application.agent.map(|agent| &self.agents[agent]);
        let agent = agent.ok_or_else(|| no_agent(application.at))?;
        let peer = agent.peer.map(|peer| &self.agents[peer]);
        let peer = peer.ok_or_else(|| wrong("its agent has no other end; add $ns connect $tcp $sink"))?;
        let nodes = agent.node.zip(peer.node);
        let (from, to) =
            nodes.ok_or_else(|| wrong("its agents are on no node; add $ns attach-agent $node $tcp"))?;
        if from == to {
            return Err(wrong("both agents are on the same node; hol sends only over links"));
        }
        if application.greedy && !application.produced.is_empty() && application.starts_itself() {
            return Err(wrong("it sends without end besides a number of packets; create another agent"));
        }
        let pieces = application.pieces(self.end).ok_or_else(|| {
            wrong("it starts and never stops; add $ns at 5.0 \"finish\" after its start, and exit in the procedure finish")
        })?;
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            return Err(wrong("it stops at its start; stop it later"));
        };
        let (start, stop) = (first.start, last.stop.unwrap_or_default());
        if peer.detached.is_some_and(|detached| detached < stop) {
            return Err(WordError {
                at: peer.at,
                problem: "detaching a sink during its flow is not supported; stop the flow first".to_owned(),
            });
        }
        if application.greedy && agent.class == Class::Udp {
            return Err(wrong("over UDP, FTP would send everything at once; use Application/Traffic/CBR"));
        }
        if application.greedy && pieces.len() > 1 {
            return Err(wrong(
                "it starts again on its previous connection, but a flow has its own connection; create another agent",
            ));
        }
        let [from, to] = [from, to].map(|node| network.nodes[node].clone());
        let (transport, label) = agent.transport(peer, is_emulab, capacity(network, &from, &to))?;
        let load = match application.greedy {
            true => {
                let size = if is_emulab { 1000 } else { agent.packet()? };
                application.greedy_load(size)?
            }
            false => paced(application, &pieces, agent, is_emulab)?,
        };
        Ok(Flow { place: place(application.at), transport, label, from, to, load, start, stop })
    }
}

/// Returns the octets that a path and its queues take at most.
fn capacity(network: &NetworkSpec, from: &str, to: &str) -> u64 {
    let Ok(topology) = Topology::new(network) else { return 0 };
    let ends = topology.node(from).zip(topology.node(to));
    let path = ends.map(|(from, to)| topology.path(from, to)).unwrap_or_default();
    let delay: f64 = path.iter().map(|line| 2.0 * line.settings.delay.as_secs_f64()).sum();
    let slowest =
        path.iter().map(|line| line.settings.rate).min_by_key(|rate: &BitRate| rate.bits_per_second());
    let bits = slowest.map_or(0.0, |rate| rate.bits_per_second() as f64);
    let queue = |limit: &QueueLimit| match limit {
        QueueLimit::Packets(packets) => packets.saturating_mul(1500),
        QueueLimit::Bytes(octets) => *octets,
    };
    let queues: u64 = path.iter().map(|line| queue(&line.settings.queue)).fold(0, u64::saturating_add);
    ((delay * bits / 8.0) as u64).saturating_add(queues)
}

/// Returns what CBR sends over an agent.
fn paced(
    application: &Application,
    pieces: &[Piece],
    agent: &Agent,
    is_emulab: bool,
) -> Result<FlowLoad, WordError> {
    let is_udp = agent.class == Class::Udp;
    // ns includes UDP's headers in the packet size.
    let cargo = |size: u64| if is_udp { size.saturating_sub(UDP_HEADERS).max(8) } else { size.max(8) };
    // A longer packet is sent as several of that size, and a rest. ns 2.35, apps/udp.cc UdpAgent::sendmsg.
    let most = if is_udp && !is_emulab { agent.packet()? } else { u64::MAX };
    let cut = |size: u64| -> Vec<u64> {
        let rest = size % most;
        (0..size / most).map(|_| most).chain((rest > 0).then_some(rest)).collect()
    };
    if let Some(bursts) = &application.bursts {
        let size = |size| if agent.class == Class::Udp { size } else { agent.packet().unwrap_or(size) };
        let origin = pieces.first().map_or(Duration::ZERO, |piece| piece.start);
        let stop = pieces.last().and_then(|piece| piece.stop).unwrap_or_default();
        let all = bursts.packets(stop, MOST_SCRIPTED).ok_or_else(|| too_many(application.at))?;
        let all = all.into_iter().flat_map(|(at, octets)| {
            let octets = if application.class == "Application/Telnet" { size(octets) } else { octets };
            cut(octets).into_iter().map(move |octets| (at.saturating_sub(origin), octets))
        });
        return Ok(FlowLoad::Scripted(all.map(|(at, octets)| (at, cargo(octets))).collect()));
    }
    let longest = pieces.iter().map(|piece| piece.size).max().unwrap_or_default();
    if longest / most.max(1) > 100 {
        return error_at(
            application.at,
            format!("packets of {longest} octets would be split into more than a hundred of {most}"),
        );
    }
    if let [piece] = pieces
        && (piece.size <= most || piece.size % most == 0)
    {
        let parts = cut(piece.size);
        let size = parts.first().copied().unwrap_or(piece.size);
        return Ok(FlowLoad::Every {
            size: cargo(size),
            interval: piece.interval,
            at_once: parts.len().max(1) as u16,
        });
    }
    let origin = pieces.first().map_or(Duration::ZERO, |piece| piece.start);
    let mut packets = Vec::new();
    for piece in pieces {
        let (mut at, stop) = (piece.start, piece.stop.unwrap_or_default());
        while at < stop {
            packets.extend(cut(piece.size).into_iter().map(|size| (at - origin, cargo(size))));
            at += piece.interval;
            if packets.len() > MOST_SCRIPTED {
                return Err(too_many(application.at));
            }
        }
    }
    Ok(FlowLoad::Scripted(packets))
}

fn too_many(at: usize) -> WordError {
    let problem =
        format!("its packets are not at one rate, and are more than {MOST_SCRIPTED}; let it end earlier");
    WordError { at, problem }
}

impl Application {
    /// Begins to send.
    pub(crate) fn start(&mut self, now: Duration) {
        self.running.get_or_insert(now);
    }

    /// Returns the most packets that a source with random times sends.
    pub(crate) fn most(&self) -> u64 {
        self.most.unwrap_or(u64::MAX)
    }

    /// Ends sending.
    pub(crate) fn stop(&mut self, now: Duration) {
        if let Some(bursts) = &mut self.bursts {
            bursts.stop(now);
        }
        if let Some(start) = self.running.take().filter(|start| *start < now) {
            self.pieces.push(self.piece(start, Some(now)));
        }
    }

    fn piece(&self, start: Duration, stop: Option<Duration>) -> Piece {
        Piece { start, stop, size: self.size, interval: self.interval() }
    }

    fn starts_itself(&self) -> bool {
        self.running.is_some() || !self.pieces.is_empty()
    }

    fn starts(&self) -> Option<Duration> {
        let first = self.pieces.first().map(|piece| piece.start).or(self.running);
        first.or(self.produced.first().map(|(at, _)| *at))
    }

    /// Sends one datagram.
    fn send_one(&mut self, now: Duration, octets: u64) {
        self.bursts.get_or_insert_with(|| Bursts::new(Pattern::Given)).add(now, 1, Duration::ZERO, octets);
        match self.pieces.last_mut() {
            Some(only) => only.stop = Some(now + Duration::from_nanos(1)),
            None => self.pieces.push(Piece {
                start: now,
                stop: Some(now + Duration::from_nanos(1)),
                size: octets,
                interval: Duration::from_nanos(1),
            }),
        }
    }

    /// Returns what a greedy application sends in packets of this size.
    fn greedy_load(&self, size: u64) -> Result<FlowLoad, WordError> {
        match self.produced[..] {
            [] => Ok(FlowLoad::Greedy { size, packets: self.most }),
            [(_, count)] => Ok(FlowLoad::Greedy { size, packets: Some(count) }),
            [(start, _), ..] => {
                let total: u64 = self.produced.iter().map(|(_, count)| count).sum();
                if total > MOST_SCRIPTED as u64 {
                    return Err(too_many(self.at));
                }
                let each = self.produced.iter();
                let packets = each.flat_map(|(at, count)| (0..*count).map(move |_| (*at - start, size)));
                Ok(FlowLoad::Scripted(packets.collect()))
            }
        }
    }

    /// Returns when it sends, until `end` at most; `None` if it goes on for ever.
    fn pieces(&self, end: Option<Duration>) -> Option<Vec<Piece>> {
        if let (Some((first, _)), Some((last, _))) = (self.produced.first(), self.produced.last()) {
            let stop = *last + Duration::from_nanos(1);
            return Some(vec![self.piece(*first, end.or(Some(stop)))]);
        }
        if self.class == DATAGRAMS {
            let (first, last) = (self.pieces.first()?, self.pieces.last()?);
            return Some(vec![Piece { stop: end.or(last.stop), ..*first }]);
        }
        let open = self.running.map(|start| self.piece(start, end));
        let mut pieces: Vec<Piece> = self.pieces.iter().copied().chain(open).collect();
        // With a number of packets nothing else needs to end it.
        let last = pieces.last_mut().filter(|last| self.greedy && self.most.is_some() && last.stop.is_none());
        if let Some(last) = last {
            last.stop = Some(last.start + Duration::from_nanos(1));
        }
        if let Some(most) = self.most.filter(|_| !self.greedy && self.bursts.is_none()) {
            let mut left = most;
            for piece in &mut pieces {
                let lasts = piece.interval.saturating_mul(left);
                let stop = piece.stop.map_or(piece.start + lasts, |stop| stop.min(piece.start + lasts));
                left -= left.min((stop - piece.start).as_nanos().div_ceil(piece.interval.as_nanos()));
                piece.stop = Some(stop);
            }
        }
        if pieces.iter().any(|piece| piece.stop.is_none()) {
            return None;
        }
        pieces.retain(|piece| piece.stop.is_some_and(|stop| stop > piece.start));
        Some(pieces)
    }

    fn interval(&self) -> Duration {
        let own = Duration::from_secs_f64(self.size as f64 * 8.0 / self.rate);
        self.interval.unwrap_or(own).max(Duration::from_nanos(1))
    }
}
