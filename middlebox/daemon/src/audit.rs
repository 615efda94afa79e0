//! The audit log: who asked for what, which addresses and ports that gave to whom, and when it ended.
//!
//! Requests that were granted and ends of rules are all logged, so that the log says at any time who had an outside address and
//! port. Refused requests and questions are limited, so that nobody can fill a disk with them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use hol_agent::FlowEnd;
use hol_base::{Duration, Time};
use hol_simco::{
    Action, AddressTuple, AgentId, Answered, Body, Change, Direction, Lifetime, Pid, Policy, Reply, Request,
    Rule,
};

use crate::log::{Field, Level, Log};
use crate::metrics::name;

/// The refused requests and questions logged in this second.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    until: Time,
    asked: BTreeMap<AgentId, u64>,
}

/// What a request and its answer say about a rule.
#[derive(Debug, Default)]
struct Record {
    pid: Option<Pid>,
    lifetime: Option<Lifetime>,
    direction: Option<Direction>,
    /// A0, A3, A2 and A1.
    internal: Option<AddressTuple>,
    external: Option<AddressTuple>,
    outside: Option<AddressTuple>,
    inside: Option<AddressTuple>,
}

impl Audit {
    /// Maximum refused requests and questions logged per agent and second. A further line has the number of the others.
    const MOST: u64 = 100;

    /// Logs a request of this peer and its answer.
    pub fn write(
        &mut self,
        now: Time,
        answered: &Answered<'_>,
        peer: Option<SocketAddr>,
        policy: &Policy,
        log: &mut Log,
    ) {
        if self.until <= now {
            self.close(now, policy, log);
        }
        if !is_granted(answered) {
            let asked = self.asked.entry(answered.agent).or_default();
            *asked += 1;
            if *asked > Self::MOST {
                return;
            }
        }
        write(now, answered, peer, policy.agent_name(answered.agent), log);
    }

    /// Logs the ends of rules among these changes.
    pub fn write_ends(now: Time, changes: &[Change], policy: &Policy, log: &mut Log) {
        for change in changes {
            if let Change { before: Some(rule), after: None } = change {
                let cause = if rule.is_in_force(now) { "request" } else { "lifetime" };
                write_end(now, rule, policy.agent_name(rule.owner), cause, log);
            }
        }
    }

    /// Logs the number of requests left out of the past second.
    fn close(&mut self, now: Time, policy: &Policy, log: &mut Log) {
        for (agent, asked) in std::mem::take(&mut self.asked) {
            if let Some(more @ 1..) = asked.checked_sub(Self::MOST) {
                let fields: [Field<'_>; 2] = [("agent", &policy.agent_name(agent)), ("requests", &more)];
                log.write(now, Level::Info, "asked-more", &fields);
            }
        }
        self.until = now + Duration::from_secs(1);
    }
}

/// Logs the end of a rule.
pub(crate) fn write_end(now: Time, rule: &Rule, agent: &str, cause: &'static str, log: &mut Log) {
    let record = Record::of(rule);
    let fields: [Field<'_>; 2] = [("agent", &agent), ("cause", &cause)];
    record.write(now, "rule-ended", &fields, log);
}

/// Returns true if the request has changed something.
fn is_granted(answered: &Answered<'_>) -> bool {
    let is_question = matches!(answered.request, Request::Prs { .. } | Request::Prl);
    !is_question && !matches!(answered.answer, Body::Refusal(_))
}

fn write(now: Time, answered: &Answered<'_>, peer: Option<SocketAddr>, agent: &str, log: &mut Log) {
    let Answered { session, request, answer, .. } = answered;
    let result = match answer {
        Body::Refusal(refusal) => format!("0x03{:02X}", refusal.code()),
        _ => "ok".to_owned(),
    };
    let peer = text(peer);
    let fields: [Field<'_>; 5] = [
        ("session", &session.0),
        ("peer", &peer),
        ("agent", &agent),
        ("request", &name(request)),
        ("result", &result),
    ];
    Record::of_answer(request, answer).write(now, "asked", &fields, log);
}

impl Record {
    fn of(rule: &Rule) -> Self {
        let (internal, external) = rule.ends().unzip();
        let direction = match rule.action {
            Action::Enable { parameters, .. } => Some(parameters.direction),
            Action::Reserve { .. } | Action::Disable { .. } => None,
        };
        let binding = rule.binding();
        let (pid, outside, inside) = (Some(rule.pid), binding.outside, binding.inside);
        Self { pid, lifetime: None, direction, internal, external, outside, inside }
    }

    fn of_answer(request: &Request, answer: &Body) -> Self {
        let mut record = match request {
            Request::Per { enable, .. } | Request::Pea { enable, .. } => Self {
                direction: Some(enable.parameters.direction),
                internal: Some(enable.internal),
                external: Some(enable.external),
                ..Self::default()
            },
            Request::Pdr { internal, external, .. } => {
                Self { internal: Some(*internal), external: Some(*external), ..Self::default() }
            }
            _ => Self::default(),
        };
        record.pid = match request {
            Request::Plc { pid, .. } | Request::Prs { pid } | Request::Pea { pid, .. } => Some(*pid),
            _ => None,
        };
        match answer {
            Body::Reply(Reply::Per(rule) | Reply::Prr(rule)) => {
                record.pid = Some(rule.pid);
                record.lifetime = Some(rule.lifetime);
                record.outside = Some(rule.outside);
                record.inside = rule.inside;
            }
            Body::Reply(Reply::Pdr { pid, lifetime }) => {
                record.pid = Some(*pid);
                record.lifetime = Some(*lifetime);
            }
            Body::Reply(Reply::Plc { lifetime }) => record.lifetime = Some(*lifetime),
            _ => {}
        }
        record
    }

    fn write(&self, now: Time, event: &'static str, first: &[Field<'_>], log: &mut Log) {
        let end = |tuple: &Option<AddressTuple>| text(tuple.as_ref().map(FlowEnd::of));
        let protocol = self.internal.or(self.outside).map(|tuple| tuple.protocol);
        let direction = self.direction.map(|direction| match direction {
            Direction::Inbound => "inbound",
            Direction::Outbound => "outbound",
            Direction::BiDirectional => "both",
        });
        let texts = [
            ("pid", text(self.pid.map(|pid| pid.0))),
            ("lifetime", text(self.lifetime.map(|lifetime| lifetime.0))),
            ("protocol", text(protocol)),
            ("direction", text(direction)),
            ("internal", end(&self.internal)),
            ("external", end(&self.external)),
            ("outside", end(&self.outside)),
            ("inside", end(&self.inside)),
        ];
        let fields: Vec<Field<'_>> = first
            .iter()
            .copied()
            .chain(texts.iter().map(|(name, text)| (*name, text as &dyn Display)))
            .collect();
        log.write(now, Level::Info, event, &fields);
    }
}

fn text(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use hol_simco::{Binding, Enable, Gid, Granted, Location, PerParameters, PortParity, Refusal, SessionId};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(octets)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const START: Time = Time::from_nanos(1_700_000_000_000_000_000);

    /// What is written, without the time and the level.
    fn written(write: impl FnOnce(&Policy, &mut Log)) -> Vec<String> {
        let policy = Policy::of_agents(["call-server"]).unwrap();
        let lines = Lines::default();
        write(&policy, &mut Log::new(Level::Info, Box::new(lines.clone())));
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.split_once(" level=info ").unwrap().1.to_owned()).collect()
    }

    fn tuple(location: Location, text: &str) -> AddressTuple {
        AddressTuple::of_host(location, 17, text.parse().unwrap())
    }

    #[test]
    fn who_has_which_address_and_port_is_written_from_begin_to_end() {
        let parameters = PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional };
        let internal = tuple(Location::Internal, "10.0.0.5:5004");
        let external = tuple(Location::External, "198.51.100.7:6000");
        let outside = tuple(Location::Outside, "192.0.2.1:40000");
        let (pid, gid, lifetime) = (Pid(7), Gid(7), Lifetime(60));
        let request = Request::Per { enable: Enable { parameters, internal, external, lifetime }, gid: None };
        let answer = Body::Reply(Reply::Per(Granted { pid, gid, lifetime, outside, inside: None }));
        let written = written(|policy, log| {
            let agent = policy.agent("call-server").unwrap();
            let answered = Answered { session: SessionId(3), agent, request: &request, answer: &answer };
            let peer = Some("10.9.0.2:33000".parse().unwrap());
            Audit::default().write(START, &answered, peer, policy, log);
            let binding = Binding { outside: Some(outside), inside: None };
            let action = Action::Enable { gid, parameters, internal, external, binding };
            let expires = lifetime.end(START);
            let rule = Rule { pid, owner: agent, expires, action };
            let end = Change { before: Some(rule), after: None };
            let change = Change { before: Some(rule), after: Some(rule) };
            Audit::write_ends(expires, &[change, end], policy, log);
            Audit::write_ends(START, &[end], policy, log);
        });
        let flow = "protocol=17 direction=both internal=10.0.0.5:5004 external=198.51.100.7:6000 \
                    outside=192.0.2.1:40000 inside=-";
        assert_eq!(
            written,
            [
                format!(
                    "event=asked session=3 peer=10.9.0.2:33000 agent=call-server request=PER result=ok pid=7 \
                     lifetime=60 {flow}"
                ),
                format!("event=rule-ended agent=call-server cause=lifetime pid=7 lifetime=- {flow}"),
                format!("event=rule-ended agent=call-server cause=request pid=7 lifetime=- {flow}"),
            ]
        );
    }

    /// Grants are limited by quotas.
    #[test]
    fn refused_requests_are_written_a_hundred_times_a_second_and_granted_ones_always() {
        let request = Request::Plc { pid: Pid(7), lifetime: Lifetime(60) };
        let refusal = Body::Refusal(Refusal::NoSuchRule);
        let grant = Body::Reply(Reply::Plc { lifetime: Lifetime(60) });
        let written = written(|policy, log| {
            let agent = policy.agent("call-server").unwrap();
            let mut audit = Audit::default();
            let mut write = |seconds, answer: &Body| {
                let answered = Answered { session: SessionId(3), agent, request: &request, answer };
                audit.write(START + Duration::from_secs(seconds), &answered, None, policy, log);
            };
            (0..150).for_each(|_| write(0, &refusal));
            (0..150).for_each(|_| write(0, &grant));
            write(1, &refusal);
        });
        let expected = "event=asked session=3 peer=- agent=call-server request=PLC result=0x0343 pid=7 lifetime=- \
                        protocol=- direction=- internal=- external=- outside=- inside=-";
        assert_eq!(written[0], expected);
        assert_eq!(written.len(), 100 + 150 + 2);
        assert_eq!(written[250], "event=asked-more agent=call-server requests=50");
    }
}
