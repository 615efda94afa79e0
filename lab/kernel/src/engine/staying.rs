//! A guest that stays: it takes one step after the other, and stands still between them.

use std::fmt::Debug;

use crate::KernelError;
use crate::dialogue::{Letter, Listener, Reply, Step, Wish};
use crate::error::MachineFault;
use crate::job::Answer;
use crate::mailbox::Mail;

/// What an engine does for it. It ends when this is dropped.
pub(crate) trait Staying: Debug {
    /// Lays a step, as JSON, where it finds it.
    fn give(&mut self, step: &[u8]) -> Result<(), KernelError>;

    /// Lets it go on.
    fn go_on(&mut self) -> Result<(), KernelError>;

    /// The letter that it says within a moment, if it does; it stands still from then on. That it has ended is an error.
    fn letter(&mut self) -> Result<Option<Vec<u8>>, KernelError>;

    /// Lets it know that its step is interrupted.
    fn interrupt(&mut self) -> Result<(), KernelError>;

    /// Has it take a step, and the `listener` hear what it says meanwhile; `None`: waits until it is ready for the first.
    fn take(&mut self, step: Option<&Step>, listener: &mut dyn Listener) -> Result<Reply, KernelError> {
        if let Some(step) = step {
            self.give(&serde_json::to_vec(step).expect("a step is plain data"))?;
        }
        self.go_on()?;
        loop {
            match self.letter()?.as_deref().map(parsed).transpose()? {
                Some(Letter::Reply(reply)) => return Ok(reply),
                Some(letter) => {
                    listener.hear(&letter);
                    self.go_on()?;
                }
                None => match listener.wish() {
                    Wish::GoOn => {}
                    Wish::Interrupt => self.interrupt()?,
                    Wish::End => return Err(KernelError::Interrupted),
                },
            }
        }
    }
}

fn parsed(letter: &[u8]) -> Result<Letter, KernelError> {
    let nonsense = || MachineFault::Guest("what it said makes no sense".to_owned()).into();
    Letter::parse(letter).ok_or_else(nonsense)
}

/// Why a guest has ended that was not asked to, by the `mail` that it left.
pub(super) fn reason(mail: &Mail) -> MachineFault {
    match serde_json::from_slice(&mail.text) {
        Ok(Answer::Failed(problem)) => MachineFault::Guest(problem),
        _ => MachineFault::Ended("it left the shell".to_owned()),
    }
}
