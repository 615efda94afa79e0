//! The label of an arrow: a short description of the packet with small numbers.

use hol_wire::sctp::{Chunk, Sack, Tsn};
use hol_wire::tcp::SeqNum;
use hol_wire::{Packet, Transport, sctp, tcp};

/// The TSN or sequence number of the first user data that a diagram shows. Labels count from it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    tsn: Option<Tsn>,
    seq: Option<SeqNum>,
    /// The size of a message in octets, with which the label of a TCP segment names its messages; without it, the label
    /// names octets.
    size: Option<u32>,
}

impl Origin {
    /// Creates an origin without data; `size` is the size of a message in octets, if all have the same size.
    pub fn new(size: Option<u32>) -> Self {
        Self { size, ..Self::default() }
    }

    /// Stores the TSN or sequence number of the packet's user data, unless an earlier one is stored. Returns whether
    /// the packet carries user data.
    pub fn set_from(&mut self, packet: &Packet) -> bool {
        match &packet.transport {
            Transport::Sctp(packet) => {
                let first = packet.chunks.iter().find_map(Chunk::user_data).map(|data| data.tsn);
                self.tsn = self.tsn.or(first);
                first.is_some()
            }
            Transport::Tcp(segment) => {
                let first = (!segment.payload.is_empty()).then_some(segment.seq);
                self.seq = self.seq.or(first);
                first.is_some()
            }
            Transport::Udp(_) => true,
            Transport::Quic(datagram) => !datagram.carried.is_empty(),
        }
    }

    /// Returns the label of a packet; acknowledged numbers are relative to the origin of the other
    /// direction.
    pub fn label(&self, acknowledged: &Self, packet: &Packet) -> String {
        match &packet.transport {
            Transport::Sctp(packet) => self.sctp(acknowledged, packet),
            Transport::Tcp(segment) => self.tcp(acknowledged, segment),
            Transport::Udp(datagram) => datagram.to_string(),
            Transport::Quic(datagram) => datagram.to_string(),
        }
    }

    fn tsn(&self, tsn: Tsn) -> i64 {
        self.tsn.map_or(0, |first| i64::from(tsn.distance_from(first)) + 1)
    }

    fn sctp(&self, acknowledged: &Self, packet: &sctp::Packet) -> String {
        let words: Vec<String> = packet.chunks.iter().map(|chunk| self.chunk(acknowledged, chunk)).collect();
        words.join(" + ")
    }

    fn chunk(&self, acknowledged: &Self, chunk: &Chunk) -> String {
        match chunk {
            Chunk::Data(data) => format!("DATA {} · stream {}", self.tsn(data.tsn), data.stream),
            Chunk::IData(data) => format!("I-DATA {} · stream {}", self.tsn(data.tsn), data.stream),
            Chunk::Sack(sack) => acknowledged.sack(sack),
            Chunk::Heartbeat(_) => "HEARTBEAT".into(),
            Chunk::HeartbeatAck(_) => "HEARTBEAT ACK".into(),
            _ => "control".into(),
        }
    }

    fn sack(&self, sack: &Sack) -> String {
        let cumulative = self.tsn(sack.cumulative_tsn);
        let gaps: Vec<String> = sack
            .gaps
            .iter()
            .map(|gap| range(cumulative + i64::from(gap.start), cumulative + i64::from(gap.end)))
            .collect();
        if gaps.is_empty() {
            format!("SACK {cumulative}")
        } else {
            format!("SACK {cumulative}, {}", gaps.join(", "))
        }
    }

    /// Returns the message that contains a sequence number, or else the octet, counted from 1.
    fn message(&self, seq: SeqNum) -> i64 {
        let octets = self.seq.map_or(0, |first| i64::from(seq.distance_from(first)));
        octets.div_euclid(i64::from(self.size.unwrap_or(1).max(1))) + 1
    }

    fn tcp(&self, acknowledged: &Self, segment: &tcp::Segment) -> String {
        if !segment.payload.is_empty() {
            let last = segment.seq + (segment.payload.len() as u32 - 1);
            let what = if self.size.is_some() { "data" } else { "octets" };
            return format!("{what} {}", range(self.message(segment.seq), self.message(last)));
        }
        let next = acknowledged.message(segment.ack) - 1;
        let blocks: Vec<String> = segment
            .options
            .sack
            .iter()
            .map(|block| range(acknowledged.message(block.left), acknowledged.message(block.right) - 1))
            .collect();
        if blocks.is_empty() {
            format!("ACK {next}")
        } else {
            format!("ACK {next}, SACK {}", blocks.join(", "))
        }
    }
}

fn range(first: i64, last: i64) -> String {
    if first == last { first.to_string() } else { format!("{first}–{last}") }
}
