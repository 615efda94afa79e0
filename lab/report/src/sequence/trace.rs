//! The packets and deliveries of a run between two hosts.

use hol_base::{Duration, Seed, Time};
use hol_lab::toml_reader::from_text;
use hol_measure::Record;
use hol_model::Model;
use hol_network::{NetworkSpec, TapEvent, node_of};
use hol_scenario::{self as scenario, PacketEvent, PacketObserver, RunError, Scenario, World};
use hol_stack::TransportSpec;
use hol_wire::Packet;
use hol_workloads::WorkloadSpec;

use super::label::Origin;

/// The message that is lost, by number from 1.
const LOST_MESSAGE: u64 = 3;
/// The number of messages in the diagram.
const MESSAGES: u64 = 16;
/// The size of a message in octets.
const MESSAGE_SIZE: u32 = 100;
/// 10 ms one-way delay and a message every 4 ms: five messages are in flight when the loss is detected.
const NETWORK: &str = "delay = \"10ms\"\nrate = \"100Mbit\"";
const WORKLOAD: &str = "kind = \"oneway\"\nrate = \"250/s\"\nsize = \"100B\"";

/// A packet between the hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// Whether the packet goes from client to server.
    pub is_forward: bool,
    /// When the packet was sent.
    pub sent: Time,
    /// When the packet arrived; `None` if it was lost.
    pub arrived: Option<Time>,
    /// Whether the packet is a retransmission.
    pub is_retransmission: bool,
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

/// What a time-sequence diagram shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The packets in the order of transmission.
    pub arrows: Vec<Arrow>,
    /// The messages by number.
    pub deliveries: Vec<Delivery>,
}

/// Runs a scenario that loses the packet with the first copy of message [`LOST_MESSAGE`].
pub fn trace_one_loss(transport: TransportSpec) -> Result<Trace, RunError> {
    let mut scenario = Scenario::with_single_flow(
        from_text(NETWORK).expect("the built-in network is valid"),
        transport,
        from_text::<WorkloadSpec>(WORKLOAD).expect("the built-in workload is valid"),
        MESSAGES,
    );
    // A first run finds the packet that carries the message.
    let mut collector = PacketCollector::between(["client", "server"]);
    let undisturbed = Model.trace(&scenario, Seed(1), &mut collector)?;
    let first_sent = undisturbed.records[LOST_MESSAGE as usize - 1].request.map(|leg| leg.first_sent);
    let position = collector
        .packets
        .iter()
        .filter(|traced| traced.is_forward)
        .position(|traced| Some(traced.sent) == first_sent);
    let number = position.expect("the undisturbed run sends the message") + 1;
    scenario.network = network_that_drops(number);

    let mut collector = PacketCollector::between(["client", "server"]);
    let disturbed = Model.trace(&scenario, Seed(1), &mut collector)?;
    Ok(Trace::new(&collector, &disturbed.records, Some(MESSAGE_SIZE)))
}

/// Returns a network that drops the packet with this number, from 1, on its way to the server.
fn network_that_drops(packet: usize) -> NetworkSpec {
    let text = format!("{NETWORK}\n[up]\nloss = {{ drop = [{packet}] }}");
    from_text(&text).expect("the built-in network is valid")
}

/// Collects the packets that two hosts send and receive, up to the size of a diagram.
#[derive(Debug)]
pub struct PacketCollector {
    /// The names of the client and the server.
    hosts: [String; 2],
    packets: Vec<TracedPacket>,
    /// Number of packets that were omitted because the diagram was full.
    pub omitted: u64,
}

/// A packet between client and server.
#[derive(Debug)]
struct TracedPacket {
    packet: Packet,
    /// The octets by which the packet is recognised when it arrives.
    fingerprint: Vec<u8>,
    is_forward: bool,
    /// When the packet was sent.
    sent: Time,
    /// When the packet arrived.
    arrived: Option<Time>,
    /// Whether the packet was lost.
    is_lost: bool,
}

impl PacketCollector {
    /// The largest number of packets in a diagram.
    const MAX_PACKETS: usize = 600;

    /// Creates a collector of the packets between a client and a server.
    pub fn between(hosts: [&str; 2]) -> Self {
        Self { hosts: hosts.map(str::to_owned), packets: Vec::new(), omitted: 0 }
    }

    fn send(&mut self, now: Time, is_forward: bool, packet: &scenario::Packet<'_>) {
        if self.packets.len() >= Self::MAX_PACKETS {
            self.omitted += 1;
            return;
        }
        let octets = packet.octets();
        let value = match packet {
            scenario::Packet::Value(packet) => Ok((*packet).clone()),
            scenario::Packet::Octets(octets) => Packet::parse(octets.to_vec().into()),
        };
        let Ok(value) = value else { return };
        self.packets.push(TracedPacket {
            packet: value,
            fingerprint: fingerprint(&octets),
            is_forward,
            sent: now,
            arrived: None,
            is_lost: false,
        });
    }

    /// Records an arrival. Identical packets are matched in order, because links do not reorder them.
    fn receive(&mut self, now: Time, is_forward: bool, packet: &scenario::Packet<'_>) {
        let fingerprint = fingerprint(&packet.octets());
        if let Some(traced) =
            self.packets.iter_mut().find(|traced| traced.is_in_flight(is_forward, &fingerprint))
        {
            traced.arrived = Some(now);
        }
    }

    /// Records a loss, which is reported where and when the packet is sent.
    fn lose(&mut self, is_forward: bool, packet: &scenario::Packet<'_>) {
        let fingerprint = fingerprint(&packet.octets());
        if let Some(traced) =
            self.packets.iter_mut().rfind(|traced| traced.is_in_flight(is_forward, &fingerprint))
        {
            traced.is_lost = true;
        }
    }
}

impl TracedPacket {
    fn is_in_flight(&self, is_forward: bool, fingerprint: &[u8]) -> bool {
        self.is_forward == is_forward
            && self.fingerprint == fingerprint
            && self.arrived.is_none()
            && !self.is_lost
    }
}

/// Returns the octets without those that a router changes: time to live and header checksum. RFC 791 section 3.1.
fn fingerprint(octets: &[u8]) -> Vec<u8> {
    let mut fingerprint = octets.to_vec();
    for at in [8, 10, 11] {
        fingerprint.get_mut(at).into_iter().for_each(|octet| *octet = 0);
    }
    fingerprint
}

impl PacketObserver for PacketCollector {
    fn observe(&mut self, event: &PacketEvent<'_>) {
        let PacketEvent { time, point, event, packet } = event;
        let node = node_of(point.name);
        let Some(host) = self.hosts.iter().position(|host| host == node) else { return };
        match event {
            TapEvent::Sent => self.send(*time, host == 0, packet),
            TapEvent::Received => self.receive(*time, host == 1, packet),
            TapEvent::Dequeued | TapEvent::Corrupted => (),
            _ => self.lose(host == 0, packet),
        }
    }
}

impl Trace {
    /// Creates the trace of a run with these records, from its first message to its last. `size` is the size of a
    /// message in octets, if all messages have the same size.
    pub fn new(collector: &PacketCollector, records: &[Record], size: Option<u32>) -> Self {
        let first =
            records.first().and_then(|record| record.request).map_or(Time::ZERO, |leg| leg.first_sent);
        // After the last packet in the diagram, nothing is known about messages.
        let seen_last = collector.packets.last().filter(|_| collector.omitted > 0).map(|traced| traced.sent);
        let deliveries = records.iter().filter_map(delivery);
        let deliveries: Vec<Delivery> =
            deliveries.filter(|delivery| seen_last.is_none_or(|last| delivery.delivered <= last)).collect();
        let last = deliveries.iter().map(|d| d.delivered).max().unwrap_or(first);
        let mut origins = [Origin::new(size), Origin::new(size)];
        let mut arrows: Vec<Arrow> = Vec::new();
        for traced in &collector.packets {
            // The handshake and the close are omitted.
            if traced.sent < first || traced.sent > last {
                continue;
            }
            let side = usize::from(!traced.is_forward);
            let has_data = origins[side].set_from(&traced.packet);
            // Packets of the client without user data only acknowledge or close.
            if traced.is_forward && !has_data {
                continue;
            }
            let (is_forward, sent, arrived) = (traced.is_forward, traced.sent, traced.arrived);
            let mut label = origins[side].label(&origins[1 - side], &traced.packet);
            let is_it = |arrow: &Arrow| arrow.is_forward == is_forward && arrow.label == label;
            let is_retransmission = has_data && arrows.iter().any(is_it);
            if is_retransmission {
                label += ", again";
            }
            arrows.push(Arrow { is_forward, sent, arrived, is_retransmission, label });
        }
        Self { arrows, deliveries }
    }

    /// Describes how many packets the trace shows, how many of them are lost, and how many messages wait for
    /// them.
    pub fn describe_counts(&self) -> String {
        let lost = self.arrows.iter().filter(|arrow| arrow.arrived.is_none()).count();
        let waits: Vec<f64> = self.deliveries.iter().filter_map(Delivery::waited_ms).collect();
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let (packets, messages, waiting) = (self.arrows.len(), self.deliveries.len(), waits.len());
        format!(
            "{packets} packets, of which {lost} were lost; {messages} messages, of which {waiting} waited for others, for {longest:.1} ms at most"
        )
    }

    /// Describes how many messages waited at the receiver for another message, and how long.
    pub fn summary(&self) -> String {
        let waits: Vec<f64> = self.deliveries.iter().filter_map(Delivery::waited_ms).collect();
        let total: f64 = waits.iter().sum();
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let repaired = self.repair_time().map_or(0.0, Duration::as_millis_f64);
        match waits.len() {
            0 => format!(
                "Message {LOST_MESSAGE} arrives {repaired:.1} ms after its first packet was sent and lost; no other message waits for it."
            ),
            n => format!(
                "Message {LOST_MESSAGE} arrives {repaired:.1} ms after its first packet was sent and lost; {n} messages that have arrived wait for it, for {longest:.1} ms at most and {total:.1} ms in total."
            ),
        }
    }

    /// Returns the time from the transmission of the lost packet to the arrival of the lost message.
    fn repair_time(&self) -> Option<Duration> {
        let lost = self.arrows.iter().find(|arrow| arrow.arrived.is_none())?;
        let repaired = self.deliveries.iter().find(|delivery| delivery.message == LOST_MESSAGE)?;
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
