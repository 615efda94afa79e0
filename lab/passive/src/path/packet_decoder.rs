//! Decodes captured packets: their times, duplicates, fragments and headers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::capture_clock::CaptureClock;
use super::captured_ip::{CapturedIp, IpHeader};
use super::duplicate_filter::DuplicateFilter;
use super::fragments::Fragments;
use super::parsed_packet::{ParsedPacket, TransportContent};
use super::{EstimateError, ascending};
use crate::associations::AssociationSockets;

/// Maximum nesting of fragmented tunnels; the decoder of the link layer limits the nesting of other tunnels.
const MAX_FRAGMENTED_TUNNELS: u32 = 2;

/// Decodes the packets of a capture.
#[derive(Debug, Default)]
pub(crate) struct PacketDecoder {
    clock: CaptureClock,
    duplicate_filter: DuplicateFilter,
    fragments: Fragments,
    associations: AssociationSockets,
    /// The packets of each pair of hosts, the lower one first.
    pub pairs: BTreeMap<[IpAddr; 2], PairPackets>,
    /// The times of the first and the last packet, in ns.
    pub span: Option<[u64; 2]>,
    /// Number of packets that could not be parsed.
    unread: u64,
}

/// A packet that is neither a duplicate nor a fragment.
#[derive(Debug)]
pub(crate) struct DecodedPacket {
    /// The time in ns, as if the clock had stopped while it was set back.
    pub at: u64,
    /// The packet's time in ns, from which delays are measured. It jumps where the clock of the capture was set
    /// back, so that no delay is measured across that moment.
    pub measured: u64,
    /// The sockets of sender and receiver. For a known association these are the sockets between which it was
    /// opened.
    pub sockets: [SocketAddr; 2],
    pub parsed_packet: ParsedPacket,
}

/// Counts the packets between two hosts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairPackets {
    /// Number of packets; fragments count separately.
    pub packets: u64,
    /// The longest packet, in octets.
    pub longest: u32,
    /// Number of whole packets of TCP, UDP and SCTP.
    transport: u64,
    /// Number of UDP datagrams.
    datagrams: u64,
    /// Number of packets of which the capture contains too few octets of the transport header.
    cut: u64,
}

impl PacketDecoder {
    /// Decodes a packet captured at time `at` in ns; `None` for a duplicate, a fragment, or a packet that cannot be parsed.
    pub fn decode(&mut self, at: u64, packet: CapturedIp<'_>) -> Option<DecodedPacket> {
        let Some(header) = IpHeader::parse(packet) else {
            self.unread += 1;
            return None;
        };
        let now = self.clock.advance(at);
        self.span = Some([self.span.map_or(now, |[first, _]| first), now]);
        self.decode_ip(now, packet, &header, 0)
    }

    /// Decodes an IP packet that was inside `tunnels` fragmented tunnels.
    fn decode_ip(
        &mut self,
        now: u64,
        packet: CapturedIp<'_>,
        header: &IpHeader,
        tunnels: u32,
    ) -> Option<DecodedPacket> {
        if self.duplicate_filter.is_duplicate(now, packet.octets, header) {
            return None;
        }
        let pair = self.pairs.entry(ascending(header.hosts)).or_default();
        pair.packets += 1;
        pair.longest = pair.longest.max(header.length);
        let whole = self.fragments.reassemble(now, packet, header)?;
        if let Some(inner) = whole.tunnelled_packet().filter(|_| tunnels < MAX_FRAGMENTED_TUNNELS) {
            pair.packets -= whole.fragments;
            let Some(inner_header) = IpHeader::parse(inner) else {
                self.unread += 1;
                return None;
            };
            return self.decode_ip(now, inner, &inner_header, tunnels + 1);
        }
        let Some(parsed_packet) = ParsedPacket::parse(whole.as_captured()) else {
            self.unread += 1;
            return None;
        };
        pair.count_transport(&parsed_packet);
        let own = [0, 1].map(|side| SocketAddr::new(parsed_packet.hosts[side], parsed_packet.ports[side]));
        let sockets = self.associations.sockets(own, parsed_packet.tags);
        Some(DecodedPacket { at: now, measured: self.clock.measurement_time(), sockets, parsed_packet })
    }

    /// Returns how many packets could not be parsed, together with the fragments whose packets are not
    /// complete.
    pub fn undecoded_count(&self) -> u64 {
        self.unread + self.fragments.incomplete()
    }

    /// Returns the number of packets that were captured twice.
    pub const fn duplicates(&self) -> u64 {
        self.duplicate_filter.repeats
    }

    /// Returns how often the clock was set back.
    pub const fn clock_steps(&self) -> u64 {
        self.clock.steps
    }

    /// Returns the packet counts of all pairs of hosts or, if `host` is given, of the pairs with this host.
    pub fn of_host(&self, host: Option<IpAddr>) -> PairPackets {
        let pairs = self.pairs.iter().filter(|(pair, _)| host.is_none_or(|host| pair.contains(&host)));
        pairs.fold(PairPackets::default(), |sum, (_, pair)| PairPackets {
            packets: sum.packets + pair.packets,
            longest: sum.longest.max(pair.longest),
            transport: sum.transport + pair.transport,
            datagrams: sum.datagrams + pair.datagrams,
            cut: sum.cut + pair.cut,
        })
    }
}

impl PairPackets {
    fn count_transport(&mut self, packet: &ParsedPacket) {
        let is_datagram = matches!(packet.content, TransportContent::Datagram(_));
        let is_transport = packet.is_cut || packet.content != TransportContent::Nothing;
        self.transport += u64::from(is_transport);
        self.datagrams += u64::from(is_datagram);
        self.cut += u64::from(packet.is_cut);
    }

    /// Returns why these packets give no result: most transport headers were cut, or `otherwise`.
    pub const fn no_result_error(self, otherwise: EstimateError) -> EstimateError {
        let Self { transport, cut, .. } = self;
        if 2 * cut > transport { EstimateError::Cut { packets: transport, cut } } else { otherwise }
    }

    /// Returns the error of packets without numbers that the peer acknowledges.
    pub const fn unacknowledged_error(self) -> EstimateError {
        let Self { packets, datagrams, .. } = self;
        self.no_result_error(EstimateError::NothingAcknowledged { packets, datagrams })
    }
}
