//! The answering side of a workload.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::Bytes;
use hol_base::{Duration, Time};

use crate::PendingRequests;
use crate::contract::{AbortReason, Application, ConnectionId, Delivery, Input, Outgoing, Output, Progress};
use crate::ledger::{Ledger, MessageArrival};

/// How the server of a workload replies to requests.
pub(crate) trait ReplySource: fmt::Debug {
    /// Returns the number of a request's message; `None` if the request is not a message of the workload.
    fn number(&self, request: &Bytes) -> Option<u32>;

    /// Returns the reply to a request; `None` if the request gets no reply.
    fn answer(
        &mut self,
        now: Time,
        connection: ConnectionId,
        request: Bytes,
    ) -> Result<Option<Bytes>, &'static str>;

    /// Returns how long the server works on a request before it replies; it works on all requests in parallel.
    fn service(&self, request: &Bytes) -> Duration {
        let _ = request;
        Duration::ZERO
    }

    /// Handles the end of the run.
    fn end(&mut self, now: Time) {
        let _ = now;
    }
}

/// A server that answers the messages of each stream in the order of delivery and on the same stream. It answers at
/// once, or after the replies to the onward requests that the message causes.
#[derive(Debug)]
pub(crate) struct Receiver<A> {
    answers: A,
    /// Requests that wait for the replies to onward requests; `None` if the server sends no onward requests.
    pending_requests: Option<PendingRequests>,
    /// Replies that wait until all onward requests of their request have been answered, by request.
    waiting_replies: BTreeMap<u64, Outgoing>,
    /// Replies to requests on which the server still works, by the end of the work and the order of arrival.
    in_service: BTreeMap<(Time, u64), Outgoing>,
    requests_served: u64,
    /// Replies that the transport has not accepted yet.
    outbox: VecDeque<Outgoing>,
    /// Whether the transport has rejected a reply, so that further ones wait.
    blocked: bool,
    /// Connections that the peer has closed for sending.
    to_close: VecDeque<ConnectionId>,
    abort_reason: Option<AbortReason>,
    ledger: Ledger,
}

impl<A: ReplySource> Receiver<A> {
    /// Creates a receiver that expects at most `messages` messages.
    pub(crate) fn new(answers: A, messages: u64) -> Self {
        Self {
            answers,
            pending_requests: None,
            waiting_replies: BTreeMap::new(),
            in_service: BTreeMap::new(),
            requests_served: 0,
            outbox: VecDeque::new(),
            blocked: false,
            to_close: VecDeque::new(),
            abort_reason: None,
            ledger: Ledger::new(messages),
        }
    }

    /// Returns the receiver with these pending requests. If there are any, it replies only after the replies to its
    /// onward requests.
    pub(crate) fn with_pending_requests(self, pending_requests: Option<PendingRequests>) -> Self {
        Self { pending_requests, ..self }
    }

    fn take_request(&mut self, now: Time, delivery: Delivery) {
        let Delivery { connection, stream, payload, delivery_times } = delivery;
        let number = self.answers.number(&payload);
        let entry = number.map(|number| {
            self.ledger.note_request(number, MessageArrival { delivery_times, delivered: now })
        });
        let service = self.answers.service(&payload);
        match self.answers.answer(now, connection, payload) {
            Ok(Some(payload)) => {
                let reply = Outgoing { connection, stream, payload, delivery: None, entry };
                match service {
                    Duration::ZERO => self.reply(reply),
                    service => self.serve(now + service, reply),
                }
            }
            Ok(None) => {}
            Err(reason) => self.abort_reason = Some(AbortReason::InvalidData(reason)),
        }
    }

    /// Sends a reply to a session setup at once. The reply to a message first waits for the replies to its onward
    /// requests.
    fn reply(&mut self, reply: Outgoing) {
        match self.pending_requests.as_ref().filter(|_| reply.is_message()) {
            Some(pending) => drop(self.waiting_replies.insert(pending.push(), reply)),
            None => self.outbox.push_back(reply),
        }
    }

    /// Delays a reply until `ready`, when the server has done its work.
    fn serve(&mut self, ready: Time, reply: Outgoing) {
        self.in_service.insert((ready, self.requests_served), reply);
        self.requests_served += 1;
    }

    /// Sends the replies to requests on which the work has ended. Returns when the work on the next request ends;
    /// [`Time::MAX`] if there is none.
    #[inline]
    fn release_served(&mut self, now: Time) -> Time {
        if self.in_service.is_empty() {
            return Time::MAX;
        }
        while let Some(served) = self.in_service.first_entry().filter(|served| served.key().0 <= now) {
            let reply = served.remove();
            self.reply(reply);
        }
        self.in_service.first_key_value().map_or(Time::MAX, |((ready, _), _)| *ready)
    }

    /// Sends the replies to requests whose onward requests have all been answered.
    fn take_ready(&mut self) {
        while let Some(request) = self.pending_requests.as_ref().and_then(PendingRequests::take_ready) {
            self.outbox.extend(self.waiting_replies.remove(&request));
        }
    }
}

impl<A: ReplySource> Application for Receiver<A> {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Message(delivery) => self.take_request(now, delivery),
            Input::Full(outgoing) => {
                self.outbox.push_front(outgoing);
                self.blocked = true;
            }
            Input::Writable(_) => self.blocked = false,
            Input::PeerClosed(connection) => self.to_close.push_back(connection),
            Input::Failed(_, reason) => self.abort_reason = Some(AbortReason::Connection(reason)),
            Input::Opened(_) | Input::Accepted(_) | Input::Closed(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(abort_reason) = self.abort_reason {
            return Output::Stop(abort_reason);
        }
        let next = self.release_served(now);
        self.take_ready();
        if self.blocked {
            return Output::Wait(next);
        }
        if let Some(outgoing) = self.outbox.pop_front() {
            if let Some(entry) = outgoing.entry {
                self.ledger.note_reply_written(entry, now);
            }
            return Output::Send(outgoing);
        }
        if !self.waiting_replies.is_empty() || next < Time::MAX {
            return Output::Wait(next);
        }
        // Close only after everything has been sent.
        self.to_close.pop_front().map_or(Output::Wait(Time::MAX), Output::Close)
    }

    #[inline]
    fn progress(&self) -> Progress {
        Progress { messages_done: self.ledger.received(), ..Progress::default() }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn end(&mut self, now: Time) -> bool {
        self.answers.end(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, StreamLayout, WorkloadSpec, padded_messages};
    use hol_transport::DeliveryTimes;

    fn server(kind: &str) -> Box<dyn Application> {
        let spec: WorkloadSpec =
            serde_json::from_str(&format!("{{\"kind\":\"{kind}\"}}")).expect("a workload");
        spec.server(
            StreamLayout {
                streams: 8,
                connections: 1,
                may_lose_messages: false,
                is_stream: false,
                handshake: None,
            },
            10,
            Host::default(),
        )
    }

    fn deliver(server: &mut dyn Application, stream: u16, payload: Bytes) {
        let (connection, delivery_times) = (ConnectionId(0), DeliveryTimes::default());
        server.handle(Time::ZERO, Input::Message(Delivery { connection, stream, payload, delivery_times }));
    }

    #[test]
    fn echo_returns_the_message_on_its_stream() {
        let mut server = server("echo");
        let message = padded_messages::Padding::new(100).message(5);
        deliver(server.as_mut(), 3, message.clone());
        let Output::Send(reply) = server.poll(Time::ZERO) else { panic!("no reply") };
        assert_eq!((reply.stream, &reply.payload), (3, &message));
        assert_eq!(server.progress().messages_done, 1);
    }

    #[test]
    fn oneway_server_sends_no_replies() {
        let mut server = server("oneway");
        deliver(server.as_mut(), 0, padded_messages::Padding::new(8).message(0));
        assert!(matches!(server.poll(Time::ZERO), Output::Wait(Time::MAX)));
        assert_eq!(server.progress().messages_done, 1);
    }

    #[test]
    fn replies_wait_in_order_for_a_full_transport_before_the_close() {
        let mut server = server("echo");
        let mut padding = padded_messages::Padding::new(8);
        (0..3).for_each(|number| deliver(server.as_mut(), 0, padding.message(number)));
        server.handle(Time::ZERO, Input::PeerClosed(ConnectionId(0)));
        let Output::Send(first) = server.poll(Time::ZERO) else { panic!("no reply") };
        server.handle(Time::ZERO, Input::Full(first));
        assert!(matches!(server.poll(Time::ZERO), Output::Wait(Time::MAX)));
        server.handle(Time::from_millis(3), Input::Writable(ConnectionId(0)));
        for number in 0..3 {
            let Output::Send(reply) = server.poll(Time::from_millis(3)) else { panic!("no reply") };
            assert_eq!(padded_messages::number(&reply.payload), Some(number));
        }
        assert!(matches!(server.poll(Time::from_millis(3)), Output::Close(ConnectionId(0))));
    }
}
