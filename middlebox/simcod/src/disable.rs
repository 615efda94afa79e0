//! `simcod disable`: PDR. RFC 4540 section 8.8.

use clap::Args;
use hol_agent::{FlowEnd, tuples};
use hol_simco::{Lifetime, Request};

use crate::enable::check_ports;
use crate::failure::Failure;
use crate::protocol::Protocol;
use crate::{RequestCommand, lifetime_text};

/// Block a flow for the given lifetime: end the rules that allow it, and refuse new ones.
#[derive(Debug, Args)]
pub struct Disable {
    /// Internal hosts and ports, such as 10.0.0.5 or any
    internal: FlowEnd,
    /// External hosts and ports, such as 203.0.113.66
    external: FlowEnd,
    #[command(flatten)]
    protocol: Protocol,
    /// Lifetime of the rule; the middlebox may grant less
    #[arg(long, value_name = "5m", default_value = "5m", value_parser = lifetime_text::parse)]
    lifetime: Lifetime,
}

impl RequestCommand for Disable {
    fn requests(&self) -> Result<Vec<Request>, Failure> {
        check_ports(&self.internal, &self.external)?;
        let has_ports = self.internal.port_count().or(self.external.port_count()).is_some();
        let (internal, external) = tuples(&self.internal, &self.external, self.protocol.number(has_ports)?);
        Ok(vec![Request::Pdr { internal, external, lifetime: self.lifetime }])
    }
}
