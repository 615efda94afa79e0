//! The streams of all connections of a workload, called lanes here.

use crate::{ConnectionId, Handshake};

/// The streams over which a workload may spread its messages: the streams of parallel associations, or parallel TCP
/// connections with one stream each. Each of these streams is called a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLayout {
    /// Total number of streams over all connections.
    pub streams: u16,
    /// Number of connections or associations; each is a session if the application has sessions.
    pub connections: u16,
    /// Whether the transport may lose messages without retransmitting them.
    pub may_lose_messages: bool,
    /// Whether the transport is a byte stream, so that the application must mark message boundaries.
    pub is_stream: bool,
    /// The TLS handshake on each connection; `None` without TLS.
    pub handshake: Option<Handshake>,
}

impl StreamLayout {
    /// Returns the maximum number of attempts to set up a session: if the message may be lost, as many as fit into
    /// about two minutes, otherwise one.
    pub(crate) fn max_setup_attempts(self) -> u32 {
        if self.may_lose_messages { 7 } else { 1 }
    }

    /// Returns the connection of a lane.
    pub fn connection(self, lane: u16) -> ConnectionId {
        ConnectionId((lane % self.connections).into())
    }

    /// Returns the stream of a lane within its connection.
    pub fn stream(self, lane: u16) -> u16 {
        lane / self.connections
    }

    /// Returns the lane for a message. Messages use the lanes one after the other; `turn` counts them. If the
    /// connection of that lane has no room, returns the next lane whose connection has room according to `has_room`; if
    /// none has room, the original lane.
    pub(crate) fn lane_of_turn(self, turn: u32, has_room: impl Fn(ConnectionId) -> bool) -> u16 {
        let (streams, connections) = (u32::from(self.streams), u32::from(self.connections));
        let lane = |skipped| ((turn % streams + skipped) % streams) as u16;
        // This many consecutive lanes have one connection each; the lanes after them have the same connections again.
        let mut one_of_each = (0..connections.min(streams)).map(lane);
        one_of_each.find(|lane| has_room(self.connection(*lane))).unwrap_or(lane(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_all_associations_are_used_in_turn() {
        let lanes = StreamLayout {
            streams: 6,
            connections: 2,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        let all: Vec<_> = (0..6).map(|lane| (lanes.connection(lane).0, lanes.stream(lane))).collect();
        assert_eq!(all, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn connections_without_room_are_skipped() {
        let lanes = StreamLayout {
            streams: 4,
            connections: 2,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        assert_eq!(lanes.lane_of_turn(9, |_| true), 1);
        assert_eq!(lanes.lane_of_turn(9, |connection| connection.0 != 1), 2);
        assert_eq!(lanes.lane_of_turn(9, |_| false), 1);
    }

    /// Each connection is checked only once per message, because a run that is aborted while its only connection is
    /// full records thousands of messages as unsent.
    #[test]
    fn each_connection_is_asked_once() {
        for (streams, connections) in [(1024, 1), (24, 3), (4, 4)] {
            let lanes = StreamLayout {
                streams,
                connections,
                may_lose_messages: false,
                is_stream: false,
                handshake: None,
            };
            for turn in 0..2 * u32::from(streams) {
                let asked = std::cell::RefCell::new(Vec::new());
                let lane = lanes.lane_of_turn(turn, |ConnectionId(connection)| {
                    asked.borrow_mut().push(connection);
                    false
                });
                let mut asked = asked.into_inner();
                asked.sort_unstable();
                assert_eq!(asked, (0..connections.into()).collect::<Vec<u32>>());
                assert_eq!(u32::from(lane), turn % u32::from(streams));
            }
        }
    }
}
