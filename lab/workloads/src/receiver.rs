//! The side that answers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::Bytes;
use hol_base::Time;

use crate::Desk;
use crate::contract::{Application, ConnectionId, Delivery, Input, Outgoing, Output, Quit, Standing};
use crate::ledger::{Arrived, Ledger};

/// What a workload answers.
pub(crate) trait Answers: fmt::Debug {
    /// The number of the message that a request came from; `None`: it belongs to none.
    fn number(&self, request: &Bytes) -> Option<u32>;

    /// The reply to a request, if there is any.
    fn answer(
        &mut self,
        now: Time,
        connection: ConnectionId,
        request: Bytes,
    ) -> Result<Option<Bytes>, &'static str>;

    /// The run is over.
    fn end(&mut self, now: Time) {
        let _ = now;
    }
}

/// Answers at once and in the order in which requests are delivered, on the stream that they came on; who asks others first,
/// when they have answered.
#[derive(Debug)]
pub(crate) struct Receiver<A> {
    answers: A,
    /// Where requests wait until others have been asked, and the replies that wait for that.
    desk: Option<Desk>,
    waiting: BTreeMap<u64, Outgoing>,
    /// Replies that the transport has not taken yet.
    outbox: VecDeque<Outgoing>,
    blocked: bool,
    /// Connections whose peer sends no more.
    to_close: VecDeque<ConnectionId>,
    quit: Option<Quit>,
    ledger: Ledger,
}

impl<A: Answers> Receiver<A> {
    /// One that expects `messages` messages.
    pub(crate) fn new(answers: A, messages: u64) -> Self {
        Self {
            answers,
            desk: None,
            waiting: BTreeMap::new(),
            outbox: VecDeque::new(),
            blocked: false,
            to_close: VecDeque::new(),
            quit: None,
            ledger: Ledger::new(messages),
        }
    }

    /// The same, but who may have to ask others before it answers.
    pub(crate) fn asking(self, desk: Option<Desk>) -> Self {
        Self { desk, ..self }
    }

    fn take_request(&mut self, now: Time, delivery: Delivery) {
        let Delivery { connection, stream, payload, passage } = delivery;
        let number = self.answers.number(&payload);
        let entry =
            number.map(|number| self.ledger.note_request(number, Arrived { passage, delivered: now }));
        match self.answers.answer(now, connection, payload) {
            Ok(Some(payload)) => {
                self.reply(Outgoing { connection, stream, payload, terms: None, entry });
            }
            Ok(None) => {}
            Err(reason) => self.quit = Some(Quit::Nonsense(reason)),
        }
    }

    /// A greeting is answered at once, a message when others have been asked.
    fn reply(&mut self, reply: Outgoing) {
        match self.desk.as_ref().filter(|_| reply.is_message()) {
            Some(desk) => drop(self.waiting.insert(desk.put(), reply)),
            None => self.outbox.push_back(reply),
        }
    }

    /// Takes what others have been asked for.
    fn take_ready(&mut self) {
        while let Some(request) = self.desk.as_ref().and_then(Desk::take_ready) {
            self.outbox.extend(self.waiting.remove(&request));
        }
    }
}

impl<A: Answers> Application for Receiver<A> {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Message(delivery) => self.take_request(now, delivery),
            Input::Full(outgoing) => {
                self.outbox.push_front(outgoing);
                self.blocked = true;
            }
            Input::Writable(_) => self.blocked = false,
            Input::PeerClosed(connection) => self.to_close.push_back(connection),
            Input::Failed(_, reason) => self.quit = Some(Quit::Connection(reason)),
            Input::Opened(_) | Input::Accepted(_) | Input::Closed(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(quit) = self.quit {
            return Output::Stop(quit);
        }
        self.take_ready();
        if self.blocked {
            return Output::Wait(Time::MAX);
        }
        if let Some(outgoing) = self.outbox.pop_front() {
            if let Some(entry) = outgoing.entry {
                self.ledger.note_answer_written(entry, now);
            }
            return Output::Send(outgoing);
        }
        if !self.waiting.is_empty() {
            return Output::Wait(Time::MAX);
        }
        // Only when all that it has to say is on its way.
        self.to_close.pop_front().map_or(Output::Wait(Time::MAX), Output::Close)
    }

    #[inline]
    fn standing(&self) -> Standing {
        Standing { done: self.ledger.received(), ..Standing::default() }
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
    use crate::{Host, Lanes, WorkloadSpec, padding};
    use hol_transport::Passage;

    fn server(kind: &str) -> Box<dyn Application> {
        let spec: WorkloadSpec =
            serde_json::from_str(&format!("{{\"kind\":\"{kind}\"}}")).expect("a workload");
        spec.server(
            Lanes { streams: 8, connections: 1, gives_up: false, is_stream: false },
            10,
            Host::default(),
        )
    }

    fn deliver(server: &mut dyn Application, stream: u16, payload: Bytes) {
        let (connection, passage) = (ConnectionId(0), Passage::default());
        server.handle(Time::ZERO, Input::Message(Delivery { connection, stream, payload, passage }));
    }

    #[test]
    fn an_echo_comes_back_on_its_stream_as_it_is() {
        let mut server = server("echo");
        let message = padding::Padding::new(100).message(5);
        deliver(server.as_mut(), 3, message.clone());
        let Output::Send(reply) = server.poll(Time::ZERO) else { panic!("no reply") };
        assert_eq!((reply.stream, &reply.payload), (3, &message));
        assert_eq!(server.standing().done, 1);
    }

    #[test]
    fn a_oneway_server_only_observes() {
        let mut server = server("oneway");
        deliver(server.as_mut(), 0, padding::Padding::new(8).message(0));
        assert!(matches!(server.poll(Time::ZERO), Output::Wait(Time::MAX)));
        assert_eq!(server.standing().done, 1);
    }

    #[test]
    fn a_full_transport_keeps_replies_in_order_and_the_connection_open() {
        let mut server = server("echo");
        let mut padding = padding::Padding::new(8);
        (0..3).for_each(|number| deliver(server.as_mut(), 0, padding.message(number)));
        server.handle(Time::ZERO, Input::PeerClosed(ConnectionId(0)));
        let Output::Send(first) = server.poll(Time::ZERO) else { panic!("no reply") };
        server.handle(Time::ZERO, Input::Full(first));
        assert!(matches!(server.poll(Time::ZERO), Output::Wait(Time::MAX)));
        server.handle(Time::from_millis(3), Input::Writable(ConnectionId(0)));
        for number in 0..3 {
            let Output::Send(reply) = server.poll(Time::from_millis(3)) else { panic!("no reply") };
            assert_eq!(padding::number(&reply.payload), Some(number));
        }
        assert!(matches!(server.poll(Time::from_millis(3)), Output::Close(ConnectionId(0))));
    }
}
