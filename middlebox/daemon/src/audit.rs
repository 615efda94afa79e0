//! The audit log: one line per request, limited so that nobody can fill a disk with it.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};
use hol_simco::{AddressTuple, Addresses, AgentId, Answered, Body, Pid, Policy, Reply, Request};

use crate::log::{Field, Level, Log};
use crate::metrics::name;

/// The requests logged in this second.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    until: Time,
    asked: BTreeMap<AgentId, u64>,
}

impl Audit {
    /// Maximum requests logged per agent and second. A further line has the number of the others.
    const MOST: u64 = 100;

    /// Logs a request and its answer.
    pub fn write(&mut self, now: Time, answered: &Answered<'_>, policy: &Policy, log: &mut Log) {
        if self.until <= now {
            self.close(now, policy, log);
        }
        let asked = self.asked.entry(answered.agent).or_default();
        *asked += 1;
        if *asked <= Self::MOST {
            write(now, answered, policy.agent_name(answered.agent), log);
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

fn write(now: Time, Answered { session, request, answer, .. }: &Answered<'_>, agent: &str, log: &mut Log) {
    let result = match answer {
        Body::Refusal(refusal) => format!("0x03{:02X}", refusal.code()),
        _ => "ok".to_owned(),
    };
    let pid = pid(request, answer).map_or("-".to_owned(), |pid| pid.0.to_string());
    let (internal, external) = match ends(request) {
        Some(ends) => (text(ends.0), text(ends.1)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let fields: [Field<'_>; 7] = [
        ("session", &session.0),
        ("agent", &agent),
        ("request", &name(request)),
        ("result", &result),
        ("pid", &pid),
        ("internal", &internal),
        ("external", &external),
    ];
    log.write(now, Level::Info, "asked", &fields);
}

/// Returns the rule of the request, or the one it created.
fn pid(request: &Request, answer: &Body) -> Option<Pid> {
    match (request, answer) {
        (Request::Plc { pid, .. } | Request::Prs { pid } | Request::Pea { pid, .. }, _)
        | (_, Body::Reply(Reply::Pdr { pid, .. })) => Some(*pid),
        (_, Body::Reply(Reply::Per(rule) | Reply::Prr(rule))) => Some(rule.pid),
        _ => None,
    }
}

fn ends(request: &Request) -> Option<(&AddressTuple, &AddressTuple)> {
    match request {
        Request::Per { enable, .. } | Request::Pea { enable, .. } => {
            Some((&enable.internal, &enable.external))
        }
        Request::Pdr { internal, external, .. } => Some((internal, external)),
        _ => None,
    }
}

/// Such as `17 10.0.0.0/8:5004+2`: the protocol, the prefix, the first port and the number of ports.
fn text(tuple: &AddressTuple) -> String {
    let protocol = tuple.protocol;
    match tuple.addresses {
        Addresses::Full { address, port, port_range } => {
            format!("{protocol} {address}/{}:{port}+{port_range}", tuple.prefix_length)
        }
        Addresses::ProtocolsOnly(_) => format!("{protocol} any"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use hol_simco::{Lifetime, Refusal, SessionId};

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

    #[test]
    fn who_asks_for_what_is_written_a_hundred_times_a_second() {
        let policy = Policy::of_agents(["call-server"]).unwrap();
        let agent = policy.agent("call-server").unwrap();
        let request = Request::Plc { pid: Pid(7), lifetime: Lifetime(60) };
        let answer = Body::Refusal(Refusal::NoSuchRule);
        let answered = Answered { session: SessionId(3), agent, request: &request, answer: &answer };
        let (lines, mut audit) = (Lines::default(), Audit::default());
        let mut log = Log::new(Level::Info, Box::new(lines.clone()));
        let start = Time::from_millis(1_700_000_000_000);
        (0..150).for_each(|_| audit.write(start, &answered, &policy, &mut log));
        audit.write(start + Duration::from_secs(1), &answered, &policy, &mut log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let expected = "time=1700000000.000 level=info event=asked session=3 agent=call-server request=PLC \
                        result=0x0343 pid=7 internal=- external=-";
        assert_eq!(text.lines().next(), Some(expected));
        assert_eq!(text.lines().count(), 102);
        assert!(text.contains("event=asked-more agent=call-server requests=50"), "{text}");
    }
}
