//! All connections, and when each is given up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use hol_base::Time;
use hol_simco::{Message, SessionId};
use hol_system::{Interest, Poller};

use crate::connection::{Connection, Over};
use crate::limits::Limits;
use crate::token::Token;

/// The connections by their session.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    all: BTreeMap<SessionId, Connection>,
    deadlines: BTreeSet<(Time, SessionId)>,
    /// Those to settle before the turn ends.
    touched: BTreeSet<SessionId>,
    /// Those to hear, the one that has waited longest first.
    queue: VecDeque<SessionId>,
}

impl Connections {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn add(&mut self, id: SessionId, connection: Connection, poller: &Poller<Token>) -> io::Result<()> {
        poller.add(&connection, Token::Connection(id), Interest::Read)?;
        self.all.insert(id, connection);
        Ok(())
    }

    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        self.all.get_mut(&id)
    }

    /// The connection takes what waits for it; if nothing does, it is to be heard, behind the others.
    pub fn note_ready(&mut self, id: SessionId) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        if connection.interest == Interest::Write {
            self.touched.insert(id);
        } else {
            queue_up(&mut self.queue, id, connection);
        }
    }

    /// Whose turn it is to be heard. Nobody is who is to hear something first.
    pub fn next_speaker(&mut self) -> Option<SessionId> {
        while let Some(id) = self.queue.pop_front() {
            if let Some(connection) = self.all.get_mut(&id) {
                connection.is_queued = false;
                if connection.interest == Interest::Read {
                    return Some(id);
                }
            }
        }
        None
    }

    /// A message for an agent; one that has gone does not get it.
    pub fn push(&mut self, id: SessionId, message: &Message) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.push(message);
            self.touched.insert(id);
        }
    }

    /// Closes the connection behind what waits for it.
    pub fn close(&mut self, id: SessionId) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.close();
            self.touched.insert(id);
        }
    }

    /// Closes the connection at once; its socket leaves the poller by itself.
    pub fn remove(&mut self, id: SessionId) -> Option<Connection> {
        let connection = self.all.remove(&id)?;
        if let Some(deadline) = connection.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(connection)
    }

    /// Sends what waits on those that were touched. Returns those that are over; they are to be removed.
    pub fn settle(&mut self, now: Time, limits: &Limits, poller: &Poller<Token>) -> Vec<(SessionId, Over)> {
        let mut over = Vec::new();
        for id in std::mem::take(&mut self.touched) {
            let Some(connection) = self.all.get_mut(&id) else { continue };
            let (interest, deadline) = (connection.interest, connection.deadline);
            let mut settled = connection.settle(now, limits);
            if connection.interest != interest {
                let changed = poller.change(&*connection, Token::Connection(id), connection.interest);
                settled = settled.and(changed.map_err(Over::from));
            }
            if connection.deadline != deadline {
                deadline.map(|deadline| self.deadlines.remove(&(deadline, id)));
                self.deadlines.extend(connection.deadline.map(|deadline| (deadline, id)));
            }
            if connection.is_behind && connection.interest == Interest::Read {
                queue_up(&mut self.queue, id, connection);
            }
            over.extend(settled.err().map(|why| (id, why)));
        }
        over
    }

    /// Those that have had their time. They are to be removed.
    pub fn overdue(&self, now: Time) -> Vec<(SessionId, Over)> {
        let late = self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now);
        late.filter_map(|&(_, id)| Some((id, self.all.get(&id)?.overdue()))).collect()
    }

    /// When something is to be done that no socket tells: at once if somebody waits to be heard; [`Time::MAX`] if there
    /// is nothing.
    pub fn wake_at(&self) -> Time {
        let deadline = self.deadlines.first().map_or(Time::MAX, |(deadline, _)| *deadline);
        if self.queue.is_empty() { deadline } else { Time::ZERO }
    }

    /// Octets that wait on all of them.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.all.values().map(Connection::waiting).sum()
    }
}

fn queue_up(queue: &mut VecDeque<SessionId>, id: SessionId, connection: &mut Connection) {
    if !std::mem::replace(&mut connection.is_queued, true) {
        queue.push_back(id);
    }
}
