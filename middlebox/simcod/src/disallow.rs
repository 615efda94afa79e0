//! `simcod disallow`: PLC with a lifetime of zero. RFC 4540 section 8.5.

use clap::Args;
use hol_simco::{Lifetime, Pid, Request};

use crate::RequestCommand;
use crate::failure::Failure;

/// End rules now, before their lifetime is over.
#[derive(Debug, Args)]
pub struct Disallow {
    /// Policy rule identifiers (PIDs), as `simcod list` shows them
    #[arg(required = true)]
    pids: Vec<u32>,
}

impl RequestCommand for Disallow {
    fn requests(&self) -> Result<Vec<Request>, Failure> {
        Ok(self.pids.iter().map(|pid| Request::Plc { pid: Pid(*pid), lifetime: Lifetime(0) }).collect())
    }
}
