//! A rule as a JSON object.

use hol_agent::FlowEnd;
use hol_simco::{AddressTuple, Addresses, Direction, GrantedRule, Owner, Pid, Reply, Request};
use serde::Serialize;

use crate::protocol;

/// A rule as JSON shows it; unknown fields are null.
#[derive(Debug, Default, Serialize)]
pub struct Rule {
    pub(super) pid: u32,
    pub(super) gid: Option<u32>,
    /// State of the rule: reserved, enabled, disabled or ended.
    pub(super) state: Option<&'static str>,
    pub(super) protocol: Option<String>,
    /// Direction of the data: inbound, outbound or both.
    pub(super) direction: Option<&'static str>,
    /// A0: the internal host.
    pub(super) internal: Option<End>,
    /// A1: the middlebox as internal hosts see it.
    pub(super) inside: Option<End>,
    /// A2: the middlebox as external hosts see it.
    pub(super) outside: Option<End>,
    /// A3: the external host.
    pub(super) external: Option<End>,
    pub(super) lifetime_s: Option<u32>,
    pub(super) owner: Option<String>,
}

/// One end of a flow, as JSON shows it. RFC 4540 section 4.3.8.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    /// The addresses and ports in the notation of the command line.
    #[serde(skip)]
    pub(super) text: String,
    pub(super) address: String,
    pub(super) prefix_length: u8,
    /// The first port; null means any port.
    pub(super) port: Option<u16>,
    /// Number of consecutive ports.
    pub(super) ports: u16,
}

/// Returns the PID that a request names (PEA, PLC, PRS); `None` for other requests.
pub fn pid(request: &Request) -> Option<Pid> {
    match request {
        Request::Pea { pid, .. } | Request::Plc { pid, .. } | Request::Prs { pid } => Some(*pid),
        _ => None,
    }
}

impl Rule {
    /// Returns a rule with only its PID; all other fields are unknown.
    pub fn with_pid(pid: Pid) -> Self {
        Self { pid: pid.0, ..Self::default() }
    }

    /// Returns a rule that has ended, with only its PID and state.
    pub fn ended(pid: Pid) -> Self {
        Self { state: Some("ended"), ..Self::with_pid(pid) }
    }

    /// Returns the rule that a request and its reply describe.
    pub fn of(request: &Request, reply: &Reply) -> Self {
        match reply {
            Reply::Prr(rule) => Self::granted("reserved", rule),
            Reply::Per(rule) => Self::granted("enabled", rule).enabled_by(request),
            Reply::Plc { lifetime } => Self { lifetime_s: Some(lifetime.0), ..Self::of_request(request) },
            Reply::Prd => Self { state: Some("ended"), ..Self::of_request(request) },
            Reply::Pdr { pid, lifetime } => {
                let rule =
                    Self { state: Some("disabled"), lifetime_s: Some(lifetime.0), ..Self::with_pid(*pid) };
                rule.enabled_by(request)
            }
            status => Self::of_status(status),
        }
    }

    /// Returns the rule in a reply to PRS. Unlike other replies, it contains all the data of the
    /// rule.
    pub fn of_status(status: &Reply) -> Self {
        match status {
            Reply::Prs { rule, owner } => Self::granted("reserved", rule).owned_by(owner),
            Reply::Pes(rule) => {
                let enabled = Self {
                    gid: Some(rule.gid.0),
                    state: Some("enabled"),
                    direction: Some(direction(rule.parameters.direction)),
                    inside: Some(End::of(&rule.inside)),
                    outside: Some(End::of(&rule.outside)),
                    lifetime_s: Some(rule.lifetime.0),
                    ..Self::with_pid(rule.pid)
                };
                enabled.with_hosts(&rule.internal, &rule.external).owned_by(&rule.owner)
            }
            Reply::Pds(rule) => {
                let (state, lifetime_s) = (Some("disabled"), Some(rule.lifetime.0));
                let disabled = Self { state, lifetime_s, ..Self::with_pid(rule.pid) };
                disabled.with_hosts(&rule.internal, &rule.external).owned_by(&rule.owner)
            }
            reply => unreachable!("{reply:?} is not the status of a rule"),
        }
    }

    fn of_request(request: &Request) -> Self {
        Self::with_pid(pid(request).expect("PLC names a rule"))
    }

    fn granted(state: &'static str, rule: &GrantedRule) -> Self {
        Self {
            gid: Some(rule.gid.0),
            state: Some(state),
            protocol: Some(protocol::name(rule.outside.protocol)),
            inside: rule.inside.as_ref().map(End::of),
            outside: Some(End::of(&rule.outside)),
            lifetime_s: Some(rule.lifetime.0),
            ..Self::with_pid(rule.pid)
        }
    }

    /// Adds the hosts and the direction from the request, which the reply does not repeat.
    fn enabled_by(self, request: &Request) -> Self {
        match request {
            Request::Per { enable, .. } | Request::Pea { enable, .. } => {
                let direction = Some(direction(enable.parameters.direction));
                Self { direction, ..self }.with_hosts(&enable.internal, &enable.external)
            }
            Request::Pdr { internal, external, .. } => self.with_hosts(internal, external),
            _ => self,
        }
    }

    fn with_hosts(self, internal: &AddressTuple, external: &AddressTuple) -> Self {
        let protocol = Some(protocol::name(internal.protocol));
        Self { protocol, internal: Some(End::of(internal)), external: Some(End::of(external)), ..self }
    }

    fn owned_by(self, owner: &Owner) -> Self {
        Self { owner: Some(String::from_utf8_lossy(owner.octets()).into_owned()), ..self }
    }
}

impl End {
    fn of(tuple: &AddressTuple) -> Self {
        let (port, ports) = match tuple.addresses {
            Addresses::Full { port, port_range, .. } => (Some(port).filter(|port| *port != 0), port_range),
            Addresses::ProtocolsOnly(_) => (None, 1),
        };
        let (address, prefix_length) = (tuple.prefix().address().to_string(), tuple.prefix().length());
        Self { text: FlowEnd::from_tuple(tuple).to_string(), address, prefix_length, port, ports }
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Inbound => "inbound",
        Direction::Outbound => "outbound",
        Direction::BiDirectional => "both",
    }
}
