//! Our SCTP and usrsctp's, which nobody here wrote, over UDP on loopback, whose packets are lost as told: who is server and who client, what
//! is sent, who ends it and how. Without `libusrsctp-dev` and a C compiler the test says so and passes, unless `HOL_REQUIRE_USRSCTP` is set.

mod own;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use own::{Ended, Own, Side};

/// Who ends the association when all is done, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    ClientCloses,
    ClientAborts,
    ServerCloses,
    ServerAborts,
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::ClientCloses => "client-closes",
            Self::ClientAborts => "client-aborts",
            Self::ServerCloses => "server-closes",
            Self::ServerAborts => "server-aborts",
        }
    }

    const fn by(self) -> Side {
        match self {
            Self::ClientCloses | Self::ClientAborts => Side::Client,
            Self::ServerCloses | Self::ServerAborts => Side::Server,
        }
    }

    const fn is_abort(self) -> bool {
        matches!(self, Self::ClientAborts | Self::ServerAborts)
    }
}

/// What the client sends, and what becomes of it.
#[derive(Debug, Clone, Copy)]
struct Talk {
    name: &'static str,
    messages: u32,
    size: usize,
    streams: u16,
    unordered: bool,
    /// After so many a message is given up, but for the last on each stream. RFC 7496 section 4.
    retransmissions: Option<u32>,
    /// The server sends all back.
    echo: bool,
    end: End,
}

const PLAIN: Talk = Talk {
    name: "messages of 100 octets on 8 streams, and back",
    messages: 400,
    size: 100,
    streams: 8,
    unordered: false,
    retransmissions: None,
    echo: true,
    end: End::ClientCloses,
};

const TALKS: [Talk; 8] = [
    PLAIN,
    Talk { name: "messages of 200,000 octets, and back", messages: 10, size: 200_000, streams: 2, ..PLAIN },
    Talk { name: "unordered ones, and back", size: 500, unordered: true, ..PLAIN },
    Talk { name: "as fast as it goes", messages: 5000, size: 1000, streams: 4, echo: false, ..PLAIN },
    Talk {
        name: "messages that are given up",
        messages: 2000,
        size: 200,
        retransmissions: Some(0),
        echo: false,
        ..PLAIN
    },
    Talk { name: "the client aborts", messages: 50, end: End::ClientAborts, ..PLAIN },
    Talk { name: "the server closes", messages: 50, echo: false, end: End::ServerCloses, ..PLAIN },
    Talk { name: "the server aborts", messages: 50, echo: false, end: End::ServerAborts, ..PLAIN },
];

/// The shares of packets that are lost, in either direction.
const LOSSES: [f64; 3] = [0.0, 0.01, 0.05];
/// Mostly they wait.
const SIDE_BY_SIDE: usize = 8;
/// No process is made while ports are tried: until it runs its program it would hold them, too.
static PORTS_ARE_TRIED: Mutex<()> = Mutex::new(());

/// usrsctp as a process.
struct Peer {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Peer {
    fn start(program: &Path, side: Side, [own, peer]: [u16; 2], talk: &Talk) -> Self {
        let retransmissions = talk.retransmissions.map_or(-1, i64::from);
        let nobody_tries = PORTS_ARE_TRIED.lock().unwrap();
        let mut child = Command::new(program)
            .args([side.name(), &own.to_string(), &peer.to_string(), &talk.messages.to_string()])
            .args([&talk.size.to_string(), &talk.streams.to_string(), &u8::from(talk.unordered).to_string()])
            .args([&retransmissions.to_string(), &u8::from(talk.echo).to_string(), talk.end.word()])
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

    /// How many messages it got, how many of them were wrong, and how its association ended.
    fn said(&mut self) -> Option<(u32, u32, String)> {
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["got", got, "wrong", wrong, "ended", ended] = words[..] else { return None };
        Some((got.parse().unwrap(), wrong.parse().unwrap(), ended.to_owned()))
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
fn wrong(program: &Path, talk: &Talk, own_side: Side, loss: f64, seed: u64) -> Option<String> {
    let (ports, mut own) = {
        let _nobody_is_made = PORTS_ARE_TRIED.lock().unwrap();
        let ports = [free_port(), free_port()];
        (ports, Own::new(own_side, talk, ports, loss, seed))
    };
    let mut peer = Peer::start(program, own_side.other(), [ports[1], ports[0]], talk);
    let done = own.talk(talk);
    let said = peer.said();
    let Some((got, wrong, ended)) = &said else { return Some(format!("the peer said nothing; {done:?}")) };
    let due = |side: Side| match side {
        Side::Client if !talk.echo => 0..=0,
        _ if talk.retransmissions.is_some() => talk.messages / 2..=talk.messages,
        _ => talk.messages..=talk.messages,
    };
    let orderly = if talk.end.is_abort() { Ended::Reset } else { Ended::Closed };
    let own_end = if talk.end.is_abort() && talk.end.by() == own_side { Ended::Aborted } else { orderly };
    let peer_end = match (talk.end.is_abort(), talk.end.by() == own_side) {
        (false, _) => "closed",
        (true, true) => "reset",
        (true, false) => "aborted",
    };
    let is_well = due(own_side.other()).contains(got)
        && due(own_side).contains(&done.got)
        && *wrong + done.wrong == 0
        && ended == peer_end
        && done.ended == Some(own_end);
    (!is_well).then(|| format!("we {done:?}, the peer {said:?}"))
}

#[test]
fn usrsctp_understands_us_and_we_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = peer_program(dir.path()) else { return };
    let sides = [Side::Client, Side::Server];
    let cases: Vec<(&Talk, Side, f64)> = TALKS
        .iter()
        .flat_map(|talk| sides.map(|side| (talk, side)))
        .flat_map(|(talk, side)| LOSSES.map(|loss| (talk, side, loss)))
        .collect();
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((seed, (talk, side, loss))) =
                    cases.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Some(what) = wrong(&program, talk, *side, *loss, seed as u64) {
                        let name = format!("{}, we are the {}, {loss} lost: {what}", talk.name, side.name());
                        problems.lock().unwrap().push(name);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), cases.len(), problems.join("\n"));
}
