//! What a door is for, whatever the engine.

use std::fmt::Debug;

use crate::guest::Trouble;
use crate::job::Answer;
use crate::mailbox::Mail;

/// What an engine has for a door.
pub(in crate::guest) trait Door: Debug {
    /// The guest has booted. Where the host keeps it as it is then, it is a new machine that goes on.
    fn booted(&self) -> Result<(), Trouble>;

    /// The job, as JSON.
    fn job(&self) -> Result<Vec<u8>, Trouble>;

    /// What to mount for the user's programs: a device, or a file, with a read-only file system.
    fn root(&self) -> Result<&'static str, Trouble>;

    /// Says something to the host before all is done.
    fn tell(&self, letter: &[u8]) -> Result<(), Trouble> {
        let _ = letter;
        Err("this machine says nothing before all is done".into())
    }

    /// The next step of a shell, as JSON; time stands until there is one. `None`: that was all.
    fn next(&self) -> Result<Option<Vec<u8>>, Trouble> {
        Ok(None)
    }

    /// Whether the host has interrupted the step since this was asked before.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Gives the result to the host.
    fn hand_over(&self, mail: &Mail) -> Result<(), Trouble>;

    /// All is done.
    fn leave(&self) -> Result<(), Trouble>;
}

/// What is handed over: the result, or that it is too long.
pub(super) fn octets(mail: &Mail) -> Result<Vec<u8>, Trouble> {
    let octets = mail.to_octets().or_else(|problem| Answer::failure(&problem).to_octets());
    octets.map_err(|problem| problem.to_string().into())
}
