//! A run with one loss, seen through a tap.

use hol_base::{Duration, Seed, Time};
use hol_measure::Record;
use hol_model::run;
use hol_network::NetworkSpec;
use hol_network::{Crossing, Fate, Tap, TapPoint};
use hol_scenario::{RunError, Scenario};
use hol_stack::TransportSpec;
use hol_wire::Packet;
use hol_workloads::WorkloadSpec;

use super::label::Origin;

/// Which message is lost, by number from 1.
const LOST: u64 = 3;
/// Messages in the diagram.
const MESSAGES: u64 = 16;
/// Octets of a message.
const SIZE: u32 = 100;
/// 10 ms one way and a message every 4 ms: five messages are under way when a loss is noticed.
const NETWORK: &str = "delay = \"10ms\"\nrate = \"100Mbit\"";
const WORKLOAD: &str = "kind = \"oneway\"\nrate = \"250/s\"\nsize = \"100B\"";

/// A packet on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// From client to server, or back.
    pub forward: bool,
    /// When it left.
    pub sent: Time,
    /// When it came; `None` if it was lost.
    pub arrived: Option<Time>,
    /// The same user data was sent before.
    pub again: bool,
    /// What it says.
    pub label: String,
}

/// A message given to the receiving application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// Its number, from 1.
    pub message: u64,
    /// Its stream.
    pub stream: u16,
    /// When it was complete at the receiver.
    pub arrived: Time,
    /// When the application had it.
    pub delivered: Time,
}

impl Delivery {
    /// How long it waited at the receiver in ms; `None` if that is too short to be seen.
    pub fn waited_ms(&self) -> Option<f64> {
        let wait = self.delivered.since(self.arrived).as_millis_f64();
        (wait > 0.1).then_some(wait)
    }
}

/// What a diagram shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Packets in the order in which they were sent.
    pub arrows: Vec<Arrow>,
    /// Messages in the order of their numbers.
    pub deliveries: Vec<Delivery>,
}

/// Loses the packet that carries message [`LOST`] for the first time.
pub fn of_one_loss(transport: TransportSpec) -> Result<Trace, RunError> {
    let mut scenario = Scenario::alone(
        toml::from_str(NETWORK).expect("a network of ours"),
        transport,
        toml::from_str::<WorkloadSpec>(WORKLOAD).expect("a workload of ours"),
        MESSAGES,
    );
    // A first run tells which packet carries the message.
    let mut watch = Watch::default();
    let undisturbed = run(&scenario, Seed(1), Some(&mut watch))?;
    let left = undisturbed.records[LOST as usize - 1].request.map(|leg| leg.first_sent);
    let position = watch.seen.iter().filter(|seen| seen.forward).position(|seen| Some(seen.sent) == left);
    let number = position.expect("an undisturbed message is sent") + 1;
    scenario.network = losing(number);

    let mut watch = Watch::default();
    let disturbed = run(&scenario, Seed(1), Some(&mut watch))?;
    Ok(Trace::new(&watch, &disturbed.records))
}

fn losing(packet: usize) -> NetworkSpec {
    let text = format!("{NETWORK}\n[up]\nloss = {{ drop = [{packet}] }}");
    toml::from_str(&text).expect("a network of ours")
}

/// Collects what leaves and what arrives.
#[derive(Default)]
struct Watch {
    seen: Vec<Seen>,
}

struct Seen {
    packet: Packet,
    forward: bool,
    sent: Time,
    arrived: Option<Time>,
}

impl Tap for Watch {
    fn packet(&mut self, now: Time, point: TapPoint<'_>, crossing: &Crossing, fate: Fate) {
        match fate {
            Fate::Sent => {
                let (packet, forward) = (crossing.packet.clone(), point.name.starts_with("client"));
                self.seen.push(Seen { packet, forward, sent: now, arrived: None });
            }
            // One link and nothing sent before it: a packet's number is its place.
            Fate::Received => self.seen[crossing.number as usize].arrived = Some(now),
            _ => (),
        }
    }
}

impl Trace {
    fn new(watch: &Watch, records: &[Record]) -> Self {
        let deliveries: Vec<Delivery> = records.iter().filter_map(delivery).collect();
        let first =
            records.first().and_then(|record| record.request).map_or(Time::ZERO, |leg| leg.first_sent);
        let last = deliveries.iter().map(|d| d.delivered).max().unwrap_or(first);
        let mut origin = Origin::new(SIZE);
        let mut arrows: Vec<Arrow> = Vec::new();
        for seen in &watch.seen {
            // The handshake before and the closing after are left out.
            if seen.sent < first || seen.sent > last {
                continue;
            }
            // What the client sends without user data only confirms or closes.
            if seen.forward && !origin.see(&seen.packet) {
                continue;
            }
            let (forward, sent, arrived) = (seen.forward, seen.sent, seen.arrived);
            let mut label = origin.label(&seen.packet);
            let again = forward && arrows.iter().any(|arrow| arrow.forward && arrow.label == label);
            if again {
                label += ", again";
            }
            arrows.push(Arrow { forward, sent, arrived, again, label });
        }
        Self { arrows, deliveries }
    }

    /// How many messages waited at the receiver for another, and how long.
    pub fn summary(&self) -> String {
        let waits: Vec<f64> = self.deliveries.iter().filter_map(Delivery::waited_ms).collect();
        let total: f64 = waits.iter().sum();
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let repaired = self.lost_for().map_or(0.0, Duration::as_millis_f64);
        match waits.len() {
            0 => format!("Message {LOST} is repaired after {repaired:.1} ms; no other message waits for it."),
            n => format!(
                "Message {LOST} is repaired after {repaired:.1} ms; {n} messages that had arrived wait for it, {longest:.1} ms at most and {total:.1} ms together."
            ),
        }
    }

    /// From the sending of the lost packet to the arrival of its repair.
    fn lost_for(&self) -> Option<Duration> {
        let lost = self.arrows.iter().find(|arrow| arrow.arrived.is_none())?;
        let repaired = self.deliveries.iter().find(|delivery| delivery.message == LOST)?;
        Some(repaired.arrived.since(lost.sent))
    }
}

fn delivery(record: &Record) -> Option<Delivery> {
    let leg = record.request?;
    Some(Delivery {
        message: record.id + 1,
        stream: record.stream,
        arrived: leg.arrived,
        delivered: leg.delivered,
    })
}
