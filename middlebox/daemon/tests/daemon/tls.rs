//! Sessions over TLS: certificates identify agents, and a policy that requires security accepts the sessions.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use crate::certificates::Authority;
use crate::log_lines::LogLines;
use hol_agent::{FlowEnd, Server, Session, SessionError, Tls, nonces, tuples};
use hol_daemon::{Level, Log, Settings, TlsSettings};
use hol_simco::{
    AgentError, Credentials, Direction, Enable, Lifetime, Owner, PerParameters, Pid, PortParity, Refusal,
    Reply, Request, SharedSecret, Unauthenticated,
};

/// A directory, an authority that issues certificates in it, and settings that listen only for TLS.
struct TestSetup {
    directory: tempfile::TempDir,
    authority: Authority,
    settings: Settings,
}

impl TestSetup {
    fn new(policy: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new(directory.path(), "authority");
        let (certificate, key) = authority.certify("localhost");
        fs::write(directory.path().join("policy.toml"), policy).unwrap();
        let agents = Some(authority.certificate.clone());
        let any = "127.0.0.1:0".parse().unwrap();
        let settings = Settings {
            listen: Vec::new(),
            listen_tls: vec![any],
            tls: TlsSettings { certificate: Some(certificate), key: Some(key), agents },
            policy: Some(directory.path().join("policy.toml")),
            ..Settings::default()
        };
        Self { directory, authority, settings }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a daemon while `agents` use its addresses; also returns its log.
    fn serve<T>(&self, agents: impl FnOnce(&[String]) -> T) -> (T, String) {
        let log = LogLines::default();
        let mut daemon = self.settings.open(Log::new(Level::Info, Box::new(log.clone()))).unwrap();
        let addresses: Vec<String> =
            daemon.addresses().map(|at| format!("localhost:{}", at.address.port())).collect();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let daemon = thread::spawn(move || daemon.run(stopped, |_| {}));
        let result = agents(&addresses);
        drop(stop);
        daemon.join().unwrap().unwrap();
        (result, log.text())
    }

    fn tls(&self, name: &str) -> Tls {
        let (certificate, key) = self.authority.certify(name);
        Tls::read(&self.authority.certificate, Some((&certificate, &key))).unwrap()
    }
}

fn open(address: &str, tls: Option<Tls>) -> Result<Session, SessionError> {
    open_with(address, tls, Box::new(Unauthenticated))
}

fn open_with(
    address: &str,
    tls: Option<Tls>,
    credentials: Box<dyn Credentials>,
) -> Result<Session, SessionError> {
    Session::open(&Server { tls, ..address.parse().unwrap() }, credentials)
}

fn refusal(session: Result<Session, SessionError>) -> Refusal {
    match session {
        Err(SessionError::Protocol(AgentError::Refused(refusal))) => refusal,
        other => panic!("{other:?}"),
    }
}

fn enable(port: u16) -> Request {
    let internal: FlowEnd = format!("10.0.0.5:{port}").parse().unwrap();
    let (internal, external) = tuples(&internal, &"198.51.100.7:6000".parse().unwrap(), 17);
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::Inbound };
    Request::Per { enable: Enable { parameters, internal, external, lifetime: Lifetime(3600) }, gid: None }
}

/// RFC 4540 sections 7.2 and 11.
#[test]
fn a_certificate_identifies_the_agent_of_a_secure_session() {
    let mut setup = TestSetup::new("secure-only = true\n[agents.call-server]\n[agents.other]\n");
    setup.settings.listen = vec!["127.0.0.1:0".parse().unwrap()];
    setup.serve(|addresses| {
        let [plain, protected] = addresses else { panic!("{addresses:?}") };
        assert_eq!(refusal(open(plain, None)), Refusal::InsufficientSecurity);
        let mut session = open(protected, Some(setup.tls("call-server"))).unwrap();
        let Reply::Per(rule) = session.ask(enable(5004)).unwrap() else { panic!("no PER reply") };
        let Reply::Pes(status) = session.ask(Request::Prs { pid: rule.pid }).unwrap() else {
            panic!("no PES")
        };
        assert_eq!(status.owner, Owner::new("call-server"));
        let mut other = open(protected, Some(setup.tls("other"))).unwrap();
        let denied = other.ask(Request::Prs { pid: rule.pid });
        assert!(matches!(denied, Err(SessionError::Refused(Refusal::RuleNotAuthorized))), "{denied:?}");
        assert_eq!(refusal(open(protected, Some(setup.tls("stranger")))), Refusal::NoAuthorization);
        session.close().unwrap();
    });
}

/// The reply has more than one TLS record, and a thousand replies follow.
#[test]
fn a_list_of_five_thousand_rules_arrives_completely() {
    let setup = TestSetup::new("[agents.call-server]");
    setup.serve(|addresses| {
        let mut session = open(&addresses[0], Some(setup.tls("call-server"))).unwrap();
        let tids: Vec<_> = (1..=5000).map(|port| session.send(enable(port)).unwrap()).collect();
        for tid in tids {
            assert!(session.answer(tid).unwrap().is_ok());
        }
        let Reply::Prl(pids) = session.ask(Request::Prl).unwrap() else { panic!("no PRL reply") };
        assert_eq!(pids, (1..=5000).map(Pid).collect::<Vec<_>>());
        session.close().unwrap();
    });
}

#[test]
fn a_certificate_of_another_authority_is_refused_and_logged() {
    let setup = TestSetup::new("[agents.call-server]");
    let others = tempfile::tempdir().unwrap();
    let other = Authority::new(others.path(), "other");
    let (certificate, key) = other.certify("call-server");
    let ((), log) = setup.serve(|addresses| {
        let with = |authority: &Path, identity| {
            let tls = Tls::read(authority, identity).unwrap();
            open(&addresses[0], Some(tls)).unwrap_err().to_string()
        };
        let ours = &setup.authority.certificate;
        let false_agent = with(ours, Some((&certificate, &key)));
        assert!(false_agent.contains("the middlebox sent this alert"), "{false_agent}");
        let nobody = with(ours, None);
        assert!(nobody.contains("check whether it requires a certificate"), "{nobody}");
        let false_middlebox = with(&other.certificate, None);
        assert!(
            false_middlebox.contains("check that the certificate names this middlebox"),
            "{false_middlebox}"
        );
        let by_address = addresses[0].replace("localhost", "127.0.0.1");
        let misnamed = open(&by_address, Some(setup.tls("call-server"))).unwrap_err().to_string();
        assert!(misnamed.contains("the certificate names this middlebox"), "{misnamed}");
        let mut browser = TcpStream::connect(&*addresses[0]).unwrap();
        browser.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert!(browser.read_to_end(&mut Vec::new()).is_ok());
        assert!(open(&addresses[0], Some(setup.tls("call-server"))).is_ok(), "others are served");
    });
    assert!(log.contains("event=handshake-refused peer=127.0.0.1"), "{log}");
}

/// The certificate contains an address and no name; a secret must not replace the name.
#[test]
fn a_certificate_without_a_dns_name_is_refused_with_advice_in_the_log() {
    let mut setup = TestSetup::new("[agents.call-server]");
    let secrets = setup.path().join("secrets.toml");
    fs::write(&secrets, "call-server = 'a secret of 16 octets'").unwrap();
    fs::set_permissions(&secrets, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    setup.settings.secrets = Some(secrets);
    let ((), log) = setup.serve(|addresses| {
        let secret = SharedSecret::parse("call-server", "call-server = 'a secret of 16 octets'", nonces());
        open_with(&addresses[0], Some(setup.tls("192.0.2.1")), Box::new(secret.unwrap())).unwrap_err();
    });
    assert!(log.contains("event=handshake-refused") && log.contains("subjectAltName=DNS:AGENT"), "{log}");
}

#[test]
fn agents_without_certificates_authenticate_by_secrets() {
    const SECRETS: &str = "call-server = '0123456789abcdef'";
    let mut setup = TestSetup::new("secure-only = true\n[agents.call-server]");
    let secrets = setup.path().join("secrets.toml");
    fs::write(&secrets, SECRETS).unwrap();
    fs::set_permissions(&secrets, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    setup.settings.secrets = Some(secrets);
    setup.settings.tls.agents = None;
    setup.serve(|addresses| {
        let tls = Tls::read(&setup.authority.certificate, None).unwrap();
        let secret = SharedSecret::parse("call-server", SECRETS, nonces()).unwrap();
        assert!(open_with(&addresses[0], Some(tls.clone()), Box::new(secret)).is_ok());
        assert_eq!(refusal(open(&addresses[0], Some(tls))), Refusal::AuthenticationFailed);
    });
}

#[test]
fn settings_that_cannot_work_are_refused_with_advice() {
    let complaint = |change: fn(&mut Settings)| {
        let mut setup = TestSetup::new("[agents.call-server]");
        change(&mut setup.settings);
        setup.settings.middlebox().unwrap_err().to_string()
    };
    let no_key = complaint(|settings| settings.tls.key = None);
    assert!(no_key.contains("`certificate` and `key`"), "{no_key}");
    let no_policy = complaint(|settings| settings.policy = None);
    assert!(no_policy.contains("[agents.NAME]"), "{no_policy}");
    let swapped = complaint(|settings| settings.tls.key = settings.tls.certificate.clone());
    assert!(swapped.contains("chmod 600"), "{swapped}");
    let mismatch = complaint(|settings| settings.tls.certificate = settings.tls.agents.clone());
    assert!(mismatch.contains("check that the key belongs to the first certificate"), "{mismatch}");
    let unbound = complaint(|settings| settings.protected.listen = vec!["127.0.0.1:0".parse().unwrap()]);
    assert!(unbound.contains("WireGuard or IPsec"), "{unbound}");
}
