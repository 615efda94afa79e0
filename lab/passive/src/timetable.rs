//! The times when each octet of a stream was sent, arrived, and could be delivered.

use hol_base::Time;
use hol_measure::TransferTimes;

use crate::delivery_history::Arrival;

/// The times of all octets in one direction of a stream.
#[derive(Debug)]
pub(crate) struct Timetable {
    /// For each part of the data: the position of its end, and when it was first sent.
    sent: Vec<(u64, Time)>,
    /// For each part of the data: the position of its end, the copy that arrived first, and when everything before the
    /// end had arrived, too.
    arrived: Vec<(u64, Arrival, Time)>,
}

impl Timetable {
    /// Creates the timetable from parts in the order of the stream, each with its end and its times.
    pub fn new(
        sent: impl Iterator<Item = (u64, Time)>,
        arrived: impl Iterator<Item = (u64, Arrival)>,
    ) -> Self {
        let mut delivered = Time::ZERO;
        let arrived = arrived.map(|(end, arrival)| {
            delivered = delivered.max(arrival.at);
            (end, arrival, delivered)
        });
        Self { sent: sent.collect(), arrived: arrived.collect() }
    }

    /// Returns when an octet was first sent.
    pub fn first_sent(&self, octet: u64) -> Option<Time> {
        let at = self.sent.partition_point(|(end, _)| *end <= octet);
        self.sent.get(at).map(|(_, sent)| *sent)
    }

    /// Returns the transfer times of the data before `end`. The packets do not show when a program wrote;
    /// this is assumed to be when the last octet was first sent.
    pub fn transfer_times(&self, end: u64) -> Option<TransferTimes> {
        let octet = end.checked_sub(1)?;
        let first_sent = self.first_sent(octet)?;
        let at = self.arrived.partition_point(|(end, ..)| *end <= octet);
        let (_, Arrival { sent: last_sent, at: arrived }, delivered) = *self.arrived.get(at)?;
        Some(TransferTimes { written: first_sent, first_sent, last_sent, arrived, delivered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_octet_is_delivered_when_those_before_it_have_arrived() {
        let ms = Time::from_millis;
        let arrival = |sent, at| Arrival { sent: ms(sent), at: ms(at) };
        let sent = [(100, ms(1)), (200, ms(2)), (300, ms(3))];
        let arrived = [(100, arrival(31, 41)), (200, arrival(2, 12))];
        let table = Timetable::new(sent.into_iter(), arrived.into_iter());
        let leg = |[first_sent, last_sent, arrived, delivered]: [u64; 4]| {
            let [first_sent, last_sent, arrived, delivered] =
                [first_sent, last_sent, arrived, delivered].map(ms);
            Some(TransferTimes { written: first_sent, first_sent, last_sent, arrived, delivered })
        };
        assert_eq!(table.transfer_times(100), leg([1, 31, 41, 41]));
        assert_eq!(table.transfer_times(200), leg([2, 2, 12, 41]));
        assert_eq!((table.transfer_times(300), table.transfer_times(0)), (None, None));
        assert_eq!((table.first_sent(299), table.first_sent(300)), (Some(ms(3)), None));
    }
}
