//! Whose turn it is to be heard: agents one after the other, however many connections one of them has.

use std::collections::{BTreeMap, VecDeque};

use hol_simco::{AgentId, SessionId};

/// The agent at the other end of a connection. Those who have not said who they are count as one.
pub(crate) type Party = Option<AgentId>;

/// Connections that wait to be heard.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Those who have some, the one that has waited longest first.
    parties: VecDeque<Party>,
    waiting: BTreeMap<Party, VecDeque<SessionId>>,
}

impl Turns {
    /// Puts a connection behind the others of its party.
    pub fn push(&mut self, party: Party, id: SessionId) {
        let waiting = self.waiting.entry(party).or_default();
        if waiting.is_empty() {
            self.parties.push_back(party);
        }
        waiting.push_back(id);
    }

    /// Takes out the connection whose turn it is; its party is behind the others now.
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
