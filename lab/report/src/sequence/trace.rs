//! The packets and deliveries of a run between two hosts.

use hol_base::{Duration, Seed, Time};
use hol_lab::toml_reader::from_text;
use hol_measure::Record;
use hol_model::Model;
use hol_network::{NetworkSpec, TapEvent};
use hol_scenario::{self as scenario, PacketEvent, PacketObserver, RunError, Scenario, World};
use hol_stack::TransportSpec;
use hol_wire::Packet;
use hol_workloads::WorkloadSpec;

use super::label::Origin;

/// The message that is lost, by number from 1.
const LOST: u64 = 3;
/// The number of messages in the diagram.
const MESSAGES: u64 = 16;
/// The size of a message in octets.
const SIZE: u32 = 100;
/// 10 ms one-way delay and a message every 4 ms: five messages are under way when the loss is detected.
const NETWORK: &str = "delay = \"10ms\"\nrate = \"100Mbit\"";
const WORKLOAD: &str = "kind = \"oneway\"\nrate = \"250/s\"\nsize = \"100B\"";

/// A packet between the hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// Whether the packet goes from client to server.
    pub forward: bool,
    /// When the packet was sent.
    pub sent: Time,
    /// When the packet arrived; `None` if it was lost.
    pub arrived: Option<Time>,
    /// Whether the packet is a retransmission.
    pub again: bool,
    /// Label of the arrow.
    pub label: String,
}

/// A message delivered to the receiving application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// Number of the message, from 1.
    pub message: u64,
    /// Stream of the message.
    pub stream: u16,
    /// When the message was complete at the receiver.
    pub arrived: Time,
    /// When the message was delivered to the application.
    pub delivered: Time,
}

impl Delivery {
    /// Returns how long the message waited at the receiver, in ms; `None` if that is too short to be
    /// visible.
    pub fn waited_ms(&self) -> Option<f64> {
        let wait = self.delivered.since(self.arrived).as_millis_f64();
        (wait > 0.1).then_some(wait)
    }
}

/// The contents of a diagram.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The packets in the order of transmission.
    pub arrows: Vec<Arrow>,
    /// The messages by number.
    pub deliveries: Vec<Delivery>,
}

/// Runs a scenario that loses the packet with the first copy of message [`LOST`].
pub fn of_one_loss(transport: TransportSpec) -> Result<Trace, RunError> {
    let mut scenario = Scenario::alone(
        from_text(NETWORK).expect("a network of ours"),
        transport,
        from_text::<WorkloadSpec>(WORKLOAD).expect("a workload of ours"),
        MESSAGES,
    );
    // A first run finds the packet that carries the message.
    let mut watch = Watch::between(["client", "server"]);
    let undisturbed = Model.trace(&scenario, Seed(1), &mut watch)?;
    let left = undisturbed.records[LOST as usize - 1].request.map(|leg| leg.first_sent);
    let position = watch.seen.iter().filter(|seen| seen.forward).position(|seen| Some(seen.sent) == left);
    let number = position.expect("an undisturbed message is sent") + 1;
    scenario.network = losing(number);

    let mut watch = Watch::between(["client", "server"]);
    let disturbed = Model.trace(&scenario, Seed(1), &mut watch)?;
    Ok(Trace::new(&watch, &disturbed.records, Some(SIZE)))
}

fn losing(packet: usize) -> NetworkSpec {
    let text = format!("{NETWORK}\n[up]\nloss = {{ drop = [{packet}] }}");
    from_text(&text).expect("a network of ours")
}

/// Collects the packets that two hosts send and receive, up to the size of a diagram.
#[derive(Debug)]
pub struct Watch {
    /// The client and the server.
    hosts: [String; 2],
    seen: Vec<Seen>,
    /// Number of packets that were omitted because the diagram was full.
    pub left_out: u64,
}

#[derive(Debug)]
struct Seen {
    packet: Packet,
    /// The octets by which it is recognised when it arrives.
    print: Vec<u8>,
    forward: bool,
    sent: Time,
    arrived: Option<Time>,
    /// Whether it was lost.
    is_lost: bool,
}

impl Watch {
    /// The largest number of packets in a diagram.
    const MOST: usize = 600;

    /// Observes the packets between a client and a server.
    pub fn between(hosts: [&str; 2]) -> Self {
        Self { hosts: hosts.map(str::to_owned), seen: Vec::new(), left_out: 0 }
    }

    fn send(&mut self, now: Time, forward: bool, packet: &scenario::Packet<'_>) {
        if self.seen.len() >= Self::MOST {
            self.left_out += 1;
            return;
        }
        let octets = packet.octets();
        let value = match packet {
            scenario::Packet::Value(packet) => Ok((*packet).clone()),
            scenario::Packet::Octets(octets) => Packet::parse(octets.to_vec().into()),
        };
        let Ok(value) = value else { return };
        self.seen.push(Seen {
            packet: value,
            print: print(&octets),
            forward,
            sent: now,
            arrived: None,
            is_lost: false,
        });
    }

    /// Notes an arrival. Identical packets are matched in order, because links do not reorder them.
    fn receive(&mut self, now: Time, forward: bool, packet: &scenario::Packet<'_>) {
        let print = print(&packet.octets());
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.is_under_way(forward, &print)) {
            seen.arrived = Some(now);
        }
    }

    /// Notes a loss, which is reported where and when the packet is sent.
    fn lose(&mut self, forward: bool, packet: &scenario::Packet<'_>) {
        let print = print(&packet.octets());
        if let Some(seen) = self.seen.iter_mut().rfind(|seen| seen.is_under_way(forward, &print)) {
            seen.is_lost = true;
        }
    }
}

impl Seen {
    fn is_under_way(&self, forward: bool, print: &[u8]) -> bool {
        self.forward == forward && self.print == print && self.arrived.is_none() && !self.is_lost
    }
}

/// Returns the octets without those that a router changes: time to live and header checksum. RFC 791 section 3.1.
fn print(octets: &[u8]) -> Vec<u8> {
    let mut print = octets.to_vec();
    for at in [8, 10, 11] {
        print.get_mut(at).into_iter().for_each(|octet| *octet = 0);
    }
    print
}

impl PacketObserver for Watch {
    fn observe(&mut self, sighting: &PacketEvent<'_>) {
        let PacketEvent { time, point, fate, packet } = sighting;
        let node = point.name.rsplit_once(':').map_or(point.name, |(node, _)| node);
        let Some(host) = self.hosts.iter().position(|host| host == node) else { return };
        match fate {
            TapEvent::Sent => self.send(*time, host == 0, packet),
            TapEvent::Received => self.receive(*time, host == 1, packet),
            TapEvent::Dequeued | TapEvent::Corrupted => (),
            _ => self.lose(host == 0, packet),
        }
    }
}

impl Trace {
    /// Creates the trace from the first message to the last, of a run with these records whose messages have
    /// `size` octets, if all have the same size.
    pub fn new(watch: &Watch, records: &[Record], size: Option<u32>) -> Self {
        let first =
            records.first().and_then(|record| record.request).map_or(Time::ZERO, |leg| leg.first_sent);
        // After the last packet in the diagram nothing is known.
        let seen_last = watch.seen.last().filter(|_| watch.left_out > 0).map(|seen| seen.sent);
        let deliveries = records.iter().filter_map(delivery);
        let deliveries: Vec<Delivery> =
            deliveries.filter(|delivery| seen_last.is_none_or(|last| delivery.delivered <= last)).collect();
        let last = deliveries.iter().map(|d| d.delivered).max().unwrap_or(first);
        let mut origins = [Origin::new(size), Origin::new(size)];
        let mut arrows: Vec<Arrow> = Vec::new();
        for seen in &watch.seen {
            // The handshake and the close are omitted.
            if seen.sent < first || seen.sent > last {
                continue;
            }
            let side = usize::from(!seen.forward);
            let has_data = origins[side].see(&seen.packet);
            // Packets of the client without user data only acknowledge or close.
            if seen.forward && !has_data {
                continue;
            }
            let (forward, sent, arrived) = (seen.forward, seen.sent, seen.arrived);
            let mut label = origins[side].label(&origins[1 - side], &seen.packet);
            let is_it = |arrow: &Arrow| arrow.forward == forward && arrow.label == label;
            let again = has_data && arrows.iter().any(is_it);
            if again {
                label += ", again";
            }
            arrows.push(Arrow { forward, sent, arrived, again, label });
        }
        Self { arrows, deliveries }
    }

    /// Describes how many packets the trace shows, how many of them are lost, and how many messages wait for
    /// them.
    pub fn counts(&self) -> String {
        let lost = self.arrows.iter().filter(|arrow| arrow.arrived.is_none()).count();
        let waits: Vec<f64> = self.deliveries.iter().filter_map(Delivery::waited_ms).collect();
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let (packets, messages, waiting) = (self.arrows.len(), self.deliveries.len(), waits.len());
        format!(
            "{packets} packets, {lost} of them lost; {messages} messages, {waiting} of which waited for others, {longest:.1} ms at most"
        )
    }

    /// Describes how many messages waited at the receiver for another one, and how long.
    pub fn summary(&self) -> String {
        let waits: Vec<f64> = self.deliveries.iter().filter_map(Delivery::waited_ms).collect();
        let total: f64 = waits.iter().sum();
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let repaired = self.lost_for().map_or(0.0, Duration::as_millis_f64);
        match waits.len() {
            0 => format!(
                "Message {LOST} arrives {repaired:.1} ms after its first packet was sent and lost; no other message waits for it."
            ),
            n => format!(
                "Message {LOST} arrives {repaired:.1} ms after its first packet was sent and lost; {n} messages that had arrived wait for it, {longest:.1} ms at most and {total:.1} ms in total."
            ),
        }
    }

    /// Returns the time from the transmission of the lost packet to the arrival of its retransmission.
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
