//! The order of reading: agents take turns, however many connections one of them has.

use std::collections::{BTreeMap, VecDeque};

use hol_simco::{AgentId, SessionId};

/// The agent of a connection; `None` if it has not authenticated. All such connections count as one agent.
pub(crate) type AgentOrAnonymous = Option<AgentId>;

/// Connections that wait to be read.
#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    /// Agents with waiting connections; the one that has waited longest comes first.
    agents: VecDeque<AgentOrAnonymous>,
    waiting_sessions: BTreeMap<AgentOrAnonymous, VecDeque<SessionId>>,
}

impl ReadQueue {
    /// Adds a connection behind the other waiting connections of its agent.
    pub fn push(&mut self, agent: AgentOrAnonymous, id: SessionId) {
        let waiting = self.waiting_sessions.entry(agent).or_default();
        if waiting.is_empty() {
            self.agents.push_back(agent);
        }
        waiting.push_back(id);
    }

    /// Removes and returns the next connection, and moves its agent to the end of the queue; `None` if no connection
    /// waits.
    pub fn next(&mut self) -> Option<SessionId> {
        let agent = self.agents.pop_front()?;
        let waiting = self.waiting_sessions.get_mut(&agent)?;
        let id = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting_sessions.remove(&agent);
        } else {
            self.agents.push_back(agent);
        }
        id
    }

    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hol_simco::Policy;

    use super::*;

    #[test]
    fn agents_take_turns_however_many_connections_they_have() {
        let policy = Policy::of_agents(["one", "other"]).unwrap();
        let [one, other] = ["one", "other"].map(|name| policy.agent(name));
        let mut turns = ReadQueue::default();
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
