//! Flows: what applications send, packet by packet or as a rate, over their agents.

use std::collections::BTreeSet;

use hol_base::{BitRate, Duration, QueueLimit};
use hol_network::{LinkDirectionSettings, NetworkSpec, Topology};

use crate::agents::{Agent, Class};
use crate::application::{Application, ScriptedPackets, SendingPeriod, no_agent_error};
use crate::tcl::{WordError, error_at};
use crate::traffic::Traffic;

/// The traffic from one application to another node.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Position at which the script creates the application: `file:line`.
    pub place: String,
    /// The transport most similar to the agent's, such as `"tcp:cc=reno"`.
    pub transport: String,
    /// Class of the agent; `None` unless the transport implements all settings of that class.
    pub label: Option<&'static str>,
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// The messages that the flow sends.
    pub load: FlowLoad,
    /// Start of the traffic, in the time of the script.
    pub start: Duration,
    /// End of the traffic in the time of the script, at the latest the end of the script.
    pub stop: Duration,
}

/// When an application sends, and how much.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowLoad {
    /// FTP: the application sends as much as the transport accepts.
    Greedy {
        /// Octets of a packet, without its headers.
        size: u64,
        /// Number of packets; `None`: as many as possible until the flow stops.
        packets: Option<u64>,
    },
    /// CBR: the application sends a packet of a fixed size at fixed intervals.
    Every {
        /// Octets of a packet, without its headers.
        size: u64,
        /// Time between packets.
        interval: Duration,
        /// Number of packets sent at each of the times: the agent may divide a packet of the application into several.
        at_once: u16,
        /// Number of times at which packets are sent.
        times: u64,
    },
    /// Packets that are sent at the listed times: the time of each packet since the start of the flow, and its octets
    /// without headers. Examples are CBR that stops or changes and then continues, on/off sources, and packets that
    /// commands of the script send.
    Scripted(Vec<(Duration, u64)>),
}

/// Length of the headers of IPv4 and UDP, in octets.
const UDP_HEADER_OCTETS: u64 = 28;

/// Length of the headers of IPv4 and TCP, in octets.
const TCP_HEADER_OCTETS: u64 = 40;

/// Maximum number of packets of a scripted flow.
pub(crate) const MAX_SCRIPTED_PACKETS: usize = 100_000;

/// Maximum number of packets of all scripted flows.
const MAX_SCRIPTED_IN_TOTAL: usize = 1_000_000;

/// Maximum number of CBR packets that are counted with ns's floating-point arithmetic, one by one.
const MAX_COUNTABLE: u64 = 10_000_000;

/// Maximum number of packets into which an agent divides one write of an application.
const MAX_AT_ONCE: u64 = 1000;
/// Length of the shortest message of hol's workloads, in octets.
const SHORTEST_MESSAGE: u64 = 8;

impl Flow {
    /// Returns the length of the application's longest IP packet, in octets.
    pub(crate) fn longest_packet(&self) -> u64 {
        match &self.load {
            _ if self.label.is_none() && self.transport != "udp" => 0,
            FlowLoad::Greedy { size, .. } => size.saturating_add(TCP_HEADER_OCTETS),
            // TCP cuts messages, UDP does not.
            FlowLoad::Every { size, .. } if self.transport == "udp" => size.saturating_add(UDP_HEADER_OCTETS),
            FlowLoad::Scripted(packets) if self.transport == "udp" => {
                let longest = packets.iter().map(|(_, size)| *size).max().unwrap_or_default();
                longest.saturating_add(UDP_HEADER_OCTETS)
            }
            _ => 0,
        }
    }
}

impl Traffic {
    /// Returns the flows of the applications that start, in the order of the script. `topology` is the topology of the
    /// script's network; `None` if there is no network.
    pub fn flows(
        &self,
        network: &NetworkSpec,
        topology: Option<&Topology>,
        is_emulab: bool,
        place: impl Fn(usize) -> String,
    ) -> Result<Vec<Flow>, WordError> {
        self.agents.iter().filter(|agent| agent.node.is_some()).try_for_each(Agent::check)?;
        let mut flows = Vec::new();
        let (mut packets, mut countable) = (0, MAX_COUNTABLE);
        let mut busy = BTreeSet::new();
        for application in self.applications.iter().filter(|application| application.start_time().is_some()) {
            let flow = self.flow(application, network, topology, &mut countable, is_emulab, &place)?;
            if flow.transport != "udp" && !busy.insert(application.agent) {
                let problem = "another application sends over the same agent, but a flow has its own connection; create another agent";
                return error_at(application.at, problem);
            }
            if let FlowLoad::Scripted(own) = &flow.load {
                packets += own.len();
            }
            if packets > MAX_SCRIPTED_IN_TOTAL {
                let problem = format!(
                    "all flows with irregular packet times together send more than {MAX_SCRIPTED_IN_TOTAL} packets; let them end earlier"
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
        countable: &mut u64,
        is_emulab: bool,
        place: impl Fn(usize) -> String,
    ) -> Result<Flow, WordError> {
        let wrong = |problem: &str| WordError { at: application.at, problem: problem.to_owned() };
        let agent = application.agent.map(|agent| &self.agents[agent]);
        let agent = agent.ok_or_else(|| no_agent_error(application.at))?;
        let peer = agent.peer.map(|peer| &self.agents[peer]);
        let peer = peer.ok_or_else(|| {
            wrong("this application's agent is not connected to another one; add $ns connect $tcp $sink")
        })?;
        // In ns 2.35, the ACKs of a sink go to the last agent that was connected to it.
        if matches!(agent.class, Class::Tcp { .. }) && peer.peer != application.agent {
            return Err(wrong(
                "this application's sink is connected to another agent; create a sink for each",
            ));
        }
        let nodes = agent.node.zip(peer.node);
        let (from, to) = nodes.ok_or_else(|| {
            wrong("one of this application's agents is on no node; add $ns attach-agent $node $tcp")
        })?;
        if from == to {
            return Err(wrong("both agents are on the same node; hol sends only over links"));
        }
        if application.greedy && !application.produced.is_empty() && application.starts_itself() {
            return Err(wrong(
                "this application sends an endless flow and also a given number of packets; create another agent for one of them",
            ));
        }
        let periods = application.sending_periods(self.end, countable).ok_or_else(|| {
            wrong("this application starts and never stops; add $ns at 5.0 \"finish\" after its start, and exit in the procedure finish")
        })?;
        let (Some(first), Some(last)) = (periods.first(), periods.last()) else {
            return Err(wrong("this application stops at its start; stop it later"));
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
        if application.greedy && periods.len() > 1 {
            return Err(wrong(
                "this application starts again on its previous connection, but a flow has its own connection; create another agent",
            ));
        }
        let [from, to] = [from, to].map(|node| network.nodes[node].clone());
        let path = |from, to| topology.map_or(Vec::new(), |topology| path(topology, from, to));
        let capacity = capacity(&path(&from, &to));
        if !is_emulab {
            agent.check_ttl(links_with_ttl(&path(&from, &to)))?;
            peer.check_ttl(links_with_ttl(&path(&to, &from)))?;
        }
        let (transport, label) = agent.transport(peer, is_emulab, capacity)?;
        let size = || if is_emulab { Ok(1000) } else { agent.packet() };
        let load = match application.produced[..] {
            [] if application.greedy => FlowLoad::Greedy { size: size()?, packets: application.max_packets },
            [] => paced_load(application, &periods, agent, is_emulab)?,
            [ScriptedPackets { count, octets: None, .. }] => {
                FlowLoad::Greedy { size: size()?, packets: Some(count) }
            }
            _ => counted(application, size()?, Division::of(agent, is_emulab)?)?,
        };
        Ok(Flow { place: place(application.at), transport, label, from, to, load, start, stop })
    }
}

/// Returns the links on the path between two nodes.
fn path<'t>(topology: &'t Topology, from: &str, to: &str) -> Vec<&'t LinkDirectionSettings> {
    let ends = topology.node(from).zip(topology.node(to));
    ends.map(|(from, to)| topology.path(from, to)).unwrap_or_default()
}

/// Returns the number of links on a path that decrement the TTL in ns; LANs do not.
fn links_with_ttl(path: &[&LinkDirectionSettings]) -> usize {
    path.iter().filter(|link| !link.name.starts_with("lan/")).count()
}

/// Returns the maximum number of octets that a path and its queues can hold.
fn capacity(path: &[&LinkDirectionSettings]) -> u64 {
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

/// How an agent divides a write of an application into packets.
#[derive(Debug, Clone, Copy)]
struct Division {
    /// Maximum length of a packet in octets, including the headers that ns counts.
    max: u64,
    /// Length of the headers that ns counts, in octets.
    headers: u64,
    /// Whether the last packet of a write is as long as the others.
    is_even: bool,
}

impl Division {
    /// Returns how an agent divides a write of an application: UDP into packets of its size and a shorter last one, TCP
    /// into packets of its size only (ns 2.35, apps/udp.cc `UdpAgent::sendmsg`, tcp/tcp.cc `TcpAgent::sendmsg`).
    /// FullTcp and SCTP count octets; their writes, and those on Emulab, are not divided here.
    fn of(agent: &Agent, is_emulab: bool) -> Result<Self, WordError> {
        let headers = if agent.class == Class::Udp { UDP_HEADER_OCTETS } else { 0 };
        let is_even = matches!(agent.class, Class::Tcp { .. }) && !agent.is_full_tcp() && !is_emulab;
        let has_packets = is_even || agent.class == Class::Udp && !is_emulab;
        let max = if has_packets { agent.packet()? } else { u64::MAX };
        Ok(Self { max, headers, is_even })
    }

    /// Returns the number of packets for a write of this many octets.
    const fn count(self, octets: u64) -> u64 {
        octets.div_ceil(self.max)
    }

    /// Returns whether a write of this many octets is divided into packets of equal length.
    const fn is_uniform(self, octets: u64) -> bool {
        self.is_even || octets <= self.max || octets.is_multiple_of(self.max)
    }

    /// Returns the length of each packet into which a write of this many octets is divided, in octets without headers.
    fn packets(self, octets: u64) -> impl Iterator<Item = u64> {
        let rest = Some(octets % self.max).filter(|rest| *rest > 0);
        let rest = rest.map(|rest| if self.is_even { self.max } else { rest });
        let whole = std::iter::repeat_n(self.max, (octets / self.max) as usize);
        whole.chain(rest).map(move |size| size.saturating_sub(self.headers).max(SHORTEST_MESSAGE))
    }
}

/// Returns the load of a CBR source or a random source that sends through an agent.
fn paced_load(
    application: &Application,
    periods: &[SendingPeriod],
    agent: &Agent,
    is_emulab: bool,
) -> Result<FlowLoad, WordError> {
    let division = Division::of(agent, is_emulab)?;
    let writes = match (&application.bursts, periods) {
        (None, [period]) if division.is_uniform(period.size) => {
            check_writes(application.at, division, std::iter::once(period.size))?;
            let mut packets = division.packets(period.size);
            return Ok(FlowLoad::Every {
                size: packets.next().unwrap_or(period.size),
                interval: period.interval,
                at_once: 1 + packets.count() as u16,
                times: period.packets,
            });
        }
        (None, periods) => writes_of(periods),
        (Some(bursts), _) => {
            let stop = periods.last().and_then(|period| period.stop).unwrap_or_default();
            let size = match application.class {
                "Application/Telnet" => Some(agent.write_size()?),
                _ => None,
            };
            let writes = bursts.packets(stop, MAX_SCRIPTED_PACKETS);
            writes.map(|writes| writes.into_iter().map(|(at, own)| (at, size.unwrap_or(own))).collect())
        }
    };
    let writes: Vec<(Duration, u64)> = writes.ok_or_else(|| too_many(application.at))?;
    check_writes(application.at, division, writes.iter().map(|(_, octets)| *octets))?;
    let count = writes.iter().map(|(_, octets)| division.count(*octets)).fold(0, u64::saturating_add);
    if count > MAX_SCRIPTED_PACKETS as u64 {
        return Err(too_many(application.at));
    }
    let origin = periods.first().map_or(Duration::ZERO, |period| period.start);
    let packets = writes
        .into_iter()
        .flat_map(|(at, octets)| division.packets(octets).map(move |size| (at.saturating_sub(origin), size)));
    Ok(FlowLoad::Scripted(packets.collect()))
}

/// Returns the load that consists of the packets requested by commands of the script; a packet of the agent has `size`
/// octets.
fn counted(application: &Application, size: u64, division: Division) -> Result<FlowLoad, WordError> {
    let all = &application.produced;
    check_writes(application.at, division, all.iter().filter_map(|own| own.octets))?;
    let count = all.iter().map(|own| own.octets.map_or(own.count, |octets| division.count(octets)));
    if count.fold(0, u64::saturating_add) > MAX_SCRIPTED_PACKETS as u64 {
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

/// Returns the time and the octets of each of CBR's writes to its agent; `None` if there are too many.
fn writes_of(periods: &[SendingPeriod]) -> Option<Vec<(Duration, u64)>> {
    let mut writes = Vec::new();
    for period in periods {
        if period.packets > (MAX_SCRIPTED_PACKETS - writes.len()) as u64 {
            return None;
        }
        let time = |packet: u64| period.start + period.interval.saturating_mul(packet);
        writes.extend((0..period.packets).map(|packet| (time(packet), period.size)));
    }
    Some(writes)
}

/// Returns an error for a write that hol cannot send as one message.
fn check_writes(
    at: usize,
    division: Division,
    writes: impl Iterator<Item = u64> + Clone,
) -> Result<(), WordError> {
    let (max, min) = (division.max, SHORTEST_MESSAGE + division.headers);
    if let Some(octets) = writes.clone().max().filter(|octets| division.count(*octets) > MAX_AT_ONCE) {
        let problem = format!(
            "{octets} octets are sent at once; at most {MAX_AT_ONCE} packets of {max} are supported; send fewer"
        );
        return error_at(at, problem);
    }
    let shortest = |octets: u64| Some(octets % max).filter(|rest| *rest > 0).unwrap_or(max);
    match writes.map(shortest).min().filter(|octets| *octets < min && !division.is_even) {
        Some(octets) => error_at(at, format!("hol sends no packets of {octets} octets; use at least {min}")),
        None => Ok(()),
    }
}

fn too_many(at: usize) -> WordError {
    let problem = format!(
        "this application sends more than {MAX_SCRIPTED_PACKETS} packets at irregular times; let it end earlier"
    );
    WordError { at, problem }
}
