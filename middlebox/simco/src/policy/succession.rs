//! Replacing a policy: agents keep their identifiers, which rules and sessions use.

use std::collections::BTreeMap;

use super::{Accesses, AgentId, Permit, Policy, PolicyError, check_count};

impl Policy {
    /// Returns this policy as the successor of an earlier one: agents known to both keep their identifiers;
    /// those known only to the earlier one have no rights but own their rules.
    pub fn as_successor_of(self, earlier: &Self) -> Result<Self, PolicyError> {
        let mut places: BTreeMap<&str, AgentId> = earlier.names().zip(earlier.ids()).collect();
        for name in self.names() {
            let next = AgentId(places.len() as u16);
            places.entry(name).or_insert(next);
        }
        check_count(places.len())?;
        let place = |agent: AgentId| places[self.permit(agent).name.as_str()];
        let mut agents = vec![Permit::nothing(""); places.len()];
        for (name, id) in &places {
            agents[usize::from(id.0)] = Permit::nothing(name);
        }
        for (agent, permit) in self.ids().zip(&self.agents) {
            let accesses = match &permit.accesses {
                Accesses::All => Accesses::All,
                Accesses::Agents(owners) => Accesses::Agents(owners.iter().copied().map(place).collect()),
            };
            agents[usize::from(place(agent).0)] = Permit { accesses, ..permit.clone() };
        }
        Ok(Self { agents, anonymous: self.anonymous.map(place), secure_only: self.secure_only })
    }
}
