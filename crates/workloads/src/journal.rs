//! What each side noted, joined into records when the run is over. The sides never share memory, so they
//! may as well be on two hosts.

use hol_base::Time;
use hol_measure::{Leg, Outcome, Record};
use hol_transport::Passage;

use crate::{Client, ENDLESS, Server, WorkloadSpec};

/// The client's note on one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) scheduled: Time,
    pub(crate) written: Time,
    pub(crate) stream: u16,
    pub(crate) size: u32,
    pub(crate) reply: Option<Arrived>,
    /// The reply says no.
    pub(crate) refused: bool,
}

/// The server's note on one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) number: u32,
    pub(crate) request: Arrived,
    pub(crate) reply_written: Time,
}

/// How and when a message came to the application.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) passage: Passage,
    pub(crate) delivered: Time,
}

/// An empty journal for `messages` messages.
pub(crate) fn with_room_for<T>(messages: u64) -> Vec<T> {
    const MOST: u64 = 1 << 20;
    Vec::with_capacity(if messages == ENDLESS { 0 } else { messages.min(MOST) as usize })
}

impl Arrived {
    fn leg(self, written: Time) -> Leg {
        let Self { passage: Passage { first_sent, sent, arrived }, delivered } = self;
        Leg { written, first_sent, last_sent: sent, arrived, delivered }
    }
}

/// One record for each message that came due or was given up, in the order of the schedule. `gives_up`: the transport may
/// give messages up, so one that is missing counts as abandoned.
///
/// # Panics
/// If a message was delivered twice: no transport may do that.
pub fn records(spec: &WorkloadSpec, client: &Client, server: &Server, gives_up: bool) -> Vec<Record> {
    let missing = if gives_up { Outcome::Abandoned } else { Outcome::Unfinished };
    let unanswered = |(id, asked): (usize, &Asked)| Record {
        id: id as u64,
        stream: asked.stream,
        size: asked.size,
        scheduled: asked.scheduled,
        request: None,
        reply: None,
        outcome: missing,
    };
    let mut records: Vec<Record> = client.journal().iter().enumerate().map(unanswered).collect();
    for answered in server.journal() {
        // A number beyond the schedule cannot come from our client.
        let Some(record) = records.get_mut(answered.number as usize) else { continue };
        assert!(record.request.is_none(), "message {} was delivered twice", record.id);
        let asked = &client.journal()[answered.number as usize];
        record.request = Some(answered.request.leg(asked.written));
        record.reply = asked.reply.map(|reply| reply.leg(answered.reply_written));
        if asked.refused {
            record.outcome = Outcome::Refused;
        } else if record.reply.is_some() || !spec.has_replies() {
            record.outcome = Outcome::Completed;
        }
    }
    records
}
