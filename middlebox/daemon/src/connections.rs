//! All connections and their deadlines.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;

use hol_base::Time;
use hol_simco::{AgentId, Body, Message, Notification, SessionId};
use hol_system::{Interest, Poller};

use crate::connection::{Connection, Over};
use crate::limits::Limits;
use crate::token::Token;
use crate::turns::Turns;

/// The connections by session.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    all: BTreeMap<SessionId, Connection>,
    deadlines: BTreeSet<(Time, SessionId)>,
    /// Those to flush before the turn ends.
    touched: BTreeSet<SessionId>,
    /// Those with others' notifications, of which some are sent each turn: writing to thousands of sockets
    /// takes too long.
    told: VecDeque<SessionId>,
    /// Those to read.
    turns: Turns,
    /// Octets queued on all of them.
    waiting: usize,
}

impl Connections {
    /// Maximum connections that get notifications per turn.
    const MOST_TOLD: usize = 128;

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn add(&mut self, id: SessionId, connection: Connection, poller: &Poller<Token>) -> io::Result<()> {
        poller.add(&connection, Token::Connection(id), Interest::Read)?;
        self.all.insert(id, connection);
        Ok(())
    }

    /// Returns the address of the agent's host.
    pub fn peer(&self, id: SessionId) -> Option<SocketAddr> {
        self.all.get(&id).map(|connection| connection.peer)
    }

    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        self.all.get_mut(&id)
    }

    /// Notes that the connection has data to send other than a message.
    pub fn note_to_write(&mut self, id: SessionId) {
        if self.all.get(&id).is_some_and(Connection::is_to_write) {
            self.touched.insert(id);
        }
    }

    /// Sets the agent of a connection.
    pub fn set_agent(&mut self, id: SessionId, agent: AgentId) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.party = Some(agent);
        }
    }

    /// Handles a writable or readable connection: sends what is queued, or else queues it for reading.
    pub fn note_ready(&mut self, id: SessionId) {
        match self.all.get_mut(&id) {
            Some(connection) if connection.interest == Interest::Write => drop(self.touched.insert(id)),
            Some(connection) => queue_up(&mut self.turns, id, connection),
            None => {}
        }
    }

    /// Returns the connection to read next. One with data to be sent to it first is skipped.
    pub fn next_speaker(&mut self) -> Option<SessionId> {
        while let Some(id) = self.turns.next() {
            if let Some(connection) = self.all.get_mut(&id) {
                connection.is_queued = false;
                if connection.interest == Interest::Read {
                    return Some(id);
                }
            }
        }
        None
    }

    /// Queues a message for an agent, unless it has gone.
    pub fn push(&mut self, id: SessionId, message: &Message) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        let before = connection.waiting();
        connection.push(message);
        self.waiting += connection.waiting() - before;
        if !matches!(message.body, Body::Notification(Notification::Are { .. })) {
            self.touched.insert(id);
        } else if !std::mem::replace(&mut connection.is_told, true) {
            self.told.push_back(id);
        }
    }

    /// Closes the connection after what is queued.
    pub fn close(&mut self, id: SessionId) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.close();
            self.touched.insert(id);
        }
    }

    /// Closes the connection at once; its socket leaves the poller by itself.
    pub fn remove(&mut self, id: SessionId) -> Option<Connection> {
        let connection = self.all.remove(&id)?;
        self.waiting -= connection.waiting();
        if let Some(deadline) = connection.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(connection)
    }

    /// Flushes the touched connections, and some of those with notifications. Returns ended ones, which the
    /// caller must remove.
    pub fn settle(&mut self, now: Time, limits: &Limits, poller: &Poller<Token>) -> Vec<(SessionId, Over)> {
        let mut over = Vec::new();
        let mut to_settle = std::mem::take(&mut self.touched);
        to_settle.extend(self.told.drain(..self.told.len().min(Self::MOST_TOLD)));
        for id in to_settle {
            let Some(connection) = self.all.get_mut(&id) else { continue };
            let (interest, deadline, before) =
                (connection.interest, connection.deadline, connection.waiting());
            connection.is_told = false;
            let mut settled = connection.settle(now, limits);
            self.waiting -= before - connection.waiting();
            if connection.interest != interest {
                let changed = poller.change(&*connection, Token::Connection(id), connection.interest);
                settled = settled.and(changed.map_err(Over::from));
            }
            if connection.deadline != deadline {
                deadline.map(|deadline| self.deadlines.remove(&(deadline, id)));
                self.deadlines.extend(connection.deadline.map(|deadline| (deadline, id)));
            }
            if connection.is_behind && connection.interest == Interest::Read {
                queue_up(&mut self.turns, id, connection);
            }
            over.extend(settled.err().map(|why| (id, why)));
        }
        over
    }

    /// If too much is queued, returns the connections with the most, which the caller must remove.
    pub fn slowest(&self, limits: &Limits) -> Vec<(SessionId, Over)> {
        let mut slowest = Vec::new();
        if self.waiting > limits.backlog {
            let mut all: Vec<_> =
                self.all.iter().map(|(id, connection)| (connection.waiting(), *id)).collect();
            all.sort_unstable_by_key(|connection| Reverse(*connection));
            let mut rest = self.waiting;
            // Well below the limit, so that this does not run every turn.
            while rest > limits.backlog / 4 * 3
                && let Some((waiting, id)) = all.get(slowest.len())
            {
                rest -= waiting;
                slowest.push((*id, Over::Slowest(*waiting)));
            }
        }
        slowest
    }

    /// Returns connections past their deadline, which the caller must remove.
    pub fn overdue(&self, now: Time) -> Vec<(SessionId, Over)> {
        let late = self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now);
        late.filter_map(|&(_, id)| Some((id, self.all.get(&id)?.overdue()))).collect()
    }

    /// Returns when to act without a socket event: at once if a connection waits to be read or notified;
    /// [`Time::MAX`] if never.
    pub fn wake_at(&self) -> Time {
        let deadline = self.deadlines.first().map_or(Time::MAX, |(deadline, _)| *deadline);
        if self.turns.is_empty() && self.told.is_empty() { deadline } else { Time::ZERO }
    }

    /// Returns the octets queued on all of them.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}

fn queue_up(turns: &mut Turns, id: SessionId, connection: &mut Connection) {
    if !std::mem::replace(&mut connection.is_queued, true) {
        turns.push(connection.party, id);
    }
}
