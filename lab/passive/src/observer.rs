//! Converts packets to records.

use std::net::SocketAddr;

use bytes::Bytes;
use hol_base::Time;
use hol_measure::Record;
use hol_network::TapEvent;
use hol_wire::{Packet, Transport};

use crate::connection::{Connection, Protocol};
use crate::packets_in_flight::{Fingerprint, PacketContent, PacketsInFlight, SentPacket};
use crate::sctp::Associations;
use crate::tcp::Subflows;
use crate::totals::Totals;
use crate::udp::UdpPairs;

/// A packet at an interface of one of the endpoints.
#[derive(Debug, Clone, Copy)]
pub struct ObservedPacket<'p> {
    /// The time of the capture.
    pub time: Time,
    /// Whether the packet was sent, received or lost; a loss on the way is reported at the time of sending.
    pub event: TapEvent,
    /// The packet from its IP header on.
    pub octets: &'p [u8],
}

/// What was measured from the packets of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficMeasurement {
    /// The records of all connections and HTTP/1 requests, sorted by their starts and numbered from 0.
    ///
    /// - Each TCP or MPTCP connection, SCTP association and pair of UDP sockets has a record of the kind
    ///   [`Connection`](hol_measure::RecordKind::Connection). It starts with the first packet and ends with the last; its size is the
    ///   number of octets in both directions.
    /// - Each HTTP/1 request has a record of the kind [`Transaction`](hol_measure::RecordKind::Transaction). Its size is that of the
    ///   request; its times are those of the last octets of the request and of the response. Its stream is the SCTP stream or, with
    ///   other protocols, the index of the connection among all connections.
    pub records: Vec<Record>,
    /// Sums over all connections.
    pub totals: Totals,
}

/// Measures the packets at the endpoints of a run, in order of time: each packet once as sent and, if it arrived, once
/// as received.
///
/// Accepts arbitrary input: packets that cannot be parsed are counted. A received packet that was not captured when it was sent counts as
/// sent at that moment.
pub fn measure<'p>(observed_packets: impl IntoIterator<Item = ObservedPacket<'p>>) -> TrafficMeasurement {
    let mut observer = Observer::default();
    observed_packets.into_iter().for_each(|observed| observer.handle_packet(&observed));
    observer.finish()
}

/// Follows the connections of a capture, packet by packet.
#[derive(Debug, Default)]
struct Observer {
    now: Time,
    in_flight: PacketsInFlight,
    subflows: Subflows,
    associations: Associations,
    pairs: UdpPairs,
    connections: Vec<Connection>,
    unread: u64,
}

impl Observer {
    fn handle_packet(&mut self, observed: &ObservedPacket<'_>) {
        // Times never decrease, even if the clock steps back.
        self.now = self.now.max(observed.time);
        let parsed = match observed.event {
            TapEvent::Sent => self.send(observed.octets),
            TapEvent::Received => self.receive(observed.octets),
            TapEvent::Dequeued => Some(()),
            _ => self.lose(observed),
        };
        self.unread += u64::from(parsed.is_none());
    }

    fn send(&mut self, octets: &[u8]) -> Option<()> {
        let print = Fingerprint::from_packet(octets)?;
        let content = self.handle_sent(octets)?;
        let carried = &mut self.connections[content.connection].carried;
        carried.packets += 1;
        carried.retransmitted += content.repeated;
        self.in_flight.add(print, SentPacket { sent: self.now, content });
        Some(())
    }

    fn receive(&mut self, octets: &[u8]) -> Option<()> {
        let packet = match self.in_flight.take_oldest(Fingerprint::from_packet(octets)?) {
            Some(packet) => packet,
            None => SentPacket { sent: self.now, content: self.handle_sent(octets)? },
        };
        let connection = &mut self.connections[packet.content.connection];
        connection.update_times(packet.content.direction, self.now);
        connection.handle_arrival(packet, self.now);
        Some(())
    }

    fn lose(&mut self, observed: &ObservedPacket<'_>) -> Option<()> {
        let print = Fingerprint::from_packet(observed.octets)?;
        let packet = match observed.event {
            TapEvent::Corrupted => self.in_flight.take_oldest(print)?,
            _ => self.in_flight.take_newest(print)?,
        };
        self.connections[packet.content.connection].carried.lost += 1;
        Some(())
    }

    fn handle_sent(&mut self, octets: &[u8]) -> Option<PacketContent> {
        let packet = Packet::parse(Bytes::copy_from_slice(octets)).ok()?;
        let (from, to) = packet.ports();
        let sockets = [SocketAddr::new(packet.source, from), SocketAddr::new(packet.destination, to)];
        let (now, connections) = (self.now, &mut self.connections);
        let content = match &packet.transport {
            Transport::Tcp(segment) => self.subflows.handle_sent(sockets, segment, now, connections),
            Transport::Sctp(packet) => self.associations.handle_sent(packet, now, connections)?,
            Transport::Udp(datagram) => self.pairs.handle_sent(sockets, datagram, now, connections),
            Transport::Quic(_) => unreachable!("octets of QUIC parse to a datagram of UDP"),
        };
        self.connections[content.connection].update_times(content.direction, now);
        Some(content)
    }

    fn finish(self) -> TrafficMeasurement {
        let mut totals = Totals { unread: self.unread, ..Totals::default() };
        for Connection { protocol, carried, .. } in &self.connections {
            let total = match protocol {
                Protocol::Tcp => &mut totals.tcp,
                Protocol::Mptcp => &mut totals.mptcp,
                Protocol::Sctp => &mut totals.sctp,
                Protocol::Udp => &mut totals.udp,
            };
            total.add(carried);
        }
        let families = self.connections.into_iter().enumerate();
        TrafficMeasurement {
            records: numbered(families.map(|(number, connection)| connection.records(number))),
            totals,
        }
    }
}

/// Numbers records in the order of their starts; the first of each family is the parent of the others.
fn numbered(families: impl Iterator<Item = Vec<Record>>) -> Vec<Record> {
    let mut all: Vec<(usize, bool, Record)> = families
        .enumerate()
        .flat_map(|(family, records)| {
            records.into_iter().enumerate().map(move |(at, record)| (family, at > 0, record))
        })
        .collect();
    all.sort_by_key(|(.., record)| record.scheduled);
    let mut parents = vec![None; all.len()];
    let number = |(id, (family, is_child, record)): (u64, &(usize, bool, Record))| {
        if !is_child {
            parents[*family] = u32::try_from(id).ok();
        }
        let parent = if *is_child { parents[*family] } else { None };
        Record { id, parent, ..*record }
    };
    (0..).zip(&all).map(number).collect()
}
