//! `simcod status`: PRS. RFC 4540 section 8.6.

use clap::Args;
use hol_simco::{Pid, Request};

use crate::RequestCommand;
use crate::failure::Failure;

/// Show rules with their addresses, state, owner and remaining lifetime.
#[derive(Debug, Args)]
pub struct Status {
    /// Policy rule identifiers (PIDs), as `simcod list` shows them
    #[arg(required = true)]
    pids: Vec<u32>,
}

impl RequestCommand for Status {
    fn requests(&self) -> Result<Vec<Request>, Failure> {
        Ok(self.pids.iter().map(|pid| Request::Prs { pid: Pid(*pid) }).collect())
    }
}
