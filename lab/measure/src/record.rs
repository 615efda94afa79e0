//! The record of one message.

use hol_base::{Digester, Duration, Time};
use serde::{Deserialize, Serialize};

/// What happened to one message, transaction, object, page or frame of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Number of the message in the order of the schedule, from 0.
    pub id: u64,
    /// The kind of the record.
    pub kind: RecordKind,
    /// Number of the record of which this one is a part, such as the page of an object; `None` if it is not a part
    /// of another record.
    pub parent: Option<u32>,
    /// Stream or connection that carried the message.
    pub stream: u16,
    /// Size of the message or request, in octets; for an object or a page, size of the requested content.
    pub size: u32,
    /// Size of the reply, in octets; 0 if there is no reply, or if its size is not known.
    pub reply_size: u32,
    /// When the message was to be sent. Latency counts from this time.
    pub scheduled: Time,
    /// Times of the request's transfer to the other application; `None` if it never arrived.
    pub request: Option<TransferTimes>,
    /// Times of the reply's transfer; `None` if it never arrived, or if the workload has no replies.
    pub reply: Option<TransferTimes>,
    /// How the message ended.
    pub outcome: Outcome,
}

/// What a record is about. Records of different kinds are never counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// The record is about a one-way message.
    Message,
    /// The record is about a request and its reply.
    Transaction,
    /// The record is about a file of a page.
    Object,
    /// The record is about a page: a document with its objects.
    Page,
    /// The record is about the first octets of a page.
    Head,
    /// The record is about a media frame, which has a playout time.
    Frame,
    /// The record is about a batch: successive transactions, from the first request to the last reply.
    Batch,
    /// The record is about a user's program, from its start to its end.
    Program,
    /// The record is about a connection as seen in its packets, from the first packet to the last.
    Connection,
}

/// The times of one message's transfer in one direction, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferTimes {
    /// When the application passed the message to the transport.
    pub written: Time,
    /// When the last octet of the message was transmitted for the first time.
    pub first_sent: Time,
    /// When the transmission that completed the message at the receiver was made.
    pub last_sent: Time,
    /// When the message was complete at the receiving transport.
    pub arrived: Time,
    /// When the message was delivered to the receiving application.
    pub delivered: Time,
}

/// How a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The message was delivered and, if the workload has replies, so was its reply.
    Completed,
    /// The run ended before the message was delivered, or the transport never accepted the message.
    Unfinished,
    /// The transport abandoned the message (partial reliability).
    Abandoned,
    /// The peer replied, but refused to do what was requested.
    Refused,
    /// The message was delivered, but after its playout time.
    Late,
}

impl Outcome {
    /// Returns whether the message was delivered, in time or too late.
    pub const fn is_delivered(self) -> bool {
        matches!(self, Self::Completed | Self::Late)
    }
}

/// The delay of a message, divided into components that add up to its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DelayBreakdown {
    /// Time by which the message was behind its schedule when the application passed it to the transport.
    pub slip: Duration,
    /// Time at the server, from the delivery of the request until the transport accepted the reply.
    pub service: Duration,
    /// Time in the sender's buffer, where the message waits for the window, for Nagle's algorithm or for pacing.
    pub sender: Duration,
    /// Time from the first transmission until the last transmission: loss detection and retransmission.
    pub recovery: Duration,
    /// Time on the wire, in queues, and until the receiving application has woken up.
    pub network: Duration,
    /// Head-of-line wait: time for which the message was complete at the receiver, but data sent earlier were
    /// missing.
    pub head_of_line: Duration,
}

impl Record {
    /// Returns the time from when the message was due until it was delivered or, with replies, until the reply
    /// was; `None` if it was not.
    pub fn latency(&self) -> Option<Duration> {
        let last = self.reply.or(self.request)?;
        self.outcome.is_delivered().then(|| last.delivered.since(self.scheduled))
    }

    /// Returns the number of octets in the direction that carries more of them; only these count for the
    /// throughput.
    pub fn octets(&self) -> u64 {
        self.size.max(self.reply_size).into()
    }

    /// Returns when the [`octets`](Self::octets) of the record were delivered. `None` if they never were, or if the
    /// record consists of other records.
    pub fn delivered_at(&self) -> Option<Time> {
        let leg = match self.kind {
            RecordKind::Transaction if self.reply_size > self.size => self.reply,
            RecordKind::Message | RecordKind::Transaction | RecordKind::Frame => self.request,
            RecordKind::Object => self.reply,
            RecordKind::Page
            | RecordKind::Head
            | RecordKind::Batch
            | RecordKind::Program
            | RecordKind::Connection => None,
        };
        leg.map(|leg| leg.delivered)
    }

    /// Returns the delay by component, for request and reply together; `None` unless the message was delivered.
    pub fn breakdown(&self) -> Option<DelayBreakdown> {
        let request = self.request.filter(|_| self.outcome.is_delivered())?;
        let mut split =
            DelayBreakdown { slip: request.written.since(self.scheduled), ..DelayBreakdown::default() };
        split.add_leg(&request);
        if let Some(reply) = self.reply {
            split.service = reply.written.since(request.delivered);
            split.add_leg(&reply);
        }
        Some(split)
    }

    /// Returns the record with all its times increased by `by`.
    pub fn shifted_by(self, by: Duration) -> Self {
        let later = |leg: Option<TransferTimes>| leg.map(|leg| leg.shifted_by(by));
        let (request, reply) = (later(self.request), later(self.reply));
        Self { scheduled: self.scheduled + by, request, reply, ..self }
    }

    /// Adds every field of the record to a digest.
    pub fn digest(&self, digester: &mut Digester) {
        let (request, reply) = (self.request.unwrap_or_default(), self.reply.unwrap_or_default());
        let parent = self.parent.map_or(0, |parent| u64::from(parent) + 1);
        // One call for all fields: the digest is the main cost of summarising a record.
        digester.add_all([
            self.id,
            self.stream.into(),
            u64::from(self.size) | u64::from(self.reply_size) << 32,
            self.scheduled.as_nanos(),
            request.written.as_nanos(),
            request.first_sent.as_nanos(),
            request.last_sent.as_nanos(),
            request.arrived.as_nanos(),
            request.delivered.as_nanos(),
            reply.written.as_nanos(),
            reply.first_sent.as_nanos(),
            reply.last_sent.as_nanos(),
            reply.arrived.as_nanos(),
            reply.delivered.as_nanos(),
            self.outcome as u64 | (self.kind as u64) << 8 | parent << 16,
        ]);
    }
}

impl RecordKind {
    /// Returns whether records of this kind follow a schedule that the transport can fall behind. A page, for
    /// example, has no such schedule, because it waits only for its own connections.
    pub const fn has_schedule(self) -> bool {
        match self {
            Self::Message | Self::Transaction | Self::Frame => true,
            Self::Object | Self::Page | Self::Head | Self::Batch | Self::Program | Self::Connection => false,
        }
    }

    /// Returns whether the record ends with a reply.
    pub const fn has_reply(self) -> bool {
        !matches!(self, Self::Message | Self::Frame)
    }

    /// Returns the name of the kind, in the singular.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Transaction => "transaction",
            Self::Object => "object",
            Self::Page => "page",
            Self::Head => "head",
            Self::Frame => "frame",
            Self::Batch => "batch",
            Self::Program => "program",
            Self::Connection => "connection",
        }
    }

    /// Returns the name of the kind, in the plural, as in sentences.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Message => "messages",
            Self::Transaction => "transactions",
            Self::Object => "objects",
            Self::Page => "pages",
            Self::Head => "heads",
            Self::Frame => "frames",
            Self::Batch => "batches",
            Self::Program => "programs",
            Self::Connection => "connections",
        }
    }
}

impl TransferTimes {
    fn shifted_by(self, by: Duration) -> Self {
        let Self { written, first_sent, last_sent, arrived, delivered } = self;
        let [written, first_sent, last_sent, arrived, delivered] =
            [written, first_sent, last_sent, arrived, delivered].map(|time| time + by);
        Self { written, first_sent, last_sent, arrived, delivered }
    }
}

impl DelayBreakdown {
    fn add_leg(&mut self, leg: &TransferTimes) {
        self.sender += leg.first_sent.since(leg.written);
        self.recovery += leg.last_sent.since(leg.first_sent);
        self.network += leg.arrived.since(leg.last_sent);
        self.head_of_line += leg.delivered.since(leg.arrived);
    }

    /// Returns the sum of the components, which is the latency.
    pub fn total(&self) -> Duration {
        self.slip + self.service + self.sender + self.recovery + self.network + self.head_of_line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(times: [u64; 5]) -> TransferTimes {
        let [written, first_sent, last_sent, arrived, delivered] = times.map(Time::from_millis);
        TransferTimes { written, first_sent, last_sent, arrived, delivered }
    }

    fn transaction(
        scheduled: Time,
        request: Option<TransferTimes>,
        reply: Option<TransferTimes>,
        outcome: Outcome,
    ) -> Record {
        let (kind, parent) = (RecordKind::Transaction, None);
        Record { id: 0, kind, parent, stream: 0, size: 64, reply_size: 0, scheduled, request, reply, outcome }
    }

    #[test]
    fn delay_components_add_up_to_the_latency() {
        let record = transaction(
            Time::from_millis(1),
            Some(leg([2, 4, 34, 44, 49])),
            Some(leg([49, 49, 49, 59, 59])),
            Outcome::Completed,
        );
        let split = record.breakdown().unwrap();
        assert_eq!(split.total(), record.latency().unwrap());
        let ms = Duration::from_millis;
        let expected = DelayBreakdown {
            slip: ms(1),
            sender: ms(2),
            recovery: ms(30),
            network: ms(20),
            head_of_line: ms(5),
            ..DelayBreakdown::default()
        };
        assert_eq!(split, expected);
        let later = record.shifted_by(ms(1000));
        assert_eq!((later.scheduled, later.breakdown()), (Time::from_millis(1001), Some(split)));
    }

    #[test]
    fn service_time_is_a_separate_component() {
        let (request, reply) = (Some(leg([2, 2, 2, 12, 12])), Some(leg([15, 15, 15, 25, 25])));
        let scheduled = Time::from_millis(1);
        let outcome = Outcome::Completed;
        let record = transaction(scheduled, request, reply, outcome);
        let split = record.breakdown().unwrap();
        assert_eq!((split.slip, split.service), (Duration::from_millis(1), Duration::from_millis(3)));
        assert_eq!(split.total(), record.latency().unwrap());
    }

    #[test]
    fn digest_covers_every_time_of_request_and_reply() {
        let digest = |request: [u64; 5], reply: [u64; 5]| {
            let (request, reply) = (Some(leg(request)), Some(leg(reply)));
            let (scheduled, outcome) = (Time::ZERO, Outcome::Completed);
            let record = transaction(scheduled, request, reply, outcome);
            let mut digester = Digester::new();
            record.digest(&mut digester);
            digester.finish()
        };
        let times = [2, 4, 34, 44, 49];
        let whole = digest(times, times);
        for at in 0..times.len() {
            let mut other = times;
            other[at] += 1;
            assert_ne!(digest(other, times), whole, "{at} of the request");
            assert_ne!(digest(times, other), whole, "{at} of the reply");
        }
    }

    #[test]
    fn digest_covers_kind_and_parent_of_a_record() {
        let digest = |kind, parent| {
            let mut digester = Digester::new();
            let message = transaction(Time::ZERO, None, None, Outcome::Unfinished);
            Record { kind, parent, ..message }.digest(&mut digester);
            digester.finish()
        };
        let object = digest(RecordKind::Object, None);
        assert_ne!(object, digest(RecordKind::Page, None));
        assert_ne!(object, digest(RecordKind::Object, Some(0)));
        assert_ne!(digest(RecordKind::Object, Some(1)), digest(RecordKind::Object, Some(0)));
    }

    #[test]
    fn objects_carry_octets_with_their_replies_and_pages_carry_none() {
        let (request, reply) = (Some(leg([2, 2, 2, 12, 12])), Some(leg([15, 15, 15, 25, 25])));
        let carried = |kind| {
            let whole = transaction(Time::ZERO, request, reply, Outcome::Completed);
            Record { kind, ..whole }.delivered_at().map(|at| at.as_nanos() / 1_000_000)
        };
        assert_eq!([RecordKind::Transaction, RecordKind::Object].map(carried), [Some(12), Some(25)]);
        assert_eq!([RecordKind::Page, RecordKind::Head, RecordKind::Batch].map(carried), [None; 3]);
    }

    #[test]
    fn an_unfinished_message_has_no_latency() {
        let record = transaction(Time::ZERO, None, None, Outcome::Unfinished);
        assert_eq!((record.latency(), record.breakdown()), (None, None));
    }
}
