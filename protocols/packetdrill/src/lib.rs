#![doc = include_str!("../README.md")]
//!
//! A script is parsed into statements (`source`) and steps (`script`, `step_time`, `call`, `shell`). The `player` performs the steps and
//! compares the endpoint's packets with the script; `socket` emulates the socket between the two. Each protocol has a file with its
//! packet syntax.

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

pub use play_error::{ErrorOrigin, PlayError};

/// Maximum size of a script in octets.
const MAX_SCRIPT: u64 = 16 << 20;

/// Options for playing a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayRules {
    /// The stack to use instead of those in the script. With `None`, the script is played with the stacks that it
    /// names, or with all stacks if it names none.
    pub stack: Option<String>,
    /// The names that count as defined in `#ifdef`.
    pub defines: Vec<String>,
    /// Maximum deviation of a step's time from the script, unless the script sets another tolerance.
    pub tolerance: Duration,
    /// Whether the script must contain every outbound packet. In this mode calls do not block, and Nagle's
    /// algorithm is off unless the script enables it. Otherwise packetdrill's rules apply: the script may omit
    /// packets before a call or at the end, and sockets have their usual defaults.
    pub strict: bool,
}

impl PlayRules {
    /// Returns packetdrill's rules for a host with `stack`.
    pub fn packetdrill(stack: &str) -> Self {
        Self {
            stack: Some(stack.to_owned()),
            defines: vec!["Linux".to_owned()],
            tolerance: Duration::from_millis(4),
            strict: false,
        }
    }

    /// Returns the rules for the scripts of this project.
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
pub fn play_file(file: &Path, rules: &PlayRules) -> Result<(), PlayError> {
    let text = read(file).map_err(|problem| PlayError::new(problem).in_file(file))?;
    play(&text, file.parent(), rules).map_err(|mistake| mistake.in_file(file))
}

fn read(file: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let length = std::fs::metadata(file).map_err(failed)?.len();
    if length > MAX_SCRIPT {
        return Err(format!("has {length} octets; the maximum for a script is {MAX_SCRIPT}"));
    }
    let octets = std::fs::read(file).map_err(failed)?;
    String::from_utf8(octets).map_err(|_| "is not UTF-8 text".to_owned())
}

/// Plays a script once for each stack. The paths of command files in the script are relative to `folder`.
pub fn play(text: &str, folder: Option<&Path>, rules: &PlayRules) -> Result<(), PlayError> {
    let script = script::Script::parse(text, folder, rules)?;
    if script.steps.is_empty() {
        return Err(PlayError::new(
            "the script has no steps; start it with \"0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\"",
        ));
    }
    player::check(&script)?;
    script.stacks(rules).into_iter().try_for_each(|stack| {
        player::play(&script, &stack, rules).map_err(|mistake| mistake.with_stack(stack))
    })
}
