//! The middlebox that answers the agent: a pure firewall with a session for each connection or association.

use std::fmt;

use bytes::Bytes;
use hol_base::Time;
use hol_simco::{
    Batch, Body, Change, Config, Framing, Lifetime, Message, Middlebox, Output, Policy, SessionId,
    Unauthenticated, Underlay,
};

/// Makes all changes of rules, or none; false: it cannot.
pub type Enforce = Box<dyn FnMut(Time, &[Change]) -> bool>;

/// A middlebox, and what puts its rules in force, if anything does.
pub(crate) struct Firewall {
    pub(crate) middlebox: Middlebox,
    pub(crate) sessions: Vec<SessionId>,
    /// Empty between requests.
    batch: Batch,
    pub(crate) enforce: Option<Enforce>,
}

impl Firewall {
    const MAX_LIFETIME: Lifetime = Lifetime(3600);

    pub(crate) fn new(sessions: u16) -> Self {
        // Notifications are no part of the exchange that is measured, so nobody would read them.
        let config = Config { announces: false, ..Config::firewall(Self::MAX_LIFETIME) };
        let mut middlebox = Middlebox::new(config, Policy::open(), Box::new(Unauthenticated))
            .expect("a pure firewall is consistent");
        let underlay = || Underlay::plain(Framing::Messages);
        let sessions = (0..sessions).map(|_| middlebox.connect(Time::ZERO, underlay())).collect();
        Self { middlebox, sessions, batch: Batch::default(), enforce: None }
    }

    /// The reply to a request that came on `stream`; `None` if it makes no sense.
    pub(crate) fn answer(&mut self, now: Time, stream: u16, request: Bytes) -> Option<Bytes> {
        let session = self.sessions[usize::from(stream) % self.sessions.len()];
        self.middlebox.receive(now, session, request, &mut self.batch);
        self.put_in_force(now);
        let reply = self.batch.release().filter_map(reply_of).next();
        reply.map(|reply| reply.to_bytes())
    }

    fn put_in_force(&mut self, now: Time) {
        let Self { middlebox, batch, enforce: Some(enforce), .. } = self else { return };
        if !batch.changes().is_empty() && !enforce(now, batch.changes()) {
            // The request is the last step. What stands before it are ends of lifetimes, which need no help.
            middlebox.refuse(batch);
        }
    }
}

impl fmt::Debug for Firewall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { middlebox, sessions, .. } = self;
        f.debug_struct("Firewall")
            .field("middlebox", middlebox)
            .field("sessions", sessions)
            .finish_non_exhaustive()
    }
}

/// A reply; what the middlebox tells unasked is not part of the exchange that is measured.
fn reply_of(output: Output) -> Option<Message> {
    match output {
        Output::Send(_, message) => Some(message).filter(|m| !matches!(m.body, Body::Notification(_))),
        Output::Close(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mix;
    use crate::agent::{Agent, Answered};
    use hol_base::Seed;

    /// RFC 4540 section 7: each TCP connection is a session of its own.
    #[test]
    fn each_connection_has_its_own_session_and_all_have_one_table_of_rules() {
        let mut firewall = Firewall::new(2);
        let mut agent = Agent::new(2, Mix { enable: 1, lifetime: 1, delete: 1 }, Seed(1).rng());
        let mut ask = |session, request| firewall.answer(Time::ZERO, session, request).expect("a reply");
        for session in 0..2 {
            let reply = ask(session, Agent::open(session).1);
            assert_eq!(agent.reply(Time::ZERO, &reply), Ok(Answered::Session));
        }
        for number in 0..100 {
            let (tid, request) = agent.request(Time::ZERO, number);
            let reply = ask((tid.0 % 2) as u16, request);
            assert_eq!(agent.reply(Time::ZERO, &reply), Ok(Answered::Message(number)));
        }
    }

    #[test]
    fn what_the_filter_does_not_take_is_refused_and_not_kept() {
        let mut firewall = Firewall::new(1);
        let mut agent = Agent::new(1, Mix::default(), Seed(1).rng());
        firewall.answer(Time::ZERO, 0, Agent::open(0).1);
        let mut taken = 0;
        firewall.enforce = Some(Box::new(move |_, changes| {
            taken += changes.len();
            taken <= 2
        }));
        let mut answered = |number| {
            let reply = firewall.answer(Time::ZERO, 0, agent.request(Time::ZERO, number).1).expect("a reply");
            agent.reply(Time::ZERO, &reply)
        };
        assert_eq!([answered(0), answered(1)], [0, 1].map(|number| Ok(Answered::Message(number))));
        assert_eq!(answered(2), Ok(Answered::Refused(2)));
        assert_eq!(firewall.middlebox.rules(Time::ZERO).count(), 2);
    }
}
