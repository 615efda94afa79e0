//! Positive replies of the middlebox. RFC 4540 sections 5.2 and 5.3.

use crate::attribute::{Attributes, Sink};
use crate::header::sub_type;
use crate::{
    AddressTuple, Capabilities, Challenge, Gid, Lifetime, Owner, ParseError, PerParameters, Pid, Token,
};

/// A positive reply of the middlebox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The session is open, RFC 4540 section 5.2.2.
    Se {
        /// Capabilities of the middlebox.
        capabilities: Capabilities,
    },
    /// The session needs authentication, RFC 4540 section 5.2.3. At least one of the two attributes is
    /// present.
    Sa {
        /// Challenge that the agent must answer to authenticate itself.
        challenge: Option<Challenge>,
        /// The middlebox's answer to the agent's challenge.
        token: Option<Token>,
    },
    /// The session ends, RFC 4540 section 5.2.5.
    St,
    /// A rule is reserved, RFC 4540 section 5.3.9.
    Prr(GrantedRule),
    /// A rule is enabled, by PER or PEA. RFC 4540 contradicts itself: in section 8.3.3 a traditional NAT
    /// omits the inside tuple, in section 5.3.10 the tuple is required. Both forms are accepted.
    Per(GrantedRule),
    /// The lifetime of the rule was changed, RFC 4540 section 5.3.11.
    Plc {
        /// Remaining lifetime of the rule.
        lifetime: Lifetime,
    },
    /// The rule was deleted, RFC 4540 section 5.3.12.
    Prd,
    /// Status of a reserved rule, RFC 4540 section 5.3.13.
    Prs {
        /// The reserved rule.
        rule: GrantedRule,
        /// The owner of the rule.
        owner: Owner,
    },
    /// Status of an enabled rule, RFC 4540 section 5.3.14.
    Pes(Box<EnableRuleStatus>),
    /// Status of a disable rule, RFC 4540 section 5.3.15.
    Pds(Box<DisableRuleStatus>),
    /// All rules that the agent may access, RFC 4540 section 5.3.16.
    Prl(Vec<Pid>),
    /// A disable rule is in force, RFC 4540 section 5.3.17.
    Pdr {
        /// PID of the disable rule.
        pid: Pid,
        /// Remaining lifetime of the disable rule.
        lifetime: Lifetime,
    },
}

/// What a reply contains about a rule that the middlebox has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedRule {
    /// PID of the rule.
    pub pid: Pid,
    /// Identifier of the rule's group.
    pub gid: Gid,
    /// Remaining lifetime of the rule.
    pub lifetime: Lifetime,
    /// A2: the middlebox as external hosts see it.
    pub outside: AddressTuple,
    /// A1: the middlebox as internal hosts see it; `None` if the middlebox omits it.
    pub inside: Option<AddressTuple>,
}

/// The status of an enabled rule. RFC 4540 section 5.3.14.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnableRuleStatus {
    /// PID of the rule.
    pub pid: Pid,
    /// Identifier of the rule's group.
    pub gid: Gid,
    /// The parity of the port and the direction of the data.
    pub parameters: PerParameters,
    /// A0: the internal host.
    pub internal: AddressTuple,
    /// A1: the middlebox as internal hosts see it.
    pub inside: AddressTuple,
    /// A2: the middlebox as external hosts see it.
    pub outside: AddressTuple,
    /// A3: the external host.
    pub external: AddressTuple,
    /// Remaining lifetime of the rule.
    pub lifetime: Lifetime,
    /// The owner of the rule.
    pub owner: Owner,
}

/// The status of a disable rule. RFC 4540 section 5.3.15.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisableRuleStatus {
    /// PID of the rule.
    pub pid: Pid,
    /// A0: the internal host.
    pub internal: AddressTuple,
    /// A3: the external host.
    pub external: AddressTuple,
    /// Remaining lifetime of the rule.
    pub lifetime: Lifetime,
    /// The owner of the rule.
    pub owner: Owner,
}

impl Reply {
    pub(crate) fn parse(sub_type: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut body = Attributes::new(body);
        let reply = match sub_type {
            sub_type::SE => Self::Se { capabilities: body.next()? },
            sub_type::SA if body.is_empty() => return Err(ParseError::MissingAttribute),
            sub_type::SA => Self::Sa { challenge: body.next_if()?, token: body.next_if()? },
            sub_type::ST => Self::St,
            sub_type::PRR => Self::Prr(GrantedRule::parse(&mut body)?),
            sub_type::PER => Self::Per(GrantedRule::parse(&mut body)?),
            sub_type::PLC => Self::Plc { lifetime: body.next()? },
            sub_type::PRD => Self::Prd,
            sub_type::PRS => Self::Prs { rule: GrantedRule::parse(&mut body)?, owner: body.next()? },
            sub_type::PES => Self::Pes(Box::new(EnableRuleStatus::parse(&mut body)?)),
            sub_type::PDS => Self::Pds(Box::new(DisableRuleStatus::parse(&mut body)?)),
            sub_type::PRL => {
                let mut pids = Vec::new();
                while let Some(pid) = body.next_if_any()? {
                    pids.push(pid);
                }
                Self::Prl(pids)
            }
            sub_type::PDR => Self::Pdr { pid: body.next()?, lifetime: body.next()? },
            other => return Err(ParseError::SubType(other)),
        };
        body.finish()?;
        Ok(reply)
    }

    pub(crate) fn sub_type(&self) -> u8 {
        match self {
            Self::Se { .. } => sub_type::SE,
            Self::Sa { .. } => sub_type::SA,
            Self::St => sub_type::ST,
            Self::Prr(_) => sub_type::PRR,
            Self::Per(_) => sub_type::PER,
            Self::Plc { .. } => sub_type::PLC,
            Self::Prd => sub_type::PRD,
            Self::Prs { .. } => sub_type::PRS,
            Self::Pes(_) => sub_type::PES,
            Self::Pds(_) => sub_type::PDS,
            Self::Prl(_) => sub_type::PRL,
            Self::Pdr { .. } => sub_type::PDR,
        }
    }

    pub(crate) fn add_to(&self, body: &mut impl Sink) {
        match self {
            Self::Se { capabilities } => body.add(capabilities),
            Self::Sa { challenge, token } => {
                body.add_if_any(challenge);
                body.add_if_any(token);
            }
            Self::St | Self::Prd => {}
            Self::Prr(rule) | Self::Per(rule) => rule.add_to(body),
            Self::Plc { lifetime } => body.add(lifetime),
            Self::Prs { rule, owner } => {
                rule.add_to(body);
                body.add(owner);
            }
            Self::Pes(rule) => rule.add_to(body),
            Self::Pds(rule) => rule.add_to(body),
            Self::Prl(pids) => pids.iter().for_each(|pid| body.add(pid)),
            Self::Pdr { pid, lifetime } => {
                body.add(pid);
                body.add(lifetime);
            }
        }
    }
}

impl GrantedRule {
    fn parse(body: &mut Attributes<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            pid: body.next()?,
            gid: body.next()?,
            lifetime: body.next()?,
            outside: body.next()?,
            inside: body.next_if()?,
        })
    }

    fn add_to(&self, body: &mut impl Sink) {
        let Self { pid, gid, lifetime, outside, inside } = self;
        body.add(pid);
        body.add(gid);
        body.add(lifetime);
        body.add(outside);
        body.add_if_any(inside);
    }
}

impl EnableRuleStatus {
    fn parse(body: &mut Attributes<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            pid: body.next()?,
            gid: body.next()?,
            parameters: body.next()?,
            internal: body.next()?,
            inside: body.next()?,
            outside: body.next()?,
            external: body.next()?,
            lifetime: body.next()?,
            owner: body.next()?,
        })
    }

    fn add_to(&self, body: &mut impl Sink) {
        let Self { pid, gid, parameters, internal, inside, outside, external, lifetime, owner } = self;
        body.add(pid);
        body.add(gid);
        body.add(parameters);
        body.add(internal);
        body.add(inside);
        body.add(outside);
        body.add(external);
        body.add(lifetime);
        body.add(owner);
    }
}

impl DisableRuleStatus {
    fn parse(body: &mut Attributes<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            pid: body.next()?,
            internal: body.next()?,
            external: body.next()?,
            lifetime: body.next()?,
            owner: body.next()?,
        })
    }

    fn add_to(&self, body: &mut impl Sink) {
        let Self { pid, internal, external, lifetime, owner } = self;
        body.add(pid);
        body.add(internal);
        body.add(external);
        body.add(lifetime);
        body.add(owner);
    }
}
