//! The channel to the host on this machine's own kernel: standard input and output of the guest process.

use std::io::{Read, Write, stdin, stdout};

use super::contract::{HostChannel, encode};
use crate::guest::GuestError;
use crate::mailbox::MailboxContent;

/// The channel to the host over standard input and output, for a guest that is a process on this machine's own kernel.
#[derive(Debug)]
pub(super) struct StdioChannel;

impl HostChannel for StdioChannel {
    fn report_boot(&self) -> Result<(), GuestError> {
        Ok(())
    }

    fn receive_job(&self) -> Result<Vec<u8>, GuestError> {
        let mut job = Vec::new();
        stdin().read_to_end(&mut job).map_err(|e| format!("cannot read the job: {e}"))?;
        Ok(job)
    }

    fn root_device(&self) -> Result<&'static str, GuestError> {
        Err("programs do not run on this machine's own kernel".into())
    }

    fn send_result(&self, mail: &MailboxContent) -> Result<(), GuestError> {
        let octets = encode(mail)?;
        stdout().write_all(&octets).map_err(|e| format!("cannot write the result of the run: {e}").into())
    }

    fn shut_down(&self) -> Result<(), GuestError> {
        Ok(())
    }
}
