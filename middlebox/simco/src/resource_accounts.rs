//! The resources that each agent uses.

use std::collections::BTreeMap;

use crate::{
    AddressTuple, AgentId, Binding, Change, ExhaustedResource, Footprint, FootprintFn, Quota, Refusal, Rule,
    ShapeId,
};

/// The accounts of all agents. Only [`apply`](Self::apply) changes what rules use, so each change to them can be
/// undone.
#[derive(Debug)]
pub(crate) struct ResourceAccounts {
    footprint: Option<FootprintFn>,
    limits: ResourceLimits,
    agents: BTreeMap<AgentId, Account>,
    /// Number of open sessions of all agents.
    sessions: usize,
    /// Number of elements of all agents' rules in the packet filter.
    elements: usize,
    /// Number of rules of each shape, for all agents.
    shapes: BTreeMap<ShapeId, usize>,
}

/// The limits that all agents share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceLimits {
    /// Maximum number of open sessions of all agents.
    pub sessions: usize,
    /// Maximum number of elements of all agents' rules in the packet filter.
    pub elements: usize,
    /// Maximum number of shapes of the elements of all agents' rules.
    pub shapes: usize,
}

/// The resources used by one agent.
#[derive(Debug, Default)]
struct Account {
    sessions: usize,
    rules: usize,
    /// Number of elements of the agent's rules in the packet filter.
    elements: usize,
    /// Number of the agent's rules of each shape.
    shapes: BTreeMap<ShapeId, usize>,
    /// Number of NAT addresses that are taken as a whole, or with all ports of one protocol.
    addresses: usize,
    /// Number of NAT ports that are taken one by one, not with their whole address.
    ports: usize,
}

/// The resources used by one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of open sessions.
    pub sessions: usize,
    /// Number of policy rules.
    pub rules: usize,
    /// Number of elements of the agent's rules in the packet filter.
    pub elements: usize,
    /// Number of NAT addresses that are taken as a whole, or with all ports of one protocol.
    pub addresses: usize,
    /// Number of NAT ports that are taken one by one, not with their whole address.
    pub ports: usize,
}

/// The resources that a rule needs in addition to its slot in the table.
#[derive(Debug, Default)]
pub(crate) struct RuleResources {
    pub footprint: Footprint,
    addresses: usize,
    ports: usize,
}

impl ResourceAccounts {
    /// Number of shapes that an agent gets even when few are free: the last quarter of the shapes is reserved for
    /// agents with fewer shapes than this.
    const SHAPES_WHEN_SCARCE: usize = 4;
    /// Number of sessions that an agent gets even when few are free: the last quarter of the sessions is reserved
    /// for agents with fewer sessions than this.
    const SESSIONS_WHEN_SCARCE: usize = 4;

    pub fn new(footprint: Option<FootprintFn>, limits: ResourceLimits) -> Self {
        Self { footprint, limits, agents: BTreeMap::new(), sessions: 0, elements: 0, shapes: BTreeMap::new() }
    }

    /// Returns the resources that each agent uses.
    pub fn usage(&self) -> impl Iterator<Item = (AgentId, Usage)> {
        self.agents.iter().map(|(agent, account)| {
            let Account { sessions, rules, elements, addresses, ports, .. } = *account;
            (*agent, Usage { sessions, rules, elements, addresses, ports })
        })
    }

    /// Returns the resources that the rule needs; fails if the packet filter cannot enforce the rule.
    pub fn rule_resources(&self, rule: &Rule) -> Result<RuleResources, Refusal> {
        let footprint = self.footprint.map_or(Ok(Footprint::default()), |footprint_of| footprint_of(rule))?;
        let Binding { outside, inside } = rule.binding();
        let (addresses, ports) = [outside, inside].iter().flatten().map(resources_of).fold((0, 0), add);
        Ok(RuleResources { footprint, addresses, ports })
    }

    /// Checks that the agent may use the resources `more` in place of `less`; the error names the exhausted
    /// resource.
    pub fn check(
        &self,
        agent: AgentId,
        quota: &Quota,
        more: &RuleResources,
        less: &RuleResources,
    ) -> Result<(), ExhaustedResource> {
        let nothing = Account::default();
        let account = self.agents.get(&agent).unwrap_or(&nothing);
        let is_within =
            |used: usize, more: usize, less: usize, max: usize| more <= less || used - less + more <= max;
        let (elements, given) = (more.footprint.elements, less.footprint.elements);
        if !is_within(account.elements, elements, given, quota.elements)
            || !is_within(self.elements, elements, given, self.limits.elements)
        {
            Err(ExhaustedResource::Elements)
        } else if !is_within(account.addresses, more.addresses, less.addresses, quota.addresses) {
            Err(ExhaustedResource::Addresses)
        } else if !is_within(account.ports, more.ports, less.ports, quota.ports) {
            Err(ExhaustedResource::Ports)
        } else {
            self.check_shapes(account, quota, &more.footprint.shapes)
        }
    }

    /// Checks the limits on shapes. The last quarter of the shapes is reserved for agents that have few shapes.
    fn check_shapes(
        &self,
        account: &Account,
        quota: &Quota,
        required: &[ShapeId],
    ) -> Result<(), ExhaustedResource> {
        let more = required.iter().filter(|shape| !account.shapes.contains_key(shape)).count();
        let new = required.iter().filter(|shape| !self.shapes.contains_key(shape)).count();
        let after = account.shapes.len() + more;
        let max = if after <= Self::SHAPES_WHEN_SCARCE || quota.shapes == usize::MAX {
            self.limits.shapes
        } else {
            self.limits.shapes - self.limits.shapes / 4
        };
        if more > 0 && after > quota.shapes || new > 0 && self.shapes.len() + new > max {
            Err(ExhaustedResource::Shapes)
        } else {
            Ok(())
        }
    }

    /// Returns true if the agent's quota permits another rule.
    pub fn has_room_for_rule(&self, agent: AgentId, quota: &Quota) -> bool {
        self.agents.get(&agent).map_or(0, |account| account.rules) < quota.rules
    }

    /// Returns true if the agent may have another session. A quarter of all sessions is reserved for agents that
    /// have few sessions.
    pub fn has_room_for_session(&self, agent: AgentId, quota: &Quota) -> bool {
        let sessions = self.agents.get(&agent).map_or(0, |account| account.sessions);
        let has_few = sessions < Self::SESSIONS_WHEN_SCARCE || quota.sessions == usize::MAX;
        let max =
            if has_few { self.limits.sessions } else { self.limits.sessions - self.limits.sessions / 4 };
        sessions < quota.sessions && self.sessions < max
    }

    pub fn begin_session(&mut self, agent: AgentId) {
        self.sessions += 1;
        self.agents.entry(agent).or_default().sessions += 1;
    }

    pub fn end_session(&mut self, agent: AgentId) {
        self.sessions -= 1;
        self.agents.entry(agent).or_default().sessions -= 1;
    }

    /// Updates the accounts for a change: releases the resources of the old state of the rule, and charges those
    /// of the new one. Returns the number of elements that a packet filter has to change.
    pub fn apply(&mut self, change: &Change) -> usize {
        let is_same = |before: &Rule, after: &Rule| before.action == after.action;
        if let (Some(before), Some(after)) = (&change.before, &change.after)
            && is_same(before, after)
        {
            // A new lifetime changes each element once from Linux 6.12 on. Before, it is deleted and added, which together
            // take 10 to 11 us, too.
            return self
                .footprint
                .map_or(0, |footprint_of| footprint_of(after).map_or(0, |footprint| footprint.elements));
        }
        let before = change.before.as_ref().map_or(0, |rule| self.release(rule));
        before + change.after.as_ref().map_or(0, |rule| self.charge(rule))
    }

    fn charge(&mut self, rule: &Rule) -> usize {
        // The packet filter may be unable to enforce a restored rule. Such a rule counts as using nothing.
        let RuleResources { footprint, addresses, ports } = self.rule_resources(rule).unwrap_or_default();
        let account = self.agents.entry(rule.owner).or_default();
        account.rules += 1;
        account.elements += footprint.elements;
        account.addresses += addresses;
        account.ports += ports;
        self.elements += footprint.elements;
        for shape in footprint.shapes {
            *account.shapes.entry(shape).or_default() += 1;
            *self.shapes.entry(shape).or_default() += 1;
        }
        footprint.elements
    }

    fn release(&mut self, rule: &Rule) -> usize {
        let RuleResources { footprint, addresses, ports } = self.rule_resources(rule).unwrap_or_default();
        let account = self.agents.get_mut(&rule.owner).expect("each owner of a rule has an account");
        account.rules -= 1;
        account.elements -= footprint.elements;
        account.addresses -= addresses;
        account.ports -= ports;
        self.elements -= footprint.elements;
        for shape in footprint.shapes {
            release_shape(&mut account.shapes, shape);
            release_shape(&mut self.shapes, shape);
        }
        footprint.elements
    }
}

fn release_shape(shapes: &mut BTreeMap<ShapeId, usize>, shape: ShapeId) {
    let count = shapes.get_mut(&shape).expect("each shape in use is counted");
    *count -= 1;
    if *count == 0 {
        shapes.remove(&shape);
    }
}

fn add(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
    (one.0 + other.0, one.1 + other.1)
}

/// Returns the numbers of whole addresses and of ports that a tuple takes from a NAT.
fn resources_of(tuple: &AddressTuple) -> (usize, usize) {
    let (first, last) = tuple.ports();
    if tuple.has_protocol_wildcard() || tuple.has_port_wildcard() {
        (1, 0)
    } else {
        (0, (last - first + 1) as usize)
    }
}
