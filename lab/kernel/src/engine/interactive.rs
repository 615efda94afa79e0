//! An interactive guest: it performs one step after the other, and its virtual time stands still between them.

use std::fmt::Debug;

use crate::KernelError;
use crate::error::MachineFault;
use crate::job::JobResult;
use crate::mailbox::MailboxContent;
use crate::session_step::{GuestMessage, SessionObserver, Step, StepControl, StepResult};

/// An interactive guest, which performs steps on request. Dropping it ends the guest.
pub(crate) trait InteractiveGuest: Debug {
    /// Writes a step, as JSON, to the place where the guest reads it.
    fn write_step(&mut self, step: &[u8]) -> Result<(), KernelError>;

    /// Lets the guest run again after a step.
    fn resume(&mut self) -> Result<(), KernelError>;

    /// Waits briefly for the guest's next message. If a message arrives, returns it, and the guest is paused from then
    /// on. An error means that the guest has ended.
    fn next_message(&mut self) -> Result<Option<Vec<u8>>, KernelError>;

    /// Interrupts the guest's step, as Ctrl-C does.
    fn interrupt(&mut self) -> Result<(), KernelError>;

    /// Performs a step and passes the guest's messages to the `observer`. If `step` is `None`, waits until the guest is ready.
    fn perform(
        &mut self,
        step: Option<&Step>,
        observer: &mut dyn SessionObserver,
    ) -> Result<StepResult, KernelError> {
        if let Some(step) = step {
            self.write_step(&serde_json::to_vec(step).expect("a step can be serialised"))?;
        }
        self.resume()?;
        loop {
            match self.next_message()?.as_deref().map(parse_message).transpose()? {
                Some(GuestMessage::Reply(reply)) => return Ok(reply),
                Some(message) => {
                    observer.receive(&message);
                    self.resume()?;
                }
                None => match observer.next_control() {
                    StepControl::Continue => {}
                    StepControl::Interrupt => self.interrupt()?,
                    StepControl::End => return Err(KernelError::Interrupted),
                },
            }
        }
    }
}

fn parse_message(message: &[u8]) -> Result<GuestMessage, KernelError> {
    let nonsense = || MachineFault::Guest("cannot parse a message of the guest".to_owned()).into();
    GuestMessage::parse(message).ok_or_else(nonsense)
}

/// Returns why a guest ended unexpectedly, from the content of its mailbox (`mail`).
pub(super) fn exit_reason(mail: &MailboxContent) -> MachineFault {
    match serde_json::from_slice(&mail.result_json) {
        Ok(JobResult::Failed(problem)) => MachineFault::Guest(problem),
        _ => MachineFault::Ended("the guest ended the session".to_owned()),
    }
}
