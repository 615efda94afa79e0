#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! A script becomes statements (`source`) and steps (`script`, `step_time`, `call`, `shell`); the `player` makes them happen and holds what
//! the endpoint does against them, with a `socket` between the two. Each protocol says in a file of its own how its packets are written.

mod call;
mod ecn;
mod options;
mod play_error;
mod player;
mod protocol;
mod python;
mod script;
mod sctp;
mod shell;
mod socket;
mod source;
mod step_time;
mod sysctl;
mod tcp;
mod tokens;

use std::path::Path;

use hol_base::Duration;

pub use play_error::{Fault, PlayError};

/// The longest script that is read.
const LONGEST: u64 = 16 << 20;

/// How a script is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The stack, whatever the script names; without it those that the script names, or else all.
    pub stack: Option<String>,
    /// The names for which `#ifdef` holds.
    pub defines: Vec<String>,
    /// A step later or earlier than it says by this much is in time, unless the script says otherwise.
    pub tolerance: Duration,
    /// Nothing leaves that the script does not name, calls do not block, and Nagle's rule holds only where the script asks for it. Else it
    /// is as in packetdrill: what leaves before a call or at the end may go unnamed, and sockets begin as a program's do.
    pub strict: bool,
}

impl Rules {
    /// As packetdrill plays a script on a host of `stack`.
    pub fn packetdrill(stack: &str) -> Self {
        Self {
            stack: Some(stack.to_owned()),
            defines: vec!["Linux".to_owned()],
            tolerance: Duration::from_millis(4),
            strict: false,
        }
    }

    /// As our own scripts are played.
    pub fn strict() -> Self {
        Self {
            stack: None,
            defines: vec!["Linux".to_owned()],
            tolerance: Duration::from_millis(1),
            strict: true,
        }
    }
}

/// Plays the script in `file` once for each stack.
pub fn play_file(file: &Path, rules: &Rules) -> Result<(), PlayError> {
    let text = read(file).map_err(|problem| PlayError::new(problem).of(file))?;
    play(&text, file.parent(), rules).map_err(|mistake| mistake.of(file))
}

fn read(file: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let length = std::fs::metadata(file).map_err(failed)?.len();
    if length > LONGEST {
        return Err(format!("has {length} octets; a script has {LONGEST} at most"));
    }
    let octets = std::fs::read(file).map_err(failed)?;
    String::from_utf8(octets).map_err(|_| "is no text: a script is written in UTF-8".to_owned())
}

/// Plays a script once for each stack; the files of commands that it names are found from `folder`.
pub fn play(text: &str, folder: Option<&Path>, rules: &Rules) -> Result<(), PlayError> {
    let script = script::Script::parse(text, folder, rules)?;
    if script.steps.is_empty() {
        return Err(PlayError::new(
            "the script has no steps; begin it with \"0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\"",
        ));
    }
    player::check(&script)?;
    script
        .stacks(rules)
        .into_iter()
        .try_for_each(|stack| player::play(&script, &stack, rules).map_err(|mistake| mistake.with(stack)))
}
