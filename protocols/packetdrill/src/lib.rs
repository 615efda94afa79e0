//! packetdrill's scripts against one of our endpoints, in virtual time: what an application calls, which packets come, and
//! which have to leave, each at its time. `docs/packetdrill.md` has the language.
//!
//! A script becomes steps (`script`, `when`, `call`); the `player` makes them happen and holds what the endpoint does against
//! them. Each protocol says in a file of its own how its packets are written.

mod call;
mod ecn;
mod mistake;
mod player;
mod protocol;
mod script;
mod sctp;
mod tcp;
mod when;
mod words;

use std::path::Path;

pub use mistake::Mistake;

/// Plays the script in `file` once for each stack that it names.
pub fn play_file(file: &Path) -> Result<(), Mistake> {
    let read = std::fs::read_to_string(file);
    let text = read.map_err(|error| Mistake::new(format!("cannot be read: {error}")).of(file))?;
    play(&text).map_err(|mistake| mistake.of(file))
}

/// Plays a script once for each stack that it names; without one, for every stack that has its protocol.
pub fn play(text: &str) -> Result<(), Mistake> {
    let script = script::Script::parse(text)?;
    script
        .stacks()
        .into_iter()
        .try_for_each(|stack| player::play(&script, &stack).map_err(|mistake| mistake.with(stack)))
}
