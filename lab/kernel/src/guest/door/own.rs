//! That of this machine's own kernel: the process's standard input and output.

use std::io::{Read, Write, stdin, stdout};

use super::contract::{Door, octets};
use crate::guest::Trouble;
use crate::mailbox::Mail;

#[derive(Debug)]
pub(super) struct Own;

impl Door for Own {
    fn booted(&self) -> Result<(), Trouble> {
        Ok(())
    }

    fn job(&self) -> Result<Vec<u8>, Trouble> {
        let mut job = Vec::new();
        stdin().read_to_end(&mut job).map_err(|e| format!("cannot read the job: {e}"))?;
        Ok(job)
    }

    fn root(&self) -> Result<&'static str, Trouble> {
        Err("programs do not run on this machine's own kernel".into())
    }

    fn hand_over(&self, mail: &Mail) -> Result<(), Trouble> {
        let octets = octets(mail)?;
        stdout().write_all(&octets).map_err(|e| format!("cannot write what came of the run: {e}").into())
    }

    fn leave(&self) -> Result<(), Trouble> {
        Ok(())
    }
}
