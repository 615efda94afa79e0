//! Joins the ledgers of both ends into records as messages are settled.

use hol_measure::{Outcome, Record, RecordKind};

use crate::ledger::{CompositeEntry, Ledger, ReplyPart, SentEntry};

/// Maximum number of messages that may be done before the oldest one is done. On a transport that may lose messages
/// silently, the oldest message then counts as lost, because an endless run cannot wait for it.
const MAX_OVERTAKING_MESSAGES: u64 = 1 << 18;

/// The rules by which the ledgers of both ends are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerJoin {
    /// Whether a message is done only when it has been answered.
    pub has_replies: bool,
    /// Whether the transport may abandon messages, so that a message that never arrives counts as abandoned.
    pub may_lose_messages: bool,
}

impl LedgerJoin {
    /// Removes all settled messages up to the first unsettled one from both ledgers, and passes their records to
    /// `record` in the order of the schedule.
    pub fn settle(self, client: &mut Ledger, server: &mut Ledger, mut record: impl FnMut(Record)) {
        loop {
            let is_done = if self.has_replies {
                client.sent_messages.first().is_some_and(|sent| sent.reply.is_some())
            } else {
                server.received_messages.first().is_some_and(Option::is_some)
            };
            let done = if self.has_replies { client.done } else { server.done };
            let is_overtaken = !is_done && self.may_lose_messages && done > MAX_OVERTAKING_MESSAGES;
            if is_overtaken {
                (client.gave_up, server.gave_up) = (true, true);
            } else if !is_done {
                return;
            }
            let Some(oldest) = self.take_oldest(client, server) else { return };
            record(oldest);
        }
    }

    /// Settles all messages as [`Self::settle`] does, including those that are not done, because it is now too late for
    /// them.
    pub fn settle_all(self, client: &mut Ledger, server: &mut Ledger, record: impl FnMut(Record)) {
        (client.gave_up, server.gave_up) = (true, true);
        std::iter::from_fn(|| self.take_oldest(client, server)).for_each(record);
    }

    /// Removes the oldest message from the ledgers and returns its record.
    fn take_oldest(self, client: &mut Ledger, server: &mut Ledger) -> Option<Record> {
        let (number, sent) = client.sent_messages.pop()?;
        let mut received = server.received_messages.skip().flatten();
        client.done -= u64::from(sent.reply.is_some());
        server.done -= u64::from(received.is_some());
        let SentEntry { scheduled, mut written, lane, size, kind, parent, reply, reply_size, refused } = sent;
        let mut in_parts = server.reply_starts.remove(&number).is_some();
        let mut reply_written = received.map(|received| received.reply_written);
        if let Some(CompositeEntry { message, part }) = client.composites.remove(&number) {
            in_parts = true;
            // The entry is settled before its messages, so their notes still exist.
            written = client.sent_messages.get(message).map_or(written, |sent| sent.written);
            received = server.received_messages.get(message).copied().flatten();
            reply_written = match part {
                ReplyPart::First => server.reply_starts.get(&message).copied(),
                ReplyPart::Last => received.map(|received| received.reply_written),
            };
        }
        let outcome = match received {
            Some(_) if refused => Outcome::Refused,
            Some(received) if received.is_late => Outcome::Late,
            Some(_) if reply.is_some() || !self.has_replies => Outcome::Completed,
            _ if self.may_lose_messages => Outcome::Abandoned,
            _ => Outcome::Unfinished,
        };
        Some(Record {
            id: number.into(),
            kind,
            parent,
            stream: lane,
            size,
            reply_size,
            scheduled,
            request: received.map(|received| match kind {
                RecordKind::Frame => received.request.frame_transfer_times(written),
                _ => received.request.transfer_times(written),
            }),
            reply: reply_written.zip(reply).map(|(written, reply)| {
                if in_parts { reply.multipart_transfer_times(written) } else { reply.transfer_times(written) }
            }),
            outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use hol_base::{Duration, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::{DueMessage, EntryId, MessageArrival};

    fn arrived(ms: u64) -> MessageArrival {
        MessageArrival::from([1, 2, ms - 1, ms].map(Time::from_millis))
    }

    fn due(ms: u64) -> DueMessage {
        let (scheduled, kind) = (Time::from_millis(ms), RecordKind::Transaction);
        DueMessage { scheduled, lane: 0, size: 56, reply_size: 0, kind, parent: None }
    }

    /// Returns the ledgers of both ends for three transactions: one is done, of one only the request has arrived, and
    /// one is lost.
    fn both() -> (Ledger, Ledger) {
        let (mut client, mut server) = (Ledger::default(), Ledger::default());
        for number in 0..3 {
            client.note_due(Time::from_millis(1), due(number));
        }
        for number in [1, 0] {
            let entry = server.note_request(number, arrived(10 + u64::from(number)));
            server.note_reply_written(entry, Time::from_millis(15));
        }
        assert!(client.note_reply(0, arrived(30), false));
        (client, server)
    }

    fn records(mut client: Ledger, mut server: Ledger, reading: LedgerJoin) -> Vec<Record> {
        let mut records = Vec::new();
        reading.settle_all(&mut client, &mut server, |record| records.push(record));
        records
    }

    #[test]
    fn ledgers_of_two_hosts_give_the_records_of_one_host() {
        let (client, server) = both();
        let reading = LedgerJoin { has_replies: true, may_lose_messages: false };
        let here = records(client.clone(), server.clone(), reading);
        let [client, server] =
            [client, server].map(|ledger| serde_json::to_string(&ledger).expect("it is plain data"));
        let [client, server] =
            [client, server].map(|text| serde_json::from_str(&text).expect("it is a ledger"));
        assert_eq!(here, records(client, server, reading));
        let outcomes: Vec<Outcome> = here.iter().map(|record| record.outcome).collect();
        assert_eq!(outcomes, [Outcome::Completed, Outcome::Unfinished, Outcome::Unfinished]);
        let lasted = here[0].reply.map(|leg| (leg.written, leg.delivered));
        assert_eq!(lasted, Some((Time::from_millis(15), Time::from_millis(30))));
    }

    #[test]
    fn clock_conversion_converts_all_times_and_drops_packet_times() {
        let (client, mut server) = both();
        let reading = LedgerJoin { has_replies: true, may_lose_messages: false };
        let by_one = records(client.clone(), server.clone(), reading);
        server.convert_times(|time| time + Duration::from_millis(2));
        let by_two = records(client, server, reading);
        for (one, two) in by_one.iter().zip(&by_two) {
            let later = |time: Time| time + Duration::from_millis(2);
            assert_eq!(two.request.map(|leg| leg.delivered), one.request.map(|leg| later(leg.delivered)));
            assert_eq!(two.request.map(|leg| leg.arrived), one.request.map(|leg| leg.arrived));
            assert_eq!(two.reply.map(|leg| leg.written), one.reply.map(|leg| later(leg.written)));
            assert_eq!(two.reply.map(|leg| leg.delivered), one.reply.map(|leg| leg.delivered));
        }
    }

    /// A remote ledger is not trusted, because a host that knows the secret may still run a faulty program.
    #[test]
    fn remote_ledger_is_recounted_and_refused_if_it_settled_a_message() {
        let (client, server) = both();
        let reading = LedgerJoin { has_replies: true, may_lose_messages: false };
        let text = serde_json::to_string(&server).unwrap();
        let altered = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            serde_json::from_str::<Ledger>(&text.replacen(from, to, 1)).unwrap().validated()
        };
        let miscounted = altered("\"done\":2", "\"done\":0").unwrap();
        assert_eq!(miscounted, server);
        assert_eq!(records(client.clone(), miscounted, reading), records(client, server, reading));
        assert_eq!(altered("\"start\":0", "\"start\":4294967295"), None);
    }

    #[test]
    fn missing_message_is_abandoned_if_the_transport_may_abandon_it() {
        let (client, server) = both();
        let abandoned = |has_replies| {
            let records =
                records(client.clone(), server.clone(), LedgerJoin { has_replies, may_lose_messages: true });
            records.iter().filter(|record| record.outcome == Outcome::Abandoned).count()
        };
        assert_eq!((abandoned(true), abandoned(false)), (2, 1));
    }

    /// A packet of an earlier frame may complete a frame, and so may parity before the frame was written.
    #[test]
    fn latency_of_a_frame_starts_at_its_scheduled_time() {
        let (mut client, mut server) = (Ledger::default(), Ledger::default());
        for at in [20, 40] {
            client.note_due(Time::from_millis(at), DueMessage { kind: RecordKind::Frame, ..due(at) });
        }
        client.note_written(EntryId::from_number(1), Time::from_millis(99));
        server.note_request(0, arrived(30));
        let late = server.note_request(1, arrived(60));
        server.note_late(late);
        let records = records(client, server, LedgerJoin { has_replies: false, may_lose_messages: false });
        assert_eq!([records[0].outcome, records[1].outcome], [Outcome::Completed, Outcome::Late]);
        for (record, ms) in records.iter().zip([10, 20]) {
            let split = record.breakdown().expect("it came");
            assert_eq!([split.total(), record.latency().unwrap()], [Duration::from_millis(ms); 2]);
        }
    }

    #[test]
    fn duplicate_replies_and_replies_to_unknown_messages_are_reported() {
        let (mut client, _) = both();
        assert!(!client.note_reply(0, arrived(40), false));
        assert!(!client.note_reply(3, arrived(40), false));
    }

    #[test]
    fn settled_messages_are_removed_in_the_order_of_the_schedule() {
        let (mut client, mut server) = both();
        let reading = LedgerJoin { has_replies: true, may_lose_messages: false };
        let mut left = Vec::new();
        let mut settle = |client: &mut Ledger, server: &mut Ledger| {
            reading.settle(client, server, |record| left.push(record.id));
            left.len()
        };
        assert_eq!(settle(&mut client, &mut server), 1);
        assert!(!client.note_reply(0, arrived(40), false), "it has one already");
        server.note_request(2, arrived(20));
        assert!(client.note_reply(2, arrived(35), false));
        assert_eq!(settle(&mut client, &mut server), 1, "message 1 has no reply yet");
        assert!(client.note_reply(1, arrived(36), false));
        assert_eq!(settle(&mut client, &mut server), 3);
        assert_eq!((client.messages_due(), server.received(), left), (3, 3, vec![0, 1, 2]));
    }

    #[test]
    fn silently_lost_message_is_settled_after_262144_later_ones() {
        let (mut client, mut server) = (Ledger::default(), Ledger::default());
        let reading = LedgerJoin { has_replies: false, may_lose_messages: true };
        let mut outcomes = Vec::new();
        for number in 0..MAX_OVERTAKING_MESSAGES as u32 + 2 {
            client.note_due(Time::ZERO, due(0));
            assert!(outcomes.is_empty(), "{number}");
            if number > 0 {
                server.note_request(number, arrived(10));
            }
            reading.settle(&mut client, &mut server, |record| outcomes.push(record.outcome));
        }
        assert_eq!((outcomes.len() as u64, outcomes[0]), (MAX_OVERTAKING_MESSAGES + 2, Outcome::Abandoned));
        assert!(outcomes[1..].iter().all(|outcome| *outcome == Outcome::Completed));
        server.note_request(0, arrived(99));
        assert_eq!(
            server.received(),
            MAX_OVERTAKING_MESSAGES + 2,
            "the late arrival of a settled message does not count"
        );
    }

    #[test]
    #[should_panic(expected = "message 0 was delivered twice")]
    fn a_settled_message_cannot_arrive_again() {
        let (mut client, mut server) = both();
        let reading = LedgerJoin { has_replies: true, may_lose_messages: false };
        reading.settle(&mut client, &mut server, |_| {});
        server.note_request(0, arrived(50));
    }

    /// Simulates a run in which a message comes due every ms. For each message, `lives` has the time in ms until its
    /// request arrives (`None` if it never does), and the further time until its reply arrives.
    fn play(
        lives: &[(Option<u8>, Option<u8>)],
        mut then: impl FnMut(&mut Ledger, &mut Ledger),
    ) -> (Ledger, Ledger) {
        let mut events = Vec::new();
        for (number, (request, reply)) in (0..).zip(lives) {
            let requested = request.map(|ms| number + 1 + u32::from(ms));
            let replied = requested.and_then(|at| Some(at + 1 + u32::from((*reply)?)));
            let at = [Some(number), requested, replied];
            events.extend(at.into_iter().enumerate().filter_map(|(what, at)| Some((at?, what, number))));
        }
        events.sort_unstable();
        let (mut client, mut server) = (Ledger::default(), Ledger::default());
        for (at, what, number) in events {
            match what {
                0 => drop(client.note_due(Time::from_millis(at.into()), due(at.into()))),
                1 => drop(server.note_request(number, arrived(u64::from(at) + 1))),
                _ => assert!(client.note_reply(number, arrived(u64::from(at) + 1), number % 5 == 0)),
            }
            then(&mut client, &mut server);
        }
        (client, server)
    }

    proptest! {
        /// The records are the same whether they are settled during a run or all at its end: every field is equal, and
        /// so is their order.
        #[test]
        fn records_do_not_depend_on_when_they_are_settled(
            mut lives: Vec<(Option<u8>, Option<u8>)>,
            has_replies: bool,
            may_lose_messages: bool,
        ) {
            lives.iter_mut().for_each(|(_, reply)| *reply = reply.filter(|_| has_replies));
            let reading = LedgerJoin { has_replies, may_lose_messages };
            let mut leaving = Vec::new();
            let (mut client, mut server) = play(&lives, |client, server| {
                reading.settle(client, server, |record| leaving.push(record));
            });
            reading.settle_all(&mut client, &mut server, |record| leaving.push(record));
            let (client, server) = play(&lives, |_, _| {});
            prop_assert_eq!(leaving, records(client, server, reading));
        }
    }
}
