//! Replacing a policy: agents keep their identifiers, which rules and sessions use.

use std::collections::BTreeMap;

use super::{Accesses, AgentId, Permit, Policy, PolicyError, check_count};

impl Policy {
    /// Returns this policy as the successor of an earlier one. Agents in both policies keep their identifiers. Agents
    /// that are only in the earlier policy have no rights any more, but still own their rules.
    pub fn as_successor_of(self, earlier: &Self) -> Result<Self, PolicyError> {
        let mut indices: BTreeMap<&str, AgentId> = earlier.names().zip(earlier.ids()).collect();
        for name in self.names() {
            let next = AgentId(indices.len() as u16);
            indices.entry(name).or_insert(next);
        }
        check_count(indices.len())?;
        let index = |agent: AgentId| indices[self.permit(agent).name.as_str()];
        let mut agents = vec![Permit::without_rights(""); indices.len()];
        for (name, id) in &indices {
            agents[usize::from(id.0)] = Permit::without_rights(name);
        }
        for (agent, permit) in self.ids().zip(&self.agents) {
            let accesses = match &permit.accesses {
                Accesses::All => Accesses::All,
                Accesses::Agents(owners) => Accesses::Agents(owners.iter().copied().map(index).collect()),
            };
            agents[usize::from(index(agent).0)] = Permit { accesses, ..permit.clone() };
        }
        Ok(Self { agents, anonymous: self.anonymous.map(index), secure_only: self.secure_only })
    }
}
