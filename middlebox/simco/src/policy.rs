//! The middlebox's policy, which defines the rights of each agent. RFC 3989 section 2.1.5.

mod replacement;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::{nearest_word, rewrite_parse_error};
use serde::Deserialize;

use crate::quota::QuotaTable;
use crate::{AddressTuple, IpVersion, Owner, Prefix, Quota};

/// The identifier of an agent that is in the policy, or that owns recorded rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentId(u16);

impl AgentId {
    /// The owner of a rule that belongs to no agent of a policy. A [`Policy`] has fewer agents than this number.
    pub const NOBODY: Self = Self(u16::MAX);
}

/// The right to request one kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// The right to reserve addresses: PRR.
    Reserve,
    /// The right to let data pass: PER and PEA.
    Enable,
    /// The right to block data: PDR.
    Disable,
    /// The right to change the lifetimes of rules: PLC.
    Lifetime,
    /// The right to query the status of rules: PRS.
    Status,
    /// The right to list rules: PRL.
    List,
}

/// The agents, the requests that each may send, and the rules that it may access.
///
/// ```toml
/// secure-only = true              # refuse sessions without TLS or IPsec; default false
/// anonymous = "guest"             # the agent of sessions without authentication; default: each must authenticate
///
/// [agents.call-server]            # may reserve, enable, change, query and list; its own rules only
/// internal = ["10.0.0.0/8"]       # hosts that its rules may cover; default: all
///
/// [agents.operator]
/// may = ["disable", "lifetime", "status", "list"]
/// access = "all"                  # or a list of agents, in addition to itself
///
/// [agents.lan]
/// hosts = ["192.168.1.0/24"]      # hosts whose PCP requests belong to this agent; default: none
///
/// [agents.guest]
/// may = ["list"]
/// quota = { rules = 100 }         # these keys override `[quota]`, which overrides the defaults of `Quota` for every agent
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    agents: Vec<Permit>,
    anonymous: Option<AgentId>,
    /// Whether sessions are refused unless a layer below SIMCO protects them. RFC 4540 section 7.2.
    secure_only: bool,
}

/// The rights of one agent.
#[derive(Debug, Clone)]
struct Permit {
    name: String,
    may: Vec<Right>,
    accesses: Accesses,
    /// Hosts that the agent's rules may cover; `None`: all hosts.
    internal: Option<Vec<Prefix>>,
    external: Option<Vec<Prefix>>,
    /// Hosts whose requests for port mappings belong to this agent.
    hosts: Vec<Prefix>,
    quota: Quota,
}

/// Which agents' rules an agent may access.
#[derive(Debug, Clone)]
enum Accesses {
    All,
    Agents(Vec<AgentId>),
}

/// Why a text is not a valid policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The text is not TOML, or has unknown keys; this describes the problem.
    #[error("{0}")]
    Syntax(String),
    /// The policy names an agent for which there is no table `[agents.…]`.
    #[error("{key}: unknown agent `{name}`{hint}", hint = hint(.nearest))]
    UnknownAgent {
        /// The key whose value names the unknown agent.
        key: String,
        /// The unknown name.
        name: String,
        /// The agent with the most similar name, which was probably meant.
        nearest: Option<String>,
    },
    /// There are more agents than identifiers for them.
    #[error("the policy has {0} agents; at most {max} are allowed", max = u16::MAX)]
    TooManyAgents(usize),
    /// The name is too long for an owner attribute.
    #[error("[agents.{0}]: the name has more than {limit} octets; shorten it", limit = Owner::LIMIT)]
    LongName(String),
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(", define it".to_owned(), |name| format!("; did you mean `{name}`?"))
}

/// The content of a policy file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PolicyFile {
    #[serde(default)]
    secure_only: bool,
    /// The agent to which sessions without authentication belong.
    anonymous: Option<String>,
    /// The default quota of every agent.
    #[serde(default)]
    quota: QuotaTable,
    agents: BTreeMap<String, AgentTable>,
}

/// The table of an agent in a policy file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    may: Option<Vec<Right>>,
    access: Option<AccessList>,
    internal: Option<Vec<PrefixText>>,
    external: Option<Vec<PrefixText>>,
    #[serde(default)]
    hosts: Vec<PrefixText>,
    #[serde(default)]
    quota: QuotaTable,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`access` is \"all\" or a list of agents")]
enum AccessList {
    All(All),
    Agents(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum All {
    All,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct PrefixText(Prefix);

impl TryFrom<String> for PrefixText {
    type Error = crate::PrefixError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// The rights of an agent without the key `may`: all except [`Right::Disable`], because PDR blocks data of other
/// agents.
const DEFAULT_RIGHTS: [Right; 5] =
    [Right::Reserve, Right::Enable, Right::Lifetime, Right::Status, Right::List];

/// Returns the problem in plain words, with the position and the line from the TOML parser's message.
fn describe_error(error: &toml::de::Error) -> String {
    error.to_string().trim_end().replace(error.message(), &rewrite_parse_error(error.message()))
}

impl Policy {
    /// Returns a policy that gives every agent all rights without authentication. It does not distinguish agents.
    pub fn permissive() -> Self {
        let quota = Quota::UNLIMITED;
        let anybody =
            Permit { may: all_rights(), accesses: Accesses::All, quota, ..Permit::without_rights("") };
        Self { agents: vec![anybody], anonymous: Some(AgentId(0)), secure_only: false }
    }

    /// Returns a policy that gives these agents all rights once they have authenticated; other agents have no rights.
    pub fn of_agents<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, PolicyError> {
        let permit = |name: &str| Permit {
            may: all_rights(),
            accesses: Accesses::All,
            ..Permit::without_rights(name)
        };
        let agents: Vec<Permit> = names.into_iter().map(permit).collect();
        check_count(agents.len())?;
        Ok(Self { agents, anonymous: None, secure_only: false })
    }

    /// Parses the text of a policy file.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let file: PolicyFile =
            toml::from_str(text).map_err(|error| PolicyError::Syntax(describe_error(&error)))?;
        check_count(file.agents.len())?;
        let names: Vec<&str> = file.agents.keys().map(String::as_str).collect();
        let id = |key: &str, name: &str| find(&names, key, name);
        let anonymous = file.anonymous.as_ref().map(|name| id("anonymous", name)).transpose()?;
        let quota = file.quota.override_defaults(Quota::default());
        let agents: Result<_, _> =
            file.agents.iter().map(|(name, table)| table.permit(name, quota, &id)).collect();
        Ok(Self { agents: agents?, anonymous, secure_only: file.secure_only })
    }

    /// Returns the names of the agents in the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(|permit| permit.name.as_str())
    }

    /// Returns the agent with this name; `None` if the policy does not contain it.
    pub fn agent(&self, name: &str) -> Option<AgentId> {
        self.ids().find(|agent| self.permit(*agent).name == name)
    }

    /// Returns the agent with this name. If it is unknown, adds it without rights, so that it can own its earlier
    /// rules.
    pub fn owner(&mut self, name: &str) -> AgentId {
        self.agent(name).unwrap_or_else(|| {
            self.agents.push(Permit::without_rights(name));
            AgentId(u16::try_from(self.agents.len() - 1).expect("fewer than 65536 agents"))
        })
    }

    /// Returns the agent to which a host belongs, by the longest matching prefix; `None` if no prefix matches.
    pub fn agent_at(&self, host: IpAddr) -> Option<AgentId> {
        let host = Prefix::new(host, IpVersion::of(host).address_bits())?;
        let covers = |agent: &AgentId| self.permit(*agent).hosts.iter().filter(|hosts| hosts.covers(&host));
        let longest = |agent: &AgentId| covers(agent).map(Prefix::length).max();
        self.ids().filter(|agent| covers(agent).next().is_some()).max_by_key(longest)
    }

    /// Returns true if any hosts belong to agents of the policy.
    pub fn assigns_hosts(&self) -> bool {
        self.ids().any(|agent| !self.permit(agent).hosts.is_empty())
    }

    /// Returns the agent's name as the owner attribute of its rules.
    pub fn name(&self, agent: AgentId) -> Owner {
        Owner::new(self.permit(agent).name.clone())
    }

    /// Returns the agent's name; empty if agents are not distinguished.
    pub fn agent_name(&self, agent: AgentId) -> &str {
        &self.permit(agent).name
    }

    /// Returns the agent to which sessions without authentication belong; `None` if every agent must authenticate.
    pub fn anonymous(&self) -> Option<AgentId> {
        self.anonymous
    }

    /// Returns true if a layer below SIMCO, such as TLS, must protect sessions. RFC 4540 section 7.2.
    pub fn is_secure_only(&self) -> bool {
        self.secure_only
    }

    /// Returns true if the agent may request this kind of transaction.
    pub fn permits(&self, agent: AgentId, right: Right) -> bool {
        self.permit(agent).may.contains(&right)
    }

    /// Returns true if any agent may request this kind of transaction.
    pub(crate) fn permitted_to_any(&self, right: Right) -> bool {
        self.ids().any(|agent| self.permits(agent, right))
    }

    /// Returns true if the agent has any right.
    pub fn admits(&self, agent: AgentId) -> bool {
        !self.permit(agent).may.is_empty()
    }

    /// Returns true if the agent may see and change the owner's rules.
    pub fn may_access(&self, agent: AgentId, owner: AgentId) -> bool {
        agent == owner
            || match &self.permit(agent).accesses {
                Accesses::All => true,
                Accesses::Agents(owners) => owners.contains(&owner),
            }
    }

    /// Returns all agents whose rules the agent may see and change.
    pub fn accessible(&self, agent: AgentId) -> impl Iterator<Item = AgentId> {
        self.ids().filter(move |&owner| self.may_access(agent, owner))
    }

    /// Returns the quota of an agent.
    pub fn quota(&self, agent: AgentId) -> &Quota {
        &self.permit(agent).quota
    }

    /// Returns true if the agent's rules may cover these hosts.
    pub fn covers(&self, agent: AgentId, internal: &AddressTuple, external: &AddressTuple) -> bool {
        let permit = self.permit(agent);
        let covered = |allowed: &Option<Vec<Prefix>>, tuple: &AddressTuple| {
            allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|prefix| prefix.covers(&tuple.prefix())))
        };
        covered(&permit.internal, internal) && covered(&permit.external, external)
    }

    fn permit(&self, agent: AgentId) -> &Permit {
        &self.agents[usize::from(agent.0)]
    }

    fn ids(&self) -> impl Iterator<Item = AgentId> + use<> {
        (0..self.agents.len() as u16).map(AgentId)
    }
}

impl Permit {
    fn without_rights(name: &str) -> Self {
        let accesses = Accesses::Agents(Vec::new());
        let (may, quota) = (Vec::new(), Quota::default());
        Self {
            name: name.to_owned(),
            may,
            accesses,
            internal: None,
            external: None,
            hosts: Vec::new(),
            quota,
        }
    }
}

impl AgentTable {
    fn permit(
        &self,
        name: &str,
        quota: Quota,
        id: &impl Fn(&str, &str) -> Result<AgentId, PolicyError>,
    ) -> Result<Permit, PolicyError> {
        if name.len() > Owner::LIMIT {
            return Err(PolicyError::LongName(name.to_owned()));
        }
        let key = format!("[agents.{name}] access");
        let accesses = match &self.access {
            Some(AccessList::All(All::All)) => Accesses::All,
            Some(AccessList::Agents(names)) => {
                Accesses::Agents(names.iter().map(|other| id(&key, other)).collect::<Result<_, _>>()?)
            }
            None => Accesses::Agents(Vec::new()),
        };
        let prefixes =
            |list: &Option<Vec<PrefixText>>| Some(list.as_ref()?.iter().map(|text| text.0).collect());
        Ok(Permit {
            name: name.to_owned(),
            may: self.may.clone().unwrap_or(DEFAULT_RIGHTS.to_vec()),
            accesses,
            internal: prefixes(&self.internal),
            external: prefixes(&self.external),
            hosts: self.hosts.iter().map(|text| text.0).collect(),
            quota: self.quota.override_defaults(quota),
        })
    }
}

fn all_rights() -> Vec<Right> {
    DEFAULT_RIGHTS.into_iter().chain([Right::Disable]).collect()
}

fn check_count(agents: usize) -> Result<(), PolicyError> {
    if agents > usize::from(u16::MAX) { Err(PolicyError::TooManyAgents(agents)) } else { Ok(()) }
}

fn find(names: &[&str], key: &str, name: &str) -> Result<AgentId, PolicyError> {
    let found = names.iter().position(|other| *other == name).and_then(|at| u16::try_from(at).ok());
    found.map(AgentId).ok_or_else(|| PolicyError::UnknownAgent {
        key: key.to_owned(),
        name: name.to_owned(),
        nearest: nearest_word(name, names.iter().copied()).map(str::to_owned),
    })
}
