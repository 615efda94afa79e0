//! Replaces sequence numbers with relative ones, so that the packets of two runs can be compared.

use std::collections::BTreeMap;

use hol_wire::sctp::{Chunk, Tsn};
use hol_wire::tcp::{Flags, SeqNum};
use hol_wire::{Address, Packet, Transport};

/// One direction of a connection: source address and port, then destination address and port.
type Direction = (Address, u16, Address, u16);

/// The initial sequence numbers (TCP) and TSNs (SCTP) of the connections of a run.
#[derive(Debug, Default)]
pub(crate) struct RelativeNumbers {
    /// For TCP: the sequence number of the SYN in each direction of a connection.
    sequence: BTreeMap<Direction, SeqNum>,
    /// For SCTP: the initial TSN in each direction of an association. The key is the two ports, because an association
    /// has several addresses.
    tsn: BTreeMap<(u16, u16), Tsn>,
}

impl RelativeNumbers {
    /// Returns the packet as text. Sequence numbers are relative to the first one in that direction; the values of
    /// tags, cookies and timestamps are omitted, because they are random.
    pub(crate) fn describe(&mut self, packet: &Packet) -> String {
        let (from, to) = packet.ports();
        let (source, destination) = (packet.source, packet.destination);
        let mut packet = packet.clone();
        match &mut packet.transport {
            Transport::Tcp(segment) => {
                let there = (source, from, destination, to);
                let back = (destination, to, source, from);
                if segment.flags.contains(Flags::SYN) {
                    self.sequence.insert(there, segment.seq);
                }
                let first = |direction| self.sequence.get(&direction).copied().unwrap_or(SeqNum(0));
                let (own, peers) = (first(there), first(back));
                segment.seq = SeqNum(segment.seq.0.wrapping_sub(own.0));
                if segment.flags.contains(Flags::ACK) {
                    segment.ack = SeqNum(segment.ack.0.wrapping_sub(peers.0));
                }
                for block in segment.options.sack.iter_mut() {
                    block.left = SeqNum(block.left.0.wrapping_sub(peers.0));
                    block.right = SeqNum(block.right.0.wrapping_sub(peers.0));
                }
                if let Some(timestamps) = &mut segment.options.timestamps {
                    (timestamps.value, timestamps.echo) = (0, 0);
                }
            }
            Transport::Sctp(sctp) => {
                for chunk in &mut sctp.chunks {
                    self.make_relative(chunk, (from, to));
                }
            }
            Transport::Udp(_) | Transport::Quic(_) => {}
        }
        // Timestamps of 0 show only that the option is present.
        packet.to_string().replace("TS val 0 ecr 0", "TS")
    }

    fn make_relative(&mut self, chunk: &mut Chunk, (from, to): (u16, u16)) {
        if let Chunk::Init(init) | Chunk::InitAck(init) = chunk {
            self.tsn.insert((from, to), init.initial_tsn);
            (init.initial_tsn, init.initiate_tag) = (Tsn(0), 0);
            return;
        }
        let first = |ports| self.tsn.get(&ports).map_or(0, |tsn| tsn.0);
        let (own, peers) = (first((from, to)), first((to, from)));
        let subtract = |tsn: &mut Tsn, first: u32| *tsn = Tsn(tsn.0.wrapping_sub(first));
        match chunk {
            Chunk::Data(data) => subtract(&mut data.tsn, own),
            Chunk::IData(data) => subtract(&mut data.tsn, own),
            Chunk::ForwardTsn(forward) => subtract(&mut forward.new_cumulative_tsn, own),
            Chunk::IForwardTsn(forward) => subtract(&mut forward.new_cumulative_tsn, own),
            Chunk::Shutdown { cumulative_tsn } => subtract(cumulative_tsn, peers),
            Chunk::Ecne(tsn) => subtract(tsn, peers),
            Chunk::Cwr(tsn) => subtract(tsn, own),
            // Serial numbers start at the initial TSN: RFC 5061 section 4.1.1.
            Chunk::Asconf(asconf) => asconf.serial.0 = asconf.serial.0.wrapping_sub(own),
            Chunk::AsconfAck(ack) => ack.serial.0 = ack.serial.0.wrapping_sub(peers),
            Chunk::Sack(sack) => {
                subtract(&mut sack.cumulative_tsn, peers);
                sack.duplicates.iter_mut().for_each(|tsn| subtract(tsn, peers));
            }
            _ => {}
        }
    }
}
