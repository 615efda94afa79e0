//! The audit log: which agent requested what, which addresses and ports it was granted, and when rules ended.
//!
//! The log shows who had an outside address and port at what time, except that it omits an agent's lines beyond a
//! certain rate. Without this limit an agent could fill a disk, because it may change the lifetime of its own
//! rule, or begin and end one, any number of times.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;

use hol_agent::FlowEnd;
use hol_base::{Duration, Time};
use hol_simco::{
    Action, AddressTuple, AgentId, AnsweredRequest, Body, Change, Direction, Lifetime, Pid, Policy, Reply,
    Request, Rule,
};

use crate::log::{Field, Log};
use crate::metrics::name;

/// The audit log, which limits the lines that each agent can cause.
#[derive(Debug)]
pub(crate) struct Audit {
    /// Maximum number of lines logged per agent and second, averaged over a long time.
    lines_per_second: u64,
    /// When the current second ends.
    until: Time,
    accounts: BTreeMap<AgentId, Account>,
}

/// The number of lines that an agent has caused.
#[derive(Debug, Default)]
struct Account {
    /// Number of logged lines in excess of the long-term rate, as in a leaky bucket.
    lines: u64,
    /// Number of refused requests and queries in the current second.
    queries: u64,
    /// Number of requests that were not logged in the current second.
    requests: u64,
    /// Number of ends of rules that were not logged in the current second.
    ends: u64,
}

impl Account {
    /// Returns true if one more line may be written; in a burst at most `max_burst`.
    fn may_write_line(&mut self, max_burst: u64) -> bool {
        let has_room = self.lines < max_burst;
        self.lines += u64::from(has_room);
        has_room
    }

    /// Returns true if a request may be logged; of refused requests and queries at most `max_queries` per second.
    fn may_log_request(&mut self, is_granted: bool, max_queries: u64, max_burst: u64) -> bool {
        self.queries += u64::from(!is_granted);
        let is_logged = (is_granted || self.queries <= max_queries) && self.may_write_line(max_burst);
        self.requests += u64::from(!is_logged);
        is_logged
    }

    /// Returns true if one more end of a rule may be logged; in a burst at most `max_burst`.
    fn may_log_end(&mut self, max_burst: u64) -> bool {
        let is_logged = self.may_write_line(max_burst);
        self.ends += u64::from(!is_logged);
        is_logged
    }
}

/// What the audit log contains about a request and its answer.
#[derive(Debug, Default)]
struct Record {
    pid: Option<Pid>,
    lifetime: Option<Lifetime>,
    direction: Option<Direction>,
    /// The internal host and its ports (A0).
    internal: Option<AddressTuple>,
    /// The external host and its ports (A3).
    external: Option<AddressTuple>,
    /// The address and ports of the middlebox that external hosts see (A2).
    outside: Option<AddressTuple>,
    /// The address and ports of the middlebox that internal hosts see (A1).
    inside: Option<AddressTuple>,
}

impl Audit {
    /// Creates the audit log. `lines_per_second` limits the lines per agent, averaged over a long time.
    pub fn new(lines_per_second: u32) -> Self {
        Self { lines_per_second: lines_per_second.into(), until: Time::ZERO, accounts: BTreeMap::new() }
    }

    /// Returns the maximum number of an agent's refused requests and queries that are logged in a second. They are less
    /// important than granted requests, and an agent can cause any number of them.
    fn max_queries(&self) -> u64 {
        self.lines_per_second.div_ceil(10)
    }

    /// Returns the maximum number of lines per agent in a burst. It is large, because many rules may begin and end
    /// together.
    fn max_burst(&self) -> u64 {
        100 * self.lines_per_second
    }

    /// Logs an agent's request and its answer.
    pub fn write(
        &mut self,
        now: Time,
        answered: &AnsweredRequest<'_>,
        peer: Option<SocketAddr>,
        policy: &Policy,
        log: &mut Log,
    ) {
        let (max_queries, max_burst) = (self.max_queries(), self.max_burst());
        let account = self.account(now, answered.agent, policy, log);
        if account.may_log_request(is_granted(answered), max_queries, max_burst) {
            write(now, answered, peer, policy.agent_name(answered.agent), log);
        }
    }

    /// Logs the rules that end because of these changes.
    pub fn write_ends(&mut self, now: Time, changes: &[Change], policy: &Policy, log: &mut Log) {
        let max_burst = self.max_burst();
        for change in changes {
            if let Change { before: Some(rule), after: None } = change
                && self.account(now, rule.owner, policy, log).may_log_end(max_burst)
            {
                write_end(now, rule, policy.agent_name(rule.owner), end_cause(now, rule), log);
            }
        }
    }

    /// Returns the account of an agent, after starting a new second if the current one is over.
    fn account(&mut self, now: Time, agent: AgentId, policy: &Policy, log: &mut Log) -> &mut Account {
        if self.until <= now {
            self.close(now, policy, log);
        }
        self.accounts.entry(agent).or_default()
    }

    /// Logs how many lines of each agent were omitted in the current second, and starts the next one.
    fn close(&mut self, now: Time, policy: &Policy, log: &mut Log) {
        let seconds = 1 + now.saturating_since(self.until).as_millis() / 1000;
        for (agent, account) in &mut self.accounts {
            let Account { requests, ends, .. } = *account;
            if requests + ends > 0 {
                let name = policy.agent_name(*agent);
                let fields: [Field<'_>; 3] = [("agent", &name), ("requests", &requests), ("ends", &ends)];
                log.write_record(now, Some(*agent), "asked-more", &fields);
            }
            *account = Account {
                lines: account.lines.saturating_sub(self.lines_per_second * seconds),
                ..Account::default()
            };
        }
        self.accounts.retain(|_, account| account.lines > 0);
        self.until = now + Duration::from_secs(1);
    }
}

/// Returns the reason why a rule ends now, as the audit log names it.
pub(crate) fn end_cause(now: Time, rule: &Rule) -> &'static str {
    if rule.is_in_force(now) { "request" } else { "lifetime" }
}

/// Writes the end of a rule to the audit log.
pub(crate) fn write_end(now: Time, rule: &Rule, agent: &str, cause: &'static str, log: &mut Log) {
    let record = Record::of(rule);
    let fields: [Field<'_>; 2] = [("agent", &agent), ("cause", &cause)];
    record.write(now, rule.owner, "rule-ended", &fields, log);
}

/// Returns true if the request was granted and is not a query (PRS, PRL).
fn is_granted(answered: &AnsweredRequest<'_>) -> bool {
    let is_question = matches!(answered.request, Request::Prs { .. } | Request::Prl);
    !is_question && !matches!(answered.answer, Body::Refusal(_))
}

fn write(now: Time, answered: &AnsweredRequest<'_>, peer: Option<SocketAddr>, agent: &str, log: &mut Log) {
    let AnsweredRequest { session, request, answer, .. } = answered;
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
    Record::of_answer(request, answer).write(now, answered.agent, "asked", &fields, log);
}

impl Record {
    fn of(rule: &Rule) -> Self {
        let (internal, external) = rule.address_tuples().unzip();
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

    fn write(&self, now: Time, agent: AgentId, event: &'static str, first: &[Field<'_>], log: &mut Log) {
        let end = |tuple: &Option<AddressTuple>| text(tuple.as_ref().map(FlowEnd::from_tuple));
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
        log.write_record(now, Some(agent), event, &fields);
    }
}

fn text(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use hol_simco::{
        Binding, Enable, Gid, GrantedRule, Location, PerParameters, PortParity, Refusal, SessionId,
    };

    use super::*;
    use crate::log::Level;

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

    /// Returns the written lines without the time and the level.
    fn written(write: impl FnOnce(&Policy, &mut Log)) -> Vec<String> {
        let policy = Policy::of_agents(["call-server"]).unwrap();
        let lines = Lines::default();
        // The audit log ignores the level.
        write(&policy, &mut Log::new(Level::Error, Box::new(lines.clone())));
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.split_once(" level=info ").unwrap().1.to_owned()).collect()
    }

    fn tuple(location: Location, text: &str) -> AddressTuple {
        AddressTuple::of_host(location, 17, text.parse().unwrap())
    }

    #[test]
    fn the_audit_log_has_addresses_and_ports_from_begin_to_end() {
        let parameters = PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional };
        let internal = tuple(Location::Internal, "10.0.0.5:5004");
        let external = tuple(Location::External, "198.51.100.7:6000");
        let outside = tuple(Location::Outside, "192.0.2.1:40000");
        let (pid, gid, lifetime) = (Pid(7), Gid(7), Lifetime(60));
        let request = Request::Per { enable: Enable { parameters, internal, external, lifetime }, gid: None };
        let answer = Body::Reply(Reply::Per(GrantedRule { pid, gid, lifetime, outside, inside: None }));
        let written = written(|policy, log| {
            let agent = policy.agent("call-server").unwrap();
            let answered =
                AnsweredRequest { session: SessionId(3), agent, request: &request, answer: &answer };
            let peer = Some("10.9.0.2:33000".parse().unwrap());
            let mut audit = Audit::new(1000);
            audit.write(START, &answered, peer, policy, log);
            let binding = Binding { outside: Some(outside), inside: None };
            let action = Action::Enable { gid, parameters, internal, external, binding };
            let expires = lifetime.end(START);
            let rule = Rule { pid, owner: agent, expires, action };
            let end = Change { before: Some(rule), after: None };
            let change = Change { before: Some(rule), after: Some(rule) };
            audit.write_ends(expires, &[change, end], policy, log);
            audit.write_ends(START, &[end], policy, log);
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

    #[test]
    fn the_audit_log_limits_the_lines_of_an_agent() {
        for rate in [1000, 10] {
            check_rate(rate);
        }
    }

    fn check_rate(rate: u64) {
        let (max_queries, max_burst) = (rate / 10, 100 * rate);
        let request = Request::Plc { pid: Pid(7), lifetime: Lifetime(60) };
        let refusal = Body::Refusal(Refusal::NoSuchRule);
        let grant = Body::Reply(Reply::Plc { lifetime: Lifetime(60) });
        let written = written(|policy, log| {
            let agent = policy.agent("call-server").unwrap();
            let mut audit = Audit::new(rate as u32);
            let end = |location| tuple(location, "10.0.0.5:5004");
            let action =
                Action::Disable { internal: end(Location::Internal), external: end(Location::External) };
            let rule = Rule { pid: Pid(7), owner: agent, expires: START, action };
            let ends = Change { before: Some(rule), after: None };
            let mut write = |seconds, answer: &Body, count: u64| {
                let answered = AnsweredRequest { session: SessionId(3), agent, request: &request, answer };
                let now = START + Duration::from_secs(seconds);
                (0..count).for_each(|_| audit.write(now, &answered, None, policy, log));
                audit.write_ends(now, &[ends], policy, log);
            };
            write(0, &refusal, max_queries + 50);
            write(1, &grant, max_burst + 10);
            write(2, &grant, 2 * rate);
            write(5, &grant, 2 * rate);
        });
        let expected = "event=asked session=3 peer=- agent=call-server request=PLC result=0x0343 pid=7 lifetime=- \
                        protocol=- direction=- internal=- external=- outside=- inside=-";
        assert_eq!(written[0], expected);
        let ended = max_queries as usize;
        assert!(written[ended].starts_with("event=rule-ended"), "{}", written[ended]);
        assert_eq!(written[ended + 1], "event=asked-more agent=call-server requests=50 ends=0");
        let of = |event: &str| {
            written.iter().filter(|line| line.starts_with(&format!("event={event} "))).count() as u64
        };
        // In the long run the rate limits the lines: one second has passed, and then three.
        let allowed = max_burst + rate + 2 * rate + 1;
        assert_eq!(of("asked") - max_queries + of("rule-ended") - 1, allowed);
        let more: Vec<&String> = written.iter().filter(|line| line.starts_with("event=asked-more")).collect();
        assert_eq!(more.len(), 3);
        assert_eq!(more[2], &format!("event=asked-more agent=call-server requests={rate} ends=1"));
    }
}
