//! Sessions over real sockets.

use std::io::Write;
use std::net::TcpListener;

use crate::middlebox;
use hol_agent::{RuleEvent, Server, Session, SessionError, Transport, nonces, tuples};
use hol_base::Duration;
use hol_simco::{
    AgentError, Config, Direction, Enable, Lifetime, Message, Notification, PerParameters, Pid, Policy,
    PortParity, Refusal, Reply, Request, SharedSecret, SharedSecrets, Tid, Unauthenticated,
};

const SECRETS: &str = "caller = '0123456789abcdef'\nbackup = 'fedcba9876543210'";
const AGENTS: &str = "[agents.caller]\n[agents.backup]\naccess = ['caller']";

fn open_middlebox() -> middlebox::Server {
    middlebox::Server::start(
        Config::firewall(Lifetime(3600)),
        Policy::permissive(),
        Box::new(Unauthenticated),
    )
}

fn guarded_middlebox() -> middlebox::Server {
    let secrets = SharedSecrets::parse(SECRETS, nonces()).unwrap();
    let policy = Policy::parse(AGENTS).unwrap();
    middlebox::Server::start(Config::firewall(Lifetime(3600)), policy, Box::new(secrets))
}

fn server_at(address: std::net::SocketAddr) -> Server {
    address.to_string().parse().unwrap()
}

fn connect(middlebox: &middlebox::Server) -> Session {
    Session::open(&server_at(middlebox.address), Box::new(Unauthenticated)).unwrap()
}

fn connect_as(name: &str, secrets: &str, middlebox: &middlebox::Server) -> Result<Session, SessionError> {
    let secret = SharedSecret::parse(name, secrets, nonces()).unwrap();
    Session::open(&server_at(middlebox.address), Box::new(secret))
}

fn enable(port: u16) -> Request {
    let (internal, external) = (format!("10.0.0.5:{port}"), "198.51.100.7:6000");
    let (internal, external) = tuples(&internal.parse().unwrap(), &external.parse().unwrap(), 17);
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional };
    Request::Per { enable: Enable { parameters, internal, external, lifetime: Lifetime(300) }, gid: None }
}

fn granted(reply: &Reply) -> Pid {
    let Reply::Per(rule) = reply else { panic!("{reply:?}") };
    rule.pid
}

#[test]
fn a_session_sends_requests_and_closes() {
    let mut session = connect(&open_middlebox());
    assert_eq!(session.capabilities().max_lifetime, Lifetime(3600));
    let pid = granted(&session.ask(enable(5004)).unwrap());
    assert_eq!(session.ask(Request::Prl).unwrap(), Reply::Prl(vec![pid]));
    assert_eq!(session.ask(Request::Plc { pid, lifetime: Lifetime(0) }).unwrap(), Reply::Prd);
    session.close().unwrap();
}

#[test]
fn a_refused_request_leaves_the_session_open() {
    let mut session = connect(&open_middlebox());
    let error = session.ask(Request::Prs { pid: Pid(7) }).unwrap_err();
    assert!(matches!(error, SessionError::Refused(Refusal::NoSuchRule)), "{error}");
    assert!(error.to_string().contains("0x0343 Specified policy rule does not exist"), "{error}");
    session.ask(Request::Prl).unwrap();
}

#[test]
fn more_requests_than_the_window_can_be_pipelined() {
    let mut session = connect(&open_middlebox());
    let requests = 5 * Session::WINDOW as u16;
    let tids: Vec<Tid> = (1..=requests).map(|port| session.send(enable(port)).unwrap()).collect();
    let mut pids: Vec<Pid> =
        tids.iter().rev().map(|tid| granted(&session.answer(*tid).unwrap().unwrap())).collect();
    pids.sort();
    let Reply::Prl(mut listed) = session.ask(Request::Prl).unwrap() else { panic!("no list") };
    listed.sort();
    assert_eq!(pids, listed);
}

#[test]
#[should_panic(expected = "is still expected")]
fn an_answer_can_be_taken_only_once() {
    let mut session = connect(&open_middlebox());
    let tid = session.send(Request::Prl).unwrap();
    session.answer(tid).unwrap().unwrap();
    let _ = session.answer(tid);
}

/// RFC 4540 section 7.2: both sides authenticate.
#[test]
fn agents_authenticate_and_receive_events_of_accessible_rules() {
    let middlebox = guarded_middlebox();
    let mut caller = connect_as("caller", SECRETS, &middlebox).unwrap();
    let mut backup = connect_as("backup", SECRETS, &middlebox).unwrap();
    let pid = granted(&caller.ask(enable(5004)).unwrap());
    let timeout = Some(Duration::from_secs(10));
    let established = RuleEvent { pid, lifetime: Lifetime(300) };
    assert_eq!(backup.next_event(timeout).unwrap(), Some(established));
    middlebox.advance(Duration::from_secs(301));
    let ended = RuleEvent { pid, lifetime: Lifetime(0) };
    assert_eq!(backup.next_event(timeout).unwrap(), Some(ended));
    assert_eq!(caller.next_event(None).unwrap(), Some(ended), "the owner receives the end, too");
    assert_eq!(backup.next_event(Some(Duration::from_millis(1))).unwrap(), None);
}

#[test]
fn events_are_queued_while_answers_are_taken() {
    let middlebox = guarded_middlebox();
    let mut caller = connect_as("caller", SECRETS, &middlebox).unwrap();
    let mut backup = connect_as("backup", SECRETS, &middlebox).unwrap();
    let pid = granted(&caller.ask(enable(5004)).unwrap());
    assert_eq!(backup.ask(Request::Prl).unwrap(), Reply::Prl(vec![pid]));
    assert_eq!(backup.next_event(Some(Duration::ZERO)).unwrap().map(|event| event.pid), Some(pid));
}

#[test]
fn the_agent_detects_a_wrong_secret_first() {
    let middlebox = guarded_middlebox();
    let error = connect_as("caller", "caller = 'not the same secret'", &middlebox).unwrap_err();
    assert!(matches!(error, SessionError::Protocol(AgentError::NotAuthentic)), "{error}");
}

#[test]
fn an_agent_without_required_credentials_is_refused() {
    let error =
        Session::open(&server_at(guarded_middlebox().address), Box::new(Unauthenticated)).unwrap_err();
    let SessionError::Protocol(AgentError::Refused(refusal)) = error else { panic!("{error}") };
    assert_eq!(refusal, Refusal::AuthenticationFailed);
}

/// RFC 4540 section 7.5.
#[test]
fn a_shutdown_of_the_middlebox_ends_the_session() {
    let middlebox = open_middlebox();
    let mut session = connect(&middlebox);
    middlebox.end_sessions();
    let error = session.next_event(None).unwrap_err();
    assert!(matches!(error, SessionError::Ended), "{error}");
}

#[test]
fn a_refused_connection_and_a_timeout_are_distinguished() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = Server { timeout: Duration::from_millis(20), ..server_at(listener.local_addr().unwrap()) };
    let error = Session::open(&silent, Box::new(Unauthenticated)).unwrap_err();
    assert!(matches!(error, SessionError::Timeout(_)), "{error}");
    drop(listener);
    let error = Session::open(&silent, Box::new(Unauthenticated)).unwrap_err();
    assert!(matches!(error, SessionError::Connect { .. }), "{error}");
    let unknown = Server { host: "no-such-host.invalid".to_owned(), ..silent };
    let error = Session::open(&unknown, Box::new(Unauthenticated)).unwrap_err();
    assert!(matches!(error, SessionError::UnknownHost { .. }), "{error}");
}

#[test]
fn a_server_of_another_protocol_is_an_error_with_its_reason() {
    for (says, expected) in [
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "lost"),
        (Message::notification(Tid(1), Notification::Bfm).to_bytes().to_vec(), "badly formed"),
        (
            Message::reply(Tid(9), Reply::Prd).to_bytes().to_vec(),
            "an unexpected message with transaction ID 9",
        ),
        (vec![9; 0x0909 + 8], "unknown basic message type 0x09"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = server_at(listener.local_addr().unwrap());
        std::thread::spawn(move || listener.accept().unwrap().0.write_all(&says).unwrap());
        let error = Session::open(&server, Box::new(Unauthenticated)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn sctp_is_used_or_reported_as_missing() {
    let server = Server { transport: Transport::Sctp, ..server_at(open_middlebox().address) };
    let error = Session::open(&server, Box::new(Unauthenticated)).unwrap_err();
    assert!(matches!(error, SessionError::NoSctp | SessionError::Connect { .. }), "{error}");
}
