//! Linux's end: a program that uses the socket API of RFC 6458.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::table::{Done, End, Ended, Side, Talk, Terms};

pub const SOURCE: &[u8] = include_bytes!("peer.c");

/// A peer in a talk.
pub struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
}

/// Returns the name of an end on the command line of the peer's program.
const fn word(end: End) -> &'static str {
    match end {
        End::ClientCloses => "client-closes",
        End::ClientAborts => "client-aborts",
        End::ServerCloses => "server-closes",
        End::ServerAborts => "server-aborts",
    }
}

impl Process {
    /// Starts the program; returns when a server is ready. `port` is our UDP port.
    pub fn start(program: &Path, side: Side, port: u16, talk: &Talk, terms: Terms) -> Self {
        let retransmissions = talk.retransmissions.map_or(-1, i64::from);
        let mut child = Command::new(program)
            .args([side.name(), &port.to_string(), &talk.messages.to_string()])
            .args([&talk.size.to_string(), &talk.streams.to_string(), &u8::from(talk.unordered).to_string()])
            .args([&retransmissions.to_string(), &u8::from(talk.echo).to_string(), word(talk.end)])
            .args([&u8::from(terms.interleaving).to_string(), &talk.resets.unwrap_or(0).to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        if side == Side::Server {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
        }
        Self { child, out }
    }

    /// Returns the result at this end.
    pub fn done(&mut self) -> Option<Done> {
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
