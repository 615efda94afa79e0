//! The order of reading: agents take turns, however many connections one of them has.

use std::collections::{BTreeMap, VecDeque};

use hol_simco::{AgentId, SessionId};

/// The agent of a connection. All unauthenticated ones count as one.
pub(crate) type Party = Option<AgentId>;

/// Connections waiting to be read.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Agents with waiting connections, longest waiting first.
    parties: VecDeque<Party>,
    waiting: BTreeMap<Party, VecDeque<SessionId>>,
}

impl Turns {
    /// Adds a connection behind the others of its agent.
    pub fn push(&mut self, party: Party, id: SessionId) {
        let waiting = self.waiting.entry(party).or_default();
        if waiting.is_empty() {
            self.parties.push_back(party);
        }
        waiting.push_back(id);
    }

    /// Removes the next connection; its agent is now behind the others.
    pub fn next(&mut self) -> Option<SessionId> {
        let party = self.parties.pop_front()?;
        let waiting = self.waiting.get_mut(&party)?;
        let id = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&party);
        } else {
            self.parties.push_back(party);
        }
        id
    }

    pub fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hol_simco::Policy;

    use super::*;

    #[test]
    fn a_hundred_connections_of_one_agent_have_as_many_turns_as_one_of_another() {
        let policy = Policy::of_agents(["one", "other"]).unwrap();
        let [one, other] = ["one", "other"].map(|name| policy.agent(name));
        let mut turns = Turns::default();
        (0..100).for_each(|id| turns.push(one, SessionId(id)));
        turns.push(other, SessionId(100));
        turns.push(None, SessionId(101));
        let first: Vec<u32> = std::iter::from_fn(|| turns.next()).take(5).map(|id| id.0).collect();
        assert_eq!(first, [0, 100, 101, 1, 2]);
        turns.push(other, SessionId(100));
        assert_eq!([turns.next(), turns.next()], [SessionId(3), SessionId(100)].map(Some));
        assert_eq!(std::iter::from_fn(|| turns.next()).count(), 96);
        assert!(turns.is_empty());
    }
}
