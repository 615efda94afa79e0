//! One session with the middlebox. RFC 4540 sections 6 to 8.

use hol_base::Time;
use hol_simco::*;

const UDP: u8 = 17;
const START: Time = Time::ZERO;

/// A middlebox that grants at most an hour, with its session open.
fn open() -> Middlebox {
    let mut middlebox = Middlebox::new(Capabilities::firewall(Lifetime(3600)));
    let reply = ask(&mut middlebox, START, se());
    assert_eq!(reply, Body::Reply(Reply::Se { capabilities: Capabilities::firewall(Lifetime(3600)) }));
    middlebox
}

fn se() -> Request {
    Request::Se { version: Version::SIMCO_3_0, challenge: None }
}

fn enable(lifetime: u32) -> Enable {
    Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, "192.0.2.1:5004".parse().unwrap()),
        external: AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap()),
        lifetime: Lifetime(lifetime),
    }
}

fn per(lifetime: u32) -> Request {
    Request::Per { enable: enable(lifetime), gid: None }
}

/// The body of the only message that answers `request`; it repeats the TID.
fn ask(middlebox: &mut Middlebox, now: Time, request: Request) -> Body {
    let answer = middlebox.handle(now, &Message::request(Tid(7), request).to_bytes());
    let [Message { tid: Tid(7), body }] = &answer.messages[..] else { panic!("{answer:?}") };
    body.clone()
}

fn granted(body: &Body) -> Granted {
    let Body::Reply(Reply::Per(granted)) = body else { panic!("{body:?}") };
    *granted
}

/// Section 8.3.2: the internal tuple comes back as outside, the external one as inside.
#[test]
fn a_firewall_gives_the_tuples_back_from_the_other_side() {
    let rule = granted(&ask(&mut open(), START, per(60)));
    assert_eq!(rule.outside, enable(60).internal.seen_from(Location::Outside));
    assert_eq!(rule.inside, Some(enable(60).external.seen_from(Location::Inside)));
    assert_eq!(rule.lifetime, Lifetime(60));
}

/// Sections 8.1 and 8.3: every rule has its own PID, and its own group unless it names one.
#[test]
fn rules_and_groups_are_told_apart() {
    let mut middlebox = open();
    let first = granted(&ask(&mut middlebox, START, per(60)));
    let second = granted(&ask(&mut middlebox, START, per(60)));
    assert!(first.pid != second.pid && first.gid != second.gid);
    let join = Request::Per { enable: enable(60), gid: Some(first.gid) };
    assert_eq!(granted(&ask(&mut middlebox, START, join)).gid, first.gid);
    let nowhere = Request::Per { enable: enable(60), gid: Some(Gid(99)) };
    assert_eq!(ask(&mut middlebox, START, nowhere), Body::Refusal(Refusal::NoSuchGroup));
}

/// Section 8.3.1: at most the requested and at most the maximal lifetime, and never zero.
#[test]
fn the_granted_lifetime_is_limited() {
    let mut middlebox = open();
    assert_eq!(granted(&ask(&mut middlebox, START, per(7200))).lifetime, Lifetime(3600));
    assert_eq!(ask(&mut middlebox, START, per(0)), Body::Refusal(Refusal::ConfigurationFailed));
}

/// Section 8.3.1, in its order.
#[test]
fn an_inconsistent_per_is_refused() {
    let refused = |change: fn(&mut Enable)| {
        let mut enable = enable(60);
        change(&mut enable);
        let Body::Refusal(refusal) = ask(&mut open(), START, Request::Per { enable, gid: None }) else {
            panic!()
        };
        refusal
    };
    assert_eq!(refused(|e| e.internal.location = Location::Inside), Refusal::Inconsistent);
    assert_eq!(refused(|e| e.external.protocol = 6), Refusal::Inconsistent);
    assert_eq!(refused(|e| e.parameters.direction = Direction::BiDirectional), Refusal::Inconsistent);
    let two_ports = |e: &mut Enable| {
        let Addresses::Full { port_range, .. } = &mut e.internal.addresses else { panic!() };
        *port_range = 2;
    };
    assert_eq!(refused(two_ports), Refusal::Inconsistent);
}

/// Sections 4.3.3 and 8.3.1.
#[test]
fn a_wildcard_needs_the_capability() {
    let capabilities = Capabilities { flags: Capabilities::IPV4, ..Capabilities::firewall(Lifetime(60)) };
    let mut middlebox = Middlebox::new(capabilities);
    ask(&mut middlebox, START, se());
    assert_eq!(ask(&mut middlebox, START, per(60)), Body::Refusal(Refusal::WildcardNotSupported));
}

/// Section 8.5: a positive lifetime counts from the request, zero deletes.
#[test]
fn a_lifetime_change_extends_and_deletes() {
    let mut middlebox = open();
    let Granted { pid, .. } = granted(&ask(&mut middlebox, START, per(60)));
    let change = |seconds| Request::Plc { pid, lifetime: Lifetime(seconds) };
    let later = Time::from_millis(59_999);
    assert_eq!(ask(&mut middlebox, later, change(10)), Body::Reply(Reply::Plc { lifetime: Lifetime(10) }));
    let still_later = Time::from_millis(69_998);
    assert_eq!(ask(&mut middlebox, still_later, change(0)), Body::Reply(Reply::Prd));
    assert_eq!(ask(&mut middlebox, still_later, change(10)), Body::Refusal(Refusal::NoSuchRule));
}

/// Sections 8.1 and 8.6: a rule whose lifetime has passed does not exist.
#[test]
fn the_status_of_a_rule_counts_down_to_its_end() {
    let mut middlebox = open();
    let Granted { pid, .. } = granted(&ask(&mut middlebox, START, per(60)));
    let Body::Reply(Reply::Pes(rule)) = ask(&mut middlebox, Time::from_millis(20_500), Request::Prs { pid })
    else {
        panic!("no status");
    };
    assert_eq!((rule.pid, rule.lifetime), (pid, Lifetime(40)));
    assert_eq!((rule.internal, rule.external), (enable(60).internal, enable(60).external));
    let end = Time::from_millis(60_000);
    assert_eq!(ask(&mut middlebox, end, Request::Prs { pid }), Body::Refusal(Refusal::NoSuchRule));
}

/// Section 8.7: all rules in force, unless the reply would be too long.
#[test]
fn the_list_has_the_rules_in_force() {
    let mut middlebox = open();
    let pids: Vec<Pid> = (1..=4).map(|i| granted(&ask(&mut middlebox, START, per(10 * i))).pid).collect();
    ask(&mut middlebox, START, Request::Plc { pid: pids[2], lifetime: Lifetime(0) });
    let listed = ask(&mut middlebox, Time::from_millis(10_000), Request::Prl);
    assert_eq!(listed, Body::Reply(Reply::Prl(vec![pids[1], pids[3]])));
    for _ in 0..8192 {
        ask(&mut middlebox, START, per(60));
    }
    assert_eq!(ask(&mut middlebox, START, Request::Prl), Body::Refusal(Refusal::ReplyTooBig));
}

/// PIDs keep their rules when earlier rules have been forgotten.
#[test]
fn a_rule_keeps_its_pid_when_older_ones_end() {
    let mut middlebox = open();
    ask(&mut middlebox, START, per(1));
    let kept = granted(&ask(&mut middlebox, START, per(60)));
    let later = Time::from_millis(2_000);
    let newest = granted(&ask(&mut middlebox, later, per(60)));
    assert_eq!(ask(&mut middlebox, later, Request::Prl), Body::Reply(Reply::Prl(vec![kept.pid, newest.pid])));
}

/// Section 7.2: the version decides, and a session is opened once.
#[test]
fn a_session_opens_once_and_for_version_3_0() {
    let mut middlebox = Middlebox::new(Capabilities::firewall(Lifetime(60)));
    let version = Version { major: 2, minor: 9 };
    let old = Message::request(Tid(1), Request::Se { version, challenge: None });
    let answer = middlebox.handle(START, &old.to_bytes());
    assert_eq!(answer.messages[0].body, Body::VersionMismatch(Version::SIMCO_3_0));
    assert!(answer.close);
    assert_eq!(ask(&mut open(), START, se()), Body::Refusal(Refusal::NotApplicable));
}

/// Sections 7.2 and 4.3.2: we cannot authenticate ourselves.
#[test]
fn a_challenge_is_refused() {
    let mut middlebox = Middlebox::new(Capabilities::firewall(Lifetime(60)));
    let se = Request::Se { version: Version::SIMCO_3_0, challenge: Some(Challenge::new("prove it")) };
    assert_eq!(ask(&mut middlebox, START, se), Body::Refusal(Refusal::AuthenticationFailed));
}

/// Section 7.4: ST is answered, then the middlebox closes; section 6, step 4: without a session only SE counts.
#[test]
fn a_closed_session_takes_no_requests() {
    let mut middlebox = open();
    let answer = middlebox.handle(START, &Message::request(Tid(2), Request::St).to_bytes());
    assert_eq!((&answer.messages[0].body, answer.close), (&Body::Reply(Reply::St), true));
    let (list, malformed_status) = ([1, 0x22, 0, 0, 0, 0, 0, 3], [1, 0x21, 0, 0, 0, 0, 0, 4]);
    for request in [list, malformed_status] {
        let answer = middlebox.handle(START, &request);
        assert_eq!((&answer.messages[0].body, answer.close), (&Body::Refusal(Refusal::WrongSubType), true));
    }
}

/// RFC 4540 section 2 leaves these to others; our answer is 0x0340.
#[test]
fn transactions_that_we_do_not_serve_are_refused() {
    let Enable { internal, external, lifetime, .. } = enable(60);
    let pdr = Request::Pdr { internal, external, lifetime };
    for request in [pdr, Request::Pea { enable: enable(60), pid: Pid(1) }] {
        assert_eq!(ask(&mut open(), START, request), Body::Refusal(Refusal::NotSupported));
    }
    assert_eq!(ask(&mut open(), START, Request::Sa { token: None }), Body::Refusal(Refusal::NotApplicable));
}

/// Section 6, steps 1 and 3 to 5.
#[test]
fn format_errors_are_answered_in_the_order_of_section_6() {
    let answer = |octets: &[u8]| open().handle(START, octets);
    let refusal = |octets: &[u8]| {
        let answer = answer(octets);
        assert!(!answer.close, "the session is open");
        answer.messages[0].body.clone()
    };
    assert_eq!(refusal(&[2, 3, 0, 0, 0, 0, 0, 1]), Body::Refusal(Refusal::WrongBasicType));
    assert_eq!(refusal(&[2, 0x21, 0, 0, 0, 0, 0, 1]), Body::Refusal(Refusal::WrongBasicType));
    assert_eq!(refusal(&[9, 3, 0, 0, 0, 0, 0, 1]), Body::Refusal(Refusal::WrongBasicType));
    assert_eq!(refusal(&[1, 0x16, 0, 0, 0, 0, 0, 1]), Body::Refusal(Refusal::WrongSubType));
    assert_eq!(refusal(&[1, 0x21, 0, 0, 0, 0, 0, 1]), Body::Refusal(Refusal::BadlyFormed));
    let broken = answer(&[1, 0x21, 0, 9, 0, 0, 0, 1]);
    let bodies: Vec<_> = broken.messages.iter().map(|message| message.body.clone()).collect();
    assert_eq!(bodies, [Notification::Bfm, Notification::Ast].map(Body::Notification));
    assert!(broken.close && broken.messages[0].tid != broken.messages[1].tid);
}
