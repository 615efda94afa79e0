//! `simcod enable`: PER, and PEA after a reservation. RFC 4540 sections 8.3 and 8.4.

use clap::Args;
use hol_agent::{FlowEnd, tuples};
use hol_simco::{Direction, Gid, Lifetime, PerParameters, Pid, PortParity, Request};

use crate::failure::Failure;
use crate::protocol::Protocol;
use crate::{RequestCommand, lifetime_text};

/// Let a flow pass for the given lifetime.
#[derive(Debug, Args)]
pub struct Enable {
    /// Internal hosts and ports, such as 10.0.0.5:5004
    internal: FlowEnd,
    /// External hosts and ports, such as 198.51.100.7:6000, 198.51.100.0/24 or any
    external: FlowEnd,
    #[command(flatten)]
    protocol: Protocol,
    #[command(flatten)]
    direction: DirectionOptions,
    /// Lifetime of the rule; the middlebox may grant less
    #[arg(long, value_name = "5m", default_value = "5m", value_parser = lifetime_text::parse)]
    lifetime: Lifetime,
    /// At a NAT: translate an even port to an even one, and an odd port to an odd one
    #[arg(long)]
    same_parity: bool,
    /// Add the rule to the group with this group identifier (GID)
    #[arg(long, value_name = "GID", conflicts_with = "reservation")]
    group: Option<u32>,
    /// Use the addresses and ports of the reservation with this policy rule identifier (PID)
    #[arg(long, value_name = "PID")]
    reservation: Option<u32>,
}

/// The options for the direction of the data.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct DirectionOptions {
    /// Let packets pass from outside to inside only (default)
    #[arg(long)]
    inbound: bool,
    /// Let packets pass from inside to outside only
    #[arg(long)]
    outbound: bool,
    /// Let packets pass in both directions; needs single hosts and ports
    #[arg(long)]
    both_ways: bool,
}

impl RequestCommand for Enable {
    fn requests(&self) -> Result<Vec<Request>, Failure> {
        check_ports(&self.internal, &self.external)?;
        let has_ports = self.internal.port_count().or(self.external.port_count()).is_some();
        let (internal, external) = tuples(&self.internal, &self.external, self.protocol.number(has_ports)?);
        let parity = if self.same_parity { PortParity::Same } else { PortParity::Any };
        let parameters = PerParameters { parity, direction: self.direction.direction() };
        let enable = hol_simco::Enable { parameters, internal, external, lifetime: self.lifetime };
        Ok(vec![match self.reservation {
            Some(pid) => Request::Pea { enable, pid: Pid(pid) },
            None => Request::Per { enable, gid: self.group.map(Gid) },
        }])
    }
}

impl DirectionOptions {
    fn direction(&self) -> Direction {
        match self {
            Self { both_ways: true, .. } => Direction::BiDirectional,
            Self { outbound: true, .. } => Direction::Outbound,
            _ => Direction::Inbound,
        }
    }
}

/// Checks that both ends have the same number of ports, or that one end has any port. RFC 4540 section 8.3.1.
pub fn check_ports(internal: &FlowEnd, external: &FlowEnd) -> Result<(), Failure> {
    match (internal.port_count(), external.port_count()) {
        (Some(inside), Some(outside)) if inside != outside => {
            let advice = "use the same number at both ends, or `any` at one";
            Err(Failure::Usage(format!(
                "{internal} has {inside} ports, but {external} has {outside}; {advice}"
            )))
        }
        _ => Ok(()),
    }
}
