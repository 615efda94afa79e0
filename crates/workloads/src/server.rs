//! The side that answers.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;
use hol_simco::Rule;

use crate::agent;
use crate::contract::{Delivery, Face, Input, Outgoing, Output, Trouble};
use crate::firewall::{Enforce, Firewall};
use crate::journal::{Answered, Arrived};
use crate::{Kind, WorkloadSpec, padding};

/// The application at the other end: a middlebox, an echo, or a silent observer. It answers at once and in
/// the order in which requests are delivered, on the stream that they came on.
#[derive(Debug)]
pub struct Server {
    answers: Answers,
    /// Replies that the transport has not taken yet.
    outbox: VecDeque<Outgoing>,
    blocked: bool,
    trouble: Option<Trouble>,
    journal: Vec<Answered>,
}

#[derive(Debug)]
enum Answers {
    Simco(Box<Firewall>),
    Echo,
    Silence,
}

impl Server {
    /// A server that expects `messages` messages.
    pub fn new(spec: &WorkloadSpec, face: Face, messages: u64) -> Self {
        let answers = match spec.kind {
            Kind::Simco => Answers::Simco(Box::new(Firewall::new(face.sessions))),
            Kind::Echo | Kind::Pingpong => Answers::Echo,
            Kind::Oneway | Kind::Bulk => Answers::Silence,
        };
        Self {
            answers,
            outbox: VecDeque::new(),
            blocked: false,
            trouble: None,
            journal: crate::journal::with_room_for(messages),
        }
    }

    /// Puts the rules of a middlebox in force, each before the reply that grants it; nobody else has any.
    pub fn enforce(&mut self, enforce: Enforce) {
        if let Answers::Simco(firewall) = &mut self.answers {
            firewall.enforce = Some(enforce);
        }
    }

    /// The rules in force.
    pub fn rules(&self, now: Time) -> Vec<Rule> {
        match &self.answers {
            Answers::Simco(firewall) => firewall.middlebox.rules(now).copied().collect(),
            Answers::Echo | Answers::Silence => Vec::new(),
        }
    }

    /// Takes one input.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Connected => {}
            Input::Message(delivery) => self.answer(now, delivery),
            Input::Full(outgoing) => {
                self.outbox.push_front(outgoing);
                self.blocked = true;
            }
            Input::Writable => self.blocked = false,
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self, now: Time) -> Output {
        if let Some(trouble) = self.trouble {
            return Output::Stop(trouble);
        }
        if self.blocked {
            return Output::Wait(Time::MAX);
        }
        let Some(outgoing) = self.outbox.pop_front() else { return Output::Wait(Time::MAX) };
        if let Some(entry) = outgoing.entry {
            self.journal[entry].reply_written = now;
        }
        Output::Send(outgoing)
    }

    /// How many messages of the schedule have been delivered here.
    pub fn requests(&self) -> u64 {
        self.journal.len() as u64
    }

    pub(crate) fn journal(&self) -> &[Answered] {
        &self.journal
    }

    fn answer(&mut self, now: Time, delivery: Delivery) {
        let Delivery { stream, payload, passage } = delivery;
        let number = match &self.answers {
            Answers::Simco(firewall) => agent::number(&payload, firewall.sessions.len()),
            Answers::Echo | Answers::Silence => padding::number(&payload),
        };
        let entry = number.map(|number| {
            let request = Arrived { passage, delivered: now };
            self.journal.push(Answered { number, request, reply_written: now });
            self.journal.len() - 1
        });
        match self.reply(now, stream, payload) {
            Ok(Some(payload)) => self.outbox.push_back(Outgoing { stream, payload, entry }),
            Ok(None) => {}
            Err(reason) => self.trouble = Some(Trouble::Nonsense(reason)),
        }
    }

    fn reply(&mut self, now: Time, stream: u16, request: Bytes) -> Result<Option<Bytes>, &'static str> {
        match &mut self.answers {
            Answers::Silence => Ok(None),
            Answers::Echo => Ok(Some(request)),
            Answers::Simco(firewall) => {
                firewall.answer(now, stream, request).map(Some).ok_or("not a SIMCO request")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_transport::Passage;

    fn server(kind: Kind, sessions: u16) -> Server {
        Server::new(&WorkloadSpec::new(kind), Face { streams: 8, sessions }, 10)
    }

    fn deliver(server: &mut Server, stream: u16, payload: Bytes) {
        server.handle(Time::ZERO, Input::Message(Delivery { stream, payload, passage: Passage::default() }));
    }

    #[test]
    fn an_echo_comes_back_on_its_stream_as_it_is() {
        let mut server = server(Kind::Echo, 1);
        let message = padding::Padding::new(100).message(5);
        deliver(&mut server, 3, message.clone());
        let Output::Send(reply) = server.poll(Time::ZERO) else { panic!("no reply") };
        assert_eq!((reply.stream, &reply.payload), (3, &message));
        assert_eq!(server.requests(), 1);
    }

    #[test]
    fn a_oneway_server_only_observes() {
        let mut server = server(Kind::Oneway, 1);
        deliver(&mut server, 0, padding::Padding::new(8).message(0));
        assert!(matches!(server.poll(Time::ZERO), Output::Wait(Time::MAX)));
        assert_eq!(server.requests(), 1);
    }

    #[test]
    fn a_full_transport_keeps_replies_in_order() {
        let mut server = server(Kind::Echo, 1);
        let mut padding = padding::Padding::new(8);
        (0..3).for_each(|number| deliver(&mut server, 0, padding.message(number)));
        let Output::Send(first) = server.poll(Time::ZERO) else { panic!("no reply") };
        server.handle(Time::ZERO, Input::Full(first));
        assert!(matches!(server.poll(Time::ZERO), Output::Wait(Time::MAX)));
        server.handle(Time::from_millis(3), Input::Writable);
        for number in 0..3 {
            let Output::Send(reply) = server.poll(Time::from_millis(3)) else { panic!("no reply") };
            assert_eq!(padding::number(&reply.payload), Some(number));
        }
        assert!(server.journal().iter().all(|answered| answered.reply_written == Time::from_millis(3)));
    }
}
