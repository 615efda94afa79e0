//! The middlebox: a pure firewall with a session per connection or association.

use bytes::Bytes;
use hol_base::Time;
use hol_simco::{
    Batch, Body, Config, ConnectionInfo, Framing, Lifetime, Message, Middlebox, Output, Policy, Refusal,
    Rule, SessionId, Unauthenticated,
};

use super::agent;
use super::octets::MessageBuffer;
use crate::receiver::ReplySource;
use crate::{ConnectionId, RuleEnforcer, StreamLayout};

/// A SIMCO middlebox as the server of the workload, with its packet filter if it has one.
#[derive(Debug)]
pub(crate) struct Firewall {
    middlebox: Middlebox,
    /// Number of transaction identifiers (TIDs) reserved for session control, which belong to no message.
    control_tids: u32,
    /// SIMCO sessions, by number of the connection.
    sessions: Vec<SessionId>,
    /// The changes and replies that the current request causes; empty between requests.
    batch: Batch,
    octets: MessageBuffer,
    filter: Option<Box<dyn RuleEnforcer>>,
}

impl Firewall {
    const MAX_LIFETIME: Lifetime = Lifetime(3600);

    /// Creates a firewall, which applies its rules to `filter` if there is one.
    pub(crate) fn new(lanes: StreamLayout, filter: Option<Box<dyn RuleEnforcer>>) -> Self {
        // Notifications are not part of the measured exchange, so they are off.
        let config = Config { announces: false, ..Config::firewall(Self::MAX_LIFETIME) };
        let middlebox = Middlebox::new(config, Policy::permissive(), Box::new(Unauthenticated))
            .expect("a pure firewall is consistent");
        Self {
            middlebox,
            control_tids: agent::control_tids(lanes),
            sessions: Vec::new(),
            batch: Batch::default(),
            octets: MessageBuffer::new(),
            filter,
        }
    }

    /// Returns the SIMCO session of a connection. RFC 4540 section 7.
    fn session(&mut self, now: Time, ConnectionId(connection): ConnectionId) -> SessionId {
        while self.sessions.len() <= connection as usize {
            self.sessions.push(self.middlebox.connect(now, ConnectionInfo::plain(Framing::Messages)));
        }
        self.sessions[connection as usize]
    }

    fn enforce(&mut self, now: Time) {
        let Self { middlebox, batch, filter: Some(filter), .. } = self else { return };
        if !batch.changes().is_empty() && !filter.apply(now, batch.changes()) {
            // The last step of the batch is the request. The steps before it remove expired rules, which cannot fail.
            middlebox.refuse(Refusal::ConfigurationFailed, batch);
        }
    }
}

impl ReplySource for Firewall {
    fn number(&self, request: &Bytes) -> Option<u32> {
        agent::message_number(request, self.control_tids)
    }

    fn answer(
        &mut self,
        now: Time,
        connection: ConnectionId,
        request: Bytes,
    ) -> Result<Option<Bytes>, &'static str> {
        let session = self.session(now, connection);
        self.middlebox.receive(now, session, request, &mut self.batch);
        self.enforce(now);
        let reply = self.batch.release().filter_map(reply_of).next();
        reply.map(|reply| Some(self.octets.encode(&reply))).ok_or("the client sent an invalid SIMCO request")
    }

    fn end(&mut self, now: Time) {
        if let Some(filter) = &mut self.filter {
            let rules: Vec<Rule> = self.middlebox.rules(now).copied().collect();
            filter.verify_rules(now, &rules);
        }
    }
}

/// Returns the reply in an output of the middlebox; `None` for unsolicited messages, which are not part of the measured
/// exchange.
fn reply_of(output: Output) -> Option<Message> {
    match output {
        Output::Send(_, message) => Some(message).filter(|m| !matches!(m.body, Body::Notification(_))),
        Output::Close(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::agent::Agent;
    use super::super::mix::RequestMix;
    use super::*;
    use crate::sender::{RepliedRequest, RequestSource};
    use hol_base::Seed;
    use hol_simco::Change;

    fn ask(firewall: &mut Firewall, connection: u32, request: Bytes) -> Bytes {
        let reply = firewall.answer(Time::ZERO, ConnectionId(connection), request);
        reply.expect("the request is valid").expect("the firewall replies")
    }

    /// RFC 4540 section 7: each TCP connection is a session of its own.
    #[test]
    fn connections_have_own_sessions_and_share_one_rule_table() {
        let lanes = StreamLayout {
            streams: 2,
            connections: 2,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        let mut firewall = Firewall::new(lanes, None);
        let mut agent = Agent::new(lanes, RequestMix { enable: 1, lifetime: 1, delete: 1 }, Seed(1).rng());
        for session in 0..2 {
            let reply = ask(&mut firewall, session, agent.open(session, 0).1);
            assert_eq!(agent.reply(Time::ZERO, &reply), Ok(RepliedRequest::Session(ConnectionId(session))));
        }
        for number in 0..100 {
            let (tid, request) = agent.request(Time::ZERO, number);
            let reply = ask(&mut firewall, tid.0 % 2, request);
            assert_eq!(agent.reply(Time::ZERO, &reply), Ok(RepliedRequest::Message(number)));
        }
        assert_eq!(firewall.sessions.len(), 2);
    }

    /// A packet filter for tests that accepts only a limited number of changes.
    #[derive(Debug)]
    struct Room(usize);

    impl RuleEnforcer for Room {
        fn apply(&mut self, _: Time, changes: &[Change]) -> bool {
            let fits = changes.len() <= self.0;
            self.0 = self.0.saturating_sub(changes.len());
            fits
        }
        fn verify_rules(&mut self, _: Time, rules: &[Rule]) {
            assert_eq!(rules.len(), 2);
        }
    }

    #[test]
    fn rule_rejected_by_the_filter_is_refused_and_not_stored() {
        let lanes = StreamLayout {
            streams: 1,
            connections: 1,
            may_lose_messages: false,
            is_stream: false,
            handshake: None,
        };
        let mut firewall = Firewall::new(lanes, Some(Box::new(Room(2))));
        let mut agent = Agent::new(lanes, RequestMix::default(), Seed(1).rng());
        ask(&mut firewall, 0, agent.open(0, 0).1);
        let mut answered = |number| {
            let reply = ask(&mut firewall, 0, agent.request(Time::ZERO, number).1);
            agent.reply(Time::ZERO, &reply)
        };
        assert_eq!([answered(0), answered(1)], [0, 1].map(|number| Ok(RepliedRequest::Message(number))));
        assert_eq!(answered(2), Ok(RepliedRequest::Refused(2)));
        firewall.end(Time::ZERO);
    }
}
