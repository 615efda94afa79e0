//! Assigns SCTP packets to associations, and chunks to positions. RFC 9260, RFC 8260.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_wire::sctp::{Chunk, DataFlags, Packet, Tsn, UserData};
use smallvec::smallvec;

use crate::connection::{Connection, Piece, Protocol};
use crate::packets_in_flight::PacketContent;
use crate::sequence_positions::SequencePositions;

/// The associations of a capture. The tags of a packet identify its association, whatever its addresses are (RFC 9260
/// section 8.5).
#[derive(Debug, Default)]
pub(crate) struct Associations {
    /// The tags, by source port, destination port and verification tag.
    tags: BTreeMap<(u16, u16, u32), Tag>,
    associations: Vec<Association>,
}

/// The direction of the packets with a certain tag.
#[derive(Debug, Clone, Copy)]
struct Tag {
    association: usize,
    direction: usize,
    /// The initial TSN of the side that chose this tag, which is the side to which packets with the tag are sent.
    initial_tsn: Tsn,
}

/// An SCTP association.
#[derive(Debug)]
struct Association {
    connection: usize,
    /// Positions of the TSNs of each direction.
    positions: [SequencePositions; 2],
    is_aborted: bool,
}

impl Associations {
    /// Handles a sent packet. Returns `None` if the INIT of its association was not seen.
    pub fn handle_sent(
        &mut self,
        packet: &Packet,
        now: Time,
        connections: &mut Vec<Connection>,
    ) -> Option<PacketContent> {
        let (index, direction) = self.find(packet, now, connections)?;
        let association = &mut self.associations[index];
        let connection = &mut connections[association.connection];
        let mut content = PacketContent {
            connection: association.connection,
            direction,
            ranges: smallvec![],
            closes: false,
            repeated: 0,
        };
        for chunk in &packet.chunks {
            if let Some(data) = chunk.user_data() {
                let place = association.positions[direction].position(data.tsn.0);
                let Ok(place) = u64::try_from(place) else { continue };
                let range = place..place + 1;
                let repeats = connection.handle_sent(direction, range.clone(), now, |_| piece_of_chunk(data));
                content.repeated += u64::from(repeats);
                content.ranges.push(range);
                continue;
            }
            match chunk {
                // Section 9.2: both are sent after all data has been acknowledged.
                Chunk::Shutdown { .. } | Chunk::ShutdownAck => content.closes = true,
                Chunk::Abort { .. } if !std::mem::replace(&mut association.is_aborted, true) => {
                    connection.reset();
                }
                _ => {}
            }
        }
        Some(content)
    }

    /// Returns the association of a packet, and its direction.
    fn find(
        &mut self,
        packet: &Packet,
        now: Time,
        connections: &mut Vec<Connection>,
    ) -> Option<(usize, usize)> {
        let Packet { source_port, destination_port, verification_tag, chunks, .. } = packet;
        let (forth, back) = ((*source_port, *destination_port), (*destination_port, *source_port));
        if let Some(Chunk::Init(init)) = chunks.first() {
            let key = (back.0, back.1, init.initiate_tag);
            // Section 5.1: a repeated INIT is the same; any other starts an association.
            if let Some(Tag { association, direction: 1, .. }) = self.tags.get(&key) {
                return Some((*association, 0));
            }
            let association = self.open(init.initial_tsn, now, connections);
            self.tags.insert(key, Tag { association, direction: 1, initial_tsn: init.initial_tsn });
            return Some((association, 0));
        }
        let (association, direction) = match self.tags.get(&(forth.0, forth.1, *verification_tag)) {
            Some(Tag { association, direction, initial_tsn }) => {
                // Each INIT gets an INIT ACK with its own tag and number; the association uses only one of them.
                self.associations[*association].positions[1 - direction].set_origin(initial_tsn.0);
                (*association, *direction)
            }
            // Section 8.5.1: some packets reflect the tag of those to which they reply.
            None => {
                let tag = self.tags.get(&(back.0, back.1, *verification_tag))?;
                (tag.association, 1 - tag.direction)
            }
        };
        if let Some(Chunk::InitAck(init)) = chunks.first() {
            let key = (back.0, back.1, init.initiate_tag);
            let tag = Tag { association, direction: 1 - direction, initial_tsn: init.initial_tsn };
            self.tags.entry(key).or_insert(tag);
        }
        Some((association, direction))
    }

    fn open(&mut self, initial_tsn: Tsn, now: Time, connections: &mut Vec<Connection>) -> usize {
        let mut positions = [SequencePositions::default(), SequencePositions::default()];
        positions[0].set_origin(initial_tsn.0);
        self.associations.push(Association { connection: connections.len(), positions, is_aborted: false });
        connections.push(Connection::new(Protocol::Sctp, now));
        self.associations.len() - 1
    }
}

/// Returns the piece of a chunk. Ordered messages form a byte stream; unordered ones (RFC 9260 section 6.6) have no
/// position in it. With interleaving (RFC 8260), the chunks of one stream are still in order.
fn piece_of_chunk(data: UserData<'_>) -> Piece {
    let is_ordered = !data.flags.contains(DataFlags::UNORDERED);
    Piece { stream: is_ordered.then_some(data.stream), payload: data.payload.clone() }
}
