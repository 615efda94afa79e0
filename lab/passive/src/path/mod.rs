//! Estimates a path from a capture: rate, delay, jitter, loss and its bursts, reordering, MTU, and their uncertainty.
//!
//! `parsed_packet` parses a packet, `conversation` combines the two directions, `sender_trace` follows one of them; `rate` and `loss`
//! summarise; `path_estimate` is the result, as the `[network]` of an experiment.
//!
//! One capture at one point is enough, at either end or between. It cannot distinguish the path's share of a host's response time, the
//! longer of the two directions, a loss at the end of the data (in a capture at the receiver), or a full queue from a bad link as the cause
//! of a loss.

mod conversation;
mod duplicate_filter;
mod loss;
mod parsed_packet;
mod path_estimate;
mod rate;
mod sender_trace;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_measure::{Bounds, CONFIDENCE, quantile};

pub(crate) use conversation::Conversation;
pub(crate) use duplicate_filter::DuplicateFilter;
pub use loss::{Bursts, LossEstimate, Reordering};
pub(crate) use parsed_packet::{ParsedPacket, TransportContent};
use path_estimate::MIN_SAMPLES;
pub use path_estimate::{Mtu, PathEstimate, RoundTrip};
pub use rate::Rate;
use sender_trace::{Delivery, Outcome};

/// Estimates the paths between hosts from their packets.
#[derive(Debug, Default)]
pub struct PathLearner {
    /// The index of the latest conversation between two sockets, the lower one first.
    by_sockets: BTreeMap<[(IpAddr, u16); 2], usize>,
    conversations: Vec<Conversation>,
    /// Number of packets and longest packet per pair of hosts, the lower one first.
    pairs: BTreeMap<[IpAddr; 2], (u64, u32)>,
    /// The times of the first and the last packet, in ns.
    span: Option<[u64; 2]>,
    /// Number of packets that could not be parsed.
    unread: u64,
    duplicate_filter: DuplicateFilter,
    /// The number of UDP datagrams, and of those among them with a long header of QUIC.
    datagrams: [u64; 2],
}

/// The error of a capture that does not allow an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EstimateError {
    /// There are no IP packets.
    #[error("the capture contains no IP packet")]
    NoPackets,
    /// The capture contains no packets with numbers that the peer acknowledges.
    #[error(
        "a path can be estimated from TCP, SCTP and QUIC handshakes, but the capture has none; {datagrams} of its {packets} packets are UDP"
    )]
    NothingAcknowledged {
        /// The number of all packets.
        packets: u64,
        /// The number of UDP packets among them.
        datagrams: u64,
    },
}

impl PathLearner {
    /// Handles a packet, from its IP header on, that was captured at time `at` in ns.
    pub fn handle_packet(&mut self, at: u64, ip: &[u8]) {
        let Some(parsed_packet) = ParsedPacket::parse(ip) else {
            self.unread += 1;
            return;
        };
        // Times never decrease, even if the clock steps back.
        let [first, last] = self.span.unwrap_or([at; 2]);
        let at = at.max(last);
        self.span = Some([first, at]);
        if self.duplicate_filter.is_duplicate(at, ip, &parsed_packet) {
            return;
        }
        let (packets, longest) = self.pairs.entry(ascending(parsed_packet.hosts)).or_default();
        *packets += 1;
        *longest = (*longest).max(parsed_packet.length);
        let sockets = [
            (parsed_packet.hosts[0], parsed_packet.ports[0]),
            (parsed_packet.hosts[1], parsed_packet.ports[1]),
        ];
        match &parsed_packet.content {
            TransportContent::Numbered(fields) => {
                let index = self.find(sockets, fields);
                let conversation = &mut self.conversations[index];
                let side = usize::from(conversation.sides[0] != sockets[0]);
                conversation.handle_packet(at, side, parsed_packet.length, fields);
            }
            TransportContent::Datagram(_) => {
                self.handle_quic_handshake(at, sockets, parsed_packet.is_long_quic);
            }
            TransportContent::Nothing => {}
        }
    }

    /// Handles a datagram that may belong to QUIC, whose handshake shows a round trip: RFC 9000 section 17.2.
    fn handle_quic_handshake(&mut self, at: u64, sockets: [(IpAddr, u16); 2], is_long: bool) {
        self.datagrams[0] += 1;
        self.datagrams[1] += u64::from(is_long);
        let known = self.by_sockets.get(&ascending(sockets)).copied();
        if known.is_none() && !is_long {
            return;
        }
        let index = known.unwrap_or_else(|| self.find(sockets, &parsed_packet::SequenceFields::default()));
        let conversation = &mut self.conversations[index];
        let side = usize::from(conversation.sides[0] != sockets[0]);
        conversation.handle_quic_handshake(at, side);
    }

    fn find(&mut self, sockets: [(IpAddr, u16); 2], fields: &parsed_packet::SequenceFields) -> usize {
        let key = ascending(sockets);
        let known = self.by_sockets.get(&key).copied();
        known.filter(|index| !self.conversations[*index].is_ended_by(fields)).unwrap_or_else(|| {
            self.conversations.push(Conversation::new(sockets));
            self.by_sockets.insert(key, self.conversations.len() - 1);
            self.conversations.len() - 1
        })
    }

    /// Returns the path between the two hosts with the most packets, or with `host` as one of them.
    pub fn finish(self, host: Option<IpAddr>) -> Result<PathEstimate, EstimateError> {
        let span = self.span.ok_or(EstimateError::NoPackets)?;
        let pairs = self.pairs.iter().filter(|(pair, _)| host.is_none_or(|host| pair.contains(&host)));
        let (pair, (packets, longest)) =
            pairs.max_by_key(|(_, (packets, _))| *packets).ok_or(EstimateError::NoPackets)?;
        let belongs =
            |conversation: &&Conversation| ascending(conversation.sides.map(|side| side.0)) == *pair;
        let conversations: Vec<&Conversation> = self.conversations.iter().filter(belongs).collect();
        if conversations.is_empty() {
            return Err(EstimateError::NothingAcknowledged {
                packets: *packets,
                datagrams: self.datagrams[0],
            });
        }
        let client = conversations.first().map_or(pair[0], |conversation| conversation.sides[0].0);
        let server = if pair[0] == client { pair[1] } else { pair[0] };
        let flows = Flows { conversations: &conversations, client };
        let rates = [0, 1].map(|direction| rate::estimate_rate(&flows.deliveries(direction)));
        let is_busy = rates.iter().any(|rate| matches!(rate, Some(Rate::Measured { .. })));
        let round_trip = flows.round_trip(is_busy);
        let max_reordering_delay = round_trip.as_ref().map(|round_trip| round_trip.shortest * 4 / 5);
        Ok(PathEstimate {
            hosts: [client, server],
            packets: *packets,
            other_packets: self.pairs.values().map(|(packets, _)| packets).sum::<u64>() - packets,
            unread: self.unread,
            duplicates: self.duplicate_filter.repeats,
            is_quic: conversations.iter().all(|conversation| conversation.is_quic),
            conversations: conversations.len(),
            is_whole: conversations.iter().all(|conversation| conversation.is_whole),
            duration_ns: span[1] - span[0],
            rates,
            losses: [0, 1]
                .map(|direction| loss::estimate_loss(&flows.outcomes(direction, max_reordering_delay))),
            answered: [0, 1].map(|direction| flows.is_answered(direction)),
            mtu: Mtu { longest: *longest, agreed: flows.agreed_mtu(client) },
            round_trip,
        })
    }
}

fn ascending<T: Ord + Copy>([one, other]: [T; 2]) -> [T; 2] {
    if one <= other { [one, other] } else { [other, one] }
}

/// The conversations of two hosts; direction 0 is from the host that opened the first.
struct Flows<'c> {
    conversations: &'c [&'c Conversation],
    client: IpAddr,
}

impl Flows<'_> {
    /// Returns each conversation with the side that sends in this direction.
    fn sides(&self, direction: usize) -> impl Iterator<Item = (&Conversation, usize)> {
        let side = move |conversation: &Conversation| {
            direction ^ usize::from(conversation.sides[0].0 != self.client)
        };
        self.conversations.iter().map(move |conversation| (*conversation, side(conversation)))
    }

    /// Returns the shortest time from a packet of a direction to the reply to it.
    fn shortest_reply_time(&self, direction: usize) -> Option<u64> {
        self.sides(direction).filter_map(|(conversation, side)| conversation.shortest_reply_time(side)).min()
    }

    fn is_answered(&self, direction: usize) -> bool {
        self.sides(direction).any(|(conversation, side)| conversation.traces[side].is_answered)
    }

    /// Returns the round-trip time. On a busy link only packets that did not queue count.
    fn round_trip(&self, is_busy: bool) -> Option<RoundTrip> {
        let halves = [self.shortest_reply_time(0)?, self.shortest_reply_time(1)?];
        // `far` is the direction in which the longer part of the path is behind the capture point.
        let far = usize::from(halves[1] > halves[0]);
        let prompts = |by_kernel: bool| {
            let mut samples: Vec<f64> = Vec::new();
            for (conversation, side) in self.sides(far) {
                let prompt = conversation.traces[side].prompt_acks.iter();
                let prompt = prompt.filter(|prompt| prompt.is_alone || !is_busy);
                let prompt = prompt.filter(|prompt| !by_kernel || prompt.is_by_kernel);
                let delays = prompt.map(|prompt| prompt.delay).chain(conversation.handshake(side));
                samples.extend(delays.map(|ns| (ns + halves[1 - far]) as f64));
            }
            samples.sort_by(f64::total_cmp);
            samples
        };
        // Replies with data include the response time of the application; they count only if there are too few others.
        let samples =
            Some(prompts(true)).filter(|all| all.len() >= MIN_SAMPLES).unwrap_or_else(|| prompts(false));
        Some(RoundTrip {
            shortest: halves[0] + halves[1],
            halves,
            samples: samples.len(),
            median: Bounds::of_median(&samples, CONFIDENCE),
            quartiles: quartile(&samples, 0.25).zip(quartile(&samples, 0.75)),
        })
    }

    /// Returns the deliveries in a direction: the acknowledged ones if most of the path is behind the capture point, otherwise the captured
    /// ones.
    fn deliveries(&self, direction: usize) -> Vec<Delivery> {
        let is_behind = self.shortest_reply_time(direction) >= self.shortest_reply_time(1 - direction)
            && self.is_answered(direction);
        let mut deliveries: Vec<Delivery> = self
            .sides(direction)
            .flat_map(|(conversation, side)| {
                let trace = &conversation.traces[side];
                if is_behind { &trace.acknowledged } else { &trace.arrived }
            })
            .copied()
            .collect();
        deliveries.sort_by_key(|delivery| delivery.at);
        deliveries
    }

    fn outcomes(&self, direction: usize, max_reordering_delay: Option<u64>) -> Vec<Outcome> {
        let mut outcomes: Vec<(u64, Outcome)> = self
            .sides(direction)
            .flat_map(|(conversation, side)| conversation.traces[side].outcomes(max_reordering_delay))
            .collect();
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Returns the longest TCP packet that both sides accept: with headers of 40 octets over IPv4, of 60 over
    /// IPv6.
    fn agreed_mtu(&self, client: IpAddr) -> Option<u32> {
        let headers = if client.is_ipv4() { 40 } else { 60 };
        self.conversations
            .iter()
            .filter_map(|conversation| conversation.mss)
            .max()
            .map(|mss| u32::from(mss) + headers)
    }
}

/// Returns bounds of a quartile of sorted samples, by the normal approximation of the binomial law.
fn quartile(sorted: &[f64], p: f64) -> Option<Bounds> {
    let n = sorted.len() as f64;
    let around = 1.96 * (n * p * (1.0 - p)).sqrt() / n;
    let at = |p: f64| quantile(sorted, p.clamp(0.0, 1.0));
    Some(Bounds { value: at(p)?, low: at(p - around)?, high: at(p + around)? })
}
