//! Requests of an agent. RFC 4540 sections 5.2 and 5.3.

use std::net::SocketAddr;

use crate::attribute::{Attributes, Sink};
use crate::header::sub_type;
use crate::{
    AddressTuple, Addresses, Challenge, Gid, Lifetime, ParseError, PerParameters, Pid, PrrParameters, Token,
    Version,
};

/// A request of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Session establishment (SE), RFC 4540 section 5.2.1.
    Se {
        /// SIMCO version that the agent supports.
        version: Version,
        /// Challenge that the middlebox must answer to authenticate itself.
        challenge: Option<Challenge>,
    },
    /// Session authentication (SA), RFC 4540 section 5.2.4.
    Sa {
        /// The agent's answer to the middlebox's challenge.
        token: Option<Token>,
    },
    /// Session termination (ST), RFC 4540 section 5.2.5.
    St,
    /// Policy reserve rule (PRR), RFC 4540 section 5.3.2.
    Prr {
        /// Parameters of the reservation: protocol, ports, and IP versions.
        parameters: PrrParameters,
        /// Requested lifetime of the reservation.
        lifetime: Lifetime,
        /// The group that the rule joins; if absent, the rule starts a new group.
        gid: Option<Gid>,
    },
    /// Policy enable rule (PER), RFC 4540 section 5.3.3.
    Per {
        /// The flow to enable.
        enable: Enable,
        /// The group that the rule joins; if absent, the rule starts a new group.
        gid: Option<Gid>,
    },
    /// Policy enable rule after reservation (PEA), RFC 4540 section 5.3.4.
    Pea {
        /// The flow to enable.
        enable: Enable,
        /// PID of the reservation.
        pid: Pid,
    },
    /// Policy disable rule (PDR), RFC 4540 section 5.3.8.
    Pdr {
        /// The internal host.
        internal: AddressTuple,
        /// The external host.
        external: AddressTuple,
        /// Requested lifetime of the rule.
        lifetime: Lifetime,
    },
    /// Policy rule lifetime change (PLC), RFC 4540 section 5.3.5.
    Plc {
        /// PID of the rule.
        pid: Pid,
        /// New lifetime of the rule, counted from now; zero deletes the rule.
        lifetime: Lifetime,
    },
    /// Policy rule status (PRS), RFC 4540 section 5.3.6.
    Prs {
        /// PID of the rule.
        pid: Pid,
    },
    /// Policy rule list (PRL), RFC 4540 section 5.3.7.
    Prl,
}

/// The flow that a PER or PEA request lets pass. RFC 4540 section 5.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enable {
    /// The parity of the port and the direction of the data.
    pub parameters: PerParameters,
    /// The internal host.
    pub internal: AddressTuple,
    /// The external host.
    pub external: AddressTuple,
    /// Requested lifetime of the rule.
    pub lifetime: Lifetime,
}

/// An extension of PER beyond RFC 4540 for an agent within the middlebox: a port mapping as in PCP (RFC 6887).
/// Data may then pass both ways even if the external host is a wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortMapping {
    /// The requested outside address and port, used if free; port 0 and the unspecified address mean any.
    pub outside: SocketAddr,
    /// True if the request fails when the requested address and port are taken.
    pub is_exact: bool,
}

impl PortMapping {
    /// Returns true if the tuple has the requested address and port, or if the mapping accepts others.
    pub(crate) fn admits(&self, tuple: &AddressTuple) -> bool {
        let Addresses::Full { address, port, .. } = tuple.addresses else { return false };
        let (wanted, wanted_port) = (self.outside.ip(), self.outside.port());
        let is_wanted =
            (wanted.is_unspecified() || wanted == address) && (wanted_port == 0 || wanted_port == port);
        is_wanted || !self.is_exact
    }
}

impl Enable {
    fn parse(body: &mut Attributes<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            parameters: body.next()?,
            internal: body.next()?,
            external: body.next()?,
            lifetime: body.next()?,
        })
    }

    fn add_to(&self, body: &mut impl Sink) {
        let Self { parameters, internal, external, lifetime } = self;
        body.add(parameters);
        body.add(internal);
        body.add(external);
        body.add(lifetime);
    }
}

impl Request {
    pub(crate) fn parse(sub_type: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut body = Attributes::new(body);
        let request = match sub_type {
            sub_type::SE => Self::Se { version: body.next()?, challenge: body.next_if_any()? },
            sub_type::SA => Self::Sa { token: body.next_if_any()? },
            sub_type::ST => Self::St,
            sub_type::PRR => {
                Self::Prr { parameters: body.next()?, lifetime: body.next()?, gid: body.next_if_any()? }
            }
            sub_type::PER => Self::Per { enable: Enable::parse(&mut body)?, gid: body.next_if_any()? },
            sub_type::PEA => Self::Pea { enable: Enable::parse(&mut body)?, pid: body.next()? },
            sub_type::PDR => {
                Self::Pdr { internal: body.next()?, external: body.next()?, lifetime: body.next()? }
            }
            sub_type::PLC => Self::Plc { pid: body.next()?, lifetime: body.next()? },
            sub_type::PRS => Self::Prs { pid: body.next()? },
            sub_type::PRL => Self::Prl,
            other => return Err(ParseError::SubType(other)),
        };
        body.finish()?;
        Ok(request)
    }

    pub(crate) fn sub_type(&self) -> u8 {
        match self {
            Self::Se { .. } => sub_type::SE,
            Self::Sa { .. } => sub_type::SA,
            Self::St => sub_type::ST,
            Self::Prr { .. } => sub_type::PRR,
            Self::Per { .. } => sub_type::PER,
            Self::Pea { .. } => sub_type::PEA,
            Self::Pdr { .. } => sub_type::PDR,
            Self::Plc { .. } => sub_type::PLC,
            Self::Prs { .. } => sub_type::PRS,
            Self::Prl => sub_type::PRL,
        }
    }

    pub(crate) fn add_to(&self, body: &mut impl Sink) {
        match self {
            Self::Se { version, challenge } => {
                body.add(version);
                body.add_if_any(challenge);
            }
            Self::Sa { token } => body.add_if_any(token),
            Self::St | Self::Prl => {}
            Self::Prr { parameters, lifetime, gid } => {
                body.add(parameters);
                body.add(lifetime);
                body.add_if_any(gid);
            }
            Self::Per { enable, gid } => {
                enable.add_to(body);
                body.add_if_any(gid);
            }
            Self::Pea { enable, pid } => {
                enable.add_to(body);
                body.add(pid);
            }
            Self::Pdr { internal, external, lifetime } => {
                body.add(internal);
                body.add(external);
                body.add(lifetime);
            }
            Self::Plc { pid, lifetime } => {
                body.add(pid);
                body.add(lifetime);
            }
            Self::Prs { pid } => body.add(pid),
        }
    }
}
