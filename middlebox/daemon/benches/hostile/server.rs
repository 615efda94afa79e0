//! The daemon as a child process, with a policy of two agents.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hol_agent::{Transport, crypto_provider};
use hol_base::Duration;
use hol_daemon::{Daemon, FilterKind, Level, Log, NatSettings, Settings, TlsSettings};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::certificates::Authority;
use crate::peer::SECRETS;

/// The argument with which this program acts as the daemon.
pub const ROLE: &str = "be-the-daemon";

const POLICY: &str = "
[agents.attacker]
may = ['reserve', 'enable', 'disable', 'lifetime', 'status', 'list']
access = 'all'
[agents.innocent]
[agents.watcher]
may = ['list']
access = 'all'
quota = { sessions = 5000 }
";

/// The address of the daemon's metrics; it is free, because the benchmark runs in its own network namespace.
const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9626);

/// The configuration of the daemon for an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    Firewall,
    /// The daemon is a NAT with 64 addresses.
    Nat,
    /// The daemon is a firewall that logs all requests into a pipe that nobody reads.
    UnreadAudit,
}

/// Runs the daemon until standard input is closed. The journal is in memory if possible, because the benchmark does not
/// measure the disk.
pub fn run(arguments: &[String]) {
    let is = |setup: Setup| arguments.contains(&format!("{setup:?}"));
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory } else { Path::new(".") };
    let directory = tempfile::tempdir_in(place).expect("a directory for the journal can be created");
    let [policy, secrets] = ["policy.toml", "secrets.toml"].map(|name| directory.path().join(name));
    fs::write(&policy, POLICY).expect("room");
    fs::write(&secrets, SECRETS).expect("room");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).expect("the file belongs to this user");
    let authority = Authority::new(directory.path(), "authority");
    let (certificate, key) = authority.certify("localhost");
    let agents = Some(authority.certificate);
    let settings = Settings {
        listen_tls: vec!["127.0.0.1:0".parse().expect("an address")],
        tls: TlsSettings { certificate: Some(certificate), key: Some(key), agents },
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        listen_sctp_udp: vec!["127.0.0.1:0".parse().expect("an address")],
        filter: FilterKind::Nftables,
        policy: Some(policy),
        secrets: Some(secrets),
        state: Some(directory.path().join("state")),
        audit: is(Setup::UnreadAudit),
        metrics: Some(METRICS),
        nat: if is(Setup::Nat) { nat() } else { NatSettings::default() },
        ..Settings::default()
    };
    let level = if is(Setup::UnreadAudit) { Level::Info } else { Level::Error };
    let log = Log::new(level, Box::new(std::io::stderr()));
    let mut daemon = settings.open(log).expect("the daemon may change this network namespace");
    let print_address = |daemon: &Daemon| daemon.addresses().for_each(|at| println!("{}", at.address));
    daemon.run(std::io::stdin(), print_address).expect("the daemon serves");
}

fn nat() -> NatSettings {
    let outside = (1..=64).map(|host| IpAddr::from([192, 0, 2, host])).collect();
    NatSettings { outside, ..NatSettings::default() }
}

/// The processor times of a thread since its start: proc(5), `schedstat`.
#[derive(Debug, Clone, Copy)]
pub struct ThreadTimes {
    /// Time that the thread has spent on a processor, in user and kernel mode.
    pub processor: Duration,
    /// Time that the thread has waited for a processor.
    pub delay: Duration,
}

impl ThreadTimes {
    /// Returns the times of this thread, plus those of the thread that runs its association over UDP, if there is one.
    pub fn of_agent_threads() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|task| task.path());
        let is_association = |task: &PathBuf| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == "sctp-udp")
        };
        let associations = tasks.filter(is_association).map(|task| Self::read(task.join("schedstat")));
        associations.fold(Self::read("/proc/thread-self/schedstat"), |sum, clocks| Self {
            processor: sum.processor + clocks.processor,
            delay: sum.delay + clocks.delay,
        })
    }

    fn read(path: impl AsRef<Path>) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut nanos = text.split_whitespace().map(|nanos| nanos.parse().unwrap_or_default());
        let mut next = || Duration::from_nanos(nanos.next().unwrap_or_default());
        Self { processor: next(), delay: next() }
    }
}

/// A daemon that runs in another process.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// The address at which the daemon accepts TLS.
    pub protected: SocketAddr,
    /// The address at which the daemon accepts SCTP over UDP.
    pub over_udp: SocketAddr,
}

impl Server {
    pub fn start(setup: Setup) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        let command =
            command.arg(ROLE).arg(format!("{setup:?}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let errors = if setup == Setup::UnreadAudit { Stdio::piped() } else { Stdio::inherit() };
        let mut child = command.stderr(errors).spawn().expect("the daemon starts");
        let out = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        let mut lines = out.lines().map(|line| line.expect("the daemon prints its address"));
        let mut next = || lines.next().expect("three lines").parse().expect("an address");
        let (address, protected, over_udp) = (next(), next(), next());
        Self { child, address, protected, over_udp }
    }

    /// Returns how to connect to the daemon over TCP or SCTP over UDP.
    pub fn address_for_agents(&self, transport: Transport) -> hol_agent::Server {
        let address = if transport == Transport::Tcp { self.address } else { self.over_udp };
        let server = address.to_string().parse().expect("the address can be parsed as a server");
        hol_agent::Server { transport, timeout: Duration::from_secs(60), ..server }
    }

    /// Returns the first message of a TLS handshake, which can be sent again for further handshakes.
    pub fn client_hello(&self) -> Vec<u8> {
        let builder =
            ClientConfig::builder_with_provider(crypto_provider()).with_safe_default_protocol_versions();
        let config = builder.expect("ring has them").with_root_certificates(RootCertStore::empty());
        let name = "localhost".try_into().expect("a name");
        let client = ClientConnection::new(config.with_no_client_auth().into(), name);
        let mut octets = Vec::new();
        client.expect("a client").write_tls(&mut octets).expect("there is room");
        octets
    }

    /// Returns a function that reads the processor times of the daemon's event loop.
    pub fn clocks(&self) -> impl Fn() -> ThreadTimes + Send + 'static {
        let path = format!("/proc/{}/schedstat", self.child.id());
        move || ThreadTimes::read(&path)
    }

    /// Returns the counts in one of the daemon's histograms: the number of values beyond `bound`, and of all values.
    pub fn count_beyond(&self, histogram: &str, bound: &str) -> (u64, u64) {
        let mut reader = TcpStream::connect(METRICS).expect("the daemon has metrics");
        reader.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the daemon reads");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("metrics");
        let number = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the metric exists");
            line.trim().parse().expect("a number")
        };
        let all = number(&format!("{histogram}_count"));
        (all - number(&format!("{histogram}_bucket{{le=\"{bound}\"}}")), all)
    }

    /// Returns the maximum resident memory of the daemon in octets: proc(5), `VmHWM`.
    pub fn peak_memory(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the daemon runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The daemon may be busy with an attack, so it is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let table = ["delete", "table", "inet", "simco"];
        let _ = Command::new("nft").args(table).status();
    }
}
