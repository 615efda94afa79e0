//! A TCP connection or SCTP association, as captured at one point.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::capture_clock::measured_delay;
use super::parsed_packet::{HandshakePacket, QuicHeader, SequenceFields};
use super::sender_trace::{SenderTrace, SentData};
use super::spin_bit::SpinBits;

/// A conversation; side 0 opened it, or sent the first captured packet. Times are in ns.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The address and port of each side in its first packet.
    pub sides: [SocketAddr; 2],
    /// The addresses of both sides on each path. RFC 9260 section 6.4.
    pub paths: Vec<[IpAddr; 2]>,
    /// The data sent by each side.
    pub traces: [SenderTrace; 2],
    /// The times of the handshake: request, response, and the opener's next packet.
    handshake_times: [Option<u64>; 3],
    /// Whether the request and the response were retransmitted.
    is_repeated: [bool; 2],
    /// Whether the latest request was answered by a reset.
    pub is_refused: bool,
    /// The number of packets of each side on each path.
    pub packets: Vec<[u64; 2]>,
    /// The time at which each timestamp of each side was first captured; `None` after its echo has been captured.
    timestamps: [BTreeMap<u32, Option<u64>>; 2],
    /// The shortest time to the echo of each side's timestamps.
    shortest_echo_times: [Option<u64>; 2],
    /// The longest segment that both ends accept, in octets of payload.
    pub mss: Option<u16>,
    /// Whether the capture contains the handshake.
    pub is_whole: bool,
    /// Whether the conversation uses QUIC. Only its handshake and spin bit are visible.
    pub is_quic: bool,
    /// The spin bits of QUIC.
    pub spin_bits: SpinBits,
}

/// The time in ns within which datagrams of a handshake belong to one flight.
const FLIGHT_TIME: u64 = 5_000_000;
/// The shortest segments into which a packet is split: the default of RFC 9293 section 3.7.1. A smaller MSS of an invalid capture would
/// make thousands of each packet.
const MIN_SEGMENT: u32 = 536;
/// Maximum number of paths of an association, as packets from forged addresses may have its ports and tag.
pub(super) const MAX_PATHS: usize = 64;
/// Maximum number of timestamps without an echo; older ones are removed.
const MAX_TIMESTAMPS: usize = 4096;

impl Conversation {
    /// Creates a conversation without packets.
    pub fn new(sides: [SocketAddr; 2]) -> Self {
        Self {
            sides,
            paths: vec![sides.map(|side| side.ip())],
            traces: Default::default(),
            handshake_times: [None; 3],
            is_repeated: [false; 2],
            is_refused: false,
            packets: vec![[0; 2]],
            timestamps: Default::default(),
            shortest_echo_times: [None; 2],
            mss: None,
            is_whole: false,
            is_quic: false,
            spin_bits: SpinBits::default(),
        }
    }

    /// Returns whether a packet starts another conversation between the same sockets. It must be a request
    /// with an initial number that neither side has used, and this side must have sent another request or
    /// data must have been captured. If both sides open a connection at the same time (RFC 9293 section 3.5),
    /// each has its own number.
    pub fn is_ended_by(&self, from: SocketAddr, fields: &SequenceFields) -> bool {
        let own = &self.traces[usize::from(self.sides[0] != from)];
        let has_data = self.traces.iter().any(|trace| !trace.arrived.is_empty());
        fields.handshake == Some(HandshakePacket::Request)
            && (has_data || own.begins_differently(fields.initial_number))
            && !self.traces.iter().any(|trace| trace.begins_with(fields.initial_number))
    }

    /// Returns the index of the path between these hosts; the first of them belongs to `side`. Paths beyond
    /// [`MAX_PATHS`] are counted as the first.
    pub fn path(&mut self, side: usize, [from, to]: [IpAddr; 2]) -> usize {
        let hosts = if side == 0 { [from, to] } else { [to, from] };
        match self.paths.iter().position(|path| *path == hosts) {
            Some(known) => known,
            None if self.paths.len() >= MAX_PATHS => 0,
            None => {
                self.paths.push(hosts);
                self.packets.push([0; 2]);
                self.paths.len() - 1
            }
        }
    }

    /// Handles a packet of `octets` octets sent by this side over a path.
    pub fn handle_packet(&mut self, at: u64, side: usize, path: usize, octets: u32, fields: &SequenceFields) {
        self.packets[path][side] += 1;
        self.open(at, side, fields);
        let delay = fields.timestamps.and_then(|(value, echo)| self.handle_timestamps(at, side, value, echo));
        // The accepting side sends responses; a retransmission by it waited for a timer or a duplicate.
        let answers = side == 1 && self.traces[side].is_new(&fields.data);
        self.traces[1 - side].acknowledge(at, fields, answers);
        let timestamp = fields.timestamps.map(|(value, _)| value);
        let sent = SentData { data: &fields.data, octets, delay, timestamp, path };
        match (&fields.data[..], self.mss.map(|mss| u32::from(mss).max(MIN_SEGMENT))) {
            ([], _) => {}
            // The receiver may reject data in a SYN, which is no loss: RFC 7413 section 2.
            _ if fields.handshake.is_some() => {}
            // A segment that the network card splits later is several packets on the path.
            (&[(first, count)], Some(mss)) if !fields.is_sctp && count > mss => {
                for part in (0..count).step_by(mss as usize) {
                    let length = mss.min(count - part);
                    let data = [(first.wrapping_add(part), length)];
                    let octets = octets - count + length;
                    let delay = delay.filter(|_| part == 0);
                    self.traces[side].handle_data(at, SentData { data: &data, octets, delay, ..sent });
                }
            }
            _ => self.traces[side].handle_data(at, sent),
        }
    }

    /// Handles a datagram of QUIC: its spin bit or, in the handshake, the first datagram of the opener, the first
    /// reply, and the opener's next datagram. RFC 9000 sections 7 and 17.4.
    pub fn handle_quic(&mut self, at: u64, side: usize, header: Option<QuicHeader>) {
        self.is_quic = true;
        if let Some(QuicHeader::Short(bit)) = header {
            self.spin_bits.handle_packet(at, side, bit);
        }
        self.packets[0][side] += 1;
        match (side, self.handshake_times) {
            (0, [None, ..]) => (self.handshake_times[0], self.is_whole) = (Some(at), true),
            // The first flight may have several datagrams; a retransmission has waited for the timer (RFC 9002 section 6.2.2).
            (0, [Some(first), None, _]) => self.is_repeated[0] |= at.saturating_sub(first) > FLIGHT_TIME,
            (1, [Some(_), None, _]) => self.handshake_times[1] = Some(at),
            (1, [_, Some(first), None]) => self.is_repeated[1] |= at.saturating_sub(first) > FLIGHT_TIME,
            (0, [_, Some(_), None]) => self.handshake_times[2] = Some(at),
            _ => {}
        }
    }

    fn open(&mut self, at: u64, side: usize, fields: &SequenceFields) {
        if let Some(first) = fields.initial_number {
            self.traces[side].set_first_number(first);
        }
        self.mss = fields.mss.map(|mss| self.mss.map_or(mss, |other| other.min(mss))).or(self.mss);
        match fields.handshake {
            Some(HandshakePacket::Request) => {
                // A request after a reset is a new attempt.
                self.is_repeated[0] |= self.handshake_times[0].is_some() && !self.is_refused;
                (self.handshake_times[0], self.is_whole) = (Some(at), true);
                self.is_refused = false;
            }
            Some(HandshakePacket::Reply) => {
                self.is_refused = false;
                self.is_repeated[1] |= self.handshake_times[1].is_some();
                self.handshake_times[1] = Some(at);
            }
            None if side == 1 && fields.is_reset && self.handshake_times[1].is_none() => {
                self.is_refused = self.handshake_times[0].is_some();
            }
            None if side == 0 && self.handshake_times[1].is_some() => {
                self.handshake_times[2].get_or_insert(at);
            }
            None => {}
        }
    }

    /// Stores a side's timestamp, and returns the time from the other side's timestamp to its echo. RFC 7323 section 4.
    fn handle_timestamps(&mut self, at: u64, side: usize, value: u32, echo: u32) -> Option<u64> {
        let own = &mut self.timestamps[side];
        own.entry(value).or_insert(Some(at));
        if own.len() > MAX_TIMESTAMPS {
            own.pop_first();
        }
        let others = &mut self.timestamps[1 - side];
        // An echo may belong to any packet with that timestamp: clocks tick every 1 ms to 1 s (section 5.4). So the first packet and the
        // first echo give an upper bound, and further echoes none.
        let delay = measured_delay(others.get_mut(&echo)?.take()?, at)?;
        // The receiver echoes the latest timestamp, so older ones have no further echoes.
        *others = others.split_off(&echo);
        let shortest = &mut self.shortest_echo_times[1 - side];
        *shortest = [*shortest, Some(delay)].into_iter().flatten().min();
        Some(delay)
    }

    /// Returns the shortest time between a side's packet on a path and the other side's reply to it.
    pub fn shortest_reply_time(&self, side: usize, path: usize) -> Option<u64> {
        let echo_time = self.shortest_echo_times[side].filter(|_| path == 0);
        let ack_delay = self.traces[side].shortest_ack_delay(path);
        let spin = self.spin_bits.shortest_reply_time(side).filter(|_| path == 0);
        [self.handshake_reply_time(side, path), ack_delay, echo_time, spin].into_iter().flatten().min()
    }

    /// Returns the longest of the paths' shortest round-trip times, in ns.
    pub fn longest_round_trip(&self) -> Option<u64> {
        let round_trip = |path: usize| {
            Some(self.shortest_reply_time(0, path)?.saturating_add(self.shortest_reply_time(1, path)?))
        };
        (0..self.paths.len()).filter_map(round_trip).max()
    }

    /// Returns the time between a side's packet and the other side's reply in the handshake, which is on the first path. RFC 6298 section 3:
    /// `None` if either packet was retransmitted.
    pub fn handshake_reply_time(&self, side: usize, path: usize) -> Option<u64> {
        let between = measured_delay(self.handshake_times[side]?, self.handshake_times[side + 1]?);
        between.filter(|_| path == 0 && !self.is_repeated[side..].contains(&true))
    }

    /// Returns whether the capture contains a request and a response.
    pub fn has_answered_handshake(&self) -> bool {
        self.handshake_times[..2].iter().all(Option::is_some)
    }

    /// Returns whether a packet of the handshake was retransmitted.
    pub fn is_ambiguous(&self) -> bool {
        self.is_repeated.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_round_trip_is_that_of_the_slowest_path() {
        const PACKETS: u32 = 640;
        let host = |number| IpAddr::from([10, 0, 0, number]);
        let mut conversation = Conversation::new([1, 2].map(|number| SocketAddr::new(host(number), 80)));
        let paths = 0..MAX_PATHS as u8;
        let paths = paths.map(|number| conversation.path(0, [host(1), host(2 + number)])).collect::<Vec<_>>();
        for number in 0..PACKETS {
            let (at, path) = (u64::from(number) * 1000, paths[number as usize % MAX_PATHS]);
            let data =
                SequenceFields { data: [(number, 1)].into_iter().collect(), ..SequenceFields::default() };
            let ack = SequenceFields { acknowledged: Some(number + 1), ..SequenceFields::default() };
            for side in 0..2 {
                conversation.handle_packet(at, side, path, 140, &data);
                conversation.handle_packet(at + 100 + path as u64, 1 - side, path, 140, &ack);
            }
        }
        assert_eq!(conversation.longest_round_trip(), Some(2 * (100 + MAX_PATHS as u64 - 1)));
    }
}
