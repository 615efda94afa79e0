//! Application messages reconstructed from packets, with sizes and times.
//!
//! SCTP marks the start and end of a message (RFC 9260 section 3.3.1); UDP's datagrams are messages. TCP has no messages: a segment with
//! PSH contains the last octet that a program has written (RFC 9293 section 3.9.1.2), and counts as the end of a message.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::path::{
    CapturedIp, Conversation, DecodedPacket, EstimateError, PacketDecoder, ParsedPacket, TransportContent,
};
use crate::sequence_positions::SequencePositions;
use crate::spans::Spans;

/// Reconstructs the messages that applications exchange.
#[derive(Debug, Default)]
pub struct MessageReconstructor {
    /// The index of the latest conversation between two sockets, the lower one first.
    by_sockets: BTreeMap<[SocketAddr; 2], usize>,
    conversations: Vec<ConversationMessages>,
    decoder: PacketDecoder,
}

/// A conversation and its messages.
#[derive(Debug)]
struct ConversationMessages {
    conversation: Conversation,
    /// The messages of each side of the conversation.
    sides: [SideMessages; 2],
}

/// The messages that one side has sent.
#[derive(Debug, Default)]
struct SideMessages {
    positions: SequencePositions,
    pieces: Spans<Piece>,
    /// Datagrams, which have no position.
    datagrams: Vec<Message>,
}

/// The content of a segment or chunk.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: u64,
    octets: u64,
    ends: bool,
}

/// A message: its size, and the times in ns at which its first and its last octet were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Message {
    at: u64,
    end: u64,
    octets: u64,
}

impl Message {
    /// Returns the time in ns from the first octet to the last.
    const fn sending_time(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }
}

/// A message and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedExchange {
    /// The time of the message since the first message, in ns.
    pub at: u64,
    /// Octets of the message.
    pub octets: u64,
    /// Octets of the reply; 0 if there was none.
    pub reply: u64,
    /// The time in ns that sending the octets of the message and of the reply took, without the pause before the reply.
    pub sending_time: u64,
}

/// The messages that applications exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedMessages {
    /// The host that opened the first conversation, and its peer.
    pub hosts: [IpAddr; 2],
    /// The messages with their replies, in order of time.
    pub exchanges: Vec<CapturedExchange>,
    /// Whether only the host that accepted the first connection sent data; `exchanges` then has its messages.
    pub is_reversed: bool,
    /// Number of messages sent by the host that accepted the connection, before any request.
    pub unsolicited: u64,
    /// Number of conversations with messages.
    pub conversations: u64,
}

impl MessageReconstructor {
    /// Handles a packet that was captured at time `at` in ns.
    pub fn handle_packet<'p>(&mut self, at: u64, packet: impl Into<CapturedIp<'p>>) {
        let Some(DecodedPacket { at, measured, sockets: [from, to], parsed_packet: packet }) =
            self.decoder.decode(at, packet.into())
        else {
            return;
        };
        if packet.content == TransportContent::Nothing {
            return;
        }
        let talk = self.find([from, to], &packet.content);
        let side = usize::from(talk.conversation.sides[0] != from);
        talk.add(at, measured, side, &packet);
    }

    fn find(&mut self, [from, to]: [SocketAddr; 2], content: &TransportContent) -> &mut ConversationMessages {
        let key = if from <= to { [from, to] } else { [to, from] };
        let is_over = |talk: &ConversationMessages| matches!(content, TransportContent::Numbered(fields) if talk.conversation.is_ended_by(from, fields));
        let known = self.by_sockets.get(&key).copied().filter(|index| !is_over(&self.conversations[*index]));
        let index = known.unwrap_or(self.conversations.len());
        if known.is_none() {
            self.conversations.push(ConversationMessages {
                conversation: Conversation::new([from, to]),
                sides: Default::default(),
            });
            self.by_sockets.insert(key, index);
        }
        &mut self.conversations[index]
    }

    /// Returns the messages between all hosts or, if `host` is given, only those to and from this host.
    pub fn finish(self, host: Option<IpAddr>) -> Result<CapturedMessages, EstimateError> {
        let belongs = |talk: &&ConversationMessages| {
            host.is_none_or(|host| talk.conversation.sides.iter().any(|side| side.ip() == host))
        };
        let conversations: Vec<&ConversationMessages> =
            self.conversations.iter().filter(belongs).filter(|talk| talk.has_messages([0, 1])).collect();
        let first = conversations
            .first()
            .ok_or_else(|| self.decoder.of_host(host).no_result_error(EstimateError::NoPackets))?;
        let hosts = first.conversation.sides.map(|side| side.ip());
        let is_reversed = !conversations.iter().any(|talk| talk.has_messages([0]));
        let (mut exchanges, mut unsolicited) = (Vec::new(), 0);
        for talk in &conversations {
            unsolicited += talk.exchanges(is_reversed, &mut exchanges);
        }
        exchanges.sort_by_key(|exchange| exchange.at);
        let origin = exchanges.first().map_or(0, |exchange| exchange.at);
        exchanges.iter_mut().for_each(|exchange| exchange.at -= origin);
        Ok(CapturedMessages {
            hosts,
            exchanges,
            is_reversed,
            unsolicited,
            conversations: conversations.len() as u64,
        })
    }
}

impl ConversationMessages {
    fn has_messages<const N: usize>(&self, sides: [usize; N]) -> bool {
        sides
            .iter()
            .any(|side| self.sides[*side].pieces.total() > 0 || !self.sides[*side].datagrams.is_empty())
    }

    /// Adds a packet sent at `at`; `measured` is the time of this packet for the measurement of delays.
    fn add(&mut self, at: u64, measured: u64, side: usize, packet: &ParsedPacket) {
        match &packet.content {
            TransportContent::Nothing => {}
            TransportContent::Datagram(octets) => {
                self.sides[side].datagrams.push(Message { at, end: at, octets: (*octets).into() });
            }
            TransportContent::Numbered(fields) => {
                self.conversation.handle_packet(measured, side, 0, packet.length, fields);
                fields
                    .initial_number
                    .into_iter()
                    .for_each(|first| self.sides[side].positions.set_origin(first));
                for (datum, (octets, ends)) in fields.data.iter().zip(&fields.carries) {
                    self.sides[side].add(at, *datum, fields.is_sctp.then_some(*octets), *ends);
                }
            }
        }
    }

    /// Adds the messages of the requesting side, each with all data that the other side sent after the message may have
    /// reached it. Returns the number of messages that the other side sent before any request.
    fn exchanges(&self, is_reversed: bool, all: &mut Vec<CapturedExchange>) -> u64 {
        let asks = usize::from(is_reversed);
        let begin = all.len();
        let asked = self.sides[asks].messages().into_iter();
        all.extend(asked.map(|message| CapturedExchange {
            at: message.at,
            octets: message.octets,
            reply: 0,
            sending_time: message.sending_time(),
        }));
        let (mut unsolicited, own, replies) = (0, &mut all[begin..], self.sides[1 - asks].messages());
        // Datagrams do not reveal the round trip, but the first message in the other direction does, if it is a reply.
        let first =
            own.first().zip(replies.first()).and_then(|(asked, reply)| reply.at.checked_sub(asked.at));
        // Slightly less, since the path may be shorter than ever measured.
        let way = self.conversation.shortest_reply_time(asks, 0).or(first).unwrap_or(0) / 10 * 9;
        for reply in replies {
            let known = own.partition_point(|exchange| exchange.at.saturating_add(way) <= reply.at);
            match known.checked_sub(1) {
                Some(last) => {
                    own[last].reply += reply.octets;
                    own[last].sending_time += reply.sending_time();
                }
                None => unsolicited += 1,
            }
        }
        unsolicited
    }
}

impl SideMessages {
    fn add(&mut self, at: u64, (first, count): (u32, u32), octets: Option<u32>, ends: bool) {
        let Ok(begin) = u64::try_from(self.positions.position(first)) else { return };
        let range = begin..begin + u64::from(count);
        for part in self.pieces.gaps(range.clone()) {
            let octets = octets.map_or(part.end - part.start, u64::from);
            self.pieces.fill(part.clone(), Piece { at, octets, ends: ends && part.end == range.end });
        }
    }

    fn messages(&self) -> Vec<Message> {
        let pieces: Vec<Piece> = self.pieces.overlapping(0..u64::MAX).map(|(_, piece)| piece).collect();
        let mut messages = Vec::new();
        let mut open: Option<Message> = None;
        for piece in &pieces {
            let message = open.get_or_insert(Message { at: piece.at, end: piece.at, octets: 0 });
            message.octets += piece.octets;
            message.end = message.end.max(piece.at);
            if piece.ends {
                messages.extend(open.take());
            }
        }
        messages.extend(open);
        messages.extend(&self.datagrams);
        // A message that was lost before the capture point was sent before the messages that followed it.
        let mut latest = u64::MAX;
        for message in messages.iter_mut().rev() {
            latest = latest.min(message.at);
            message.at = latest;
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns a segment of this many octets from `from` (1 or 2) with a sequence number; `flags` as on the wire.
    fn segment(from: u8, seq: u32, flags: u8, octets: u16) -> Vec<u8> {
        let to = 3 - from;
        let ports = |host: u8| if host == 1 { [0x9c, 0x40] } else { [0, 80] };
        let mut packet = vec![0x45, 0];
        packet.extend((40 + octets).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        packet.extend([ports(from), ports(to)].concat());
        packet.extend(seq.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet.resize(40 + usize::from(octets), 0);
        packet
    }

    const SYN: u8 = 2;
    const PSH: u8 = 8;
    const ACK: u8 = 16;

    fn reconstructed(packets: &[(u64, Vec<u8>)]) -> CapturedMessages {
        let mut listener = MessageReconstructor::default();
        packets.iter().for_each(|(ms, packet)| listener.handle_packet(ms * MS, packet));
        listener.finish(None).unwrap()
    }

    #[test]
    fn replies_follow_a_request_after_a_round_trip() {
        let CapturedMessages { exchanges, unsolicited, .. } = reconstructed(&[
            (0, segment(1, 0, SYN, 0)),
            (20, segment(2, 0, SYN | ACK, 0)),
            (20, segment(1, 1, ACK, 0)),
            (30, segment(1, 1, ACK, 100)),
            (30, segment(1, 101, ACK | PSH, 50)),
            (40, segment(1, 151, ACK | PSH, 10)),
            (51, segment(2, 1, ACK | PSH, 500)),
            (61, segment(2, 501, ACK | PSH, 7)),
        ]);
        let exchange =
            |at: u64, octets, reply| CapturedExchange { at: at * MS, octets, reply, sending_time: 0 };
        assert_eq!((exchanges, unsolicited), (vec![exchange(0, 150, 500), exchange(10, 10, 7)], 0));
    }

    #[test]
    fn a_retransmission_counts_once_at_the_first_time() {
        let CapturedMessages { exchanges, .. } = reconstructed(&[
            (10, segment(1, 101, ACK | PSH, 100)),
            (12, segment(1, 201, ACK | PSH, 100)),
            (40, segment(1, 101, ACK | PSH, 100)),
            (40, segment(1, 301, ACK | PSH, 10)),
        ]);
        let sizes: Vec<_> = exchanges.iter().map(|exchange| (exchange.at / MS, exchange.octets)).collect();
        assert_eq!(sizes, [(0, 100), (2, 100), (30, 10)]);
        let unheard = MessageReconstructor::default().finish(None);
        assert_eq!(unheard, Err(EstimateError::NoPackets));
    }

    #[test]
    fn a_side_that_only_receives_sends_no_requests() {
        let CapturedMessages { exchanges, is_reversed, .. } = reconstructed(&[
            (0, segment(1, 0, SYN, 0)),
            (9, segment(2, 1, ACK | PSH, 300)),
            (29, segment(2, 301, ACK | PSH, 300)),
        ]);
        assert!(is_reversed && exchanges.len() == 2 && exchanges[1].reply == 0);
    }
}
