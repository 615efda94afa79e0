//! `simcod reserve`: PRR. RFC 4540 section 8.2.

use clap::{Args, ValueEnum};
use hol_simco::{Gid, IpChoice, Lifetime, NatMode, PrrParameters, Request, ReservedParity};

use crate::failure::Failure;
use crate::protocol::Protocol;
use crate::{RequestCommand, lifetime_text};

/// Reserve an address and ports of a NAT, so that an application can announce them before data flow.
///
/// `enable --reservation PID` then uses the reserved address and ports.
#[derive(Debug, Args)]
pub struct Reserve {
    #[command(flatten)]
    protocol: Protocol,
    /// Number of consecutive ports; 65535 reserves all ports of an address
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    ports: u16,
    /// Start the range at an even port
    #[arg(long, conflicts_with = "odd")]
    even: bool,
    /// Start the range at an odd port
    #[arg(long)]
    odd: bool,
    /// At a twice NAT: also reserve addresses and ports on the inside
    #[arg(long)]
    twice: bool,
    /// IP version on the inside [default: either]
    #[arg(long, value_name = "VERSION")]
    inside: Option<Version>,
    /// IP version on the outside [default: either]
    #[arg(long, value_name = "VERSION")]
    outside: Option<Version>,
    /// Lifetime of the reservation; the middlebox may grant less
    #[arg(long, value_name = "5m", default_value = "5m", value_parser = lifetime_text::parse)]
    lifetime: Lifetime,
    /// Add the reservation to the group with this group identifier (GID)
    #[arg(long, value_name = "GID")]
    group: Option<u32>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Version {
    Ipv4,
    Ipv6,
}

impl RequestCommand for Reserve {
    fn requests(&self) -> Result<Vec<Request>, Failure> {
        let parity = match self {
            Self { even: true, .. } => ReservedParity::Even,
            Self { odd: true, .. } => ReservedParity::Odd,
            _ => ReservedParity::Any,
        };
        let parameters = PrrParameters {
            nat_mode: if self.twice { NatMode::Twice } else { NatMode::Traditional },
            parity,
            inside: choice(self.inside),
            outside: choice(self.outside),
            protocol: self.protocol.number(self.ports > 1)?,
            port_range: self.ports,
        };
        Ok(vec![Request::Prr { parameters, lifetime: self.lifetime, gid: self.group.map(Gid) }])
    }
}

fn choice(version: Option<Version>) -> IpChoice {
    match version {
        None => IpChoice::Any,
        Some(Version::Ipv4) => IpChoice::V4,
        Some(Version::Ipv6) => IpChoice::V6,
    }
}
