//! Estimates a path from a capture: rate, delay, jitter, loss and its bursts, reordering, MTU, and their uncertainty.
//!
//! `packet_decoder` decodes the packets, `conversation` combines the two directions, `sender_trace` follows one of them; `rate` and `loss`
//! summarise; `path_estimate` is the result, as the `[network]` of an experiment.
//!
//! One capture at one point is enough, at either end or between. It does not show how much of a response time
//! is the path's and how much is the host's, which of the two directions is longer, whether the last data
//! were lost (in a capture at the receiver), or whether a full queue or a bad link caused a loss.

mod capture_clock;
mod captured_ip;
mod conversation;
mod duplicate_filter;
mod fragments;
mod loss;
mod packet_decoder;
mod parsed_packet;
mod path_estimate;
mod rate;
mod sender_trace;
mod spin_bit;
mod unknown_delay;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use hol_measure::{CONFIDENCE, ConfidenceInterval, quantile};

pub use captured_ip::CapturedIp;
pub(crate) use conversation::Conversation;
use conversation::MAX_PATHS;
pub use loss::{Bursts, LossEstimate, Reordering};
pub(crate) use packet_decoder::{DecodedPacket, PacketDecoder};
use parsed_packet::QuicHeader;
pub(crate) use parsed_packet::{ParsedPacket, TransportContent};
use path_estimate::MIN_SAMPLES;
pub use path_estimate::{Mtu, PathEstimate, RoundTrip};
pub use rate::RateEstimate;
use sender_trace::{Delivery, PacketOutcome, RepairTimes};
pub use unknown_delay::UnknownDelay;

/// Estimates the paths between hosts from their packets.
#[derive(Debug, Default)]
pub struct PathEstimator {
    /// The index of the latest conversation between two sockets, the lower one first.
    by_sockets: BTreeMap<[SocketAddr; 2], usize>,
    conversations: Vec<Conversation>,
    decoder: PacketDecoder,
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
        /// The number of UDP packets among all packets.
        datagrams: u64,
    },
    /// The capture contains too few octets of each packet.
    #[error(
        "{cut} of {packets} packets of TCP, UDP and SCTP were cut within the transport header; capture 128 octets of each packet or more, as with \
         tcpdump -s 128"
    )]
    Cut {
        /// The number of TCP, UDP and SCTP packets between the hosts.
        packets: u64,
        /// The number of TCP, UDP and SCTP packets that were cut within the transport header.
        cut: u64,
    },
}

impl PathEstimator {
    /// Handles a packet that was captured at time `at` in ns.
    pub fn handle_packet<'p>(&mut self, at: u64, packet: impl Into<CapturedIp<'p>>) {
        let Some(DecodedPacket { measured, sockets, parsed_packet: packet, .. }) =
            self.decoder.decode(at, packet.into())
        else {
            return;
        };
        match &packet.content {
            TransportContent::Numbered(fields) => {
                let index = self.find(sockets, fields);
                let conversation = &mut self.conversations[index];
                let side = usize::from(conversation.sides[0] != sockets[0]);
                let path = conversation.path(side, packet.hosts);
                conversation.handle_packet(measured, side, path, packet.length, fields);
            }
            TransportContent::Datagram(_) => {
                self.handle_quic(measured, sockets, packet.quic);
            }
            TransportContent::Nothing => {}
        }
    }

    /// Handles a datagram that may belong to QUIC, whose handshake and spin bit show round trips: RFC 9000 sections 17.2 and 17.4.
    fn handle_quic(&mut self, at: u64, sockets: [SocketAddr; 2], header: Option<QuicHeader>) {
        let known = self.by_sockets.get(&ascending(sockets)).copied();
        if known.is_none() && header != Some(QuicHeader::Long) {
            return;
        }
        let index = known.unwrap_or_else(|| self.find(sockets, &parsed_packet::SequenceFields::default()));
        let conversation = &mut self.conversations[index];
        let side = usize::from(conversation.sides[0] != sockets[0]);
        conversation.handle_quic(at, side, header);
    }

    fn find(&mut self, sockets: [SocketAddr; 2], fields: &parsed_packet::SequenceFields) -> usize {
        let key = ascending(sockets);
        let known = self.by_sockets.get(&key).copied();
        known.filter(|index| !self.conversations[*index].is_ended_by(sockets[0], fields)).unwrap_or_else(
            || {
                self.conversations.push(Conversation::new(sockets));
                self.by_sockets.insert(key, self.conversations.len() - 1);
                self.conversations.len() - 1
            },
        )
    }

    /// Returns the path between the two hosts with the most packets, or with `host` as one of them. Without `host`, up to 63 further
    /// paths of the same associations follow it.
    pub fn finish(self, host: Option<IpAddr>) -> Result<PathEstimate, EstimateError> {
        let pairs =
            self.decoder.pairs.iter().filter(|(pair, _)| host.is_none_or(|host| pair.contains(&host)));
        let busiest = pairs.max_by_key(|(_, of)| of.packets).ok_or(EstimateError::NoPackets)?;
        let pair = *busiest.0;
        let mut estimate = self.estimate(pair)?;
        if host.is_none() {
            let further = self.further_paths(pair).into_iter();
            estimate.further_paths = further.map(|pair| self.estimate(pair)).collect::<Result<_, _>>()?;
        }
        Ok(estimate)
    }

    /// Returns the other paths of the associations between two hosts, in the order of their first packets. If there are [`MAX_PATHS`] or
    /// more, some may be forged: those with the most packets, in this order.
    fn further_paths(&self, pair: [IpAddr; 2]) -> Vec<[IpAddr; 2]> {
        let mut known = BTreeSet::from([pair]);
        let of_pair = |paths: &&[[IpAddr; 2]]| paths.iter().any(|path| ascending(*path) == pair);
        let all_paths = self.conversations.iter().map(|conversation| &conversation.paths[..]);
        let all_paths = all_paths.filter(of_pair).flatten().map(|path| ascending(*path));
        let mut further: Vec<[IpAddr; 2]> = all_paths.filter(|path| known.insert(*path)).collect();
        if further.len() >= MAX_PATHS {
            let of_path = |path: &[IpAddr; 2]| self.decoder.pairs.get(path);
            further.sort_by_cached_key(|path| Reverse(of_path(path).map(|of_path| of_path.packets)));
            further.truncate(MAX_PATHS - 1);
        }
        further
    }

    fn estimate(&self, pair: [IpAddr; 2]) -> Result<PathEstimate, EstimateError> {
        let span = self.decoder.span.ok_or(EstimateError::NoPackets)?;
        let of_pair = self.decoder.pairs.get(&pair).copied().ok_or(EstimateError::NoPackets)?;
        let path =
            |conversation: &Conversation| conversation.paths.iter().position(|path| ascending(*path) == pair);
        let conversations: Vec<(&Conversation, usize)> =
            self.conversations.iter().filter_map(|one| Some((one, path(one)?))).collect();
        let Some((first, path)) = conversations.first() else {
            return Err(of_pair.unacknowledged_error());
        };
        let [client, server] = first.paths[*path];
        let flows = Flows { conversations: &conversations, client };
        let rates = [0, 1].map(|direction| rate::estimate_rate(&flows.deliveries(direction)));
        let is_busy = rates.iter().any(|rate| matches!(rate, Some(RateEstimate::Measured { .. })));
        let round_trip = flows.round_trip(is_busy);
        let max_reordering_delay = round_trip.as_ref().ok().map(|round_trip| round_trip.shortest * 4 / 5);
        Ok(PathEstimate {
            hosts: [client, server],
            packets: of_pair.packets,
            other_packets: self.decoder.of_host(None).packets - of_pair.packets,
            unread: self.decoder.undecoded_count(),
            duplicates: self.decoder.duplicates(),
            clock_steps: self.decoder.clock_steps(),
            is_quic: conversations.iter().all(|(conversation, _)| conversation.is_quic),
            spins: conversations.iter().map(|(conversation, _)| conversation.spin_bits.delays(1).len()).sum(),
            conversations: conversations.len(),
            is_whole: conversations.iter().all(|(conversation, _)| conversation.is_whole),
            duration_ns: span[1] - span[0],
            rates,
            losses: [0, 1]
                .map(|direction| loss::estimate_loss(&flows.outcomes(direction, max_reordering_delay))),
            answered: [0, 1].map(|direction| flows.is_answered(direction)),
            mtu: Mtu { longest: of_pair.longest, agreed: flows.agreed_mtu() },
            round_trip,
            further_paths: Vec::new(),
        })
    }
}

fn ascending<T: Ord + Copy>([one, other]: [T; 2]) -> [T; 2] {
    if one <= other { [one, other] } else { [other, one] }
}

/// The conversations of two hosts; direction 0 is from the host that opened the first conversation.
struct Flows<'c> {
    /// The conversations, and the index of the path in each.
    conversations: &'c [(&'c Conversation, usize)],
    client: IpAddr,
}

impl Flows<'_> {
    /// Returns each conversation with the side that sends in this direction, and the path.
    fn sides(&self, direction: usize) -> impl Iterator<Item = (&Conversation, usize, usize)> {
        self.conversations.iter().map(move |(conversation, path)| {
            let side = direction ^ usize::from(conversation.paths[*path][0] != self.client);
            (*conversation, side, *path)
        })
    }

    /// Returns the shortest time from a packet of a direction to the reply to it.
    fn shortest_reply_time(&self, direction: usize) -> Option<u64> {
        let times = self.sides(direction);
        times.filter_map(|(conversation, side, path)| conversation.shortest_reply_time(side, path)).min()
    }

    fn is_answered(&self, direction: usize) -> bool {
        self.sides(direction).any(|(conversation, side, _)| conversation.traces[side].is_answered)
    }

    /// Returns the round-trip time, or why it is unknown. On a busy link only packets that did not queue count.
    fn round_trip(&self, is_busy: bool) -> Result<RoundTrip, UnknownDelay> {
        let [Some(up), Some(down)] = [0, 1].map(|direction| self.shortest_reply_time(direction)) else {
            return Err(self.why_unknown());
        };
        let halves = [up, down];
        // `far` is the direction in which the longer part of the path is behind the capture point.
        let far = usize::from(halves[1] > halves[0]);
        let prompts = |by_kernel: bool| {
            let mut samples: Vec<f64> = Vec::new();
            for (conversation, side, path) in self.sides(far) {
                let prompt = conversation.traces[side].prompt_acks.iter().filter(|ack| ack.path == path);
                let prompt = prompt.filter(|prompt| prompt.is_alone || !is_busy);
                let prompt = prompt.filter(|prompt| !by_kernel || prompt.is_by_kernel);
                let delays =
                    prompt.map(|prompt| prompt.delay).chain(conversation.handshake_reply_time(side, path));
                samples.extend(delays.map(|ns| (ns + halves[1 - far]) as f64));
            }
            samples.sort_by(f64::total_cmp);
            samples
        };
        // Replies with data include the response time of the application; they count only if there are too few others.
        let samples =
            Some(prompts(true)).filter(|all| all.len() >= MIN_SAMPLES).unwrap_or_else(|| prompts(false));
        Ok(RoundTrip {
            shortest: halves[0] + halves[1],
            halves,
            samples: samples.len(),
            median: ConfidenceInterval::of_median(&samples, CONFIDENCE),
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
            .flat_map(|(conversation, side, path)| {
                let trace = &conversation.traces[side];
                let all = if is_behind { &trace.acknowledged } else { &trace.arrived };
                all.iter().copied().filter(move |delivery| delivery.path == path)
            })
            .collect();
        deliveries.sort_by_key(|delivery| delivery.at);
        deliveries
    }

    fn outcomes(&self, direction: usize, max_reordering_delay: Option<u64>) -> Vec<PacketOutcome> {
        let mut outcomes: Vec<(u64, PacketOutcome)> = self
            .sides(direction)
            .flat_map(|(conversation, side, path)| {
                let other_path = conversation.longest_round_trip().max(max_reordering_delay);
                let repair_times = RepairTimes { same_path: max_reordering_delay, other_path };
                conversation.traces[side].outcomes(repair_times, path)
            })
            .collect();
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Returns the longest TCP packet that both sides accept: with headers of 40 octets over IPv4, of 60 over
    /// IPv6.
    fn agreed_mtu(&self) -> Option<u32> {
        let headers = if self.client.is_ipv4() { 40 } else { 60 };
        self.conversations
            .iter()
            .filter_map(|(conversation, _)| conversation.mss)
            .max()
            .map(|mss| u32::from(mss) + headers)
    }
}

/// Returns bounds of a quartile of sorted samples, by the normal approximation of the binomial distribution.
fn quartile(sorted: &[f64], p: f64) -> Option<ConfidenceInterval> {
    let n = sorted.len() as f64;
    let around = 1.96 * (n * p * (1.0 - p)).sqrt() / n;
    let at = |p: f64| quantile(sorted, p.clamp(0.0, 1.0));
    Some(ConfidenceInterval { value: at(p)?, low: at(p - around)?, high: at(p + around)? })
}
