//! When the octets of each stream were first sent.

use std::collections::{BTreeMap, VecDeque};

use hol_base::Time;

/// Records when each octet of every stream was first sent. QUIC sends new octets in order, and retransmits lost
/// ones in pieces of any size.
#[derive(Debug)]
pub(crate) struct FirstSendTimes {
    /// Maximum number of octets, counted back from the last one sent, that the receiver may lack.
    window: u64,
    streams: BTreeMap<u64, StreamSendTimes>,
}

/// The send times of one stream: pieces that were sent together, by their end offset, oldest first.
#[derive(Debug, Default)]
struct StreamSendTimes {
    pieces: VecDeque<(u64, Time)>,
}

impl FirstSendTimes {
    /// Creates a record that contains no streams.
    pub(crate) fn new(window: u64) -> Self {
        Self { window, streams: BTreeMap::new() }
    }

    /// Records that the octets `start..end` of a stream are sent now. Returns when the last of them was first
    /// sent, and whether any of them is sent for the first time.
    pub(crate) fn send(&mut self, now: Time, stream: u64, start: u64, end: u64) -> (Time, bool) {
        let StreamSendTimes { pieces } = self.streams.entry(stream).or_default();
        let sent = pieces.back().map_or(0, |(end, _)| *end);
        if end > sent {
            pieces.push_back((end, now));
            while pieces.front().is_some_and(|(old, _)| old + self.window < end) {
                pieces.pop_front();
            }
            return (now, true);
        }
        let piece = pieces.partition_point(|(behind, _)| *behind < end);
        // An empty piece is the end of a stream without octets.
        (pieces.get(piece).map_or(now, |(_, at)| *at), start == end && pieces.is_empty())
    }

    /// Discards the record of a stream that is completely acknowledged.
    pub(crate) fn forget(&mut self, stream: u64) {
        self.streams.remove(&stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmission_has_the_first_send_time_of_its_last_octet() {
        let ms = Time::from_millis;
        let mut sent = FirstSendTimes::new(1000);
        assert_eq!(sent.send(ms(1), 6, 0, 100), (ms(1), true));
        assert_eq!(sent.send(ms(2), 6, 100, 200), (ms(2), true));
        assert_eq!(sent.send(ms(3), 10, 0, 50), (ms(3), true));
        assert_eq!(sent.send(ms(9), 6, 0, 100), (ms(1), false));
        assert_eq!(sent.send(ms(9), 6, 50, 150), (ms(2), false));
        assert_eq!(sent.send(ms(9), 6, 150, 300), (ms(9), true));
    }

    #[test]
    fn pieces_older_than_the_window_are_forgotten() {
        let mut sent = FirstSendTimes::new(1000);
        for piece in 0..10_000 {
            sent.send(Time::from_nanos(piece), 6, piece * 100, piece * 100 + 100);
        }
        assert!(sent.streams[&6].pieces.len() <= 11);
        sent.forget(6);
        assert!(sent.streams.is_empty());
    }
}
