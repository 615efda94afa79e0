//! Sessions: SE, SA, ST, AST. RFC 4540 section 7.

use crate::world::*;
use hol_simco::*;

const SECRETS: &str = "alice = 'a secret of alice'\nmallory = 'a secret of mallory'";

/// Returns a middlebox where agents must authenticate; `alice` has rights, `mallory` is in no policy.
fn guarded() -> World {
    let policy = Policy::parse("[agents.alice]").unwrap();
    let secrets = SharedSecrets::parse(SECRETS, nonces(100)).unwrap();
    World::new(Middlebox::new(Config::firewall(HOUR), policy, Box::new(secrets)).unwrap())
}

fn nonces(mut next: u8) -> Nonces {
    Box::new(move || {
        next += 1;
        [next; 32]
    })
}

fn agent(name: &str, secret: &str) -> Agent {
    Agent::new(Box::new(SharedSecret::new(name, Secret::new(name, secret.as_bytes()).unwrap(), nonces(0))))
}

fn plain(world: &mut World) -> SessionId {
    world.connect(ConnectionInfo::plain(Framing::Messages))
}

/// Passes a message to the middlebox, and its answers to the agent.
fn exchange(
    world: &mut World,
    id: SessionId,
    agent: &mut Agent,
    message: &Message,
) -> Result<AgentEvent, AgentError> {
    let Message { tid, body: Body::Request(request) } = message.clone() else { panic!("{message:?}") };
    let body = world.ask_with(START, id, tid, request);
    agent.receive(&Message { tid, body }.to_bytes())
}

/// Sections 7.2 and 7.3, figure 41: CLOSED, NOAUTH, OPEN, with authentication in both directions.
#[test]
fn agent_and_middlebox_authenticate_each_other() {
    let (mut world, mut alice) = (guarded(), agent("alice", "a secret of alice"));
    let id = plain(&mut world);
    let se = alice.establish().unwrap();
    let AgentEvent::Authenticate(sa) = exchange(&mut world, id, &mut alice, &se).unwrap() else {
        panic!("no SA")
    };
    let opened = exchange(&mut world, id, &mut alice, &sa).unwrap();
    assert_eq!(opened, AgentEvent::Open(Capabilities::firewall(HOUR)));
    let per = alice.ask(per(60)).unwrap();
    let granted = exchange(&mut world, id, &mut alice, &per).unwrap();
    assert!(matches!(granted, AgentEvent::Answer(tid, Ok(Reply::Per(_))) if tid == per.tid));
    let st = alice.terminate().unwrap();
    assert_eq!(exchange(&mut world, id, &mut alice, &st), Ok(AgentEvent::Closed));
}

/// Section 7.3: the agent authenticates, but has no rights.
#[test]
fn an_agent_without_authorization_is_refused_after_its_proof() {
    let (mut world, mut mallory) = (guarded(), agent("mallory", "a secret of mallory"));
    let id = plain(&mut world);
    let se = mallory.establish().unwrap();
    let AgentEvent::Authenticate(sa) = exchange(&mut world, id, &mut mallory, &se).unwrap() else {
        panic!("no SA")
    };
    let refused = Err(AgentError::Refused(Refusal::NoAuthorization));
    assert_eq!(exchange(&mut world, id, &mut mallory, &sa), refused);
    assert_eq!(world.take_messages(id), [None], "the connection is closed");
}

/// Section 7.3: no token, an empty one, and a wrong one.
#[test]
fn an_invalid_token_is_refused() {
    for token in [None, Some(Token::empty()), Some(Token::new("guess"))] {
        let mut world = guarded();
        let id = plain(&mut world);
        assert!(matches!(
            world.ask(START, id, se()),
            Body::Reply(Reply::Sa { challenge: Some(_), token: None })
        ));
        assert_eq!(world.refused(id, Request::Sa { token }), Refusal::AuthenticationFailed);
        assert_eq!(world.take_messages(id), [None]);
    }
}

/// Section 7.2: a middlebox that cannot authenticate sends an empty token; the agent decides whether to accept it.
#[test]
fn a_middlebox_without_secrets_answers_a_challenge_with_an_empty_token() {
    let mut world = World::new(Middlebox::firewall(HOUR));
    let id = plain(&mut world);
    let challenge = Some(Challenge::new("who are you?"));
    let reply = world.ask(START, id, Request::Se { version: Version::SIMCO_3_0, challenge });
    assert_eq!(reply, Body::Reply(Reply::Sa { challenge: None, token: Some(Token::empty()) }));
    let opened = world.ask(START, id, Request::Sa { token: None });
    assert!(matches!(opened, Body::Reply(Reply::Se { .. })));
}

/// An agent that requests authentication opens no session without it.
#[test]
fn an_agent_refuses_an_unauthenticated_middlebox() {
    let mut alice = agent("alice", "a secret of alice");
    let Message { tid, .. } = alice.establish().unwrap();
    let se = Reply::Se { capabilities: Capabilities::firewall(HOUR) };
    assert_eq!(alice.receive(&Message::reply(tid, se).to_bytes()), Err(AgentError::NotAuthentic));
    for token in [None, Some(Token::empty()), Some(Token::new([7; 32].to_vec()))] {
        let mut alice = agent("alice", "a secret of alice");
        let Message { tid, .. } = alice.establish().unwrap();
        let sa = Reply::Sa { challenge: Some(Challenge::new("x")), token };
        assert_eq!(alice.receive(&Message::reply(tid, sa).to_bytes()), Err(AgentError::NotAuthentic));
    }
}

/// Section 7.2, in its order: state, resources, transport, security, version, authorization.
#[test]
fn se_is_checked_in_the_order_of_the_rfc() {
    let secure_only = format!("secure-only = true\n{POLICY}");
    let config = Config { max_sessions: 1, ..Config::firewall(HOUR) };
    let policy = Policy::parse(&secure_only).unwrap();
    let mut world = World::new(Middlebox::new(config, policy, Box::new(Unauthenticated)).unwrap());
    let old = Request::Se { version: Version { major: 2, minor: 9 }, challenge: None };
    let mut underlay = ConnectionInfo {
        framing: Framing::Messages,
        is_acceptable: false,
        is_secure: false,
        agent: Some("nobody".into()),
    };
    let answer = |world: &mut World, underlay: &ConnectionInfo, request: &Request| {
        let id = world.connect(underlay.clone());
        let body = world.ask(START, id, request.clone());
        (body, world.take_messages(id))
    };
    let closing = |refusal| (Body::Refusal(refusal), vec![None]);
    assert_eq!(answer(&mut world, &underlay, &old), closing(Refusal::TransportProblem));
    underlay.is_acceptable = true;
    assert_eq!(answer(&mut world, &underlay, &old), closing(Refusal::InsufficientSecurity));
    underlay.is_secure = true;
    let mismatch = (Body::VersionMismatch(Version::SIMCO_3_0), vec![None]);
    assert_eq!(answer(&mut world, &underlay, &old), mismatch);
    assert_eq!(answer(&mut world, &underlay, &se()), closing(Refusal::NoAuthorization));
    underlay.agent = Some("alice".into());
    assert!(
        matches!(answer(&mut world, &underlay, &se()), (Body::Reply(Reply::Se { .. }), open) if open.is_empty())
    );
    underlay.is_acceptable = false;
    assert_eq!(answer(&mut world, &underlay, &old), closing(Refusal::LackOfResources));
}

/// Sections 7.2 and 7.3: SE and SA out of place leave the session as it is.
#[test]
fn se_and_sa_are_not_applicable_to_an_open_session() {
    let (mut world, id) = World::firewall();
    for request in [se(), Request::Sa { token: None }] {
        assert_eq!(world.refused(id, request), Refusal::NotApplicable);
    }
    world.granted(START, id, per(60));
}

/// Figure 41: in NOAUTH SE is not applicable and requests about rules are not accepted; ST ends it.
#[test]
fn a_session_without_authentication_accepts_no_rules() {
    let mut world = guarded();
    let id = plain(&mut world);
    world.ask(START, id, se());
    for request in [se(), per(60), Request::Prl] {
        assert_eq!(world.refused(id, request), Refusal::NotApplicable);
    }
    assert_eq!(world.ask(START, id, Request::St), Body::Reply(Reply::St));
    assert_eq!(world.take_messages(id), [None]);
}

/// Section 7.4: messages after ST are ignored.
#[test]
fn requests_behind_st_are_ignored() {
    let mut world = World::new(Middlebox::firewall(HOUR));
    let id = world.connect(ConnectionInfo::plain(Framing::Stream));
    let messages = [se(), Request::St, per(60), Request::St];
    let stream: Vec<u8> =
        messages.iter().flat_map(|r| Message::request(Tid(1), r.clone()).to_bytes()).collect();
    world.receive(START, id, &stream);
    let received = world.take_messages(id);
    assert!(matches!(
        received[..],
        [Some(Body::Reply(Reply::Se { .. })), Some(Body::Reply(Reply::St)), None]
    ));
    assert!(world.changes.is_empty());
}

/// Section 7.5: replies first, then AST, then nothing. Rules stay in force (RFC 3989 section 2.2.3).
#[test]
fn the_middlebox_ends_its_sessions_with_ast() {
    let (mut world, first) = World::firewall();
    let silent = plain(&mut world);
    let GrantedRule { pid, .. } = world.granted(START, first, per(60));
    world.middlebox.receive(START, first, Message::request(Tid(9), per(60)).to_bytes(), &mut world.batch);
    world.middlebox.end_sessions(&mut world.batch);
    world.release();
    let received = world.take_messages(first);
    let ast = Body::Notification(Notification::Ast);
    assert!(matches!(&received[..], [Some(Body::Reply(Reply::Per(_))), Some(last), None] if *last == ast));
    assert_eq!(world.take_messages(silent), [None], "there was no session to end");
    assert!(world.middlebox.rules(at(1)).any(|rule| rule.pid == pid));
}

/// RFC 3989 section 2.2.4: a lost connection ends the session; its rules stay, and another session finds them.
#[test]
fn rules_survive_the_connection_of_their_agent() {
    let (mut world, first) = World::firewall();
    let GrantedRule { pid, .. } = world.granted(START, first, per(60));
    world.middlebox.disconnect(first);
    world.receive(START, first, &Message::request(Tid(9), Request::Prl).to_bytes());
    assert!(world.take_messages(first).is_empty());
    let second = world.open(None);
    assert_eq!(world.ask(START, second, Request::Prl), Body::Reply(Reply::Prl(vec![pid])));
}
