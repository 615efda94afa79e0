//! What each side noted, joined into records when the run is over. The sides never share memory, so they may as well be on
//! two hosts: a ledger is plain data.

use hol_base::Time;
use hol_measure::{Leg, Outcome, Record, RecordKind};
use hol_transport::Passage;
use serde::{Deserialize, Serialize};

use crate::ENDLESS;

/// The notes of one application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    asked: Vec<Asked>,
    answered: Vec<Answered>,
}

/// The place of a note in its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryId(u32);

/// The sender's note on one message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Asked {
    scheduled: Time,
    written: Time,
    lane: u16,
    size: u32,
    kind: RecordKind,
    /// The record that it is part of.
    parent: Option<u32>,
    reply: Option<Arrived>,
    /// The reply says no.
    refused: bool,
}

/// The receiver's note on one message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Answered {
    number: u32,
    request: Arrived,
    reply_written: Time,
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

impl Ledger {
    /// An empty one with room for `messages` messages that are sent, or answered.
    pub(crate) fn with_room(asked: u64, answered: u64) -> Self {
        const MOST: u64 = 1 << 20;
        let room = |messages: u64| if messages == ENDLESS { 0 } else { messages.min(MOST) as usize };
        Self { asked: Vec::with_capacity(room(asked)), answered: Vec::with_capacity(room(answered)) }
    }

    /// Messages that came due.
    pub fn due(&self) -> usize {
        self.asked.len()
    }

    /// Messages that came here.
    pub fn received(&self) -> usize {
        self.answered.len()
    }

    /// When the latest message was scheduled.
    pub fn last_due(&self) -> Option<Time> {
        self.asked.last().map(|asked| asked.scheduled)
    }

    /// A message comes due `now`, and is written unless the transport refuses it. Its number is that of the entry.
    pub fn note_due(&mut self, now: Time, due: Due) -> EntryId {
        let Due { scheduled, lane, size, kind, parent } = due;
        let entry = EntryId(self.asked.len() as u32);
        self.asked.push(Asked {
            scheduled,
            written: now,
            lane,
            size,
            kind,
            parent,
            reply: None,
            refused: false,
        });
        entry
    }

    /// The transport has taken the message only now.
    pub fn note_written(&mut self, entry: EntryId, now: Time) {
        self.asked[entry.0 as usize].written = now;
    }

    /// When the message of an entry was to be sent.
    pub fn scheduled(&self, entry: EntryId) -> Time {
        self.asked[entry.0 as usize].scheduled
    }

    /// The reply to message `number` came; false if there is no such message, or if it has one already.
    #[must_use]
    pub fn note_reply(&mut self, number: u32, reply: Arrived, refused: bool) -> bool {
        match self.asked.get_mut(number as usize) {
            Some(asked) if asked.reply.is_none() => {
                (asked.reply, asked.refused) = (Some(reply), refused);
                true
            }
            _ => false,
        }
    }

    /// Message `number` of the other side came.
    pub fn note_request(&mut self, number: u32, request: Arrived) -> EntryId {
        let entry = EntryId(self.answered.len() as u32);
        self.answered.push(Answered { number, request, reply_written: request.delivered });
        entry
    }

    /// The transport has taken the reply to the message of an entry.
    pub fn note_answer_written(&mut self, entry: EntryId, now: Time) {
        self.answered[entry.0 as usize].reply_written = now;
    }
}

impl EntryId {
    /// The number of the message.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl Arrived {
    fn leg(self, written: Time) -> Leg {
        let Self { passage: Passage { first_sent, sent, arrived }, delivered } = self;
        Leg { written, first_sent, last_sent: sent, arrived, delivered }
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

/// How the ledgers of both sides are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// A message is done when it has been answered.
    pub has_replies: bool,
    /// The transport may give messages up, so one that is missing counts as abandoned.
    pub gives_up: bool,
}

/// One record for each message that came due or was given up, in the order of the schedule.
///
/// # Panics
/// If a message was delivered twice: no transport may do that.
pub fn records(client: &Ledger, server: &Ledger, reading: Reading) -> Vec<Record> {
    let missing = if reading.gives_up { Outcome::Abandoned } else { Outcome::Unfinished };
    let unanswered = |(id, asked): (usize, &Asked)| Record {
        id: id as u64,
        kind: asked.kind,
        parent: asked.parent,
        stream: asked.lane,
        size: asked.size,
        scheduled: asked.scheduled,
        request: None,
        reply: None,
        outcome: missing,
    };
    let mut records: Vec<Record> = client.asked.iter().enumerate().map(unanswered).collect();
    for answered in &server.answered {
        // A number beyond the schedule cannot come from our client.
        let Some(record) = records.get_mut(answered.number as usize) else { continue };
        assert!(record.request.is_none(), "message {} was delivered twice", record.id);
        let asked = &client.asked[answered.number as usize];
        record.request = Some(answered.request.leg(asked.written));
        record.reply = asked.reply.map(|reply| reply.leg(answered.reply_written));
        if asked.refused {
            record.outcome = Outcome::Refused;
        } else if record.reply.is_some() || !reading.has_replies {
            record.outcome = Outcome::Completed;
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(ms: u64) -> Arrived {
        Arrived::from([1, 2, ms - 1, ms].map(Time::from_millis))
    }

    fn due(ms: u64) -> Due {
        let (scheduled, kind) = (Time::from_millis(ms), RecordKind::Transaction);
        Due { scheduled, lane: 0, size: 56, kind, parent: None }
    }

    /// A transaction that is done, one whose request came, and one that is lost.
    fn both() -> (Ledger, Ledger) {
        let (mut client, mut server) = (Ledger::default(), Ledger::default());
        for number in 0..3 {
            client.note_due(Time::from_millis(1), due(number));
        }
        for number in [1, 0] {
            let entry = server.note_request(number, arrived(10 + u64::from(number)));
            server.note_answer_written(entry, Time::from_millis(15));
        }
        assert!(client.note_reply(0, arrived(30), false));
        (client, server)
    }

    #[test]
    fn the_ledgers_of_two_hosts_are_joined_as_if_they_had_been_one() {
        let (client, server) = both();
        let reading = Reading { has_replies: true, gives_up: false };
        let here = records(&client, &server, reading);
        let [client, server] =
            [client, server].map(|ledger| serde_json::to_string(&ledger).expect("it is plain data"));
        let [client, server] =
            [client, server].map(|text| serde_json::from_str(&text).expect("it is a ledger"));
        assert_eq!(here, records(&client, &server, reading));
        let outcomes: Vec<Outcome> = here.iter().map(|record| record.outcome).collect();
        assert_eq!(outcomes, [Outcome::Completed, Outcome::Unfinished, Outcome::Unfinished]);
        let lasted = here[0].reply.map(|leg| (leg.written, leg.delivered));
        assert_eq!(lasted, Some((Time::from_millis(15), Time::from_millis(30))));
    }

    #[test]
    fn what_is_missing_is_abandoned_where_the_transport_may_give_it_up() {
        let (client, server) = both();
        let abandoned = |has_replies| {
            let records = records(&client, &server, Reading { has_replies, gives_up: true });
            records.iter().filter(|record| record.outcome == Outcome::Abandoned).count()
        };
        assert_eq!((abandoned(true), abandoned(false)), (2, 1));
    }

    #[test]
    fn a_second_reply_and_one_to_no_message_are_told() {
        let (mut client, _) = both();
        assert!(!client.note_reply(0, arrived(40), false));
        assert!(!client.note_reply(3, arrived(40), false));
    }
}
