//! The middlebox and its agent over SCTP in UDP datagrams, as users start them. RFC 6951.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hol_agent::{Server, Session, SessionError, Transport};
use hol_base::Duration;
use hol_simco::{Reply, Request, Unauthenticated};

use crate::program::{self, BIN};

/// A middlebox, which is killed when the test ends, and its address for SCTP over UDP.
struct Middlebox(Child, String);

impl Middlebox {
    fn start(directory: &Path, listen: &str) -> Self {
        let mut serve = Command::new(BIN);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--listen-sctp-udp", listen]).current_dir(directory);
        let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address =
            lines.find_map(|line| Some(line.strip_prefix("listening on sctp-udp ")?.to_owned())).unwrap();
        Self(child, address)
    }

    /// Returns the output of an agent's command.
    fn ask(&self, directory: &Path, line: &str) -> String {
        let over = ["--over", "sctp-udp", "--server", &self.1];
        program::ok(directory, &line.split(' ').chain(over).collect::<Vec<_>>())
    }
}

impl Drop for Middlebox {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn an_agent_changes_rules_over_either_version_of_ip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let middlebox = Middlebox::start(path, listen);
        let enabled = middlebox.ask(path, "enable 10.0.0.5:5004 198.51.100.7:6000 --udp --lifetime 5m");
        assert!(enabled.contains("10.0.0.5:5004"), "{enabled}");
        assert_eq!(middlebox.ask(path, "list").lines().count(), 2);
        let disabled = middlebox.ask(path, "disable 10.0.0.5:5004 198.51.100.7:6000 --udp --lifetime 5m");
        assert!(disabled.contains("ended"), "{disabled}");
        let rules = (0..1000).map(|port| format!("enable 10.0.0.6:{} any --udp\n", 1024 + port));
        fs::write(path.join("rules"), rules.collect::<String>()).unwrap();
        assert_eq!(
            middlebox.ask(path, "batch rules").lines().filter(|line| line.contains("10.0.0.6")).count(),
            1000
        );
        assert_eq!(middlebox.ask(path, "list").lines().count(), 1 + 1 + 1000);
    }
}

/// The middlebox has no session for an agent without its secret, as over TCP.
#[test]
fn agents_authenticate() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("secrets.toml"), "call-server = '0123456789abcdef'").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(path.join("secrets.toml"), mode).unwrap();
    let mut serve = Command::new(BIN);
    serve.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--listen-sctp-udp",
        "0.0.0.0:0",
        "--secrets",
        "secrets.toml",
    ]);
    let mut child = serve.current_dir(path).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let port = lines.find_map(|line| Some(line.strip_prefix("listening on sctp-udp 0.0.0.0:")?.to_owned()));
    let middlebox = Middlebox(child, format!("127.0.0.1:{}", port.unwrap()));
    assert_eq!(middlebox.ask(path, "list --secret secrets.toml --name call-server"), "");
    let (code, complaint) = program::failure(path, &["list", "--over", "sctp-udp", "--server", &middlebox.1]);
    assert!(code == 3 && complaint.contains("refused the session"), "{complaint}");
}

impl Middlebox {
    fn server(&self) -> Server {
        let timeout = Duration::from_secs(3);
        Server { transport: Transport::SctpOverUdp, timeout, ..self.1.parse().unwrap() }
    }

    fn session(&self) -> Session {
        Session::open(&self.server(), Box::new(Unauthenticated)).unwrap()
    }
}

/// RFC 4540 section 7.5: AST is delivered before the middlebox ends.
#[test]
fn a_session_ends_with_its_middlebox() {
    let directory = tempfile::tempdir().unwrap();
    let mut middlebox = Middlebox::start(directory.path(), "127.0.0.1:0");
    let mut session = middlebox.session();
    assert_eq!(session.ask(Request::Prl).unwrap(), Reply::Prl(Vec::new()));
    let status = Command::new("kill").arg(middlebox.0.id().to_string()).status().unwrap();
    assert!(status.success());
    let ended = session.next_event(Some(Duration::from_secs(10)));
    assert!(matches!(ended, Err(SessionError::Ended)), "{ended:?}");
    assert!(middlebox.0.wait().unwrap().success(), "the middlebox ends normally");
    middlebox = Middlebox::start(directory.path(), "127.0.0.1:0");
    assert_eq!(middlebox.session().ask(Request::Prl).unwrap(), Reply::Prl(Vec::new()));
}

/// RFC 9260 section 8.4: a middlebox that has restarted answers with ABORT, so that the agent need not wait.
#[test]
fn a_middlebox_that_has_restarted_aborts_former_associations() {
    let directory = tempfile::tempdir().unwrap();
    let mut middlebox = Middlebox::start(directory.path(), "127.0.0.1:0");
    let [mut waiting, mut session] = [middlebox.session(), middlebox.session()];
    middlebox.0.kill().unwrap();
    middlebox.0.wait().unwrap();
    let answer = waiting.ask(Request::Prl);
    assert!(matches!(answer, Err(SessionError::Timeout(_))), "{answer:?}");
    let address = middlebox.1.clone();
    let _restarted = Middlebox::start(directory.path(), &address);
    let answer = session.ask(Request::Prl).unwrap_err();
    assert!(matches!(answer, SessionError::Lost(_)), "{answer}");
    assert!(answer.to_string().contains("abort"), "{answer}");
}

/// Nobody listens: ICMP says so.
#[test]
fn a_missing_middlebox_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (code, complaint) =
        program::failure(directory.path(), &["list", "--over", "sctp-udp", "--server", &free]);
    assert_eq!(code, 3);
    assert!(
        complaint.contains("SCTP over UDP") && complaint.contains("check that the middlebox runs"),
        "{complaint}"
    );
}

/// SCTP over UDP is the cure for a kernel without SCTP.
#[test]
fn a_kernel_without_sctp_is_reported_with_the_cure() {
    let directory = tempfile::tempdir().unwrap();
    if socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, Some(socket2::Protocol::SCTP))
        .is_ok()
    {
        return;
    }
    let (code, complaint) = program::failure(directory.path(), &["serve", "--listen-sctp", "127.0.0.1:0"]);
    assert!(code == 1 && complaint.contains("listen-sctp-udp"), "{complaint}");
    let checked = program::ok(directory.path(), &["serve", "--listen-sctp", "127.0.0.1:0", "--check"]);
    assert!(
        checked.starts_with("warning: listen-sctp: ") && checked.contains("listen-sctp-udp"),
        "{checked}"
    );
    let (code, complaint) = program::failure(directory.path(), &["list", "--over", "sctp"]);
    assert!(code == 3 && complaint.contains("--over sctp-udp"), "{complaint}");
}
