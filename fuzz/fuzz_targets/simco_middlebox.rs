//! Passes arbitrary octets of three agents to a middlebox, in pieces, while time passes and the packet filter
//! refuses steps.
#![no_main]

use std::collections::BTreeMap;

use hol_base::{Duration, Time};
use hol_simco::{
    Batch, Capabilities, Change, Config, ConnectionInfo, Framing, IpVersion, Lifetime, Message, Middlebox,
    Output, Pid, Policy, Refusal, Request, Rule, SessionId, Tid, Unauthenticated, Version,
};
use libfuzzer_sys::fuzz_target;

const POLICY: &str = "[agents.a]\n[agents.b]\naccess = ['a']\n[agents.c]\naccess = 'all'
may = ['reserve', 'enable', 'disable', 'lifetime', 'status', 'list']";

fn middlebox(kind: u8) -> Middlebox {
    let mut config = Config { max_rules: 100, ..Config::firewall(Lifetime(60)) };
    config.capabilities.middlebox_type = Capabilities::PACKET_FILTER
        | Capabilities::PDR
        | match kind % 3 {
            0 => 0,
            1 => Capabilities::NAT,
            _ => Capabilities::NAT | Capabilities::TWICE_NAT | Capabilities::PROTOCOL_TRANSLATION,
        };
    config.capabilities.flags |= Capabilities::IPV4 | Capabilities::IPV6;
    config.outside = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    config.inside = vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
    config.ports = 65_500..=u16::MAX;
    assert!(config.capabilities.supports_internal(IpVersion::V6));
    Middlebox::new(config, Policy::parse(POLICY).unwrap(), Box::new(Unauthenticated)).unwrap()
}

/// The content of a filter that applies every change.
#[derive(Default)]
struct Filter(BTreeMap<Pid, Rule>);

impl Filter {
    fn make(&mut self, changes: &[Change]) {
        for change in changes {
            let pid = change.before.or(change.after).expect("a change has a rule before or after it").pid;
            let before = match change.after {
                Some(after) => self.0.insert(pid, after),
                None => self.0.remove(&pid),
            };
            assert_eq!(before, change.before);
        }
    }
}

fn open(middlebox: &mut Middlebox, agent: &str, framing: Framing) -> SessionId {
    let mut batch = Batch::default();
    let id = middlebox.connect(
        Time::ZERO,
        ConnectionInfo { agent: Some(agent.to_owned()), ..ConnectionInfo::plain(framing) },
    );
    let se = Request::Se { version: Version::SIMCO_3_0, challenge: None };
    middlebox.receive(Time::ZERO, id, Message::request(Tid(0), se).to_bytes(), &mut batch);
    assert_eq!(batch.release().count(), 1);
    id
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, mut rest)) = input.split_first() else { return };
    let mut middlebox = middlebox(kind);
    let framings = [("a", Framing::Stream), ("b", Framing::Messages), ("c", Framing::Stream)];
    let sessions = framings.map(|(agent, framing)| open(&mut middlebox, agent, framing));
    let (mut batch, mut filter, mut now) = (Batch::default(), Filter::default(), Time::ZERO);
    // Four octets before each piece: its agent, its length, the seconds that pass before it, and whether the filter
    // refuses the last step.
    while let Some(([who, length, seconds, refused], others)) = rest.split_first_chunk() {
        let (piece, others) = others.split_at(usize::from(*length).min(others.len()));
        rest = others;
        now += Duration::from_secs(u64::from(*seconds));
        middlebox.receive(now, sessions[usize::from(who % 3)], piece.to_vec().into(), &mut batch);
        middlebox.advance(now, &mut batch);
        if refused % 2 == 1 {
            middlebox.refuse(Refusal::ConfigurationFailed, &mut batch);
            middlebox.advance(now, &mut batch);
        }
        filter.make(batch.changes());
        for output in batch.release() {
            if let Output::Send(_, message) = output {
                let octets = message.to_bytes();
                assert_eq!(Message::parse(&octets), Ok(message));
            }
        }
        assert!(middlebox.wake_at() > now);
        let held = filter.0.values().filter(|rule| rule.is_in_force(now)).copied();
        let rules = middlebox.rules(now).map(|rule| (rule.pid, *rule));
        assert_eq!(held.map(|rule| (rule.pid, rule)).collect::<BTreeMap<_, _>>(), rules.collect());
    }
});
