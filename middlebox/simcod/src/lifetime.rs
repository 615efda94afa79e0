//! `simcod lifetime`: PLC. RFC 4540 section 8.5.

use clap::Args;
use hol_simco::{Pid, Request};

use crate::failure::Failure;
use crate::{RequestCommand, lifetime_text};

/// Set the remaining lifetime of a rule.
#[derive(Debug, Args)]
pub struct Lifetime {
    /// Policy rule identifier (PID), as `simcod list` shows it
    pid: u32,
    /// New lifetime, counted from now, such as 5m; the middlebox may grant less
    #[arg(value_parser = lifetime_text::parse)]
    lifetime: hol_simco::Lifetime,
}

impl RequestCommand for Lifetime {
    fn requests(&self) -> Result<Vec<Request>, Failure> {
        Ok(vec![Request::Plc { pid: Pid(self.pid), lifetime: self.lifetime }])
    }
}
