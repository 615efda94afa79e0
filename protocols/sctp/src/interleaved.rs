//! Reassembly and ordering of messages in I-DATA chunks. RFC 8260 section 2.2.3.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use hol_base::Time;
use hol_transport::{DeliveryTimes, ReceivedData};
use hol_wire::sctp::{DataFlags, Fsn, IData, Mid, SkippedMessages};

/// Messages in I-DATA chunks that have not been delivered completely.
#[derive(Debug, Default)]
pub(crate) struct InterleavedReassembly {
    /// The state of each stream, separate for ordered and unordered messages (by the U bit), which are numbered
    /// separately.
    channels: BTreeMap<(u16, bool), Channel>,
    /// Number of octets of user data that wait for earlier fragments.
    held_octets: usize,
}

/// What a chunk or an I-FORWARD-TSN lets the receiver deliver.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// A whole message, and the number of its octets that have already been delivered as parts.
    Whole(ReceivedData, usize),
    /// A part of an incomplete message, as its number of octets.
    Part(usize),
}

/// The state of the ordered or of the unordered messages of a stream.
#[derive(Debug, Default)]
struct Channel {
    /// MID of the next message. Earlier ordered messages have been delivered or abandoned; earlier unordered messages
    /// have been abandoned.
    next: Mid,
    /// Incomplete messages, by ascending MID.
    messages: VecDeque<Incoming>,
}

/// A message with at least one received fragment.
#[derive(Debug)]
struct Incoming {
    mid: Mid,
    /// Fragments that wait for earlier ones, in ascending order.
    fragments: VecDeque<Fragment>,
    /// FSN of the fragment with the E bit, the last one of the message; `None` before it arrives.
    last_fsn: Option<Fsn>,
    /// FSN of the next fragment to deliver to the application.
    next: Fsn,
    /// The part of the message that has been delivered; `None` without partial delivery.
    delivered_part: Option<BytesMut>,
    delivery_times: DeliveryTimes,
    ppid: u32,
}

/// A fragment of a message, from an I-DATA chunk.
#[derive(Debug)]
struct Fragment {
    fsn: Fsn,
    data: IData,
    arrived: Time,
}

impl InterleavedReassembly {
    pub(crate) fn held_octets(&self) -> usize {
        self.held_octets
    }

    /// Returns the number of fragments that wait for earlier ones.
    pub(crate) fn fragments(&self) -> usize {
        self.messages().map(|message| message.fragments.len()).sum()
    }

    /// Returns the number of octets that have been delivered of the longest partially delivered message.
    pub(crate) fn partial_octets(&self) -> usize {
        let parts = self.messages().filter_map(|message| message.delivered_part.as_ref());
        parts.map(BytesMut::len).max().unwrap_or(0)
    }

    fn messages(&self) -> impl Iterator<Item = &Incoming> {
        self.channels.values().flat_map(|channel| &channel.messages)
    }

    /// Adds an I-DATA chunk whose TSN is new.
    pub(crate) fn push(&mut self, now: Time, data: IData, deliver: &mut impl FnMut(Delivery)) {
        let (stream, unordered) = (data.stream, data.flags.contains(DataFlags::UNORDERED));
        let (whole, mid) = (data.flags.contains(DataFlags::BEGIN | DataFlags::END), data.mid);
        let channel = self.channels.entry((stream, unordered)).or_default();
        if mid.before(channel.next) {
            return;
        }
        if whole && (unordered || (mid == channel.next && channel.messages.is_empty())) {
            channel.note_delivered(mid, unordered);
            let IData { ppid, payload, stamp, .. } = data;
            let delivery_times = DeliveryTimes::new(stamp, now);
            return deliver(Delivery::Whole(
                ReceivedData { stream, unordered, ppid, payload, delivery_times },
                0,
            ));
        }
        let message = channel.message(mid);
        self.held_octets += message.insert(data, now);
        self.held_octets -= message.extend_part(deliver);
        channel.deliver_complete(stream, unordered, &mut self.held_octets, deliver);
    }

    /// Starts partial delivery when the buffer is full: the application gets the available part of every message
    /// that is next in its stream. RFC 6458 section 8.1.20, level 2: parts of messages on different streams
    /// alternate. The parts leave the receive buffer.
    pub(crate) fn start_partial_delivery(&mut self, deliver: &mut impl FnMut(Delivery)) {
        for ((_, unordered), channel) in &mut self.channels {
            let next = channel.next;
            let may_be_seen = |message: &&mut Incoming| *unordered || message.mid == next;
            for message in channel.messages.iter_mut().filter(may_be_seen) {
                if message.delivered_part.is_none() && message.follows() {
                    message.delivered_part = Some(BytesMut::new());
                    self.held_octets -= message.extend_part(deliver);
                }
            }
        }
    }

    /// Skips the messages that the peer has abandoned, up to a MID. Delivers those of them that are complete. RFC
    /// 8260 section 2.3.1, RFC 3758 section 3.6.
    pub(crate) fn skip(&mut self, skipped: SkippedMessages, deliver: &mut impl FnMut(Delivery)) {
        let SkippedMessages { stream, unordered, mid } = skipped;
        let channel = self.channels.entry((stream, unordered)).or_default();
        if mid.before(channel.next) {
            return;
        }
        while channel.messages.front().is_some_and(|message| message.mid.at_or_before(mid))
            && let Some(first) = channel.messages.pop_front()
        {
            self.held_octets -= first.held_octets();
            first.discard_rest(stream, unordered, deliver);
        }
        channel.next = mid.next();
        channel.deliver_complete(stream, unordered, &mut self.held_octets, deliver);
    }
}

impl InterleavedReassembly {
    /// Resets the numbering of ordered and of unordered messages of a stream (RFC 8260 section 2.1). All messages
    /// of the stream must have arrived or been abandoned. RFC 6525 section 5.2.2 E3.
    pub(crate) fn reset(&mut self, stream: u16, deliver: &mut impl FnMut(Delivery)) {
        for unordered in [false, true] {
            for message in self.channels.remove(&(stream, unordered)).unwrap_or_default().messages {
                self.held_octets -= message.held_octets();
                message.discard_rest(stream, unordered, deliver);
            }
        }
    }
}

impl Channel {
    /// Returns the message with this MID; creates it if none of its fragments has arrived yet.
    fn message(&mut self, mid: Mid) -> &mut Incoming {
        let at = self.messages.partition_point(|other| other.mid.before(mid));
        if self.messages.get(at).is_none_or(|other| other.mid != mid) {
            self.messages.insert(at, Incoming::new(mid));
        }
        &mut self.messages[at]
    }

    /// Records a delivery. At most 2³¹ - 1 unordered messages are in flight, so a message with a much older MID
    /// was delivered or abandoned.
    fn note_delivered(&mut self, mid: Mid, unordered: bool) {
        const MAX_DISTANCE: u32 = 1 << 30;
        if !unordered {
            self.next = mid.next();
        } else if mid.distance_from(self.next) > MAX_DISTANCE {
            self.next = mid - MAX_DISTANCE;
        }
    }

    /// Delivers the messages that are complete and next in order.
    fn deliver_complete(
        &mut self,
        stream: u16,
        unordered: bool,
        held: &mut usize,
        deliver: &mut impl FnMut(Delivery),
    ) {
        let mut at = 0;
        while let Some(message) = self.messages.get(at) {
            let is_due = message.is_complete() && (unordered || message.mid == self.next);
            if is_due && let Some(message) = self.messages.remove(at) {
                *held -= message.held_octets();
                self.note_delivered(message.mid, unordered);
                deliver(message.into_delivery(stream, unordered));
            } else if unordered {
                at += 1;
            } else {
                return;
            }
        }
    }
}

impl Incoming {
    fn new(mid: Mid) -> Self {
        Self {
            mid,
            fragments: VecDeque::new(),
            last_fsn: None,
            next: Fsn(0),
            delivered_part: None,
            delivery_times: DeliveryTimes::default(),
            ppid: 0,
        }
    }

    fn held_octets(&self) -> usize {
        self.fragments.iter().map(|fragment| fragment.data.payload.len()).sum()
    }

    /// Inserts a fragment. Returns the number of octets added: 0 for a duplicate, or for a fragment that follows
    /// the last one.
    fn insert(&mut self, data: IData, arrived: Time) -> usize {
        let (fsn, length) = (data.fsn, data.payload.len());
        let behind_last = self.last_fsn.is_some_and(|last| fsn.after(last));
        let at = self.fragments.partition_point(|other| other.fsn.before(fsn));
        let is_known = self.fragments.get(at).is_some_and(|other| other.fsn == fsn);
        if fsn.before(self.next) || behind_last || is_known {
            return 0;
        }
        if data.flags.contains(DataFlags::END) {
            if self.last_fsn.is_some() || at < self.fragments.len() {
                return 0;
            }
            self.last_fsn = Some(fsn);
        }
        self.fragments.insert(at, Fragment { fsn, data, arrived });
        length
    }

    /// Returns whether the next fragment to deliver has arrived.
    fn follows(&self) -> bool {
        self.fragments.front().is_some_and(|first| first.fsn == self.next)
    }

    /// Returns whether all undelivered fragments have arrived. FSNs ascend, so checking the first, the last and
    /// their number suffices.
    fn is_complete(&self) -> bool {
        let Some(last) = self.last_fsn else { return false };
        self.follows() && last.distance_from(self.next) as usize + 1 == self.fragments.len()
    }

    /// Continues the partial delivery of a message, except for its end. Returns the number of octets that leave
    /// the receive buffer.
    fn extend_part(&mut self, deliver: &mut impl FnMut(Delivery)) -> usize {
        let Some(mut part) = self.delivered_part.take() else { return 0 };
        let before = part.len();
        while !self.is_complete() && self.follows() {
            self.take_first(&mut part);
        }
        let octets = part.len() - before;
        self.delivered_part = Some(part);
        if octets > 0 {
            deliver(Delivery::Part(octets));
        }
        octets
    }

    fn take_first(&mut self, octets: &mut BytesMut) {
        let Some(Fragment { data, arrived, .. }) = self.fragments.pop_front() else { return };
        octets.extend_from_slice(&data.payload);
        self.next = self.next.next();
        // A message has the times of the fragment that arrived last.
        if arrived >= self.delivery_times.arrived {
            self.delivery_times = DeliveryTimes::new(data.stamp, arrived);
        }
        if data.flags.contains(DataFlags::BEGIN) {
            self.ppid = data.ppid;
        }
    }

    /// Delivers a skipped message if it is complete; otherwise discards it, even if a part has been delivered.
    fn discard_rest(self, stream: u16, unordered: bool, deliver: &mut impl FnMut(Delivery)) {
        if self.is_complete() {
            deliver(self.into_delivery(stream, unordered));
        }
    }

    fn into_delivery(mut self, stream: u16, unordered: bool) -> Delivery {
        let mut octets =
            self.delivered_part.take().unwrap_or_else(|| BytesMut::with_capacity(self.held_octets()));
        let in_part = octets.len();
        while !self.fragments.is_empty() {
            self.take_first(&mut octets);
        }
        let Self { delivery_times, ppid, .. } = self;
        Delivery::Whole(
            ReceivedData { stream, unordered, ppid, payload: octets.freeze(), delivery_times },
            in_part,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_wire::SendTimes;
    use hol_wire::sctp::Tsn;

    const WHOLE: DataFlags = DataFlags(3);
    const BEGIN: DataFlags = DataFlags::BEGIN;
    const MIDDLE: DataFlags = DataFlags(0);
    const END: DataFlags = DataFlags::END;

    /// Records the results of a test's chunks and skips: messages as text, parts and aborts as numbers.
    #[derive(Default)]
    struct Receiver {
        interleaved: InterleavedReassembly,
        heard: Vec<String>,
    }

    impl Receiver {
        fn tell(heard: &mut Vec<String>) -> impl FnMut(Delivery) {
            |delivery| {
                heard.push(match delivery {
                    Delivery::Whole(message, part) => {
                        let text = String::from_utf8(message.payload.to_vec()).unwrap();
                        let u = if message.unordered { "u" } else { "" };
                        format!("{u}{}:{text}/{part}", message.stream)
                    }
                    Delivery::Part(octets) => format!("+{octets}"),
                });
            }
        }

        fn push(&mut self, (stream, flags): (u16, DataFlags), (mid, fsn): (u32, u32), text: &str) {
            let (mid, fsn, stamp) = (Mid(mid), Fsn(fsn), SendTimes::default());
            let payload = text.as_bytes().to_vec().into();
            let data = IData { flags, tsn: Tsn(0), stream, mid, fsn, ppid: 0, payload, stamp };
            self.interleaved.push(Time::ZERO, data, &mut Self::tell(&mut self.heard));
        }

        fn skip(&mut self, stream: u16, unordered: bool, mid: u32) {
            let skipped = SkippedMessages { stream, unordered, mid: Mid(mid) };
            self.interleaved.skip(skipped, &mut Self::tell(&mut self.heard));
        }

        fn start(&mut self) {
            self.interleaved.start_partial_delivery(&mut Self::tell(&mut self.heard));
        }

        #[track_caller]
        fn expect(&mut self, heard: &[&str], held: usize) {
            assert_eq!(self.heard, heard);
            assert_eq!(self.interleaved.held_octets(), held);
            self.heard.clear();
        }
    }

    #[test]
    fn fragments_in_any_order_join_their_messages() {
        // RFC 8260 section 2.2.3: by stream, U bit, MID and FSN, not by TSN.
        let mut receiver = Receiver::default();
        receiver.push((1, END), (0, 2), "f");
        receiver.push((2, BEGIN), (0, 0), "x");
        receiver.push((1, BEGIN), (0, 0), "d");
        receiver.push((1, DataFlags::UNORDERED | BEGIN), (0, 0), "g");
        receiver.expect(&[], 4);
        receiver.push((1, MIDDLE), (0, 1), "e");
        receiver.push((2, END), (0, 1), "y");
        receiver.push((1, DataFlags::UNORDERED | END), (0, 1), "h");
        receiver.expect(&["1:def/0", "2:xy/0", "u1:gh/0"], 0);
    }

    #[test]
    fn messages_are_delivered_in_order_of_their_mid() {
        // RFC 8260 section 2.1; the numbers wrap around.
        let mut receiver = Receiver::default();
        receiver.skip(0, false, u32::MAX / 2);
        receiver.skip(0, false, u32::MAX - 2);
        receiver.push((0, WHOLE), (0, 0), "c");
        receiver.push((0, DataFlags::UNORDERED | WHOLE), (7, 0), "u");
        receiver.push((0, BEGIN), (u32::MAX, 0), "b");
        receiver.push((0, WHOLE), (u32::MAX - 1, 0), "a");
        receiver.expect(&["u0:u/0", "0:a/0"], 2);
        receiver.push((0, END), (u32::MAX, 1), "B");
        receiver.expect(&["0:bB/0", "0:c/0"], 0);
    }

    #[test]
    fn partial_delivery_starts_on_every_stream() {
        // RFC 6458 section 8.1.20, level 2.
        let mut receiver = Receiver::default();
        receiver.push((0, BEGIN), (0, 0), "ab");
        receiver.push((0, MIDDLE), (0, 2), "ef");
        receiver.push((1, BEGIN), (0, 0), "pq");
        receiver.push((2, MIDDLE), (0, 1), "zz");
        receiver.push((0, BEGIN), (1, 0), "later");
        receiver.start();
        // Fragments after a gap stay, and so do messages before which another one of their stream is missing.
        receiver.expect(&["+2", "+2"], 9);
        receiver.push((1, WHOLE), (1, 0), "r");
        receiver.push((0, MIDDLE), (0, 1), "cd");
        receiver.expect(&["+4"], 8);
        receiver.push((1, END), (0, 1), "!");
        receiver.expect(&["1:pq!/2", "1:r/0"], 7);
        receiver.push((0, END), (0, 3), "g");
        receiver.expect(&["0:abcdefg/6"], 7);
    }

    #[test]
    fn skipped_messages_do_not_block_later_ones() {
        // RFC 8260 section 2.3.1.
        let mut receiver = Receiver::default();
        receiver.push((0, BEGIN), (0, 0), "a");
        receiver.push((0, WHOLE), (1, 0), "whole");
        receiver.push((0, BEGIN), (2, 0), "b");
        receiver.push((0, WHOLE), (3, 0), "next");
        receiver.push((0, DataFlags::UNORDERED | BEGIN), (0, 0), "u");
        receiver.start();
        receiver.expect(&["+1", "+1"], 10);
        receiver.skip(0, false, 2);
        receiver.expect(&["0:whole/0", "0:next/0"], 0);
        receiver.skip(0, true, 0);
        receiver.expect(&[], 0);
        // Later fragments of it are discarded.
        receiver.push((0, END), (2, 1), "late");
        receiver.push((0, DataFlags::UNORDERED | END), (0, 1), "late");
        receiver.skip(0, false, 1);
        receiver.push((0, WHOLE), (4, 0), "on");
        receiver.expect(&["0:on/0"], 0);
    }

    #[test]
    fn contradictory_fragments_are_dropped() {
        let mut receiver = Receiver::default();
        receiver.push((0, END), (0, 2), "c");
        receiver.push((0, MIDDLE), (0, 3), "after the last fragment");
        receiver.push((0, END), (0, 1), "another end");
        receiver.push((0, MIDDLE), (0, 2), "twice");
        receiver.expect(&[], 1);
        receiver.push((0, MIDDLE), (0, 1), "b");
        receiver.push((0, BEGIN), (0, 0), "a");
        receiver.expect(&["0:abc/0"], 0);
    }
}
