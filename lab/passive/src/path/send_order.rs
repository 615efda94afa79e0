//! The data in flight on a path, in the order sent.

/// Finds data that was sent before other data with lower numbers, in logarithmic time.
#[derive(Debug, Default)]
pub(crate) struct SendOrder {
    /// The packet of each data, as an index. The position in this list is the rank of the data.
    packets: Vec<usize>,
    /// The start of each data, or `u64::MAX` if it is no longer in flight; then the minimum of each two, of each four, and so on.
    minimum_starts: Vec<Vec<u64>>,
}

impl SendOrder {
    /// Appends data that was sent in a packet; returns the rank of the data.
    pub fn push(&mut self, start: u64, packet: usize) -> usize {
        let rank = self.packets.len();
        self.packets.push(packet);
        self.set_start(rank, start);
        rank
    }

    /// Removes the data with this rank.
    pub fn remove(&mut self, rank: usize) {
        self.set_start(rank, u64::MAX);
    }

    /// Removes the earliest data below `place`, if its packet was sent before the packet `latest`; returns its packet.
    pub fn take_earliest(&mut self, place: u64, latest: usize) -> Option<usize> {
        let (top, others) = self.minimum_starts.split_last()?;
        if top[0] >= place {
            return None;
        }
        let rank = others.iter().rev().fold(0, |pair, starts| {
            let first = 2 * pair;
            if starts[first] < place { first } else { first + 1 }
        });
        let packet = self.packets[rank];
        if packet >= latest {
            return None;
        }
        self.remove(rank);
        Some(packet)
    }

    fn set_start(&mut self, rank: usize, start: u64) {
        let (mut index, mut minimum) = (rank, start);
        for level in 0.. {
            if level == self.minimum_starts.len() {
                self.minimum_starts.push(Vec::new());
            }
            let starts = &mut self.minimum_starts[level];
            if index == starts.len() {
                starts.push(minimum);
            } else {
                starts[index] = minimum;
            }
            if starts.len() == 1 {
                return;
            }
            let pair = &starts[index & !1..];
            minimum = pair.iter().take(2).copied().min().unwrap_or(u64::MAX);
            index /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a search through all data.
    #[test]
    fn earliest_data_is_that_of_a_linear_search() {
        for count in [0, 1, 2, 3, 8, 9, 100_u64] {
            let mut order = SendOrder::default();
            // Two pieces of data in each packet.
            let mut all: Vec<Option<(u64, usize)>> =
                (0..count).map(|k| Some((k * 37 % 101, k as usize / 2))).collect();
            for (rank, data) in all.iter().flatten().enumerate() {
                assert_eq!(order.push(data.0, data.1), rank);
            }
            for step in 0..2 * count {
                let (place, latest) = (step * 53 % 101, (step * 29 % 50) as usize);
                if step % 5 == 0 {
                    let rank = (step * 7 % count) as usize;
                    order.remove(rank);
                    all[rank] = None;
                }
                let first = all.iter_mut().find(|data| data.is_some_and(|(start, _)| start < place));
                let first = first.filter(|data| data.is_some_and(|(_, packet)| packet < latest));
                let expected = first.and_then(Option::take).map(|(_, packet)| packet);
                assert_eq!(order.take_earliest(place, latest), expected);
            }
        }
    }
}
