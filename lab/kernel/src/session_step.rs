//! The protocol between the host and an interactive guest. The guest's virtual time stands still between two steps.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hol_base::Duration;
use hol_network::EventSpec;
use hol_scenario::Program;
use serde::{Deserialize, Serialize};

/// An action that an interactive guest performs in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// The guest runs a command line until it ends.
    Run(Box<Program>),
    /// The guest lets this much virtual time pass.
    Wait(Duration),
    /// The guest changes links now; the time in the event is ignored.
    Change(EventSpec),
    /// The guest sends the packets captured so far.
    Packets,
}

/// An action, and the times at which a replay interrupts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// Times of interrupts, relative to the same start as [`StepResult::end_time`]. A replay interrupts the action at
    /// the same times.
    pub interrupt_times: Vec<Duration>,
}

/// The result of a step. Times are relative to the moment when all services were ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The time at which the step began.
    pub start_time: Duration,
    /// The time at which the step ended.
    pub end_time: Duration,
    /// The times at which the step was interrupted.
    pub interrupt_times: Vec<Duration>,
    /// How the command line ended; `None` for other actions.
    pub outcome: Option<CommandOutcome>,
    /// Why the guest did not perform the action; `None` if it did.
    pub refusal: Option<String>,
}

/// How the command line of a step ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandOutcome {
    /// The exit code as a shell reports it: 128 plus the number of the signal if one ended it.
    pub exit_code: i32,
    /// Whether the line exceeded the memory limit of a program.
    pub exceeded_memory: bool,
    /// The state of the shell for the next line on the same node; `None` if the shell did not save it.
    pub shell_state: Option<ShellState>,
}

/// The state of a node's shell that is passed from one line to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellState {
    /// The working directory.
    pub directory: PathBuf,
    /// The exported variables, except for those that every program has.
    pub variables: BTreeMap<String, String>,
}

/// Receives the messages of a guest during a step, and can interrupt the step.
pub trait SessionObserver {
    /// Receives a message that the guest sends during a step.
    fn receive(&mut self, message: &GuestMessage);

    /// Returns whether the step continues. Called about a thousand times per second.
    fn next_control(&mut self) -> StepControl;
}

/// Whether a step continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepControl {
    /// The step continues.
    Continue,
    /// The step is interrupted, as by Ctrl-C.
    Interrupt,
    /// The guest is ended.
    End,
}

/// A message from the guest during a step. The last message of a step is `Reply`.
#[derive(Debug, Clone, PartialEq)]
pub enum GuestMessage {
    /// A program wrote these octets to its standard output.
    Stdout(Vec<u8>),
    /// A program wrote these octets to its standard error.
    Stderr(Vec<u8>),
    /// The captured packets, packed for [`Session::pass_packets`](crate::Session::pass_packets).
    Packets(Vec<u8>),
    /// The step has ended; contains its result.
    Reply(StepResult),
}

impl GuestMessage {
    /// Encodes the message: one octet for the kind, then the content.
    pub(crate) fn to_octets(&self) -> Vec<u8> {
        let with = |kind: u8, content: &[u8]| [&[kind], content].concat();
        match self {
            Self::Stdout(text) => with(b'o', text),
            Self::Stderr(text) => with(b'e', text),
            Self::Packets(packets) => with(b'p', packets),
            Self::Reply(reply) => with(b'r', &serde_json::to_vec(reply).expect("a reply can be serialised")),
        }
    }

    /// Decodes a message of [`GuestMessage::to_octets`]; `None` if it is malformed.
    pub(crate) fn parse(octets: &[u8]) -> Option<Self> {
        let (kind, content) = octets.split_first()?;
        Some(match kind {
            b'o' => Self::Stdout(content.to_vec()),
            b'e' => Self::Stderr(content.to_vec()),
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
    fn messages_survive_encoding() {
        let reply = StepResult { end_time: Duration::from_nanos(7), ..StepResult::default() };
        for message in [
            GuestMessage::Stdout(b"text".to_vec()),
            GuestMessage::Stderr(vec![]),
            GuestMessage::Packets(vec![1]),
            GuestMessage::Reply(reply),
        ] {
            assert_eq!(GuestMessage::parse(&message.to_octets()), Some(message));
        }
        assert!([&b""[..], b"x", b"r{"].into_iter().all(|octets| GuestMessage::parse(octets).is_none()));
    }
}
