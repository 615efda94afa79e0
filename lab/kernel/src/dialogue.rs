//! What the host and a guest that stays say to each other. Between two steps the guest stands still, and with it its time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hol_base::Duration;
use hol_network::EventSpec;
use hol_scenario::Program;
use serde::{Deserialize, Serialize};

/// What is done next in a network that stands still until then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Runs a line until it ends.
    Run(Box<Program>),
    /// Lets so much time pass.
    Wait(Duration),
    /// Changes lines now, whenever the event says.
    Change(EventSpec),
    /// Hands over the packets so far.
    Packets,
}

/// An order, and when it was interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What is done.
    pub order: Order,
    /// When it is interrupted, counted as [`Reply::now`]: what was done once is done again as it was.
    pub interrupted: Vec<Duration>,
}

/// What came of a step. Times count from when all services were ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// When it began.
    pub began: Duration,
    /// When it was over.
    pub now: Duration,
    /// When it was interrupted.
    pub interrupted: Vec<Duration>,
    /// How a line ended.
    pub ended: Option<Ended>,
    /// Why nothing was done.
    pub refused: Option<String>,
}

/// How a line ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// As a shell tells it: an exit code, or 128 and the number of a signal.
    pub code: i32,
    /// It took more memory than a program has.
    pub was_out_of_memory: bool,
    /// What it left to the next line of its node, if it said so.
    pub left: Option<Surroundings>,
}

/// What a line leaves to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Where it ended.
    pub directory: PathBuf,
    /// What it exported, beside what every program has.
    pub variables: BTreeMap<String, String>,
}

/// Whoever hears what a guest says during a step, and may have it interrupted.
pub trait Listener {
    /// It says something.
    fn hear(&mut self, letter: &Letter);

    /// What is to become of the step; asked about a thousand times a second.
    fn wish(&mut self) -> Wish;
}

/// What is to become of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// It goes on.
    GoOn,
    /// It is interrupted, as by Ctrl-C.
    Interrupt,
    /// Its guest ends.
    End,
}

/// What a guest says during a step, and last the reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Letter {
    /// A program wrote this to its standard output.
    Out(Vec<u8>),
    /// The same of its standard error.
    Err(Vec<u8>),
    /// Packets, for [`Session::packets`](crate::Session::packets).
    Packets(Vec<u8>),
    /// The step is over.
    Reply(Reply),
}

impl Letter {
    /// Kind, then content.
    pub(crate) fn to_octets(&self) -> Vec<u8> {
        let with = |kind: u8, content: &[u8]| [&[kind], content].concat();
        match self {
            Self::Out(text) => with(b'o', text),
            Self::Err(text) => with(b'e', text),
            Self::Packets(packets) => with(b'p', packets),
            Self::Reply(reply) => with(b'r', &serde_json::to_vec(reply).expect("a reply is plain data")),
        }
    }

    /// Reads what [`Letter::to_octets`] made.
    pub(crate) fn parse(octets: &[u8]) -> Option<Self> {
        let (kind, content) = octets.split_first()?;
        Some(match kind {
            b'o' => Self::Out(content.to_vec()),
            b'e' => Self::Err(content.to_vec()),
            b'p' => Self::Packets(content.to_vec()),
            b'r' => Self::Reply(serde_json::from_slice(content).ok()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_out_as_they_went_in() {
        let reply = Reply { now: Duration::from_nanos(7), ..Reply::default() };
        for letter in [
            Letter::Out(b"text".to_vec()),
            Letter::Err(vec![]),
            Letter::Packets(vec![1]),
            Letter::Reply(reply),
        ] {
            assert_eq!(Letter::parse(&letter.to_octets()), Some(letter));
        }
        assert!([&b""[..], b"x", b"r{"].into_iter().all(|octets| Letter::parse(octets).is_none()));
    }
}
