//! The side that sends messages when they come due and counts the replies.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_measure::RecordKind;

use crate::batches::{Batch, Batches};
use crate::contract::{AbortReason, Application, ConnectionId, Delivery, Input, Outgoing, Output, Progress};
use crate::ledger::{DueMessage, Ledger, MessageArrival};
use crate::load::Pacer;
use crate::openings::ConnectionOpenings;
use crate::rejected_messages::RejectedMessages;
use crate::session_setups::SessionSetups;
use crate::{ENDLESS, StreamLayout};

/// The requests of a workload's client, and how it interprets replies.
pub(crate) trait RequestSource: fmt::Debug {
    /// Returns the kind of the records that are written about the requests.
    fn kind(&self) -> RecordKind;

    /// Returns the size of the batches that messages form; `None` if they form none.
    fn batch(&self) -> Option<Batch> {
        None
    }

    /// Returns the message that sets up the session of a connection, and the number (turn) that selects its stream;
    /// `None` if the workload has no sessions. `attempt` is the number of earlier attempts.
    fn session_setup(&mut self, connection: ConnectionId, attempt: u32) -> Option<(u32, Bytes)> {
        let _ = (connection, attempt);
        None
    }

    /// Returns message number `number`, which is the next one, and the number (turn) that selects its stream.
    fn next(&mut self, now: Time, number: u32) -> (u32, Bytes);

    /// Returns the head of message `number`, which is written separately before the rest; `None` if the message is
    /// written at once.
    fn head(&mut self, number: u32) -> Option<Bytes> {
        let _ = number;
        None
    }

    /// Returns the size of the reply to the last message in octets, if it is known in advance; otherwise 0.
    fn reply_size(&self) -> u32 {
        0
    }

    /// Parses a reply and returns the request that it answers.
    fn reply(&mut self, now: Time, payload: &Bytes) -> Result<RepliedRequest, &'static str>;
}

/// The request to which a reply belongs, and whether it succeeded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RepliedRequest {
    /// The session setup on this connection succeeded.
    Session(ConnectionId),
    /// The session setup on this connection was refused.
    SessionRefused(ConnectionId),
    /// The message with this number was answered successfully.
    Message(u32),
    /// The message with this number was refused, or its reply does not fit the request.
    Refused(u32),
}

/// A client that opens all its connections, then sends each message when it is due.
///
/// Messages are sent in the order of the schedule. When the transport's send buffer is full, the rejected message and
/// all later ones wait. With a late limit the run is aborted if they wait longer than the limit, because the run would
/// then measure the backlog instead of the transport (Kiesel et al. 2006, section 3.2). If the transport sets the pace,
/// each connection has its own pace, so a full connection does not block others.
#[derive(Debug)]
pub(crate) struct Sender<R> {
    requests: R,
    batches: Batches,
    lanes: StreamLayout,
    pacer: Pacer,
    is_endless: bool,
    late_limit: Option<Duration>,
    openings: ConnectionOpenings,
    setups: SessionSetups,
    rejected: RejectedMessages,
    /// The rest of a message whose head was just written; `None` if no head was.
    message_rest: Option<Outgoing>,
    /// Connections that the peer has closed for sending.
    to_close: VecDeque<ConnectionId>,
    abort_reason: Option<AbortReason>,
    ledger: Ledger,
    replies: u64,
}

impl<R: RequestSource> Sender<R> {
    /// Creates a sender of `messages` messages ([`ENDLESS`]: unlimited); `pacer` determines when each is due.
    pub(crate) fn new(
        requests: R,
        lanes: StreamLayout,
        pacer: Pacer,
        messages: u64,
        late_limit: Option<Duration>,
    ) -> Self {
        Self {
            batches: Batches::new(requests.batch()),
            requests,
            lanes,
            pacer,
            is_endless: messages == ENDLESS,
            late_limit,
            openings: ConnectionOpenings::new(lanes),
            setups: SessionSetups::new(lanes.max_setup_attempts()),
            rejected: RejectedMessages::default(),
            message_rest: None,
            to_close: VecDeque::new(),
            abort_reason: None,
            ledger: Ledger::default(),
            replies: 0,
        }
    }

    fn opened(&mut self, now: Time) {
        if !self.openings.note_opened() {
            return;
        }
        if self.requests.session_setup(ConnectionId(0), 0).is_some() {
            self.setups.start(now, self.lanes.connections.into());
        } else {
            self.pacer.start(now);
        }
    }

    fn session_open(&mut self, now: Time, connection: ConnectionId) {
        if self.setups.on_reply(connection) {
            self.pacer.start(now);
        }
    }

    /// Returns whether messages remain to be sent or answered.
    fn has_more(&self) -> bool {
        let answered =
            self.requests.kind() != RecordKind::Transaction || self.replies == self.ledger.messages_due();
        self.pacer.messages_left() > 0 || !answered
    }

    /// Returns whether no connection has room for the next message.
    fn is_blocked(&self) -> bool {
        let max = if self.pacer.is_open_loop() { 1 } else { usize::from(self.lanes.connections) };
        self.rejected.len() >= max
    }

    fn wait_for_room(&self, now: Time) -> Output {
        let waiting = self.rejected.oldest().and_then(|outgoing| outgoing.entry);
        let (Some(entry), Some(late_limit)) = (waiting, self.late_limit) else {
            return Output::Wait(Time::MAX);
        };
        if !self.pacer.is_open_loop() {
            return Output::Wait(Time::MAX);
        }
        let scheduled = self.ledger.scheduled(entry);
        let limit = scheduled + late_limit;
        if now < limit {
            return Output::Wait(limit);
        }
        Output::Stop(AbortReason::BehindSchedule { message: entry.number().into(), scheduled })
    }

    fn next_message(&mut self, now: Time) -> Outgoing {
        let scheduled = self.pacer.advance(now);
        let parent = self.batches.batch_number(&mut self.ledger, now, scheduled);
        let number = self.ledger.messages_due() as u32;
        let (turn, payload) = self.requests.next(now, number);
        let head = self.requests.head(number);
        let lane = self.lane(turn);
        let octets = payload.len() + head.as_ref().map_or(0, Bytes::len);
        let (size, kind) = (octets as u32, self.requests.kind());
        let reply_size = self.requests.reply_size();
        let entry = self.ledger.note_due(now, DueMessage { scheduled, lane, size, reply_size, kind, parent });
        let message = Outgoing { entry: Some(entry), ..self.outgoing(lane, payload) };
        match head {
            None => message,
            Some(head) => {
                self.message_rest = Some(message);
                self.outgoing(lane, head)
            }
        }
    }

    /// Records that the next message is never sent. With batches, records this for the next batch and skips its
    /// messages.
    fn note_unsent(&mut self, now: Time) {
        if let Some(messages) = self.batches.skip(&mut self.ledger, now, self.pacer.messages_left()) {
            self.pacer.skip(messages);
            return;
        }
        if self.pacer.next() == Time::MAX {
            self.pacer.start(now);
        }
        drop(self.next_message(now));
        self.message_rest = None;
    }

    /// Sends the rest of a message after the transport has accepted the whole head.
    fn send_rest(&mut self, now: Time) -> Output {
        let Some(rest) = self.message_rest.take_if(|rest| !self.rejected.waits_for(rest.connection)) else {
            return self.wait_for_room(now);
        };
        rest.entry.iter().for_each(|entry| self.ledger.note_written(*entry, now));
        Output::Send(rest)
    }

    fn outgoing(&self, lane: u16, payload: Bytes) -> Outgoing {
        let (connection, stream) = (self.lanes.connection(lane), self.lanes.stream(lane));
        Outgoing { connection, stream, payload, delivery: None, entry: None }
    }

    /// Returns the lane of the message with the number `turn`; skips connections without room if possible.
    fn lane(&self, turn: u32) -> u16 {
        self.lanes.lane_of_turn(turn, |connection| !self.rejected.waits_for(connection))
    }

    fn take_reply(&mut self, now: Time, delivery: &Delivery) {
        let (number, refused) = match self.requests.reply(now, &delivery.payload) {
            Ok(RepliedRequest::Session(connection)) => return self.session_open(now, connection),
            Ok(RepliedRequest::SessionRefused(connection)) if self.setups.is_open_already(connection) => {
                return self.session_open(now, connection);
            }
            Ok(RepliedRequest::SessionRefused(_)) => {
                self.abort_reason = Some(AbortReason::InvalidData("the peer rejected the session"));
                return;
            }
            Ok(RepliedRequest::Message(number)) => (number, false),
            Ok(RepliedRequest::Refused(number)) => (number, true),
            Err(reason) => {
                self.abort_reason = Some(AbortReason::InvalidData(reason));
                return;
            }
        };
        let reply = MessageArrival { delivery_times: delivery.delivery_times, delivered: now };
        if self.ledger.note_sized_reply(number, reply, delivery.payload.len() as u32, refused) {
            self.replies += 1 + u64::from(self.batches.on_reply(&mut self.ledger, number, reply));
            self.pacer.on_reply(now, number);
        } else {
            self.abort_reason = Some(AbortReason::InvalidData("the peer sent a reply without a request"));
        }
    }
}

impl<R: RequestSource> Application for Sender<R> {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Opened(_) => self.opened(now),
            Input::Message(delivery) => self.take_reply(now, &delivery),
            Input::Full(outgoing) => self.rejected.add(outgoing),
            Input::Writable(_) => self.rejected.retry(),
            Input::PeerClosed(_) if self.has_more() => {
                self.abort_reason = Some(AbortReason::Connection("closed by the peer"));
            }
            Input::PeerClosed(connection) => self.to_close.push_back(connection),
            Input::Failed(_, reason) => self.abort_reason = Some(AbortReason::Connection(reason)),
            Input::Accepted(_) | Input::Closed(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(abort_reason) = self.abort_reason {
            return Output::Stop(abort_reason);
        }
        if let Some(connection) = self.openings.next() {
            return Output::Open(connection);
        }
        if let Some(connection) = self.to_close.pop_front() {
            return Output::Close(connection);
        }
        if let Some(outgoing) = self.rejected.next() {
            if let Some(entry) = outgoing.entry {
                self.ledger.note_written(entry, now);
            }
            return Output::Send(outgoing);
        }
        self.pacer.stop_at_end(now);
        if self.is_blocked() {
            return self.wait_for_room(now);
        }
        if self.message_rest.is_some() {
            return self.send_rest(now);
        }
        if let Some((connection, attempt)) = self.setups.next(now)
            && let Some((turn, payload)) = self.requests.session_setup(connection, attempt)
        {
            return Output::Send(self.outgoing(self.lane(turn), payload));
        }
        if self.pacer.next() > now {
            return Output::Wait(self.pacer.next().min(self.setups.repeat_time()));
        }
        Output::Send(self.next_message(now))
    }

    #[inline]
    fn progress(&self) -> Progress {
        Progress {
            messages_due: self.ledger.messages_due(),
            messages_done: self.replies,
            last_due_time: self.ledger.last_due_time(),
            is_all_due: self.pacer.messages_left() == 0,
            waits_for_reply: self.pacer.waits_for_reply(),
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Records all remaining messages of the schedule as never sent. An endless schedule has no remaining messages.
    fn end(&mut self, now: Time) -> bool {
        const PART_OCTETS: u64 = 4096;
        if self.is_endless {
            return true;
        }
        for _ in 0..PART_OCTETS {
            if self.pacer.messages_left() == 0 {
                return true;
            }
            self.note_unsent(now);
        }
        self.pacer.messages_left() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkloadSpec;
    use crate::padded_messages;
    use hol_base::Seed;
    use hol_transport::DeliveryTimes;

    const ONE: StreamLayout = StreamLayout {
        streams: 1,
        connections: 1,
        may_lose_messages: false,
        is_stream: false,
        handshake: None,
    };

    fn client_of(workload: &str, lanes: StreamLayout, messages: u64) -> Box<dyn Application> {
        let spec: WorkloadSpec = serde_json::from_str(workload).expect("a workload");
        let mut client = spec.client(lanes, messages, Seed(1));
        for connection in 0..u32::from(lanes.connections) {
            assert!(matches!(client.poll(ms(0)), Output::Open(ConnectionId(id)) if id == connection));
        }
        client
    }

    fn client(kind: &str, lanes: StreamLayout, messages: u64) -> Box<dyn Application> {
        client_of(&format!("{{\"kind\":\"{kind}\"}}"), lanes, messages)
    }

    fn open(client: &mut dyn Application, now: Time, lanes: StreamLayout) {
        for connection in 0..u32::from(lanes.connections) {
            client.handle(now, Input::Opened(ConnectionId(connection)));
        }
    }

    fn opened(kind: &str, streams: u16, messages: u64) -> Box<dyn Application> {
        let lanes = StreamLayout {
            streams,
            connections: 1,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        let mut client = client(kind, lanes, messages);
        open(client.as_mut(), ms(0), lanes);
        client
    }

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A greedy sender with a time limit stops then; only messages that it has already passed to the transport are
    /// sent.
    #[test]
    fn greedy_sender_stops_after_its_maximum_duration() {
        let mut client = client_of("{\"kind\":\"bulk\",\"lasts\":\"2s\"}", ONE, 1000);
        open(client.as_mut(), ms(500), ONE);
        send(client.as_mut(), ms(500));
        send(client.as_mut(), ms(2499));
        assert!(matches!(client.poll(ms(2500)), Output::Wait(Time::MAX)));
        let Progress { messages_due, is_all_due, .. } = client.progress();
        assert_eq!((messages_due, is_all_due), (2, true));
        assert!(client.end(ms(2500)), "messages that were not sent do not belong to the run");
        assert_eq!(client.progress().messages_due, 2);
    }

    #[track_caller]
    fn send(client: &mut dyn Application, now: Time) -> Outgoing {
        match client.poll(now) {
            Output::Send(outgoing) => outgoing,
            other => panic!("{other:?} at {now}"),
        }
    }

    #[track_caller]
    fn wait(client: &mut dyn Application, now: Time) -> Time {
        match client.poll(now) {
            Output::Wait(until) => until,
            other => panic!("{other:?} at {now}"),
        }
    }

    fn reply(client: &mut dyn Application, now: Time, payload: Bytes) {
        let (connection, delivery_times) = (ConnectionId(0), DeliveryTimes::default());
        client.handle(now, Input::Message(Delivery { connection, stream: 0, payload, delivery_times }));
    }

    #[test]
    fn nothing_is_sent_before_every_connection_is_open() {
        let lanes = StreamLayout {
            streams: 2,
            connections: 2,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        let mut client = client("echo", lanes, 3);
        assert_eq!(wait(client.as_mut(), ms(500)), Time::MAX);
        client.handle(ms(500), Input::Opened(ConnectionId(1)));
        assert_eq!(wait(client.as_mut(), ms(500)), Time::MAX);
        client.handle(ms(510), Input::Opened(ConnectionId(0)));
        assert_eq!(wait(client.as_mut(), ms(510)), ms(520));
    }

    #[test]
    fn messages_use_the_streams_in_turn() {
        let mut client = opened("oneway", 3, 5);
        let streams: Vec<u16> = (1..=5).map(|k| send(client.as_mut(), ms(10 * k)).stream).collect();
        assert_eq!(streams, [0, 1, 2, 0, 1]);
        assert_eq!(wait(client.as_mut(), ms(60)), Time::MAX);
    }

    /// The measurement is aborted if a message cannot be passed to the transport within one second after its scheduled
    /// time, as in the load generator of Kiesel et al. 2006 (IKR report 53).
    #[test]
    fn blocked_connection_aborts_the_run_after_the_late_limit() {
        let mut client = client_of("{\"kind\":\"oneway\",\"late_limit\":\"1s\"}", ONE, 1000);
        open(client.as_mut(), ms(0), ONE);
        let first = send(client.as_mut(), ms(10));
        client.handle(ms(10), Input::Full(first));
        assert_eq!(wait(client.as_mut(), ms(10)), ms(1010));
        assert_eq!(wait(client.as_mut(), ms(1009)), ms(1010));
        let Output::Stop(abort_reason) = client.poll(ms(1010)) else { panic!("it goes on") };
        assert_eq!(abort_reason, AbortReason::BehindSchedule { message: 0, scheduled: ms(10) });
    }

    #[test]
    fn messages_wait_indefinitely_without_a_late_limit() {
        let mut client = opened("oneway", 1, 1000);
        let first = send(client.as_mut(), ms(10));
        client.handle(ms(10), Input::Full(first));
        assert_eq!(wait(client.as_mut(), ms(3_600_000)), Time::MAX);
    }

    #[test]
    fn blocked_connection_delays_messages_but_not_their_schedule() {
        let mut client = opened("oneway", 1, 3);
        let first = send(client.as_mut(), ms(10));
        client.handle(ms(10), Input::Full(first));
        client.handle(ms(900), Input::Writable(ConnectionId(0)));
        let entries = [(); 3].map(|()| send(client.as_mut(), ms(900)).entry.expect("it is noted"));
        let scheduled = entries.map(|entry| client.ledger().scheduled(entry));
        assert_eq!(scheduled, [ms(10), ms(20), ms(30)]);
    }

    #[test]
    fn a_greedy_client_is_never_late_and_continues_when_writable() {
        let mut client = opened("bulk", 1, ENDLESS);
        let first = send(client.as_mut(), ms(0));
        let second = send(client.as_mut(), ms(0));
        client.handle(ms(0), Input::Full(second));
        assert_eq!((first.payload.len(), wait(client.as_mut(), ms(9000))), (4096, Time::MAX));
        client.handle(ms(9000), Input::Writable(ConnectionId(0)));
        let entries = [(); 3].map(|()| send(client.as_mut(), ms(9000)).entry.expect("it is noted"));
        let scheduled = entries.map(|entry| client.ledger().scheduled(entry));
        assert_eq!(scheduled, [ms(0), ms(9000), ms(9000)]);
    }

    #[test]
    fn full_connection_does_not_block_a_greedy_client_on_another() {
        let lanes = StreamLayout {
            streams: 4,
            connections: 2,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        let mut client = client("bulk", lanes, ENDLESS);
        open(client.as_mut(), ms(0), lanes);
        let first = send(client.as_mut(), ms(0));
        assert_eq!((first.connection.0, first.stream), (0, 0));
        client.handle(ms(0), Input::Full(first));
        let taken =
            [(); 4].map(|()| send(client.as_mut(), ms(0))).map(|sent| (sent.connection.0, sent.stream));
        assert_eq!(taken, [(1, 0), (1, 1), (1, 1), (1, 0)], "connection 0 is full");
        let last = send(client.as_mut(), ms(0));
        client.handle(ms(0), Input::Full(last));
        assert_eq!(wait(client.as_mut(), ms(0)), Time::MAX);
        client.handle(ms(7), Input::Writable(ConnectionId(0)));
        let again = send(client.as_mut(), ms(7));
        assert_eq!((again.connection.0, again.entry.map(|entry| entry.number())), (0, Some(0)));
    }

    #[test]
    fn end_of_run_records_every_unsent_message() {
        for kind in ["oneway", "pingpong"] {
            let mut client = opened(kind, 1, 4);
            drop(send(client.as_mut(), ms(10)));
            assert!(!client.progress().is_all_due);
            assert!(client.end(ms(15)));
            assert_eq!((client.progress().messages_due, client.progress().is_all_due), (4, true));
        }
    }

    #[test]
    fn pingpong_sends_after_the_reply() {
        let mut client = client("pingpong", ONE, 2);
        open(client.as_mut(), ms(7), ONE);
        let first = send(client.as_mut(), ms(7));
        assert_eq!(wait(client.as_mut(), ms(7)), Time::MAX);
        assert!(client.progress().waits_for_reply);
        reply(client.as_mut(), ms(27), first.payload);
        assert_eq!(padded_messages::number(&send(client.as_mut(), ms(27)).payload), Some(1));
    }

    /// There is no transaction before the session is established. RFC 4540 section 7.
    #[test]
    fn simco_establishes_its_session_first() {
        let mut client = opened("simco", 8, 2);
        let establishment = send(client.as_mut(), ms(0));
        assert_eq!(establishment.stream, 0);
        assert_eq!(wait(client.as_mut(), ms(0)), Time::MAX);
        assert!(client.progress().waits_for_reply);
        let capabilities = hol_simco::Capabilities::firewall(hol_simco::Lifetime(60));
        let granted = hol_simco::Message::reply(hol_simco::Tid(0), hol_simco::Reply::Se { capabilities });
        reply(client.as_mut(), ms(20), granted.to_bytes());
        assert_eq!(wait(client.as_mut(), ms(20)), ms(30));
        assert_eq!(send(client.as_mut(), ms(30)).stream, 1);
    }

    #[test]
    fn run_continues_after_a_refused_request() {
        use hol_simco::{Message, Refusal, Tid};
        let mut client = opened("simco", 1, 2);
        drop(send(client.as_mut(), ms(0)));
        let capabilities = hol_simco::Capabilities::firewall(hol_simco::Lifetime(60));
        let granted = Message::reply(Tid(0), hol_simco::Reply::Se { capabilities });
        reply(client.as_mut(), ms(0), granted.to_bytes());
        drop(send(client.as_mut(), ms(10)));
        let refusal = Message::refusal(Tid(1), Refusal::ConfigurationFailed);
        reply(client.as_mut(), ms(30), refusal.to_bytes());
        assert_eq!(client.progress().messages_done, 1);
        drop(send(client.as_mut(), ms(30)));
    }

    #[test]
    fn invalid_reply_and_failed_connection_abort_the_run() {
        let mut client = opened("echo", 1, 2);
        let first = send(client.as_mut(), ms(10));
        reply(client.as_mut(), ms(30), first.payload.clone());
        reply(client.as_mut(), ms(30), first.payload);
        assert!(matches!(client.poll(ms(30)), Output::Stop(AbortReason::InvalidData(_))));
        let mut client = opened("echo", 1, 2);
        client.handle(ms(5), Input::Failed(ConnectionId(0), "connection reset"));
        assert!(matches!(client.poll(ms(5)), Output::Stop(AbortReason::Connection("connection reset"))));
    }

    #[test]
    fn peer_close_is_a_failure_only_before_all_messages_are_done() {
        let mut client = opened("echo", 1, 1);
        let first = send(client.as_mut(), ms(10));
        reply(client.as_mut(), ms(30), first.payload);
        client.handle(ms(35), Input::PeerClosed(ConnectionId(0)));
        assert!(matches!(client.poll(ms(35)), Output::Close(ConnectionId(0))));
        let mut client = opened("echo", 1, 1);
        drop(send(client.as_mut(), ms(10)));
        client.handle(ms(15), Input::PeerClosed(ConnectionId(0)));
        assert!(matches!(client.poll(ms(15)), Output::Stop(AbortReason::Connection("closed by the peer"))));
    }
}
