//! Streams over connections: the one place where their arithmetic stands.

use crate::ConnectionId;

/// The streams that a workload may spread its messages over: those of parallel associations, which take them in turn, or
/// parallel TCP connections of one stream each. A lane is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// Streams of all connections together.
    pub streams: u16,
    /// Connections, or associations; each is a session of an application that has any.
    pub connections: u16,
    /// The transport may lose a message for good.
    pub gives_up: bool,
    /// It carries octets, and who wants messages has to tell where they end.
    pub is_stream: bool,
}

impl Lanes {
    /// How often a greeting is said, at most: about two minutes long where it may be lost.
    pub(crate) fn greetings(self) -> u32 {
        if self.gives_up { 7 } else { 1 }
    }

    /// The connection that has a lane.
    pub fn connection(self, lane: u16) -> ConnectionId {
        ConnectionId((lane % self.connections).into())
    }

    /// The stream of its connection that a lane is.
    pub fn stream(self, lane: u16) -> u16 {
        lane / self.connections
    }

    /// The lane of the message in this turn, or the next behind it whose connection `has_room`; the first if none has.
    pub(crate) fn in_turn(self, turn: u32, has_room: impl Fn(ConnectionId) -> bool) -> u16 {
        let streams = u32::from(self.streams);
        let lane = |skipped| ((turn % streams + skipped) % streams) as u16;
        (0..streams).map(lane).find(|lane| has_room(self.connection(*lane))).unwrap_or(lane(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn associations_take_the_streams_in_turn() {
        let lanes = Lanes { streams: 6, connections: 2, gives_up: false, is_stream: false };
        let all: Vec<_> = (0..6).map(|lane| (lanes.connection(lane).0, lanes.stream(lane))).collect();
        assert_eq!(all, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn a_turn_passes_over_connections_without_room() {
        let lanes = Lanes { streams: 4, connections: 2, gives_up: false, is_stream: false };
        assert_eq!(lanes.in_turn(9, |_| true), 1);
        assert_eq!(lanes.in_turn(9, |connection| connection.0 != 1), 2);
        assert_eq!(lanes.in_turn(9, |_| false), 1);
    }
}
