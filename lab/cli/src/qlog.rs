//! `hol trace --qlog`: writes a run in qlog, the log format of QUIC implementations, which qvis draws.
//!
//! The log has qlog_version 0.3 and the events of draft-ietf-quic-qlog-quic-events. This draft has no events for other
//! transports, so their packets are generic events. Worlds with a kernel capture encrypted packets; the key log of the run
//! decrypts them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hol_base::{Duration, Time};
use hol_measure::Record;
use hol_network::{TapEvent, node_of};
use hol_scenario::{
    FIRST_CLIENT_PORT, Observer, Packet, PacketEvent, PacketObserver, Sample, SampleValue, SenderSample,
    Side, flow_of,
};
use hol_wire::quic::{CleartextPacket, Frame, PacketNumberSpace, StreamKind, Unprotector, packets};
use hol_wire::{Transport, quic};
use serde_json::{Value, json};

/// The interval at which congestion windows and round-trip times are sampled.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(1);

/// Collects a qlog trace for each end of each connection of the measured flow. The packets of one run are added
/// first, then the samples of a repetition of this run.
pub struct Qlog {
    /// The nodes of client and server.
    hosts: [String; 2],
    traces: BTreeMap<(Side, ConnectionId), EndpointTrace>,
    /// The connections of the client (index 0) and of the server (1), in the order of their first packets at that host.
    connections: [Vec<ConnectionId>; 2],
    /// Decrypts the captured packets of QUIC at the client (index 0) and at the server (1); `None` for other transports.
    unprotectors: Option<[Unprotector; 2]>,
    /// Number of packets sent.
    pub packets: u64,
    /// Number of captured packets of QUIC that could not be decrypted.
    pub sealed: u64,
}

/// The client's first destination connection ID for QUIC in the model world, otherwise the client's port.
type ConnectionId = u64;

/// The packets and the state of one end of a connection.
struct EndpointTrace {
    protocol: &'static str,
    /// The events of the trace, each with its time and as JSON.
    events: Vec<(Time, String)>,
    /// The last logged state of each path, by the peer's address.
    states: BTreeMap<String, Value>,
}

impl Qlog {
    /// Creates a log of the flow between a client and a server; `is_quic`: whether datagrams of UDP contain QUIC.
    pub fn between(hosts: [&str; 2], is_quic: bool) -> Self {
        Self {
            hosts: hosts.map(str::to_owned),
            traces: BTreeMap::new(),
            connections: Default::default(),
            unprotectors: is_quic.then(Default::default),
            packets: 0,
            sealed: 0,
        }
    }

    /// Writes the log. `title` describes the run.
    pub fn write(mut self, out: &mut impl Write, title: &str) -> io::Result<()> {
        let title = json!(title);
        write!(
            out,
            "{{\"qlog_version\": \"0.3\", \"qlog_format\": \"JSON\", \"title\": {title}, \"traces\": ["
        )?;
        let mut separator = "\n";
        for side in [Side::Client, Side::Server] {
            for (number, connection) in self.connections[0].iter().enumerate() {
                let Some(trace) = self.traces.remove(&(side, *connection)) else { continue };
                let vantage_point = json!({ "name": self.hosts[side as usize], "type": side.name() });
                write!(
                    out,
                    "{separator}{{\"title\": \"connection {number}, {}\", \"vantage_point\": {vantage_point}, ",
                    side.name()
                )?;
                trace.write(out)?;
                separator = ",\n";
            }
        }
        writeln!(out, "]}}")?;
        out.flush()
    }

    fn endpoint_trace(
        &mut self,
        side: Side,
        connection: ConnectionId,
        protocol: &'static str,
    ) -> &mut EndpointTrace {
        self.traces.entry((side, connection)).or_insert_with(|| {
            self.connections[side as usize].push(connection);
            EndpointTrace { protocol, events: Vec::new(), states: BTreeMap::new() }
        })
    }
}

impl PacketObserver for Qlog {
    fn add_secrets(&mut self, secrets: &str) {
        self.unprotectors.iter_mut().flatten().for_each(|unprotector| unprotector.add_key_log(secrets));
    }

    fn observe(&mut self, event: &PacketEvent<'_>) {
        match event.packet {
            Packet::Value(packet) => self.add_packet(event, packet),
            Packet::Octets(octets) => {
                if let Ok(packet) = hol_wire::Packet::parse(octets.to_vec().into()) {
                    self.add_packet(event, &packet);
                }
            }
        }
    }
}

impl Qlog {
    fn add_packet(&mut self, event: &PacketEvent<'_>, packet: &hol_wire::Packet) {
        if flow_of(packet) != 0 {
            return;
        }
        let (source, destination) = packet.ports();
        let (sender, receiver) = match source >= FIRST_CLIENT_PORT {
            true => (Side::Client, Side::Server),
            false => (Side::Server, Side::Client),
        };
        let port = source.max(destination).into();
        let (protocol, connection) = match &packet.transport {
            Transport::Quic(datagram) => ("QUIC", u64::from_be_bytes(datagram.secrets.origin)),
            Transport::Tcp(_) => ("TCP", port),
            Transport::Sctp(_) => ("SCTP", port),
            Transport::Udp(_) if self.unprotectors.is_some() => ("QUIC", port),
            Transport::Udp(_) => ("UDP", port),
        };
        let node = node_of(event.point.name);
        let is_at = |side: Side| self.hosts[side as usize] == node;
        let (side, what) = match event.event {
            TapEvent::Sent if is_at(sender) => (sender, "sent"),
            TapEvent::Received if is_at(receiver) => (receiver, "received"),
            dropped if dropped.is_drop() => (sender, dropped.name()),
            _ => return,
        };
        self.packets += u64::from(what == "sent");
        let opened = match &packet.transport {
            Transport::Udp(datagram) if !event.event.is_drop() => {
                self.open((side, sender), connection, &datagram.payload)
            }
            _ => None,
        };
        let trace = self.endpoint_trace(side, connection, protocol);
        match &packet.transport {
            _ if event.event.is_drop() => {
                let data = json!({ "marker_type": "drop", "message": format!("{what} at {}: {packet}", event.point.name) });
                trace.add(event.time, "generic:marker", &data);
            }
            Transport::Quic(datagram) => trace.add_quic(event.time, what, &datagram.payload),
            Transport::Udp(_) if opened.is_some() => {
                trace.add_quic(event.time, what, &opened.unwrap_or_default());
            }
            _ => trace.add(event.time, "generic:message", &json!({ "message": format!("{what} {packet}") })),
        }
    }
}

impl Qlog {
    /// Decrypts a datagram of QUIC that `sender` sent, as captured at `side`.
    fn open(&mut self, (side, sender): (Side, Side), connection: u64, datagram: &[u8]) -> Option<Vec<u8>> {
        let is_captured_by_sender = side == sender;
        let sender = if sender == Side::Client { quic::Side::Client } else { quic::Side::Server };
        let opened = self.unprotectors.as_mut()?[side as usize].open(connection, sender, datagram);
        // A datagram is captured at both ends.
        self.sealed += u64::from(is_captured_by_sender && opened.len() < datagram.len());
        Some(opened)
    }
}

impl Observer for Qlog {
    fn record(&mut self, _: usize, _: &Record) {}

    fn interval(&self) -> Option<Duration> {
        Some(SAMPLING_INTERVAL)
    }

    fn sample(&mut self, sample: &Sample) {
        let SampleValue::Sender(sender) = sample.value else { return };
        let connection = self.connections[sender.side as usize].get(sender.connection as usize);
        if let (0, Some(connection)) = (sender.flow, connection)
            && let Some(trace) = self.traces.get_mut(&(sender.side, *connection))
        {
            trace.add_state(sample.at, &sender);
        }
    }
}

impl EndpointTrace {
    fn add(&mut self, time: Time, name: &str, data: &Value) {
        self.events.push((time, event_text(time, name, data)));
    }

    /// Writes the part of a qlog trace that follows its vantage point: the common fields, and the events in order
    /// of time.
    fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        let fields =
            json!({ "protocol_type": [self.protocol], "time_format": "relative", "reference_time": 0 });
        write!(out, "\"common_fields\": {fields}, \"events\": [")?;
        self.events.sort_by_key(|(time, _)| *time);
        let mut separator = "\n";
        for (_, event) in &self.events {
            write!(out, "{separator}{event}")?;
            separator = ",\n";
        }
        write!(out, "]}}")
    }

    /// Adds the QUIC packets of a UDP datagram.
    fn add_quic(&mut self, time: Time, what: &str, datagram: &[u8]) {
        let name = format!("transport:packet_{what}");
        for packet in packets(datagram).map_while(Result::ok) {
            self.add(time, &name, &packet_fields(&packet));
        }
    }

    /// Adds the state of a path, if it has changed.
    fn add_state(&mut self, time: Time, sample: &SenderSample) {
        let state = &sample.path;
        let peer = state.peer.to_string();
        let fields = [
            ("smoothed_rtt", state.srtt.map(|rtt| json!(rtt.as_millis_f64()))),
            ("congestion_window", state.cwnd.map(Value::from)),
            ("bytes_in_flight", state.in_flight.map(Value::from)),
            ("ssthresh", state.ssthresh.map(Value::from)),
            // Bits per second.
            ("pacing_rate", state.pacing_rate.map(|octets| Value::from(8 * octets))),
            ("peer", Some(json!(peer))),
        ];
        let fields: serde_json::Map<String, Value> =
            fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        let fields = Value::Object(fields);
        if self.states.get(&peer) != Some(&fields) {
            self.add(time, "recovery:metrics_updated", &fields);
            self.states.insert(peer, fields);
        }
    }
}

/// Returns an event as JSON, with its time in milliseconds first.
fn event_text(time: Time, name: &str, data: &Value) -> String {
    let milliseconds = time.as_nanos() as f64 / 1e6;
    format!("{{\"time\": {milliseconds}, \"name\": \"{name}\", \"data\": {data}}}")
}

fn packet_fields(packet: &CleartextPacket<'_>) -> Value {
    let packet_type = match packet.space {
        PacketNumberSpace::Initial => "initial",
        PacketNumberSpace::Handshake => "handshake",
        PacketNumberSpace::Data if packet.is_zero_rtt => "0RTT",
        PacketNumberSpace::Data => "1RTT",
    };
    json!({
        "header": { "packet_type": packet_type, "packet_number": packet.number.number },
        "raw": { "length": packet.length() },
        "frames": packet.frames().map_while(Result::ok).map(|frame| frame_fields(&frame)).collect::<Vec<_>>(),
    })
}

fn frame_fields(frame: &Frame) -> Value {
    let kind_name = |kind: &StreamKind| match kind {
        StreamKind::Bidirectional => "bidirectional",
        StreamKind::Unidirectional => "unidirectional",
    };
    match frame {
        Frame::Padding(octets) => {
            json!({ "frame_type": "padding", "length": octets, "payload_length": octets })
        }
        Frame::Ping => json!({ "frame_type": "ping" }),
        Frame::Ack { ranges } => {
            let ranges: Vec<[u64; 2]> = ranges.iter().rev().map(|(low, high)| [*low, *high]).collect();
            json!({ "frame_type": "ack", "acked_ranges": ranges })
        }
        Frame::ResetStream { id, error, final_size } => {
            json!({ "frame_type": "reset_stream", "stream_id": id, "error_code": error, "final_size": final_size })
        }
        Frame::StopSending { id, error } => {
            json!({ "frame_type": "stop_sending", "stream_id": id, "error_code": error })
        }
        Frame::Crypto { offset, length } => {
            json!({ "frame_type": "crypto", "offset": offset, "length": length })
        }
        Frame::NewToken => json!({ "frame_type": "new_token", "token": { "type": "resumption" } }),
        Frame::Stream { id, offset, length, fin } => {
            json!({ "frame_type": "stream", "stream_id": id, "offset": offset, "length": length, "fin": fin })
        }
        Frame::MaxData(maximum) => json!({ "frame_type": "max_data", "maximum": maximum }),
        Frame::MaxStreamData(id, maximum) => {
            json!({ "frame_type": "max_stream_data", "stream_id": id, "maximum": maximum })
        }
        Frame::MaxStreams(kind, maximum) => {
            json!({ "frame_type": "max_streams", "stream_type": kind_name(kind), "maximum": maximum })
        }
        Frame::DataBlocked(limit) => json!({ "frame_type": "data_blocked", "limit": limit }),
        Frame::StreamDataBlocked(id, limit) => {
            json!({ "frame_type": "stream_data_blocked", "stream_id": id, "limit": limit })
        }
        Frame::StreamsBlocked(kind, limit) => {
            json!({ "frame_type": "streams_blocked", "stream_type": kind_name(kind), "limit": limit })
        }
        Frame::NewConnectionId { sequence, retire_prior_to, id } => {
            let id: String = id.iter().map(|octet| format!("{octet:02x}")).collect();
            json!({
                "frame_type": "new_connection_id",
                "sequence_number": sequence,
                "retire_prior_to": retire_prior_to,
                "connection_id": id,
            })
        }
        Frame::RetireConnectionId(sequence) => {
            json!({ "frame_type": "retire_connection_id", "sequence_number": sequence })
        }
        Frame::PathChallenge => json!({ "frame_type": "path_challenge" }),
        Frame::PathResponse => json!({ "frame_type": "path_response" }),
        Frame::ConnectionClose { by_application, error } => {
            let space = if *by_application { "application_error" } else { "transport_error" };
            json!({ "frame_type": "connection_close", "error_space": space, "error_code": error })
        }
        Frame::HandshakeDone => json!({ "frame_type": "handshake_done" }),
        Frame::Datagram(length) => json!({ "frame_type": "datagram", "length": length }),
        // draft-ietf-quic-ack-frequency; qlog has no names for its frames.
        Frame::AckFrequency { .. } => json!({ "frame_type": "unknown", "raw_frame_type": 0xaf }),
        Frame::ImmediateAck => json!({ "frame_type": "unknown", "raw_frame_type": 0x1f }),
    }
}
