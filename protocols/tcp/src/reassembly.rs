//! The queue of out-of-order data, and the SACK blocks that report it. RFC 2018 section 4.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_transport::DeliveryTimes;
use hol_wire::tcp::{SackBlock, SackBlocks, SeqNum};

/// Maximum number of SACK blocks that are stored, as many as fit into a header.
const MAX_SACK_BLOCKS: usize = 4;

/// A contiguous part of the peer's byte stream. A FIN counts as one octet after the payload.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) seq: SeqNum,
    pub(crate) payload: Bytes,
    /// Whether a FIN follows the data of the piece.
    pub(crate) fin: bool,
    pub(crate) delivery_times: DeliveryTimes,
    /// Length in octets of the packet in memory that starts with this piece; 0 if the piece shares the packet of
    /// the piece before it.
    pub(crate) packet_octets: u32,
    /// Memory in octets that the packet uses in the receive buffer.
    pub(crate) memory: u32,
    /// Number of free octets after the packet's data. Linux: skb_tailroom.
    pub(crate) tailroom: u32,
}

/// The out-of-order queue: pieces in the order of sequence numbers, without overlap, all beyond RCV.NXT.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pieces: VecDeque<Piece>,
    octets: usize,
    memory: u32,
    /// The SACK blocks, the most recently changed block first. RFC 2018 section 4.
    blocks: SackBlocks,
    /// The duplicate range that the next acknowledgment must report (D-SACK). RFC 2883.
    duplicate: Option<SackBlock>,
}

impl Piece {
    /// Returns the sequence number that follows the piece.
    pub(crate) fn end(&self) -> SeqNum {
        self.seq + self.payload.len() as u32 + u32::from(self.fin)
    }

    /// Returns the part of the piece from `left` to `right`, both within the piece.
    pub(crate) fn slice(&self, left: SeqNum, right: SeqNum) -> Self {
        let from = left.distance_from(self.seq) as usize;
        let to = right.distance_from(self.seq) as usize;
        let length = self.payload.len();
        let payload = self.payload.slice(from.min(length)..to.min(length));
        Self {
            seq: left,
            packet_octets: self.packet_octets.saturating_sub((length - payload.len()) as u32),
            payload,
            fin: self.fin && right == self.end(),
            delivery_times: self.delivery_times,
            memory: self.memory,
            tailroom: self.tailroom,
        }
    }
}

impl Reassembly {
    /// Returns whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the number of queued octets.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// Returns the distance from `nxt` to the end of the queued data, in octets.
    pub(crate) fn span(&self, nxt: SeqNum) -> u32 {
        self.pieces.back().map_or(0, |last| last.end().distance_from(nxt))
    }

    /// Returns how many octets of the receive buffer the out-of-order queue occupies.
    pub(crate) fn memory(&self) -> u32 {
        self.memory
    }

    /// Returns the SACK blocks, the most recently changed block first.
    #[cfg(test)]
    fn blocks(&self) -> &[SackBlock] {
        &self.blocks
    }

    /// Returns the number of SACK blocks to report, including a D-SACK block.
    pub(crate) fn sack_block_count(&self) -> usize {
        usize::from(self.duplicate.is_some()) + self.blocks.len()
    }

    /// Removes and returns the first `count` SACK blocks to report in a segment. A D-SACK block comes first, and
    /// is reported only once. RFC 2883 section 4.
    pub(crate) fn take_sack_blocks(&mut self, count: usize) -> SackBlocks {
        if count == 0 {
            return SackBlocks::new();
        }
        self.duplicate.take().iter().chain(&self.blocks).take(count).copied().collect()
    }

    /// Stores a duplicate range, which the next acknowledgment reports.
    pub(crate) fn note_duplicate(&mut self, block: SackBlock) {
        self.duplicate = Some(block);
    }

    /// Returns the duplicate range that has not been reported yet; `None` if there is none.
    pub(crate) fn duplicate(&self) -> Option<SackBlock> {
        self.duplicate
    }

    /// Discards the stored duplicate range, because the next acknowledgment answers another segment.
    pub(crate) fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Returns the first duplicate range below `next`; `None` if the next acknowledgment already reports another
    /// range.
    pub(crate) fn unreported_below(&self, next: SeqNum) -> Option<SackBlock> {
        if self.duplicate.is_some() { None } else { self.duplicate_below(next) }
    }

    /// Inserts the new part of a piece into the queue; returns the first part that is a duplicate. RFC 2883
    /// section 4.
    pub(crate) fn insert(&mut self, piece: &Piece) -> Option<SackBlock> {
        let mut index = self.pieces.partition_point(|held| held.end().at_or_before(piece.seq));
        let (mut cursor, end) = (piece.seq, piece.end());
        let mut duplicate = None;
        while let Some(held) = self.pieces.get(index).filter(|held| held.seq.before(end)) {
            let (held_start, held_end) = (held.seq, held.end());
            if cursor.before(held_start) {
                self.insert_piece(index, piece.slice(cursor, held_start));
                index += 1;
                cursor = held_start;
            }
            let right = if held_end.before(end) { held_end } else { end };
            duplicate.get_or_insert(SackBlock { left: cursor, right });
            cursor = right;
            index += 1;
        }
        if cursor.before(end) {
            self.insert_piece(index, piece.slice(cursor, end));
        }
        self.report(piece.seq, end);
        duplicate
    }

    /// Discards all data and SACK blocks.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        (self.octets, self.memory) = (0, 0);
        self.blocks.clear();
    }

    /// Inserts a piece into the queue. It shares the buffer of the packet before it if that has room. Linux:
    /// tcp_ooo_try_coalesce.
    fn insert_piece(&mut self, index: usize, mut piece: Piece) {
        let length = piece.payload.len() as u32;
        if self.pieces.get(index.wrapping_sub(1)).is_some_and(|before| before.end() == piece.seq) {
            let mut earlier = self.pieces.range_mut(..index).rev();
            let packet =
                earlier.find(|earlier| earlier.packet_octets > 0).filter(|packet| length <= packet.tailroom);
            if let Some(packet) = packet {
                packet.packet_octets += length;
                packet.tailroom -= length;
                (piece.packet_octets, piece.memory, piece.tailroom) = (0, 0, 0);
            }
        }
        self.octets += piece.payload.len();
        self.memory += piece.memory;
        self.pieces.insert(index, piece);
    }

    /// Moves the SACK block that contains the latest piece to the front.
    fn report(&mut self, left: SeqNum, right: SeqNum) {
        let mut block = SackBlock { left, right };
        self.blocks.retain(|known| {
            let apart = block.right.before(known.left) || block.left.after(known.right);
            if !apart {
                block.left = if known.left.before(block.left) { known.left } else { block.left };
                block.right = block.right.latest(known.right);
            }
            apart
        });
        self.blocks.truncate(MAX_SACK_BLOCKS - 1);
        self.blocks.insert(0, block);
    }

    /// Removes and returns the next piece that continues the stream at `next`, without its duplicate part.
    pub(crate) fn pop(&mut self, next: SeqNum) -> Option<Piece> {
        while let Some(first) = self.pieces.front().filter(|first| first.seq.at_or_before(next)) {
            let (new, end) = (first.end().after(next), first.end());
            let piece = self.pieces.pop_front()?;
            self.octets -= piece.payload.len();
            self.memory -= piece.memory;
            if new {
                self.forget(end);
                return Some(piece.slice(next, end));
            }
        }
        None
    }

    /// Returns the first range of queued data below `next`, which has arrived twice. RFC 2883 section 4.
    fn duplicate_below(&self, next: SeqNum) -> Option<SackBlock> {
        let below = self.pieces.iter().take_while(|held| held.seq.before(next));
        let mut blocks = below.map(|held| {
            let end = held.end();
            SackBlock { left: held.seq, right: if end.before(next) { end } else { next } }
        });
        let mut stretch = blocks.next()?;
        while let Some(block) = blocks.next().filter(|block| block.left == stretch.right) {
            stretch.right = block.right;
        }
        Some(stretch)
    }

    /// Removes SACK blocks below `next`, which the cumulative acknowledgment covers.
    pub(crate) fn forget(&mut self, next: SeqNum) {
        if !self.blocks.is_empty() {
            self.blocks.retain(|block| block.right.after(next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(seq: u32, length: usize) -> Piece {
        let payload: Vec<u8> = (0..length).map(|i| (seq as usize + i) as u8).collect();
        Piece {
            seq: SeqNum(seq),
            payload: payload.into(),
            fin: false,
            delivery_times: DeliveryTimes::default(),
            packet_octets: length as u32,
            memory: 100,
            tailroom: 0,
        }
    }

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: SeqNum(left), right: SeqNum(right) }
    }

    #[test]
    fn the_latest_block_comes_first() {
        // RFC 2018 section 4, and case 3 of its section 5.
        let mut queue = Reassembly::default();
        queue.insert(&piece(100, 10));
        queue.insert(&piece(120, 10));
        queue.insert(&piece(110, 5));
        assert_eq!(queue.blocks(), [block(100, 115), block(120, 130)]);
        queue.insert(&piece(115, 5));
        assert_eq!(queue.blocks(), [block(100, 130)]);
    }

    #[test]
    fn at_most_four_sack_blocks_are_kept() {
        // RFC 2018 section 3: at most four, and by section 4 the latest ones.
        let mut queue = Reassembly::default();
        for index in 1..=6 {
            queue.insert(&piece(100 * index, 10));
        }
        assert_eq!(queue.blocks(), [block(600, 610), block(500, 510), block(400, 410), block(300, 310)]);
    }

    #[test]
    fn duplicates_are_reported_once() {
        // RFC 2883 section 4.1.
        let mut queue = Reassembly::default();
        assert_eq!(queue.insert(&piece(100, 10)), None);
        assert_eq!(queue.insert(&piece(100, 10)), Some(block(100, 110)));
        assert_eq!(queue.insert(&piece(95, 10)), Some(block(100, 105)));
        assert_eq!(queue.octets(), 15);
    }

    #[test]
    fn overlaps_leave_every_octet_once() {
        let mut queue = Reassembly::default();
        for (seq, length) in [(20, 5), (40, 10), (10, 35), (5, 50), (30, 2)] {
            queue.insert(&piece(seq, length));
        }
        let mut next = SeqNum(5);
        let mut stream = Vec::new();
        while let Some(piece) = queue.pop(next) {
            next = piece.end();
            stream.extend_from_slice(&piece.payload);
        }
        assert_eq!(stream, (5..55).collect::<Vec<u8>>());
        assert!(queue.is_empty() && queue.octets() == 0 && queue.blocks().is_empty());
    }

    #[test]
    fn piece_that_fits_the_tailroom_shares_its_memory() {
        // net/ipv4/tcp_input.c tcp_ooo_try_coalesce: the data are copied if there is room.
        let mut queue = Reassembly::default();
        queue.insert(&Piece { tailroom: 25, ..piece(10, 10) });
        for (seq, memory) in [(20, 100), (30, 100), (40, 200), (60, 300)] {
            queue.insert(&piece(seq, 10));
            assert_eq!(queue.memory(), memory, "at {seq}");
        }
        // tcp_ofo_queue: the pieces move on together, as one packet.
        let packets = std::iter::successors(queue.pop(SeqNum(10)), |last| queue.pop(last.end()));
        let packets: Vec<_> =
            packets.map(|piece| (piece.packet_octets, piece.memory, piece.tailroom)).collect();
        assert_eq!(packets, [(30, 100, 5), (0, 0, 0), (0, 0, 0), (10, 100, 0)]);
    }

    #[test]
    fn delivered_octets_are_cut_off_a_piece() {
        let mut queue = Reassembly::default();
        queue.insert(&piece(10, 10));
        let rest = queue.pop(SeqNum(15)).expect("five octets are new");
        assert_eq!((rest.seq, rest.payload.to_vec()), (SeqNum(15), (15..20).collect()));
    }

    #[test]
    fn fin_out_of_order_takes_one_sequence_number() {
        let mut queue = Reassembly::default();
        queue.insert(&Piece { fin: true, ..piece(10, 0) });
        assert_eq!(queue.blocks(), [block(10, 11)]);
        assert!(queue.pop(SeqNum(10)).is_some_and(|last| last.fin && last.payload.is_empty()));
    }
}
