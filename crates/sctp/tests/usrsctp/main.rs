//! Our SCTP and usrsctp's, which nobody here wrote, over UDP on loopback, whose packets are lost as told: who is server and who client, what
//! is sent, who ends it and how. Without `libusrsctp-dev` and a C compiler the test says so and passes, unless `HOL_REQUIRE_USRSCTP` is set.

#[path = "../talks/mod.rs"]
mod talks;
mod wire;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hol_base::Seed;
use talks::{Done, End, Ended, LOSSES, SIDES, Side, TALKS, Talk, Terms};
use wire::Wire;

/// Mostly they wait.
const SIDE_BY_SIDE: usize = 8;
/// No process is made while ports are tried: until it runs its program it would hold them, too.
static PORTS_ARE_TRIED: Mutex<()> = Mutex::new(());

/// How the peer's program calls it.
const fn word(end: End) -> &'static str {
    match end {
        End::ClientCloses => "client-closes",
        End::ClientAborts => "client-aborts",
        End::ServerCloses => "server-closes",
        End::ServerAborts => "server-aborts",
    }
}

/// usrsctp as a process.
struct Peer {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Peer {
    fn start(program: &Path, side: Side, [own, peer]: [u16; 2], talk: &Talk, terms: Terms) -> Self {
        let retransmissions = talk.retransmissions.map_or(-1, i64::from);
        let nobody_tries = PORTS_ARE_TRIED.lock().unwrap();
        let mut child = Command::new(program)
            .args([side.name(), &own.to_string(), &peer.to_string(), &talk.messages.to_string()])
            .args([&talk.size.to_string(), &talk.streams.to_string(), &u8::from(talk.unordered).to_string()])
            .args([&retransmissions.to_string(), &u8::from(talk.echo).to_string(), word(talk.end)])
            .args([&u8::from(terms.interleaving).to_string(), &talk.resets.unwrap_or(0).to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(nobody_tries);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        if side == Side::Server {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
        }
        Self { child, out }
    }

    /// What came of it there.
    fn done(&mut self) -> Option<Done> {
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["got", got, "wrong", wrong, "resets", own, peer, "ended", ended] = words[..] else {
            return None;
        };
        let ended = match ended {
            "closed" => Some(Ended::Closed),
            "reset" => Some(Ended::Reset),
            "aborted" => Some(Ended::Aborted),
            _ => None,
        };
        let resets = [own, peer].map(|count| count.parse().unwrap());
        Some(Done { got: got.parse().unwrap(), wrong: wrong.parse().unwrap(), resets, ended })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of the peer, if it can be made here.
fn peer_program(dir: &Path) -> Option<PathBuf> {
    let program = dir.join("peer");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/usrsctp/peer.c");
    let made = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .args(["-lusrsctp", "-lpthread"])
        .output();
    let said = match made {
        Ok(made) if made.status.success() => return Some(program),
        Ok(made) => String::from_utf8_lossy(&made.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    assert!(std::env::var_os("HOL_REQUIRE_USRSCTP").is_none(), "the peer cannot be made: {said}");
    eprintln!("SKIPPED, for there is no usrsctp (apt-get install libusrsctp-dev gcc): {said}");
    None
}

/// A port of UDP that is free, and stays so for who asks the kernel for any.
fn free_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let port =
            20_000 + (std::process::id() as usize * 97 + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if UdpSocket::bind(("127.0.0.1", port as u16)).is_ok() {
            return port as u16;
        }
    }
}

/// What is not as it has to be.
fn wrong(program: &Path, case: &Case, seed: u64) -> Option<String> {
    let Case { talk, own_side, terms, loss } = case;
    let (ports, mut own) = {
        let _nobody_is_made = PORTS_ARE_TRIED.lock().unwrap();
        let ports = [free_port(), free_port()];
        (ports, Wire::new(*own_side, talk, *terms, ports, *loss, Seed(seed)))
    };
    let mut peer = Peer::start(program, own_side.other(), [ports[1], ports[0]], talk, *terms);
    let done = own.talk();
    let Some(peer_done) = peer.done() else { return Some(format!("the peer said nothing; {done:?}")) };
    let went_well = talk.went_well(*own_side, &done) && talk.went_well(own_side.other(), &peer_done);
    let as_agreed = terms.interleaving == own.has_interleaved;
    (!went_well || !as_agreed)
        .then(|| format!("we {done:?}, the peer {peer_done:?}, I-DATA: {}", own.has_interleaved))
}

/// All that may be told apart.
#[derive(Debug)]
struct Case {
    talk: Talk,
    own_side: Side,
    terms: Terms,
    loss: f64,
}

fn every_talk_goes_well(terms: Terms) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = peer_program(dir.path()) else { return };
    let cases: Vec<Case> = TALKS
        .iter()
        .flat_map(|talk| SIDES.map(|side| (talk, side)))
        .flat_map(|(talk, own_side)| LOSSES.map(|loss| Case { talk: *talk, own_side, terms, loss }))
        .collect();
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((seed, case)) =
                    cases.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Some(what) = wrong(&program, case, seed as u64) {
                        let Case { talk, own_side, loss, .. } = case;
                        let name = own_side.name();
                        let problem = format!("{}, we are the {name}, {loss} lost: {what}", talk.name);
                        problems.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), cases.len(), problems.join("\n"));
}

#[test]
fn usrsctp_understands_us_and_we_it() {
    every_talk_goes_well(Terms { interleaving: false, zero_checksum: false });
}

/// RFC 8260 section 2.2.1.
#[test]
fn usrsctp_and_we_interleave_messages() {
    every_talk_goes_well(Terms { interleaving: true, zero_checksum: false });
}
