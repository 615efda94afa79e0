//! One run as a moving picture: every packet on every hop, and every message from when it was due until it was delivered.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_lab::{Experiment, Point};
use hol_measure::{Leg, Record};
use hol_network::{Crossing, Fate, InterfaceId, LineId, Medium, Tap, TapPoint, Topology};
use hol_scenario::flow_of;
use serde::Serialize;
use utoipa::ToSchema;

/// A longer run is shown as far as so many messages go.
const MOST_MESSAGES: u64 = 1000;
/// What is shown of its packets at most.
const MOST_HOPS: usize = 60_000;

/// Times are in ns from the start of the run.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Movie {
    /// What was run, in words.
    pub title: String,
    /// Each is shown where the drawing has it.
    pub lines: Vec<Line>,
    /// In the order in which they were handed to their lines.
    pub hops: Vec<Hop>,
    /// In the order of the schedule.
    pub messages: Vec<Message>,
    /// When the last thing happens.
    pub end: u64,
}

/// One direction of a link, or what a LAN carries from one member to another.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = MovieLine)]
pub struct Line {
    /// What drawings call the link or LAN.
    pub name: String,
    /// Whose packets these are.
    pub from: String,
    /// Where they go.
    pub to: String,
    /// Whether others share it.
    pub lan: bool,
}

/// A packet on one line.
#[derive(Debug, Serialize, ToSchema)]
pub struct Hop {
    /// The packet: it keeps its number on every hop.
    pub packet: u32,
    /// By its place among the lines.
    pub line: usize,
    /// When it joined the queue.
    pub queued: u64,
    /// When its transmission began; none if it never did.
    pub sent: Option<u64>,
    /// When it arrived, or was dropped.
    pub ends: u64,
    /// Why it was dropped; none if it arrived.
    pub lost: Option<&'static str>,
    /// Of the whole IP packet.
    pub octets: usize,
    /// Which flow it belongs to: 0 is measured.
    pub flow: usize,
    /// What it is, in words.
    pub says: String,
}

/// A message's way to the other side.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MovieMessage)]
pub struct Message {
    /// Its number in the schedule.
    pub id: u64,
    /// Its stream, or connection.
    pub stream: u16,
    /// When it was due.
    pub due: u64,
    /// When it was handed to the transport, first left, left in the copy that arrived, was whole there, and was delivered.
    pub request: Option<[u64; 5]>,
    /// The same of its reply.
    pub reply: Option<[u64; 5]>,
}

/// The picture of one repetition of a point.
pub fn movie(experiment: &Experiment, point: usize, repetition: u32) -> Result<Movie, String> {
    let count = experiment.points.len();
    let point = experiment
        .points
        .get(point)
        .ok_or_else(|| format!("point {point}: there are {count}, counted from 0"))?;
    if repetition >= point.repetitions.most {
        return Err(format!("repetition {repetition}: there are {}, counted from 0", point.repetitions));
    }
    let point = shortened(point, repetition);
    let world = point.world.open().map_err(|e| e.to_string())?;
    let hops = world.hops().ok_or_else(|| {
        format!(
            "world {} sees packets at the ends only, not on every hop; take world = \"model\" for a picture",
            world.name()
        )
    })?;
    let scenario = point.scenario(repetition);
    let topology = Topology::new(&scenario.network).map_err(|e| e.to_string())?;
    let mut camera = Camera::of(&topology);
    let run = hops.tap(&scenario, point.seed_of(repetition), &mut camera).map_err(|e| e.to_string())?;
    let Camera { mut movie, .. } = camera;
    movie.title = format!("{point}, repetition {repetition}");
    movie.messages = run.records.iter().map(Message::of).collect();
    let delivered = movie.messages.iter().filter_map(|message| Some(message.reply.or(message.request)?[4]));
    movie.end = delivered.chain(movie.hops.iter().map(|hop| hop.ends)).max().unwrap_or(0);
    Ok(movie)
}

fn shortened(point: &Point, repetition: u32) -> Point {
    let least = u64::from(point.repetitions.least);
    let most = MOST_MESSAGES * least;
    let messages = if point.messages_in(repetition) > MOST_MESSAGES { most } else { point.messages };
    Point { messages, ..point.clone() }
}

impl Message {
    fn of(record: &Record) -> Self {
        let times = |leg: Leg| {
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

/// Sees every packet on every line.
struct Camera<'t> {
    topology: &'t Topology,
    movie: Movie,
    /// The lines by their ends.
    lines: BTreeMap<(InterfaceId, InterfaceId), usize>,
    /// Hops that are not over, by packet and the interface that it leaves.
    open: BTreeMap<(u32, InterfaceId), usize>,
}

impl<'t> Camera<'t> {
    fn of(topology: &'t Topology) -> Self {
        Self { topology, movie: Movie::default(), lines: BTreeMap::new(), open: BTreeMap::new() }
    }

    fn line(&mut self, from: InterfaceId, to: InterfaceId) -> usize {
        if let Some(line) = self.lines.get(&(from, to)) {
            return *line;
        }
        let segments = self.topology.segments().iter();
        let mut segment = segments.filter(|segment| segment.interfaces.contains(&from));
        let segment = segment.next().expect("an interface is on a segment");
        let node = |id: InterfaceId| {
            let node = self.topology.interfaces()[usize::from(id.0)].node;
            self.topology.node_names()[usize::from(node.0)].clone()
        };
        let lan = matches!(segment.medium, Medium::Lan(LineId(_)));
        self.movie.lines.push(Line { name: segment.label.clone(), from: node(from), to: node(to), lan });
        self.lines.insert((from, to), self.movie.lines.len() - 1);
        self.movie.lines.len() - 1
    }
}

impl Tap for Camera<'_> {
    fn packet(&mut self, now: Time, _: TapPoint<'_>, crossing: &Crossing, fate: Fate) {
        let Crossing { from, to, number, packet, .. } = crossing;
        let (key, now) = ((*number, *from), now.as_nanos());
        if fate == Fate::Sent && self.movie.hops.len() < MOST_HOPS {
            let line = self.line(*from, *to);
            self.open.insert(key, self.movie.hops.len());
            self.movie.hops.push(Hop {
                packet: *number,
                line,
                queued: now,
                sent: None,
                ends: now,
                lost: None,
                octets: packet.length(),
                flow: flow_of(packet),
                says: packet.to_string(),
            });
        }
        let Some(hop) = self.open.get(&key).map(|hop| &mut self.movie.hops[*hop]) else { return };
        match fate {
            Fate::Sent => {}
            Fate::Dequeued => hop.sent = Some(now),
            Fate::Received => hop.ends = now,
            lost => (hop.ends, hop.lost) = (now, Some(lost.name())),
        }
    }
}
