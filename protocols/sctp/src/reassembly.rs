//! Reassembly of fragments, and partial delivery if there is no room for the rest. RFC 9260 section 6.9.

use std::collections::VecDeque;

use bytes::BytesMut;
use hol_base::Time;
use hol_transport::{DeliveryTimes, ReceivedData};
use hol_wire::sctp::{Data, DataFlags, Ssn, Tsn};

/// Fragments of incomplete messages, in ascending order of TSNs. During partial delivery, complete messages wait
/// here, too.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    fragments: VecDeque<Fragment>,
    /// Number of octets of user data in the stored fragments.
    held_octets: usize,
    /// The message that is being delivered in parts; `None` without partial delivery.
    partial: Option<Assembly>,
}

/// A fragment of a message in a DATA chunk.
#[derive(Debug)]
struct Fragment {
    data: Data,
    arrived: Time,
}

/// A message whose first fragments have arrived.
#[derive(Debug, Default)]
struct Assembly {
    octets: BytesMut,
    /// When the fragment that arrived last was sent and arrived.
    delivery_times: DeliveryTimes,
    /// TSN of the next fragment of the message.
    next_tsn: Tsn,
}

/// What a fragment lets the receiver deliver.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// A whole message, and the number of its octets that have already been delivered as parts.
    Whole(Ssn, ReceivedData, usize),
    /// A part of an incomplete message, as its number of octets.
    Part(usize),
}

impl Assembly {
    /// Appends the next fragment to the message; returns the message if it is now complete.
    fn append(&mut self, Fragment { data, arrived }: Fragment) -> Option<(Ssn, ReceivedData)> {
        self.octets.extend_from_slice(&data.payload);
        self.next_tsn = data.tsn.next();
        if arrived >= self.delivery_times.arrived {
            self.delivery_times = DeliveryTimes::new(data.stamp, arrived);
        }
        let Data { flags, stream, ssn, ppid, .. } = data;
        let payload = || std::mem::take(&mut self.octets).freeze();
        let unordered = flags.contains(DataFlags::UNORDERED);
        flags.contains(DataFlags::END).then(payload).map(|payload| {
            (ssn, ReceivedData { stream, unordered, ppid, payload, delivery_times: self.delivery_times })
        })
    }
}

impl Reassembly {
    pub(crate) fn held_octets(&self) -> usize {
        self.held_octets
    }

    /// Returns the number of fragments of incomplete messages.
    pub(crate) fn fragments(&self) -> usize {
        self.fragments.len()
    }

    /// Returns the number of octets that have been delivered of the message that is delivered in parts.
    pub(crate) fn partial_octets(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.octets.len())
    }

    /// Adds a DATA chunk whose TSN is new; passes what can be delivered to `deliver`.
    pub(crate) fn push(&mut self, now: Time, data: Data, mut deliver: impl FnMut(Delivery)) {
        let whole = data.flags.contains(DataFlags::BEGIN | DataFlags::END);
        if whole && self.partial.is_none() {
            let Data { flags, stream, ssn, ppid, payload, stamp, .. } = data;
            let (unordered, delivery_times) =
                (flags.contains(DataFlags::UNORDERED), DeliveryTimes::new(stamp, now));
            return deliver(Delivery::Whole(
                ssn,
                ReceivedData { stream, unordered, ppid, payload, delivery_times },
                0,
            ));
        }
        let at = self.insert(Fragment { data, arrived: now });
        if self.partial.is_some() {
            return self.deliver_parts(deliver);
        }
        if let Some((ssn, message)) = self.take_message_at(at) {
            deliver(Delivery::Whole(ssn, message, 0));
        }
    }

    /// Starts partial delivery when the buffer is full. The application gets the available part of the first
    /// message, if all TSNs before it have arrived (`net/sctp/ulpqueue.c` sctp_ulpq_partial_delivery). The
    /// application assembles the message, and processes it when it is complete.
    pub(crate) fn start_partial_delivery(&mut self, cumulative: Tsn, deliver: impl FnMut(Delivery)) {
        let first = self.fragments.front().map(|fragment| &fragment.data);
        let begins =
            |data: &&Data| data.flags.contains(DataFlags::BEGIN) && data.tsn.at_or_before(cumulative);
        if self.partial.is_some() || first.filter(begins).is_none() {
            return;
        }
        self.partial = first.map(|data| Assembly { next_tsn: data.tsn, ..Assembly::default() });
        self.deliver_parts(deliver);
    }

    /// Continues a partial delivery. All other messages wait until it has ended, because without I-DATA the
    /// application cannot tell to which message a part belongs. RFC 6458 section 8.1.20, level 0.
    fn deliver_parts(&mut self, mut deliver: impl FnMut(Delivery)) {
        let Some(mut partial) = self.partial.take() else { return };
        let before = partial.octets.len();
        while let Some(fragment) = self.pop_first_if(|tsn| tsn == partial.next_tsn) {
            if let Some((ssn, message)) = partial.append(fragment) {
                deliver(Delivery::Whole(ssn, message, before));
                return self.deliver_whole(deliver);
            }
        }
        let octets = partial.octets.len() - before;
        self.partial = Some(partial);
        if octets > 0 {
            deliver(Delivery::Part(octets));
        }
    }

    /// Delivers all complete messages.
    fn deliver_whole(&mut self, mut deliver: impl FnMut(Delivery)) {
        let mut at = 0;
        while at < self.fragments.len() {
            match self.take_message_at(at) {
                Some((ssn, message)) => deliver(Delivery::Whole(ssn, message, 0)),
                None => at += 1,
            }
        }
    }

    /// Inserts a fragment into the list; returns its index.
    fn insert(&mut self, fragment: Fragment) -> usize {
        let tsn = fragment.data.tsn;
        let behind = self.fragments.iter().rev().take_while(|other| other.data.tsn.after(tsn)).count();
        let at = self.fragments.len() - behind;
        self.held_octets += fragment.data.payload.len();
        self.fragments.insert(at, fragment);
        at
    }

    /// Removes and returns the message that contains the fragment at index `at`; `None` if it is incomplete.
    fn take_message_at(&mut self, at: usize) -> Option<(Ssn, ReceivedData)> {
        let first = self.first_of_message(at)?;
        let last = self.last_of_message(at)?;
        let length = self.fragments.range(first..=last).map(|fragment| fragment.data.payload.len()).sum();
        self.held_octets -= length;
        let octets = BytesMut::with_capacity(length);
        let mut message = Assembly { octets, ..Assembly::default() };
        self.fragments.drain(first..=last).find_map(|fragment| message.append(fragment))
    }

    /// Returns the index of the first fragment of the message at index `at`; `None` if there is a gap between the
    /// two.
    fn first_of_message(&self, at: usize) -> Option<usize> {
        let mut index = at;
        while !self.fragments[index].data.flags.contains(DataFlags::BEGIN) {
            let before = index.checked_sub(1)?;
            if self.fragments[before].data.tsn.next() != self.fragments[index].data.tsn {
                return None;
            }
            index = before;
        }
        Some(index)
    }

    /// Returns the index of the last fragment of the message at index `at`; `None` if there is a gap between the
    /// two.
    fn last_of_message(&self, at: usize) -> Option<usize> {
        let mut index = at;
        while !self.fragments[index].data.flags.contains(DataFlags::END) {
            if self.fragments.get(index + 1)?.data.tsn != self.fragments[index].data.tsn.next() {
                return None;
            }
            index += 1;
        }
        Some(index)
    }

    /// Discards the fragments with TSNs up to `tsn`, and the partially delivered message if its next fragment is
    /// one of them. RFC 3758 section 3.6.
    pub(crate) fn discard_through(&mut self, tsn: Tsn, deliver: impl FnMut(Delivery)) {
        if self.partial.take_if(|partial| partial.next_tsn.at_or_before(tsn)).is_some() {
            self.deliver_whole(deliver);
        }
        while self.pop_first_if(|first| first.at_or_before(tsn)).is_some() {}
    }

    fn pop_first_if(&mut self, wanted: impl Fn(Tsn) -> bool) -> Option<Fragment> {
        let first = &self.fragments.front().filter(|first| wanted(first.data.tsn))?.data;
        self.held_octets -= first.payload.len();
        self.fragments.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_wire::SendTimes;
    use hol_wire::sctp::Ssn;

    /// Passes a test's fragments to the reassembly, and records messages, and octets of incomplete ones.
    #[derive(Default)]
    struct Receiver {
        reassembly: Reassembly,
        messages: Vec<Vec<u8>>,
        parts: Vec<usize>,
    }

    const BEGIN: DataFlags = DataFlags::BEGIN;
    const MIDDLE: DataFlags = DataFlags(0);
    const END: DataFlags = DataFlags::END;

    impl Receiver {
        fn take<'t>(
            messages: &'t mut Vec<Vec<u8>>,
            parts: &'t mut Vec<usize>,
        ) -> impl FnMut(Delivery) + use<'t> {
            |delivery| match delivery {
                Delivery::Whole(_, message, in_part) => {
                    assert_eq!(in_part, parts.drain(..).sum::<usize>());
                    messages.push(message.payload.to_vec());
                }
                Delivery::Part(octets) => parts.push(octets),
            }
        }

        /// Adds a fragment whose only octet is its TSN.
        fn push(&mut self, tsn: u32, flags: DataFlags) {
            let payload = vec![tsn as u8].into();
            let (tsn, stamp) = (Tsn(tsn), SendTimes::default());
            let data = Data { flags, tsn, stream: 0, ssn: Ssn(0), ppid: 0, payload, stamp };
            self.reassembly.push(Time::ZERO, data, Self::take(&mut self.messages, &mut self.parts));
        }

        fn start(&mut self, cumulative: u32) {
            let take = Self::take(&mut self.messages, &mut self.parts);
            self.reassembly.start_partial_delivery(Tsn(cumulative), take);
        }

        fn discard_through(&mut self, tsn: u32) {
            // RFC 6458 section 6.1.7: the application discards the parts.
            self.parts.clear();
            self.reassembly.discard_through(Tsn(tsn), Self::take(&mut self.messages, &mut self.parts));
        }
    }

    #[test]
    fn message_is_complete_when_its_last_gap_closes() {
        // RFC 9260 section 6.9; the second message starts directly after the first.
        let mut receiver = Receiver::default();
        for (tsn, flags) in [(3, END), (4, BEGIN), (1, BEGIN)] {
            receiver.push(tsn, flags);
            assert_eq!((receiver.parts.len(), receiver.messages.len()), (0, 0));
        }
        receiver.push(2, MIDDLE);
        assert_eq!(receiver.messages, [[1, 2, 3]]);
        receiver.push(5, END);
        assert_eq!(receiver.messages[1], [4, 5]);
        assert_eq!(receiver.reassembly.held_octets(), 0);
    }

    #[test]
    fn arrival_of_a_message_is_that_of_its_last_fragment() {
        let (mut reassembly, mut arrived) = (Reassembly::default(), None);
        for (tsn, flags, ms) in [(1, BEGIN, 10), (3, END, 20), (2, MIDDLE, 30)] {
            let (tsn, stamp, payload) = (Tsn(tsn), SendTimes::default(), vec![0].into());
            let data = Data { flags, tsn, stream: 0, ssn: Ssn(0), ppid: 0, payload, stamp };
            reassembly.push(Time::from_millis(ms), data, |delivery| {
                let Delivery::Whole(_, message, 0) = delivery else { panic!("{delivery:?} is a part") };
                arrived = Some(message.delivery_times.arrived);
            });
        }
        assert_eq!(arrived, Some(Time::from_millis(30)));
    }

    #[test]
    fn partial_delivery_frees_the_buffer_and_ends_with_the_message() {
        // RFC 9260 section 6.9.
        let mut receiver = Receiver::default();
        for (tsn, flags) in [(1, BEGIN), (2, MIDDLE), (4, MIDDLE)] {
            receiver.push(tsn, flags);
        }
        receiver.start(2);
        assert_eq!(receiver.parts, [2]);
        assert_eq!(receiver.reassembly.held_octets(), 1, "fragment 4 has a gap before it");
        receiver.push(3, MIDDLE);
        assert_eq!(receiver.parts, [2, 2]);
        assert_eq!((receiver.reassembly.held_octets(), receiver.messages.len()), (0, 0));
        receiver.push(5, END);
        assert_eq!(receiver.messages, [[1, 2, 3, 4, 5]]);
    }

    #[test]
    fn partial_delivery_needs_no_gap_before_the_message() {
        // RFC 9260 section 6.9: the messages of a stream have an order.
        let mut receiver = Receiver::default();
        receiver.push(2, BEGIN);
        receiver.start(0);
        assert!(receiver.parts.is_empty());
        let mut receiver = Receiver::default();
        receiver.push(1, MIDDLE);
        receiver.start(1);
        assert!(receiver.parts.is_empty());
    }

    #[test]
    fn other_messages_wait_for_the_end_of_a_partial_delivery() {
        // RFC 6458 section 8.1.20, level 0.
        let mut receiver = Receiver::default();
        receiver.push(1, BEGIN);
        receiver.start(1);
        for (tsn, flags) in [(6, END), (3, BEGIN | END), (5, BEGIN), (7, BEGIN)] {
            receiver.push(tsn, flags);
            assert_eq!((receiver.parts.len(), receiver.messages.len()), (1, 0));
        }
        receiver.push(2, END);
        assert_eq!(receiver.messages, [vec![1, 2], vec![3], vec![5, 6]]);
        assert_eq!(receiver.reassembly.held_octets(), 1);
        receiver.push(8, END);
        assert_eq!(receiver.messages[3], [7, 8]);
    }

    #[test]
    fn forward_tsn_discards_incomplete_messages() {
        // RFC 3758 section 3.6.
        let mut receiver = Receiver::default();
        receiver.push(1, BEGIN);
        receiver.push(4, BEGIN);
        receiver.discard_through(2);
        assert_eq!(receiver.reassembly.held_octets(), 1);
        receiver.push(5, END);
        assert_eq!(receiver.messages, [[4, 5]]);
    }

    #[test]
    fn forward_tsn_ends_a_partial_delivery() {
        // RFC 3758 section 3.6; RFC 6458 section 6.1.7.
        let mut receiver = Receiver::default();
        receiver.push(1, BEGIN);
        receiver.start(1);
        receiver.push(3, BEGIN | END);
        receiver.push(4, BEGIN);
        receiver.discard_through(2);
        assert_eq!(receiver.messages, [[3]]);
        receiver.push(5, END);
        assert_eq!(receiver.messages[1], [4, 5]);
    }
}
