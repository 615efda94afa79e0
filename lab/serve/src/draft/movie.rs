//! The animation of a run: the times of every packet on every hop, and of every message from its due time to its delivery.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_lab::{Experiment, Point};
use hol_measure::{Record, TransferTimes};
use hol_network::{InterfaceId, LinkId, Medium, PacketInTransit, Tap, TapEvent, TapPoint, Topology};
use hol_scenario::flow_of;
use serde::Serialize;
use utoipa::ToSchema;

use super::graph::Graph;
use crate::plan::point_of;

/// Maximum number of shown messages; a longer run is shortened.
const MAX_MESSAGES: u64 = 1000;
/// Maximum number of shown hops.
const MAX_HOPS: usize = 60_000;

/// An animation. Times are in ns from the start of the run.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Movie {
    /// Description of the run: its point and its repetition.
    pub title: String,
    /// Network of the point, without traffic.
    pub graph: Graph,
    /// Directions of links with packets, each shown at its link in the drawing.
    #[serde(rename = "lines")]
    pub links: Vec<MovieLink>,
    /// Hops, in the order in which they were queued.
    pub hops: Vec<Hop>,
    /// Messages, in the order of the run's records.
    pub messages: Vec<Message>,
    /// Time of the last event.
    pub end: u64,
}

/// One direction of a link, or the packets of a LAN from one member to another.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = MovieLine)]
pub struct MovieLink {
    /// Name of the link or LAN in drawings.
    pub name: String,
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// Whether `name` is a LAN.
    pub lan: bool,
}

/// A packet on one link.
#[derive(Debug, Serialize, ToSchema)]
pub struct Hop {
    /// Number of the packet, the same on every hop.
    pub packet: u32,
    /// Index of the link's direction in the list of links of the animation.
    #[serde(rename = "line")]
    pub link: usize,
    /// Time at which the packet was queued.
    pub queued: u64,
    /// Time at which the transmission of the packet started, if it started.
    pub sent: Option<u64>,
    /// Time at which the packet arrived or was dropped.
    #[serde(rename = "ends")]
    pub ended: u64,
    /// Why the packet was dropped; none if it arrived.
    pub lost: Option<&'static str>,
    /// Octets of the whole IP packet.
    pub octets: usize,
    /// Index of the packet's flow; 0 is the measured flow.
    pub flow: usize,
    /// Description of the packet.
    #[serde(rename = "says")]
    pub description: String,
}

/// A message of the run, with the times of its request and reply.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MovieMessage)]
pub struct Message {
    /// Number of the message in the schedule.
    pub id: u64,
    /// Stream or connection that carries the message.
    pub stream: u16,
    /// Time at which the message was due.
    pub due: u64,
    /// Times at which the request was written, first sent, last sent, completely received, and delivered.
    pub request: Option<[u64; 5]>,
    /// Times at which the reply was written, first sent, last sent, completely received, and delivered.
    pub reply: Option<[u64; 5]>,
}

/// Returns the animation of one repetition of a point. The positions of nodes are read from `text`, the text of the experiment.
pub fn movie(experiment: &Experiment, text: &str, point: usize, repetition: u32) -> Result<Movie, String> {
    let point = point_of(experiment, point)?;
    if repetition >= point.repetitions.max {
        return Err(format!(
            "no repetition {repetition}: the point has {} repetitions; the first is number 0",
            point.repetitions
        ));
    }
    let point = shorten(point, repetition);
    let world = point.world.open().map_err(|e| e.to_string())?;
    let hops = world.hops().ok_or_else(|| {
        format!(
            "world {} captures packets only at the ends, not on every hop; use world = \"model\" for an animation",
            world.name()
        )
    })?;
    let scenario = point.scenario(repetition);
    let topology = Topology::new(&scenario.network).map_err(|e| e.to_string())?;
    let mut recorder = PacketRecorder::of(&topology);
    let run = hops.tap(&scenario, point.seed_of(repetition), &mut recorder).map_err(|e| e.to_string())?;
    let PacketRecorder { mut movie, .. } = recorder;
    movie.graph = Graph::of_network(&topology, text);
    movie.title = format!("{point}, repetition {repetition}");
    movie.messages = run.records.iter().map(Message::of).collect();
    let delivered = movie.messages.iter().filter_map(|message| Some(message.reply.or(message.request)?[4]));
    movie.end = delivered.chain(movie.hops.iter().map(|hop| hop.ended)).max().unwrap_or(0);
    Ok(movie)
}

fn shorten(point: &Point, repetition: u32) -> Point {
    let min = u64::from(point.repetitions.min);
    let max = MAX_MESSAGES * min;
    let messages = if point.messages_in(repetition) > MAX_MESSAGES { max } else { point.messages };
    Point { messages, ..point.clone() }
}

impl Message {
    fn of(record: &Record) -> Self {
        let times = |leg: TransferTimes| {
            [leg.written, leg.first_sent, leg.last_sent, leg.arrived, leg.delivered].map(Time::as_nanos)
        };
        Self {
            id: record.id,
            stream: record.stream,
            due: record.scheduled.as_nanos(),
            request: record.request.map(times),
            reply: record.reply.map(times),
        }
    }
}

/// Records every packet on every link.
struct PacketRecorder<'t> {
    topology: &'t Topology,
    movie: Movie,
    /// Indices of links' directions, by their interfaces.
    links: BTreeMap<(InterfaceId, InterfaceId), usize>,
    /// Hops in progress, by packet and sending interface.
    hops_in_progress: BTreeMap<(u32, InterfaceId), usize>,
}

impl<'t> PacketRecorder<'t> {
    fn of(topology: &'t Topology) -> Self {
        Self { topology, movie: Movie::default(), links: BTreeMap::new(), hops_in_progress: BTreeMap::new() }
    }

    fn link(&mut self, from: InterfaceId, to: InterfaceId) -> usize {
        if let Some(link) = self.links.get(&(from, to)) {
            return *link;
        }
        let segments = self.topology.segments().iter();
        let mut segment = segments.filter(|segment| segment.interfaces.contains(&from));
        let segment = segment.next().expect("every interface is on a segment");
        let node = |id: InterfaceId| {
            let node = self.topology.interfaces()[usize::from(id.0)].node;
            self.topology.node_names()[usize::from(node.0)].clone()
        };
        let lan = matches!(segment.medium, Medium::Lan(LinkId(_)));
        self.movie.links.push(MovieLink { name: segment.label.clone(), from: node(from), to: node(to), lan });
        self.links.insert((from, to), self.movie.links.len() - 1);
        self.movie.links.len() - 1
    }
}

impl Tap for PacketRecorder<'_> {
    fn packet(&mut self, now: Time, _: TapPoint<'_>, transit: &PacketInTransit, event: TapEvent) {
        let PacketInTransit { from, to, number, packet, .. } = transit;
        let (key, now) = ((*number, *from), now.as_nanos());
        if event == TapEvent::Sent && self.movie.hops.len() < MAX_HOPS {
            let link = self.link(*from, *to);
            self.hops_in_progress.insert(key, self.movie.hops.len());
            self.movie.hops.push(Hop {
                packet: *number,
                link,
                queued: now,
                sent: None,
                ended: now,
                lost: None,
                octets: packet.length(),
                flow: flow_of(packet),
                description: packet.to_string(),
            });
        }
        let Some(hop) = self.hops_in_progress.get(&key).map(|hop| &mut self.movie.hops[*hop]) else { return };
        match event {
            TapEvent::Sent => {}
            TapEvent::Dequeued => hop.sent = Some(now),
            TapEvent::Received => hop.ended = now,
            lost => (hop.ended, hop.lost) = (now, Some(lost.name())),
        }
    }
}
