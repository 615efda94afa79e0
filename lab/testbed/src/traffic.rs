//! Applications of ns with the times at which they send: the traffic as flows.

use std::collections::BTreeSet;

use hol_base::{BitRate, Duration, QueueLimit};
use hol_network::{NetworkSpec, Topology};

use crate::agents::{Agent, Class, packets};
use crate::bursts::{Bursts, Pattern};
use crate::ns_defaults::read_default;
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
/// Packets of all flows that change.
const MOST_OF_ALL: usize = 1_000_000;
/// Packets that an agent makes of what an application gives it at once.
const MOST_AT_ONCE: u64 = 1000;

impl Flow {
    /// Returns the octets of the application's longest IP packet.
    pub(crate) fn longest_packet(&self) -> u64 {
        match &self.load {
            _ if self.label.is_none() && self.transport != "udp" => 0,
            FlowLoad::Greedy { size, .. } => size.saturating_add(TCP_HEADERS),
            // TCP cuts messages, UDP does not.
            FlowLoad::Every { size, .. } if self.transport == "udp" => size.saturating_add(UDP_HEADERS),
            FlowLoad::Scripted(packets) if self.transport == "udp" => {
                let longest = packets.iter().map(|(_, size)| *size).max().unwrap_or_default();
                longest.saturating_add(UDP_HEADERS)
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
    pub class: &'static str,
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
    /// What the script counts out: `produce`, `send`.
    produced: Vec<Produced>,
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

/// What a script sends at once, besides its applications' own packets.
#[derive(Debug, Clone, Copy)]
struct Produced {
    at: Duration,
    count: u64,
    /// Octets of each; `None`: a packet of the agent.
    octets: Option<u64>,
}

/// What an application sends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Greedy,
    /// Only what the script counts out.
    Counted,
    Constant,
    Random(Pattern),
}

/// The class of what scripts send with `$udp send`.
const WRITES: &str = "Application";

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
        self.traffic.applications.push(Application::new(at, class, kind, agent));
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
        let earlier: u64 = application.produced.iter().map(|own| own.count).sum();
        let is_total = matches!(method.text.as_str(), "produce" | "advance");
        let more = if is_total { count.saturating_sub(earlier) } else { count };
        if more > 0 {
            application.produced.push(Produced { at: now, count: more, octets: None });
        }
        Ok(String::new())
    }

    /// `$tcp send 2048`, `$udp send 500`: as many packets as they fill, from now on.
    pub(crate) fn send_octets(&mut self, agent: usize, method: &Word, octets: &Word) -> Outcome {
        let own = &self.traffic.agents[agent];
        let size = own.packet()?;
        match own.class {
            Class::Tcp { .. } if octets.text == "-1" => {
                let mut all = self.traffic.applications.iter();
                let index = all.position(|own| own.agent == Some(agent) && own.greedy).unwrap_or_else(|| {
                    self.application_of(method.at, "Application/FTP", Kind::Greedy, Some(agent));
                    self.traffic.applications.len() - 1
                });
                let now = self.now.unwrap_or_default();
                self.traffic.applications[index].start(now);
                Ok(String::new())
            }
            // tcp/tcp.cc, TcpAgent::sendmsg; FullTcp counts octets.
            Class::Tcp { .. } if !own.is_full() => {
                let count = packets(octets)?.div_ceil(size);
                self.produce(agent, None, method, count)
            }
            Class::Udp | Class::Tcp { .. } => {
                let octets = Some(positive(octets)?);
                let produced = Produced { at: self.now.unwrap_or_default(), count: 1, octets };
                let mut all = self.traffic.applications.iter();
                let known = all.position(|own| own.agent == Some(agent) && own.class == WRITES);
                let index = known.unwrap_or_else(|| {
                    self.application_of(method.at, WRITES, Kind::Counted, Some(agent));
                    self.traffic.applications.len() - 1
                });
                self.traffic.applications[index].produced.push(produced);
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
        self.attach_application(index, agent, traffic.at)?;
        Ok(String::new())
    }

    fn attach_application(&mut self, index: usize, agent: usize, at: usize) -> Result<(), WordError> {
        let has_begun = self.has_begun();
        let own = &mut self.traffic.applications[index];
        if has_begun && own.agent.is_some_and(|known| known != agent) {
            return error_at(at, "an application cannot change its agent during a run; create another one");
        }
        own.agent = Some(agent);
        Ok(())
    }

    /// Executes a command of an application.
    pub(crate) fn application(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        let now = self.now.unwrap_or_default();
        let application = &mut self.traffic.applications[index];
        match (method.text.as_str(), &words[2..]) {
            ("attach-agent", [word]) => {
                let agent = self.agent_of(word)?;
                self.attach_application(index, agent, word.at)?;
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
            ("stop", []) => self.stop_application(index, method.at)?,
            ("produce" | "producemore", [count]) if application.greedy => {
                let agent = application.agent.ok_or_else(|| no_agent(application.at))?;
                return self.produce(agent, Some(index), method, packets(count)?);
            }
            ("send", [octets]) if application.greedy => {
                let agent = application.agent.ok_or_else(|| no_agent(application.at))?;
                return self.send_octets(agent, method, octets);
            }
            // CBR and Telnet have no such command.
            ("use-rng", [generator]) if application.bursts.as_ref().is_some_and(Bursts::has_pauses) => {
                let generator = self.generator(generator)?;
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

    fn stop_application(&mut self, index: usize, at: usize) -> Result<(), WordError> {
        let now = self.now.unwrap_or_default();
        let agent = self.traffic.applications[index].agent;
        let is_tcp = agent.is_some_and(|agent| matches!(self.traffic.agents[agent].class, Class::Tcp { .. }));
        let is_counted = |own: &Application| own.agent == agent && !own.produced.is_empty();
        // What TCP has not sent by then, it does not send: ns-source.tcl, Application/FTP stop.
        if is_tcp && self.traffic.applications.iter().any(is_counted) {
            return error_at(at, "stopping a number of packets is not supported; send fewer");
        }
        self.traffic.applications[index].stop(now);
        Ok(())
    }

    fn set_application(&mut self, index: usize, name: &Word, value: &Word, words: &[Word]) -> Outcome {
        let (now, is_emulab) = (self.now.unwrap_or_default(), self.is_emulab);
        let application = &mut self.traffic.applications[index];
        let is_running = application.running.is_some();
        match name.text.as_str() {
            "agent_" => {
                let agent = self.agent_of(value)?;
                self.attach_application(index, agent, value.at)?;
                return Ok(value.text.clone());
            }
            "type_" | "fid_" | "class_" | "flags_" | "prio_" | "dst_" => {
                return self.ignore(words, "it only marks packets for traces");
            }
            "random_" if application.class == "Application/Traffic/CBR" => {
                if is_running || !application.pieces.is_empty() {
                    let problem =
                        "\"random_\" cannot change once CBR has sent; set it before its first start";
                    return self.unknown(name.at, problem.to_owned());
                }
                // ns reads no number as 0, such as the `null` that NSG2 writes.
                let is_number = |number: f64| number != 0.0;
                let is_random = match value.text.as_str() {
                    "null" => false,
                    _ => switch(value).or_else(|_| any_number(value).map(is_number))?,
                };
                application.bursts = is_random.then(|| Bursts::new(Pattern::Scattered, application.class));
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
                    "{:?} of an application is not supported; supported are packetSize_, rate_, interval_, maxpkts_ and random_ (CBR), burst_time_, idle_time_ and shape_ (Pareto)",
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
            // A class's default; `is_free` says which classes read it.
            "maxpkts_" if !matches!(application.class, "Application/Traffic/CBR" | "Source/FTP") => {}
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
        let (node, index) = (self.node(node)?, self.agent_of(agent)?);
        let has_begun = self.has_begun();
        let own = &mut self.traffic.agents[index].node;
        if has_begun && own.is_some_and(|known| known != node) {
            return error_at(agent.at, "an agent cannot change its node during a run; create another one");
        }
        *own = Some(node);
        Ok(String::new())
    }

    /// Executes `connect` of the simulator.
    pub(crate) fn connect(&mut self, one: &Word, other: &Word) -> Outcome {
        let ends = [(one, other), (other, one)];
        for (own, peer) in ends {
            let (index, peer) = (self.agent_of(own)?, self.agent_of(peer)?);
            let has_begun = self.has_begun();
            let agent = &mut self.traffic.agents[index];
            // What only receives answers nobody.
            if has_begun && !agent.is_silent() && agent.peer.is_some_and(|known| known != peer) {
                let problem = "an agent cannot change its other end during a run; create another one";
                return error_at(own.at, problem);
            }
            agent.peer = Some(peer);
        }
        Ok(String::new())
    }

    /// Executes `$ns detach-agent $node $agent`: the agent neither sends nor receives from then on.
    pub(crate) fn detach(&mut self, node: &Word, agent: &Word) -> Outcome {
        let now = self.now.unwrap_or_default();
        let (_, index) = (self.node(node)?, self.agent_of(agent)?);
        self.traffic.agents[index].detached = Some(now);
        let all = self.traffic.applications.iter().enumerate();
        let of_agent: Vec<usize> =
            all.filter(|(_, own)| own.agent == Some(index)).map(|(own, _)| own).collect();
        of_agent.into_iter().try_for_each(|own| self.stop_application(own, agent.at))?;
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
        let topology = Topology::new(network).ok();
        let mut flows = Vec::new();
        let mut packets = 0;
        let mut busy = BTreeSet::new();
        for application in self.applications.iter().filter(|application| application.starts().is_some()) {
            let flow = self.flow(application, network, topology.as_ref(), is_emulab, &place)?;
            if flow.transport != "udp" && !busy.insert(application.agent) {
                let problem = "another application sends over the same agent, but a flow has its own connection; create another agent";
                return error_at(application.at, problem);
            }
            if let FlowLoad::Scripted(own) = &flow.load {
                packets += own.len();
            }
            if packets > MOST_OF_ALL {
                let problem = format!(
                    "the flows whose packets have times of their own send more than {MOST_OF_ALL}; let them end earlier"
                );
                return error_at(application.at, problem);
            }
            // A random source may be stopped before its first packet.
            if flow.load != FlowLoad::Scripted(Vec::new()) {
                flows.push(flow);
            }
        }
        Ok(flows)
    }

    fn flow(
        &self,
        application: &Application,
        network: &NetworkSpec,
        topology: Option<&Topology>,
        is_emulab: bool,
        place: impl Fn(usize) -> String,
    ) -> Result<Flow, WordError> {
        let wrong = |problem: &str| WordError { at: application.at, problem: problem.to_owned() };
        let agent = application.agent.map(|agent| &self.agents[agent]);
        let agent = agent.ok_or_else(|| no_agent(application.at))?;
        let peer = agent.peer.map(|peer| &self.agents[peer]);
        let peer = peer.ok_or_else(|| wrong("its agent has no other end; add $ns connect $tcp $sink"))?;
        // ns 2.35: its ACKs go to the last agent that is connected to it.
        if matches!(agent.class, Class::Tcp { .. }) && peer.peer != application.agent {
            return Err(wrong("its sink is connected to another agent; create a sink for each"));
        }
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
        let capacity = topology.map_or(0, |topology| capacity(topology, &from, &to));
        let (transport, label) = agent.transport(peer, is_emulab, capacity)?;
        let size = || if is_emulab { Ok(1000) } else { agent.packet() };
        let load = match application.produced[..] {
            [] if application.greedy => FlowLoad::Greedy { size: size()?, packets: application.most },
            [] => paced(application, &pieces, agent, is_emulab)?,
            [Produced { count, octets: None, .. }] => {
                FlowLoad::Greedy { size: size()?, packets: Some(count) }
            }
            _ => counted(application, size()?, Division::of(agent, is_emulab)?)?,
        };
        Ok(Flow { place: place(application.at), transport, label, from, to, load, start, stop })
    }
}

/// Returns the octets that a path and its queues take at most.
fn capacity(topology: &Topology, from: &str, to: &str) -> u64 {
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

/// How an agent divides what an application gives it at once.
#[derive(Debug, Clone, Copy)]
struct Division {
    /// Octets of a packet at most, with the headers that ns counts.
    most: u64,
    /// The headers that ns counts.
    headers: u64,
    /// The last packet has as many octets as the others.
    is_even: bool,
}

impl Division {
    /// Returns how an agent divides: UDP into packets of its size and a rest, TCP into packets of its size.
    /// ns 2.35, apps/udp.cc `UdpAgent::sendmsg`, tcp/tcp.cc `TcpAgent::sendmsg`. FullTcp and SCTP count
    /// octets.
    fn of(agent: &Agent, is_emulab: bool) -> Result<Self, WordError> {
        let headers = if agent.class == Class::Udp { UDP_HEADERS } else { 0 };
        let is_even = matches!(agent.class, Class::Tcp { .. }) && !agent.is_full() && !is_emulab;
        let has_packets = is_even || agent.class == Class::Udp && !is_emulab;
        let most = if has_packets { agent.packet()? } else { u64::MAX };
        Ok(Self { most, headers, is_even })
    }

    /// Returns the number of packets of so many octets.
    const fn count(self, octets: u64) -> u64 {
        octets.div_ceil(self.most)
    }

    /// Returns whether all packets of so many octets are as long.
    const fn is_uniform(self, octets: u64) -> bool {
        self.is_even || octets <= self.most || octets.is_multiple_of(self.most)
    }

    /// Returns the packets of so many octets, each without headers.
    fn packets(self, octets: u64) -> impl Iterator<Item = u64> {
        let rest = Some(octets % self.most).filter(|rest| *rest > 0);
        let rest = rest.map(|rest| if self.is_even { self.most } else { rest });
        let whole = std::iter::repeat_n(self.most, (octets / self.most) as usize);
        whole.chain(rest).map(move |size| size.saturating_sub(self.headers).max(8))
    }
}

/// Returns what CBR or a random source sends over an agent.
fn paced(
    application: &Application,
    pieces: &[Piece],
    agent: &Agent,
    is_emulab: bool,
) -> Result<FlowLoad, WordError> {
    let division = Division::of(agent, is_emulab)?;
    let writes = match (&application.bursts, pieces) {
        (None, [piece]) if division.is_uniform(piece.size) => {
            check_division(application.at, division, piece.size)?;
            let mut packets = division.packets(piece.size);
            return Ok(FlowLoad::Every {
                size: packets.next().unwrap_or(piece.size),
                interval: piece.interval,
                at_once: 1 + packets.count() as u16,
            });
        }
        (None, pieces) => writes_of(pieces),
        (Some(bursts), _) => {
            let stop = pieces.last().and_then(|piece| piece.stop).unwrap_or_default();
            let size = match application.class {
                "Application/Telnet" => Some(agent.write_size()?),
                _ => None,
            };
            let writes = bursts.packets(stop, MOST_SCRIPTED);
            writes.map(|writes| writes.into_iter().map(|(at, own)| (at, size.unwrap_or(own))).collect())
        }
    };
    let writes: Vec<(Duration, u64)> = writes.ok_or_else(|| too_many(application.at))?;
    let longest = writes.iter().map(|(_, octets)| *octets).max().unwrap_or_default();
    check_division(application.at, division, longest)?;
    let count = writes.iter().map(|(_, octets)| division.count(*octets)).fold(0, u64::saturating_add);
    if count > MOST_SCRIPTED as u64 {
        return Err(too_many(application.at));
    }
    let origin = pieces.first().map_or(Duration::ZERO, |piece| piece.start);
    let packets = writes
        .into_iter()
        .flat_map(|(at, octets)| division.packets(octets).map(move |size| (at.saturating_sub(origin), size)));
    Ok(FlowLoad::Scripted(packets.collect()))
}

/// Returns what a script counts out, where a packet of the agent has `size` octets.
fn counted(application: &Application, size: u64, division: Division) -> Result<FlowLoad, WordError> {
    let all = &application.produced;
    let longest = all.iter().filter_map(|own| own.octets).max().unwrap_or_default();
    check_division(application.at, division, longest)?;
    let count = all.iter().map(|own| own.octets.map_or(own.count, |octets| division.count(octets)));
    if count.fold(0, u64::saturating_add) > MOST_SCRIPTED as u64 {
        return Err(too_many(application.at));
    }
    let mut packets = Vec::new();
    for own in all {
        let at = own.at - all[0].at;
        match own.octets {
            Some(octets) => packets.extend(division.packets(octets).map(|size| (at, size))),
            None => packets.extend(std::iter::repeat_n((at, size), own.count as usize)),
        }
    }
    Ok(FlowLoad::Scripted(packets))
}

/// Returns what CBR gives its agent, and when; `None` if that is too often.
fn writes_of(pieces: &[Piece]) -> Option<Vec<(Duration, u64)>> {
    let mut writes = Vec::new();
    for piece in pieces {
        let (mut at, stop) = (piece.start, piece.stop.unwrap_or_default());
        while at < stop {
            if writes.len() >= MOST_SCRIPTED {
                return None;
            }
            writes.push((at, piece.size));
            at += piece.interval;
        }
    }
    Some(writes)
}

/// Returns an error if an agent makes too many packets of so many octets.
fn check_division(at: usize, division: Division, octets: u64) -> Result<(), WordError> {
    if division.count(octets) <= MOST_AT_ONCE {
        return Ok(());
    }
    let most = division.most;
    error_at(
        at,
        format!("{octets} octets at once are more than {MOST_AT_ONCE} packets of {most}; send fewer"),
    )
}

fn too_many(at: usize) -> WordError {
    let problem =
        format!("its packets are not at one rate, and are more than {MOST_SCRIPTED}; let it end earlier");
    WordError { at, problem }
}

impl Application {
    /// Creates an application with ns's defaults; those without a size and a rate need neither.
    fn new(at: usize, class: &'static str, kind: Kind, agent: Option<usize>) -> Self {
        let bursts = match kind {
            Kind::Random(pattern) => Some(Bursts::new(pattern, class)),
            _ => None,
        };
        Self {
            at,
            class,
            greedy: kind == Kind::Greedy,
            agent,
            size: read_default(class, "packetSize_", positive).unwrap_or(1),
            rate: read_default(class, "rate_", bits_per_second).unwrap_or(1.0),
            interval: None,
            most: None,
            running: None,
            pieces: Vec::new(),
            produced: Vec::new(),
            bursts,
        }
    }

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
        first.or(self.produced.first().map(|own| own.at))
    }

    /// Returns when it sends, until `end` at most; `None` if it goes on for ever.
    fn pieces(&self, end: Option<Duration>) -> Option<Vec<Piece>> {
        if let (Some(first), Some(last)) = (self.produced.first(), self.produced.last()) {
            let stop = last.at + Duration::from_nanos(1);
            return Some(vec![self.piece(first.at, end.or(Some(stop)))]);
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
