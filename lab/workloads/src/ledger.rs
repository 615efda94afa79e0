//! The ledger of one end of a workload, client or server: its notes on unsettled messages, which are neither done nor
//! lost. A ledger is plain data, because the ends may run on two hosts.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_measure::{RecordKind, TransferTimes};
use hol_transport::DeliveryTimes;
use serde::{Deserialize, Serialize};

use crate::ENDLESS;
use crate::window::EntryWindow;

/// What one application has recorded about the messages that it sent and received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    #[serde(rename = "asked")]
    pub(crate) sent_messages: EntryWindow<SentEntry>,
    #[serde(rename = "answered")]
    pub(crate) received_messages: EntryWindow<Option<ReceivedEntry>>,
    /// Entries that consist of several messages, by entry number.
    #[serde(default, rename = "wholes")]
    pub(crate) composites: BTreeMap<u32, CompositeEntry>,
    /// When the transport accepted the first part of a reply that has several parts, by number of the message.
    #[serde(default, rename = "begun")]
    pub(crate) reply_starts: BTreeMap<u32, Time>,
    /// Maximum number of messages that the peer sends.
    expected: u64,
    /// Number of messages received from the peer.
    received: u64,
    /// When the latest message was due.
    last_due: Option<Time>,
    /// Number of finished messages: all received messages, and sent messages that were answered.
    pub(crate) done: u64,
    /// Whether messages were given up although they may still arrive.
    pub(crate) gave_up: bool,
}

/// The number of an entry in a ledger, which is the number of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryId(u32);

/// What the sender has recorded about a message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct SentEntry {
    /// When the message was due.
    pub(crate) scheduled: Time,
    /// When the transport accepted the message.
    pub(crate) written: Time,
    pub(crate) lane: u16,
    /// Octets of the message.
    pub(crate) size: u32,
    pub(crate) kind: RecordKind,
    /// Number of the entry for several messages to which the message belongs; `None` if it belongs to none.
    pub(crate) parent: Option<u32>,
    /// When and how the reply arrived; `None` if it has not arrived.
    pub(crate) reply: Option<MessageArrival>,
    /// Octets of the reply to the message.
    #[serde(default)]
    pub(crate) reply_size: u32,
    /// Whether the reply to the message is a refusal.
    pub(crate) refused: bool,
}

/// An entry for several messages, which together have one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompositeEntry {
    /// Number of the message whose reply ends the entry: the first message, until it is known that a later one does.
    pub(crate) message: u32,
    /// The part of the reply to message `message` whose arrival ends the entry.
    pub(crate) part: ReplyPart,
}

/// A part of a reply that is written in several parts: its first or its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReplyPart {
    First,
    Last,
}

/// What the receiver has recorded about a message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReceivedEntry {
    /// When and how the message arrived.
    pub(crate) request: MessageArrival,
    /// When the transport accepted the reply to the message.
    pub(crate) reply_written: Time,
    /// Whether the message arrived after its deadline.
    #[serde(default)]
    pub(crate) is_late: bool,
}

/// When a message was sent, when it arrived, and when it was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[Time; 4]", into = "[Time; 4]")]
pub struct MessageArrival {
    /// When the message was sent, and when it arrived.
    pub delivery_times: DeliveryTimes,
    /// When the application received the message.
    pub delivered: Time,
}

/// What a sender records when a message comes due.
#[derive(Debug, Clone, Copy)]
pub struct DueMessage {
    /// When the message was due according to the schedule.
    pub scheduled: Time,
    /// Lane of the message: the index of its stream among the streams of all connections.
    pub lane: u16,
    /// Octets of the message.
    pub size: u32,
    /// Octets of the reply if they are known in advance; otherwise 0.
    pub reply_size: u32,
    /// Kind of the record to which the message belongs.
    pub kind: RecordKind,
    /// Number of the entry for several messages to which the message belongs; `None` if it belongs to none.
    pub parent: Option<u32>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new(ENDLESS)
    }
}

impl Ledger {
    /// Creates an empty ledger of an end that receives at most `expected` messages.
    pub(crate) fn new(expected: u64) -> Self {
        Self {
            sent_messages: EntryWindow::default(),
            received_messages: EntryWindow::default(),
            composites: BTreeMap::new(),
            reply_starts: BTreeMap::new(),
            expected,
            received: 0,
            last_due: None,
            done: 0,
            gave_up: false,
        }
    }

    /// Validates a ledger that another host has sent, and counts its finished messages again. Returns `None` if the
    /// entries do not start with message 0, because the other host must not have settled any message.
    pub fn validated(mut self) -> Option<Self> {
        let replies = self.sent_messages.notes().filter(|sent| sent.reply.is_some()).count();
        let requests = self.received_messages.notes().flatten().count();
        self.done = (replies + requests) as u64;
        (self.sent_messages.start() == 0 && self.received_messages.start() == 0).then_some(self)
    }

    /// Converts the times in the ledger with `clock`. Transmission and arrival times of packets are not converted;
    /// packet times from another clock are zero (unknown).
    pub fn convert_times(&mut self, clock: impl Fn(Time) -> Time) {
        let arrival = |arrived: &mut MessageArrival| arrived.delivered = clock(arrived.delivered);
        for sent in self.sent_messages.notes_mut() {
            (sent.scheduled, sent.written) = (clock(sent.scheduled), clock(sent.written));
            sent.reply.iter_mut().for_each(arrival);
        }
        for received in self.received_messages.notes_mut().flatten() {
            arrival(&mut received.request);
            received.reply_written = clock(received.reply_written);
        }
        self.reply_starts.values_mut().for_each(|time| *time = clock(*time));
        self.last_due = self.last_due.map(&clock);
    }

    /// Reserves room for this many sent and received messages. A run in real time settles messages only at its end, and
    /// a reallocation during the run would delay it.
    pub fn reserve(&mut self, sent: u64, received: u64) {
        /// Maximum number of messages for which room is reserved.
        const MAX_RESERVED_MESSAGES: u64 = 1 << 20;
        let room = |messages: u64| {
            if messages == ENDLESS { 0 } else { messages.min(MAX_RESERVED_MESSAGES) as usize }
        };
        self.sent_messages.reserve(room(sent));
        self.received_messages.reserve(room(received));
    }

    /// Returns the number of messages that came due.
    pub fn messages_due(&self) -> u64 {
        self.sent_messages.end().into()
    }

    /// Returns the number of messages received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the scheduled time of the latest message, if there is any.
    pub fn last_due_time(&self) -> Option<Time> {
        self.last_due
    }

    /// Records a message that comes due `now`; it counts as written at this time unless the transport rejects it.
    /// Returns its entry.
    pub fn note_due(&mut self, now: Time, due: DueMessage) -> EntryId {
        let DueMessage { scheduled, lane, size, reply_size, kind, parent } = due;
        let (reply, refused) = (None, false);
        let sent =
            SentEntry { scheduled, written: now, lane, size, kind, parent, reply, reply_size, refused };
        self.last_due = Some(scheduled);
        EntryId(self.sent_messages.push(sent))
    }

    /// Records that the transport has accepted the message only now.
    pub fn note_written(&mut self, entry: EntryId, now: Time) {
        if let Some(sent) = self.sent_messages.get_mut(entry.0) {
            sent.written = now;
        }
    }

    /// Changes the scheduled time of the message to `now`.
    pub fn reschedule(&mut self, entry: EntryId, now: Time) {
        if let Some(sent) = self.sent_messages.get_mut(entry.0) {
            sent.scheduled = now;
        }
    }

    /// Records the lane of the message: the index of its stream among the streams of all connections.
    pub fn note_lane(&mut self, entry: EntryId, lane: u16) {
        if let Some(sent) = self.sent_messages.get_mut(entry.0) {
            sent.lane = lane;
        }
    }

    /// Records an entry for several messages; `first` is the number of the first of them.
    pub fn note_composite_due(&mut self, now: Time, due: DueMessage, first: u32) -> EntryId {
        let entry = self.note_due(now, due);
        self.composites.insert(entry.0, CompositeEntry { message: first, part: ReplyPart::First });
        entry
    }

    /// Ends an entry for several messages with the reply to message number `last`.
    pub fn end_composite(&mut self, entry: EntryId, last: u32, reply: MessageArrival) {
        self.composites.insert(entry.0, CompositeEntry { message: last, part: ReplyPart::Last });
        self.note_composite_end(entry, reply);
    }

    /// Ends an entry for several messages with the first part of the reply to its first message.
    pub fn end_first_octets(&mut self, entry: EntryId, reply: MessageArrival) {
        self.note_composite_end(entry, reply);
    }

    fn note_composite_end(&mut self, entry: EntryId, reply: MessageArrival) {
        if let Some(sent) = self.sent_messages.get_mut(entry.0) {
            sent.reply = Some(reply);
            self.done += 1;
        }
    }

    /// Returns when a message that is not settled was due.
    pub fn scheduled(&self, entry: EntryId) -> Time {
        self.sent_messages
            .get(entry.0)
            .expect("a message that the transport has rejected is unsettled")
            .scheduled
    }

    /// Records the reply to message `number`. Returns false if there is no such message or if it already has a reply.
    #[must_use]
    pub fn note_reply(&mut self, number: u32, reply: MessageArrival, refused: bool) -> bool {
        self.note_sized_reply(number, reply, 0, refused)
    }

    /// Records a reply as [`Self::note_reply`] does, and its size in octets if it is known.
    #[must_use]
    pub fn note_sized_reply(
        &mut self,
        number: u32,
        reply: MessageArrival,
        octets: u32,
        refused: bool,
    ) -> bool {
        match self.sent_messages.get_mut(number) {
            Some(sent) if sent.reply.is_none() => {
                (sent.reply, sent.refused) = (Some(reply), refused);
                sent.reply_size = sent.reply_size.max(octets);
                self.done += 1;
                true
            }
            Some(_) => false,
            None => self.gave_up && number < self.sent_messages.end(),
        }
    }

    /// Records that message `number` of the peer has arrived.
    ///
    /// # Panics
    /// If the message has arrived before, which no transport may allow.
    pub fn note_request(&mut self, number: u32, request: MessageArrival) -> EntryId {
        self.received += 1;
        // A number beyond the schedule is not from the client of this run.
        if u64::from(number) < self.expected {
            while self.received_messages.end() <= number {
                self.received_messages.push(None);
            }
            if let Some(received) = self.received_messages.get_mut(number) {
                assert!(received.is_none(), "message {number} was delivered twice");
                let reply_written = request.delivered;
                *received = Some(ReceivedEntry { request, reply_written, is_late: false });
                self.done += 1;
            } else {
                assert!(self.gave_up, "message {number} was delivered twice");
            }
        }
        EntryId(number)
    }

    /// Records that the message just received arrived after its deadline.
    pub fn note_late(&mut self, entry: EntryId) {
        if let Some(Some(received)) = self.received_messages.get_mut(entry.0) {
            received.is_late = true;
        }
    }

    /// Records a request as [`Self::note_request`] does. A client whose connection failed may repeat a request; only
    /// its first arrival counts.
    pub fn note_repeatable_request(&mut self, number: u32, request: MessageArrival) -> EntryId {
        match self.received_messages.get_mut(number) {
            Some(Some(_)) => EntryId(number),
            _ => self.note_request(number, request),
        }
    }

    /// Records that the transport has accepted the first of several parts of the reply.
    pub fn note_reply_started(&mut self, entry: EntryId, now: Time) {
        // If a reply is repeated, the first time counts.
        self.reply_starts.entry(entry.0).or_insert(now);
    }

    /// Records that the transport has accepted the reply, or a part of it.
    pub fn note_reply_written(&mut self, entry: EntryId, now: Time) {
        if let Some(Some(received)) = self.received_messages.get_mut(entry.0) {
            received.reply_written = now;
        }
    }
}

impl EntryId {
    /// Returns the entry of the message with this number, which has come due.
    pub(crate) const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the entry's message.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl MessageArrival {
    /// Returns when a message that was written at `written` was transferred.
    pub(crate) fn transfer_times(self, written: Time) -> TransferTimes {
        let Self { delivery_times: DeliveryTimes { first_sent, sent, arrived }, delivered } = self;
        TransferTimes { written, first_sent, last_sent: sent, arrived, delivered }
    }

    /// Returns when a frame that was written at `written` was transferred. A packet that was sent before the frame may
    /// complete it, so packet times before `written`, and unknown ones (zero), are replaced by `written`.
    pub(crate) fn frame_transfer_times(self, written: Time) -> TransferTimes {
        let DeliveryTimes { first_sent, sent, arrived } = self.delivery_times;
        // Parity may restore a frame before it is written.
        let written = written.min(self.delivered);
        let [first_sent, sent, arrived] = [first_sent, sent, arrived].map(|time| time.max(written));
        Self { delivery_times: DeliveryTimes { first_sent, sent, arrived }, ..self }.transfer_times(written)
    }

    /// Returns when a message in parts was transferred; its last part was written at `written`. Parts can overtake each
    /// other, so an earlier part may arrive last. The time at which that part was sent then replaces `written`, if it
    /// is known.
    pub(crate) fn multipart_transfer_times(self, written: Time) -> TransferTimes {
        let first_sent = self.delivery_times.first_sent;
        self.transfer_times(if first_sent == Time::ZERO { written } else { written.min(first_sent) })
    }
}

impl From<[Time; 4]> for MessageArrival {
    fn from([first_sent, sent, arrived, delivered]: [Time; 4]) -> Self {
        Self { delivery_times: DeliveryTimes { first_sent, sent, arrived }, delivered }
    }
}

impl From<MessageArrival> for [Time; 4] {
    fn from(
        MessageArrival { delivery_times: DeliveryTimes { first_sent, sent, arrived }, delivered }: MessageArrival,
    ) -> Self {
        [first_sent, sent, arrived, delivered]
    }
}
