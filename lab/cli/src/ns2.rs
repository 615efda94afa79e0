//! Writes the trace format of ns-2, for which many awk scripts exist.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hol_base::Time;
use hol_network::{InterfaceId, NodeId, PacketInTransit, Tap, TapEvent, TapPoint, Topology};
use hol_scenario::flow_of;
use hol_wire::sctp::Chunk;
use hol_wire::tcp::Flags;
use hol_wire::{Address, Packet, Transport};

/// Writes a line for every event of a packet on a hop:
///
/// ```text
/// event time from to type size flags flow source destination sequence packet
/// +     0.1  0    1  tcp  552  ------- 0  0.49152 2.7626     1        3
/// ```
///
/// Events are enqueued (`+`), dequeued (`-`), received (`r`) and dropped (`d`). Time is in seconds, nodes are numbered as
/// in the network, size is that of the IP packet in octets. Flow 0 is the measured one; source and destination are
/// node.port. The sequence number counts octets of TCP and TSNs of SCTP: 1 is the first of the data, -1 means none. A
/// packet keeps its number on every hop.
pub struct Ns2Trace<W> {
    out: W,
    nodes: NodeIndex,
    /// The sequence number before the first octet (TCP) or chunk (SCTP) of data, by source and destination.
    origins: BTreeMap<(FlowEnd, FlowEnd), u32>,
    /// Number of packets sent.
    pub packets: u64,
    /// The first error of the writer; nothing is written after it.
    first_error: Option<io::Error>,
}

/// A node and a port, which identify an end of a flow even if its node has several addresses.
type FlowEnd = (NodeId, u16);

impl<W: Write> Ns2Trace<W> {
    /// Creates a trace of the packets on `topology`.
    pub fn new(out: W, topology: &Topology) -> Self {
        Self { out, nodes: NodeIndex::new(topology), origins: BTreeMap::new(), packets: 0, first_error: None }
    }

    /// Returns the writer to which the trace was written, or the error that ended the trace.
    pub fn finish(self) -> io::Result<W> {
        self.first_error.map_or(Ok(self.out), Err)
    }

    fn write_line(&mut self, now: Time, transit: &PacketInTransit, event: char) -> io::Result<()> {
        let PacketInTransit { from, to, number, packet, .. } = transit;
        let [from, to] = [from, to].map(|interface| self.nodes.node_of_interface(*interface).0);
        let (nanos, kind, size, flow) =
            (now.as_nanos(), packet_type(packet), packet.length(), flow_of(packet));
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let ends = self.nodes.ends(packet);
        let sequence = self.sequence_number(ends, packet).map_or(-1, i64::from);
        let ((source, source_port), (destination, destination_port)) = (ends.0, ends.1);
        let ends = format!("{}.{source_port} {}.{destination_port}", source.0, destination.0);
        writeln!(
            self.out,
            "{event} {seconds}.{nanos:09} {from} {to} {kind} {size} ------- {flow} {ends} {sequence} {number}"
        )
    }

    /// Returns the packet's sequence number, relative to the first that its sender used; `None` if it has none.
    fn sequence_number(&mut self, ends: (FlowEnd, FlowEnd), packet: &Packet) -> Option<u32> {
        let (number, origin) = match &packet.transport {
            // The SYN occupies a sequence number. RFC 9293 section 3.4.
            Transport::Tcp(segment) => (segment.seq.0, segment.seq.0),
            Transport::Sctp(packet) => {
                let tsn = packet.chunks.iter().find_map(tsn)?;
                (tsn, tsn.wrapping_sub(1))
            }
            // Datagrams have no numbers, and QUIC's packet numbers count the packets of a connection, not its data.
            Transport::Udp(_) | Transport::Quic(_) => return None,
        };
        Some(number.wrapping_sub(*self.origins.entry(ends).or_insert(origin)))
    }
}

impl<W: Write> Tap for Ns2Trace<W> {
    fn packet(&mut self, now: Time, _: TapPoint<'_>, transit: &PacketInTransit, event: TapEvent) {
        if self.first_error.is_none() {
            self.packets = self.packets.max(u64::from(transit.number) + 1);
            self.first_error = self.write_line(now, transit, event_letter(event)).err();
        }
    }
}

fn event_letter(event: TapEvent) -> char {
    match event {
        TapEvent::Sent => '+',
        TapEvent::Dequeued => '-',
        TapEvent::Received => 'r',
        _ => 'd',
    }
}

/// Returns the packet type of ns-2: `tcp` for a segment with user data, SYN, FIN or RST, `ack` for another segment,
/// `sctp`, or `udp`.
fn packet_type(packet: &Packet) -> &'static str {
    match &packet.transport {
        Transport::Sctp(_) => "sctp",
        Transport::Udp(_) | Transport::Quic(_) => "udp",
        Transport::Tcp(segment) if segment.sequence_length() > 0 || segment.flags.contains(Flags::RST) => {
            "tcp"
        }
        Transport::Tcp(_) => "ack",
    }
}

fn tsn(chunk: &Chunk) -> Option<u32> {
    chunk.user_data().map(|data| data.tsn.0)
}

/// The node to which each interface and each address of the network belongs.
struct NodeIndex {
    by_interface: Vec<NodeId>,
    by_address: BTreeMap<Address, NodeId>,
}

impl NodeIndex {
    fn new(topology: &Topology) -> Self {
        let interfaces = topology.interfaces();
        Self {
            by_interface: interfaces.iter().map(|interface| interface.node).collect(),
            by_address: interfaces.iter().map(|interface| (interface.address, interface.node)).collect(),
        }
    }

    fn node_of_interface(&self, interface: InterfaceId) -> NodeId {
        self.by_interface[usize::from(interface.0)]
    }

    /// Returns the source and the destination of a packet.
    fn ends(&self, packet: &Packet) -> (FlowEnd, FlowEnd) {
        let (source, destination) = packet.ports();
        ((self.by_address[&packet.source], source), (self.by_address[&packet.destination], destination))
    }
}
