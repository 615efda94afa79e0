//! The trait of a guest's channel to the host.

use std::fmt::Debug;

use crate::guest::GuestError;
use crate::job::JobResult;
use crate::mailbox::MailboxContent;

/// The channel from a guest to the host. Each engine has its own implementation.
pub(in crate::guest) trait HostChannel: Debug {
    /// Reports that the guest has booted. The host may take a snapshot at this moment; each machine restored from it
    /// continues from here.
    fn report_boot(&self) -> Result<(), GuestError>;

    /// Receives the job, as JSON.
    fn receive_job(&self) -> Result<Vec<u8>, GuestError>;

    /// Returns the device or file with the read-only root file system of the user's programs.
    fn root_device(&self) -> Result<&'static str, GuestError>;

    /// Sends a message to the host during a session; returns when the host has read it.
    fn send(&self, message: &[u8]) -> Result<(), GuestError> {
        let _ = message;
        Err("this machine has no interactive channel; results arrive only when the job ends".into())
    }

    /// Waits for the next step of a session, as JSON, while virtual time is stopped. Returns `None` at the end of the
    /// session.
    fn next_step(&self) -> Result<Option<Vec<u8>>, GuestError> {
        Ok(None)
    }

    /// Returns whether the host has interrupted the current step since the last call.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Sends the result of the job to the host.
    fn send_result(&self, mail: &MailboxContent) -> Result<(), GuestError>;

    /// Ends the guest.
    fn shut_down(&self) -> Result<(), GuestError>;
}

/// Encodes the guest's result; a result that is too long is replaced with an error.
pub(super) fn encode(mail: &MailboxContent) -> Result<Vec<u8>, GuestError> {
    let octets = mail.to_octets().or_else(|problem| JobResult::failure(&problem).to_octets());
    octets.map_err(|problem| problem.to_string().into())
}
