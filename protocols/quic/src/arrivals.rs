//! Records when the octets of a stream arrived, until they are read.

use std::collections::VecDeque;

use hol_transport::DeliveryTimes;

/// The data of one stream that have arrived, but that the application has not read.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Offset that follows the last octet read.
    read: u64,
    /// The pieces that have arrived, in ascending order and without overlaps; of an octet that arrived twice, the
    /// first arrival counts.
    pieces: VecDeque<Piece>,
}

/// A range of octets of a stream, and when it was sent and arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: u64,
    end: u64,
    delivery_times: DeliveryTimes,
}

impl Arrivals {
    /// Handles the arrival of octets `start..end`; returns true if all of them had arrived before.
    pub(crate) fn arrive(&mut self, start: u64, end: u64, delivery_times: DeliveryTimes) -> bool {
        let mut start = start.max(self.read);
        let mut at = self.pieces.partition_point(|piece| piece.end <= start);
        let mut is_known = true;
        while start < end {
            let next = self.pieces.get(at).copied();
            let until = next.map_or(end, |piece| piece.start.min(end));
            if start < until {
                self.pieces.insert(at, Piece { start, end: until, delivery_times });
                is_known = false;
                at += 1;
            }
            start = next.map_or(end, |piece| piece.end);
            at += 1;
        }
        is_known
    }

    /// Handles the reading of data up to the offset `end`. Returns when these octets were sent and arrived, or
    /// `None` if none of them were stored.
    pub(crate) fn read(&mut self, end: u64) -> Option<DeliveryTimes> {
        self.read = self.read.max(end);
        let pieces = self.pieces.partition_point(|piece| piece.start < end);
        let mut delivery_times: Option<DeliveryTimes> = None;
        for _ in 0..pieces {
            let Some(piece) = self.pieces.pop_front() else { break };
            delivery_times =
                Some(delivery_times.map_or(piece.delivery_times, |before| before.join(piece.delivery_times)));
            if piece.end > end {
                self.pieces.push_front(Piece { start: end, ..piece });
            }
        }
        delivery_times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Time;
    use proptest::prelude::*;

    fn at(nanos: u64) -> DeliveryTimes {
        DeliveryTimes { arrived: Time::from_nanos(nanos), ..DeliveryTimes::default() }
    }

    #[test]
    fn arrival_of_a_read_is_that_of_its_last_piece() {
        let mut arrivals = Arrivals::default();
        assert!(!arrivals.arrive(100, 200, at(1)));
        assert!(!arrivals.arrive(0, 100, at(9)));
        assert!(arrivals.arrive(50, 150, at(11)), "a second copy changes nothing");
        assert_eq!(arrivals.read(150), Some(at(9)));
        assert_eq!(arrivals.read(200), Some(at(1)));
        assert!(arrivals.arrive(0, 200, at(12)) && arrivals.pieces.is_empty());
    }

    proptest! {
        /// Computes the arrivals octet by octet, the slow way.
        #[test]
        fn each_octet_has_the_arrival_of_its_first_copy(
            copies in proptest::collection::vec((0u64..40, 1u64..20), 1..20),
            ends in proptest::collection::vec(0u64..60, 1..6),
        ) {
            let mut arrivals = Arrivals::default();
            let mut slow = [None; 60];
            for (time, (start, length)) in copies.into_iter().enumerate() {
                let range = start as usize..(start + length) as usize;
                let was_known = slow[range.clone()].iter().all(Option::is_some);
                slow[range].iter_mut().for_each(|octet| *octet = octet.or(Some(time as u64)));
                prop_assert_eq!(arrivals.arrive(start, start + length, at(time as u64)), was_known);
            }
            let mut read = 0_usize;
            for end in ends {
                let range = read..read.max(end as usize);
                let latest = slow[range].iter().filter_map(|octet| *octet).max();
                prop_assert_eq!(arrivals.read(end), latest.map(at));
                read = read.max(end as usize);
            }
        }
    }
}
