//! Builds a capture: packets between a client and a server, with a delay of 10 ms.

use bytes::Bytes;
use hol_base::Time;
use hol_measure::{Record, RecordKind, TransferTimes};
use hol_network::TapEvent;
use hol_passive::{ObservedPacket, TrafficMeasurement, measure};
use hol_wire::tcp::{Flags, Mptcp, Options, Segment, SeqNum};
use hol_wire::{Address, Packet, SendTimes, Transport};

pub const CLIENT: Address = hol_wire::ipv4(10, 0, 0, 1);
pub const SERVER: Address = hol_wire::ipv4(10, 0, 0, 2);
const PORTS: [u16; 2] = [40000, 80];

/// The number before the first octet of each direction; the client's numbers wrap early.
const INITIAL: [u32; 2] = [u32::MAX - 10, 5000];

#[derive(Default)]
pub struct CaptureBuilder {
    observed_packets: Vec<(Time, TapEvent, Vec<u8>)>,
    /// The identification, which distinguishes equal packets.
    identification: u16,
}

impl CaptureBuilder {
    /// Adds a packet that is sent, and arrives 10 ms later.
    pub fn sent(&mut self, ms: u64, direction: usize, transport: impl Into<Transport>) -> &mut Self {
        let octets = self.packet(direction, transport.into());
        let mut received = octets.clone();
        // A router decrements the time to live and updates the checksum.
        received[8] -= 1;
        let checksum = u16::from_be_bytes([received[10], received[11]]);
        received[10..12].copy_from_slice(&checksum.wrapping_add(0x100).to_be_bytes());
        self.observed_packets.push((Time::from_millis(ms), TapEvent::Sent, octets));
        self.observed_packets.push((Time::from_millis(ms + 10), TapEvent::Received, received));
        self
    }

    /// Adds a packet that is sent and lost.
    pub fn lost(&mut self, ms: u64, direction: usize, transport: impl Into<Transport>) -> &mut Self {
        let octets = self.packet(direction, transport.into());
        self.observed_packets.push((Time::from_millis(ms), TapEvent::Sent, octets.clone()));
        self.observed_packets.push((Time::from_millis(ms), TapEvent::Lost, octets));
        self
    }

    /// Adds a packet that arrives 10 ms later with a flipped bit.
    pub fn corrupted(&mut self, ms: u64, direction: usize, transport: impl Into<Transport>) -> &mut Self {
        let octets = self.packet(direction, transport.into());
        let mut received = octets.clone();
        received.last_mut().into_iter().for_each(|octet| *octet ^= 1);
        self.observed_packets.push((Time::from_millis(ms), TapEvent::Sent, octets));
        self.observed_packets.push((Time::from_millis(ms + 10), TapEvent::Corrupted, received));
        self
    }

    /// Adds a packet that is received, but was not captured when it was sent.
    pub fn received(&mut self, ms: u64, octets: &[u8]) -> &mut Self {
        self.observed_packets.push((Time::from_millis(ms), TapEvent::Received, octets.to_vec()));
        self
    }

    /// Starts a capture with a handshake: SYN at 0 ms, SYN/ACK at 10 ms, ACK at 20 ms.
    pub fn tcp() -> Self {
        let mut capture = Self::default();
        capture.sent(0, 0, syn(0)).sent(10, 1, syn(1)).sent(20, 0, segment(0, 0, b""));
        capture
    }

    /// Adds FINs at both positions; the client's is sent now.
    pub fn fin(&mut self, ms: u64, places: [u32; 2]) -> &mut Self {
        self.sent(ms, 0, with(Flags::FIN, segment(0, places[0], b"")));
        self.sent(ms + 10, 1, with(Flags::FIN, segment(1, places[1], b"")))
    }

    pub fn packet(&mut self, direction: usize, transport: Transport) -> Vec<u8> {
        let (from, to) = if direction == 0 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let mut octets = Packet::new(from, to, transport).to_bytes().to_vec();
        self.identification += 1;
        octets[4..6].copy_from_slice(&self.identification.to_be_bytes());
        let checksum = u32::from(u16::from_be_bytes([octets[10], octets[11]]));
        let folded = match checksum.checked_sub(self.identification.into()) {
            Some(sum) => sum,
            None => checksum + 0xffff - u32::from(self.identification),
        };
        octets[10..12].copy_from_slice(&(folded as u16).to_be_bytes());
        octets
    }

    pub fn traffic(&self) -> TrafficMeasurement {
        let mut observed_packets = self.observed_packets.clone();
        observed_packets.sort_by_key(|(time, ..)| *time);
        measure(observed_packets.iter().map(|(time, event, octets)| ObservedPacket {
            time: *time,
            event: *event,
            octets,
        }))
    }
}

/// Returns a segment that carries these octets at this position of its direction.
pub fn segment(direction: usize, place: u32, payload: &[u8]) -> Segment {
    Segment {
        source_port: PORTS[direction],
        destination_port: PORTS[1 - direction],
        seq: SeqNum(INITIAL[direction]) + place + 1,
        ack: SeqNum(0),
        flags: Flags::ACK,
        window: 500,
        options: Options::default(),
        payload: Bytes::copy_from_slice(payload),
        stamp: SendTimes::default(),
    }
}

pub fn syn(direction: usize) -> Segment {
    let flags = if direction == 0 { Flags::SYN } else { Flags::SYN | Flags::ACK };
    Segment { seq: SeqNum(INITIAL[direction]), flags, ..segment(direction, 0, b"") }
}

pub fn with(flags: Flags, segment: Segment) -> Segment {
    Segment { flags: segment.flags | flags, ..segment }
}

/// Returns a segment with an option of MPTCP, from another port of the client.
pub fn subflow(port: u16, option: Mptcp, mut segment: Segment) -> Segment {
    let own =
        if segment.source_port == 80 { &mut segment.destination_port } else { &mut segment.source_port };
    *own = port;
    segment.options.mptcp = Some(Box::new(option));
    segment
}

pub fn of_kind(traffic: &TrafficMeasurement, kind: RecordKind) -> Vec<Record> {
    traffic.records.iter().filter(|record| record.kind == kind).copied().collect()
}

pub fn transactions(traffic: &TrafficMeasurement) -> Vec<Record> {
    of_kind(traffic, RecordKind::Transaction)
}

pub fn connections(traffic: &TrafficMeasurement) -> Vec<Record> {
    of_kind(traffic, RecordKind::Connection)
}

/// Returns transfer times: first sent, last sent, arrived, delivered, in ms. The time of writing is that of first sending.
pub fn leg([first_sent, last_sent, arrived, delivered]: [u64; 4]) -> Option<TransferTimes> {
    let [first_sent, last_sent, arrived, delivered] =
        [first_sent, last_sent, arrived, delivered].map(Time::from_millis);
    Some(TransferTimes { written: first_sent, first_sent, last_sent, arrived, delivered })
}
