//! A full disk: changes that cannot be recorded are refused. The tests simulate it by a limit on the size of
//! files.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use crate::limit::{is_own_process, limit_files};
use hol_agent::{FlowEnd, Session, SessionError, tuples};
use hol_daemon::{Level, Log, Settings};
use hol_simco::{
    Direction, Enable, Lifetime, PerParameters, Pid, PortParity, Refusal, Reply, Request, Unauthenticated,
};

const UDP: u8 = 17;

/// Starts a daemon that records its rules there, and calls `agent` with a session.
fn serve<T>(settings: &Settings, agent: impl FnOnce(&mut Session) -> T) -> T {
    let (stop, stopped) = UnixStream::pair().unwrap();
    let mut daemon = settings.open(Log::new(Level::Error, Box::new(std::io::sink()))).unwrap();
    let server = daemon.addresses().next().unwrap().address.to_string().parse().unwrap();
    let daemon = thread::spawn(move || daemon.run(stopped, |_| {}));
    let mut session = Session::open(&server, Box::new(Unauthenticated)).unwrap();
    let result = agent(&mut session);
    session.close().unwrap();
    drop(stop);
    daemon.join().unwrap().unwrap();
    result
}

fn enable(session: &mut Session) -> Result<Pid, SessionError> {
    let (internal, external): (FlowEnd, FlowEnd) =
        ("10.0.0.5:5004".parse().unwrap(), "198.51.100.7:6000".parse().unwrap());
    let (internal, external) = tuples(&internal, &external, UDP);
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::Inbound };
    let enable = Enable { parameters, internal, external, lifetime: Lifetime(3600) };
    match session.ask(Request::Per { enable, gid: None })? {
        Reply::Per(rule) => Ok(rule.pid),
        other => panic!("PER is answered by {other:?}"),
    }
}

fn list(session: &mut Session) -> Vec<Pid> {
    match session.ask(Request::Prl) {
        Ok(Reply::Prl(pids)) => pids,
        other => panic!("PRL is answered by {other:?}"),
    }
}

fn settings(state: &Path) -> Settings {
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    Settings { listen, state: Some(state.into()), ..Settings::default() }
}

/// The first start creates the first file of the journal, and the clock.
#[test]
fn a_first_start_on_a_full_disk_serves_and_records_when_there_is_space() {
    if !is_own_process("full_disk::a_first_start_on_a_full_disk_serves_and_records_when_there_is_space") {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let settings = settings(state.path());
    limit_files(Some(0));
    let held = serve(&settings, |session| {
        for _ in 0..2 {
            let refused = enable(session);
            assert!(
                matches!(refused, Err(SessionError::Refused(Refusal::ConfigurationFailed))),
                "{refused:?}"
            );
        }
        assert_eq!(list(session), []);
        limit_files(None);
        let begun = enable(session).unwrap();
        assert_eq!(list(session), [begun]);
        begun
    });
    assert_eq!(serve(&settings, list), [held]);
}

#[test]
fn changes_are_refused_while_the_disk_is_full() {
    if !is_own_process("full_disk::changes_are_refused_while_the_disk_is_full") {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let settings = settings(state.path());
    let held = serve(&settings, |session| {
        limit_files(Some(2000));
        let mut begun: Vec<Pid> = std::iter::from_fn(|| enable(session).ok()).collect();
        assert!(begun.len() > 5, "{begun:?}");
        let refused = |answer: Result<Reply, SessionError>| {
            matches!(answer, Err(SessionError::Refused(Refusal::ConfigurationFailed)))
        };
        assert_eq!(list(session), begun, "queries need no space");
        let change = Request::Plc { pid: begun[0], lifetime: Lifetime(60) };
        assert!(refused(session.ask(change)), "a change needs space");
        limit_files(None);
        let delete = Request::Plc { pid: begun.remove(0), lifetime: Lifetime(0) };
        assert_eq!(session.ask(delete).unwrap(), Reply::Prd);
        begun.push(enable(session).unwrap());
        assert_eq!(list(session), begun);
        begun
    });
    assert_eq!(serve(&settings, list), held);

    // The start also succeeds if the clock is from an earlier boot.
    std::fs::write(state.path().join("clock"), "of-another-boot 42\n").unwrap();
    limit_files(Some(0));
    serve(&settings, |session| {
        assert_eq!(list(session), held);
        assert!(enable(session).is_err(), "nothing can be recorded");
        limit_files(None);
        let begun = enable(session).unwrap();
        assert!(list(session).contains(&begun));
        let kept = || std::fs::read_to_string(state.path().join("clock")).unwrap();
        while kept().starts_with("of-another-boot") {
            list(session);
        }
    });
}
