//! What one side noted of the messages that are not settled. The sides never share memory, so they may as well be on two hosts: a
//! ledger is plain data.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_measure::{Leg, RecordKind};
use hol_transport::Passage;
use serde::{Deserialize, Serialize};

use crate::ENDLESS;
use crate::window::Window;

/// The notes of one application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub(crate) asked: Window<Asked>,
    pub(crate) answered: Window<Option<Answered>>,
    /// By the number of a note: what is made of several messages.
    #[serde(default)]
    pub(crate) wholes: BTreeMap<u32, Whole>,
    /// By message: when the transport took the first part of a reply that has several.
    #[serde(default)]
    pub(crate) begun: BTreeMap<u32, Time>,
    /// Messages that the other side sends at most.
    expected: u64,
    received: u64,
    last_due: Option<Time>,
    /// Messages in either window that are done: answered, or here.
    pub(crate) done: u64,
    /// Messages have been settled without having arrived; such a one may still come.
    pub(crate) gave_up: bool,
}

/// The place of a note in its ledger: the number of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryId(u32);

/// The sender's note on one message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) scheduled: Time,
    pub(crate) written: Time,
    pub(crate) lane: u16,
    pub(crate) size: u32,
    pub(crate) kind: RecordKind,
    /// The record that it is part of.
    pub(crate) parent: Option<u32>,
    pub(crate) reply: Option<Arrived>,
    /// The reply says no.
    pub(crate) refused: bool,
}

/// What is no message itself, but is made of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Whole {
    /// The message whose way its own end is: the first, until it has ended with another.
    pub(crate) message: u32,
    /// With which part of the reply to that.
    pub(crate) part: Part,
}

/// Of a reply that is written in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    First,
    Last,
}

/// The receiver's note on one message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) request: Arrived,
    pub(crate) reply_written: Time,
    /// It came after its time.
    #[serde(default)]
    pub(crate) is_late: bool,
}

/// How and when a message came to the application.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[Time; 4]", into = "[Time; 4]")]
pub struct Arrived {
    /// How it travelled.
    pub passage: Passage,
    /// When the application had it.
    pub delivered: Time,
}

/// What a sender notes when a message comes due.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// When it was to be sent.
    pub scheduled: Time,
    /// The lane that it takes.
    pub lane: u16,
    /// Its octets.
    pub size: u32,
    /// What it is.
    pub kind: RecordKind,
    /// The record that it is part of, by its number.
    pub parent: Option<u32>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new(ENDLESS)
    }
}

impl Ledger {
    /// An empty one, of a side to which the other sends at most `expected` messages.
    pub(crate) fn new(expected: u64) -> Self {
        let (asked, answered) = (Window::default(), Window::default());
        let (wholes, begun) = (BTreeMap::new(), BTreeMap::new());
        Self {
            asked,
            answered,
            wholes,
            begun,
            expected,
            received: 0,
            last_due: None,
            done: 0,
            gave_up: false,
        }
    }

    /// The same as whoever got it from another host may read it; `None` if no side of a run that settled nothing has such a one.
    pub fn from_afar(mut self) -> Option<Self> {
        let replies = self.asked.notes().filter(|asked| asked.reply.is_some()).count();
        let requests = self.answered.notes().flatten().count();
        self.done = (replies + requests) as u64;
        (self.asked.start() == 0 && self.answered.start() == 0).then_some(self)
    }

    /// Tells its times by another clock. When packets went and came is left out: it is not known to whoever needs another clock.
    pub fn on_clock(&mut self, clock: impl Fn(Time) -> Time) {
        let arrival = |arrived: &mut Arrived| arrived.delivered = clock(arrived.delivered);
        for asked in self.asked.notes_mut() {
            (asked.scheduled, asked.written) = (clock(asked.scheduled), clock(asked.written));
            asked.reply.iter_mut().for_each(arrival);
        }
        for answered in self.answered.notes_mut().flatten() {
            arrival(&mut answered.request);
            answered.reply_written = clock(answered.reply_written);
        }
        self.begun.values_mut().for_each(|time| *time = clock(*time));
        self.last_due = self.last_due.map(&clock);
    }

    /// Makes room for notes on so many messages that are sent, and that come: for whoever settles nothing before the end of a
    /// run in real time, which a ledger that grows would delay.
    pub fn make_room(&mut self, asked: u64, answered: u64) {
        const MOST: u64 = 1 << 20;
        let room = |messages: u64| if messages == ENDLESS { 0 } else { messages.min(MOST) as usize };
        self.asked.make_room(room(asked));
        self.answered.make_room(room(answered));
    }

    /// Messages that came due.
    pub fn due(&self) -> u64 {
        self.asked.end().into()
    }

    /// Messages that came here.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// When the latest message was scheduled.
    pub fn last_due(&self) -> Option<Time> {
        self.last_due
    }

    /// A message comes due `now`, and is written unless the transport refuses it. Its number is that of the entry.
    pub fn note_due(&mut self, now: Time, due: Due) -> EntryId {
        let Due { scheduled, lane, size, kind, parent } = due;
        let asked = Asked { scheduled, written: now, lane, size, kind, parent, reply: None, refused: false };
        self.last_due = Some(scheduled);
        EntryId(self.asked.push(asked))
    }

    /// The transport has taken the message only now.
    pub fn note_written(&mut self, entry: EntryId, now: Time) {
        if let Some(asked) = self.asked.get_mut(entry.0) {
            asked.written = now;
        }
    }

    /// The message was to be sent only now.
    pub fn note_scheduled(&mut self, entry: EntryId, now: Time) {
        if let Some(asked) = self.asked.get_mut(entry.0) {
            asked.scheduled = now;
        }
    }

    /// The message takes this lane.
    pub fn note_lane(&mut self, entry: EntryId, lane: u16) {
        if let Some(asked) = self.asked.get_mut(entry.0) {
            asked.lane = lane;
        }
    }

    /// What is made of several messages comes due; `first` is the first of them.
    pub fn note_whole_due(&mut self, now: Time, due: Due, first: u32) -> EntryId {
        let entry = self.note_due(now, due);
        self.wholes.insert(entry.0, Whole { message: first, part: Part::First });
        entry
    }

    /// It has ended with the reply to message `last`.
    pub fn note_whole(&mut self, entry: EntryId, last: u32, reply: Arrived) {
        self.wholes.insert(entry.0, Whole { message: last, part: Part::Last });
        self.note_end(entry, reply);
    }

    /// It has ended with the first part of the reply to its first message.
    pub fn note_first_octets(&mut self, entry: EntryId, reply: Arrived) {
        self.note_end(entry, reply);
    }

    fn note_end(&mut self, entry: EntryId, reply: Arrived) {
        if let Some(asked) = self.asked.get_mut(entry.0) {
            asked.reply = Some(reply);
            self.done += 1;
        }
    }

    /// When the message of an entry, which is not settled, was to be sent.
    pub fn scheduled(&self, entry: EntryId) -> Time {
        self.asked.get(entry.0).expect("a message that waits is not settled").scheduled
    }

    /// The reply to message `number` came; false if there is no such message, or if it has one already.
    #[must_use]
    pub fn note_reply(&mut self, number: u32, reply: Arrived, refused: bool) -> bool {
        match self.asked.get_mut(number) {
            Some(asked) if asked.reply.is_none() => {
                (asked.reply, asked.refused) = (Some(reply), refused);
                self.done += 1;
                true
            }
            Some(_) => false,
            None => self.gave_up && number < self.asked.end(),
        }
    }

    /// Message `number` of the other side came.
    ///
    /// # Panics
    /// If it came before: no transport may do that.
    pub fn note_request(&mut self, number: u32, request: Arrived) -> EntryId {
        self.received += 1;
        // A number beyond the schedule cannot come from our client.
        if u64::from(number) < self.expected {
            while self.answered.end() <= number {
                self.answered.push(None);
            }
            if let Some(answered) = self.answered.get_mut(number) {
                assert!(answered.is_none(), "message {number} was delivered twice");
                let reply_written = request.delivered;
                *answered = Some(Answered { request, reply_written, is_late: false });
                self.done += 1;
            } else {
                assert!(self.gave_up, "message {number} was delivered twice");
            }
        }
        EntryId(number)
    }

    /// The message of an entry, which has just come, came after its time.
    pub fn note_late(&mut self, entry: EntryId) {
        if let Some(Some(answered)) = self.answered.get_mut(entry.0) {
            answered.is_late = true;
        }
    }

    /// The same, where a client whose connection failed may ask again: the first request counts.
    pub fn note_request_again(&mut self, number: u32, request: Arrived) -> EntryId {
        match self.answered.get_mut(number) {
            Some(Some(_)) => EntryId(number),
            _ => self.note_request(number, request),
        }
    }

    /// The transport takes the first of several parts of the reply to the message of an entry.
    pub fn note_answer_begun(&mut self, entry: EntryId, now: Time) {
        // Of an answer that is given again the first time counts.
        self.begun.entry(entry.0).or_insert(now);
    }

    /// The transport has taken the reply to the message of an entry, or a part of it.
    pub fn note_answer_written(&mut self, entry: EntryId, now: Time) {
        if let Some(Some(answered)) = self.answered.get_mut(entry.0) {
            answered.reply_written = now;
        }
    }
}

impl EntryId {
    /// The entry of a message that has come due.
    pub(crate) const fn of(number: u32) -> Self {
        Self(number)
    }

    /// The number of the message.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl Arrived {
    pub(crate) fn leg(self, written: Time) -> Leg {
        let Self { passage: Passage { first_sent, sent, arrived }, delivered } = self;
        Leg { written, first_sent, last_sent: sent, arrived, delivered }
    }

    /// The same of a frame, which was `written` then, and is whole with whichever packet came last: what was under way before is
    /// none of its time. Where nobody sees when packets leave, that is zero.
    pub(crate) fn leg_of_frame(self, written: Time) -> Leg {
        let Passage { first_sent, sent, arrived } = self.passage;
        // Parity may restore what is not written.
        let written = written.min(self.delivered);
        let [first_sent, sent, arrived] = [first_sent, sent, arrived].map(|time| time.max(written));
        Self { passage: Passage { first_sent, sent, arrived }, ..self }.leg(written)
    }

    /// The same of what came in parts, of which the last was `written` then: where parts overtake each other another may
    /// have come last. Where nobody sees when they leave, that is zero.
    pub(crate) fn leg_of_parts(self, written: Time) -> Leg {
        let first_sent = self.passage.first_sent;
        self.leg(if first_sent == Time::ZERO { written } else { written.min(first_sent) })
    }
}

impl From<[Time; 4]> for Arrived {
    fn from([first_sent, sent, arrived, delivered]: [Time; 4]) -> Self {
        Self { passage: Passage { first_sent, sent, arrived }, delivered }
    }
}

impl From<Arrived> for [Time; 4] {
    fn from(Arrived { passage: Passage { first_sent, sent, arrived }, delivered }: Arrived) -> Self {
        [first_sent, sent, arrived, delivered]
    }
}
