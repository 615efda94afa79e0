//! The other end.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::super::talks::{Done, End, Ended, Side, Talk, Terms};
use super::PORTS_ARE_TRIED;

/// Where the peer's SCTP takes datagrams.
#[allow(dead_code, reason = "each peer has one of them")]
#[derive(Debug, Clone, Copy)]
pub enum Port {
    /// Each process has its own.
    OfEach,
    /// The kernel has one.
    OfAll(u16),
}

/// Whoever else speaks SCTP.
pub struct Peer {
    pub program: PathBuf,
    pub port: Port,
    /// What it is known not to do.
    pub cannot: fn(&Talk, Terms) -> bool,
}

/// A peer in a talk.
pub struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Port {
    /// Mostly they wait. Those of one kernel share its ports of SCTP, too.
    pub const fn side_by_side(self) -> usize {
        match self {
            Self::OfEach => 8,
            Self::OfAll(_) => 1,
        }
    }
}

/// Makes the program of a peer with this library, and says aloud why that cannot be; with `required` in the environment it has to be.
pub fn make(program: &Path, library: &str, required: &str) -> bool {
    let says = made(program, library).err();
    assert!(says.is_none() || std::env::var_os(required).is_none(), "the peer cannot be made: {says:?}");
    if let Some(why) = &says {
        eprintln!("SKIPPED, for the peer cannot be made (apt-get install lib{library}-dev gcc): {why}");
    }
    says.is_none()
}

fn made(program: &Path, library: &str) -> Result<(), String> {
    let mut compiler = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-x", "c", "-", "-o"])
        .arg(program)
        .args([&format!("-DPEER_{library}"), &format!("-l{library}"), "-lpthread"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cc: {error}"))?;
    compiler.stdin.take().unwrap().write_all(include_bytes!("peer.c")).unwrap();
    let made = compiler.wait_with_output().unwrap();
    if made.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&made.stderr).into_owned()) }
}

/// How the peer's program calls it.
const fn word(end: End) -> &'static str {
    match end {
        End::ClientCloses => "client-closes",
        End::ClientAborts => "client-aborts",
        End::ServerCloses => "server-closes",
        End::ServerAborts => "server-aborts",
    }
}

impl Peer {
    /// A server is ready then.
    pub(super) fn start(&self, side: Side, [own, peer]: [u16; 2], talk: &Talk, terms: Terms) -> Process {
        let retransmissions = talk.retransmissions.map_or(-1, i64::from);
        let nobody_tries = PORTS_ARE_TRIED.lock().unwrap();
        let mut child = Command::new(&self.program)
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
        Process { child, out }
    }
}

impl Process {
    /// What came of it there.
    pub(super) fn done(&mut self) -> Option<Done> {
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

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
