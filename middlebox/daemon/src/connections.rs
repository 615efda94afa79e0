//! All connections and their deadlines.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;

use hol_base::Time;
use hol_sctp_udp::{Packet, UdpPath};
use hol_simco::{AgentId, Body, Message, Notification, SessionId};
use hol_system::{Interest, Poller};

use crate::connection::{Connection, EndReason};
use crate::event_source::Token;
use crate::limits::Limits;
use crate::read_queue::ReadQueue;

/// All connections, by the identifiers of their sessions.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    all: BTreeMap<SessionId, Connection>,
    deadlines: BTreeSet<(Time, SessionId)>,
    /// Connections whose queues must be sent before the turn ends.
    to_flush: BTreeSet<SessionId>,
    /// Connections with notifications that have not been sent. Only some are sent per turn, because writing to
    /// thousands of sockets takes too long.
    notified: VecDeque<SessionId>,
    /// The queue of connections that wait to be read.
    turns: ReadQueue,
    /// Octets in memory for all connections.
    queued_octets: usize,
    /// When the transport of each connection must act next.
    timers: BTreeSet<(Time, SessionId)>,
}

impl Connections {
    /// Maximum number of connections to which notifications are sent per turn.
    const MAX_NOTIFIED: usize = 128;
    /// Maximum number of connections whose timers are handled per turn.
    const MAX_EXPIRED: usize = 128;

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn add(&mut self, id: SessionId, connection: Connection, poller: &Poller<Token>) -> io::Result<()> {
        if !connection.shares_socket() {
            poller.add(&connection, Token::Connection(id), Interest::Read)?;
        }
        self.all.insert(id, connection);
        self.account(id);
        Ok(())
    }

    /// Returns the address and port of a connection's agent; `None` if the connection is gone.
    pub fn peer(&self, id: SessionId) -> Option<SocketAddr> {
        self.all.get(&id).map(|connection| connection.peer)
    }

    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        self.all.get_mut(&id)
    }

    /// Updates the sum of octets in memory and the timers after a connection has changed.
    fn account(&mut self, id: SessionId) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        let (held, wake_at) = connection.held_octets_and_wake_at();
        let (held_before, woke_at) = std::mem::replace(&mut connection.accounted, (held, wake_at));
        self.queued_octets = self.queued_octets + held - held_before;
        if wake_at != woke_at {
            self.timers.remove(&(woke_at, id));
            self.timers.extend((wake_at < Time::MAX).then_some((wake_at, id)));
        }
    }

    /// Passes a packet that has arrived at a shared socket to its connection.
    pub fn receive(&mut self, now: Time, id: SessionId, path: UdpPath, packet: Packet) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        connection.receive(now, path, packet);
        self.note_changed(id);
    }

    /// Lets the transports act on timers that have expired, up to a maximum; the others follow in the next turn.
    pub fn advance(&mut self, now: Time) {
        let due = self.timers.iter().take_while(|(at, _)| *at <= now).take(Self::MAX_EXPIRED);
        for (_, id) in due.copied().collect::<Vec<_>>() {
            let Some(connection) = self.all.get_mut(&id) else { continue };
            connection.advance(now);
            self.note_changed(id);
        }
    }

    /// Queues a connection for reading and writing after its transport has changed without input from its socket.
    pub fn note_changed(&mut self, id: SessionId) {
        self.account(id);
        self.note_ready(id);
        self.to_flush.insert(id);
    }

    /// Updates the sum of octets in memory and the timers after a connection was read. Queues the connection for
    /// sending if it has something to send.
    pub fn note_read(&mut self, id: SessionId) {
        self.account(id);
        self.note_to_write(id);
    }

    /// Queues the connection for sending if it has something to send, such as data of the transport itself.
    fn note_to_write(&mut self, id: SessionId) {
        if self.all.get(&id).is_some_and(Connection::needs_write) {
            self.to_flush.insert(id);
        }
    }

    /// Records which agent uses a connection.
    pub fn set_agent(&mut self, id: SessionId, agent: AgentId) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.agent = Some(agent);
        }
    }

    /// Handles a connection that the poller reports as ready: queues it for sending if it waits to send, otherwise for
    /// reading.
    pub fn note_ready(&mut self, id: SessionId) {
        match self.all.get_mut(&id) {
            Some(connection) if connection.interest == Interest::Write => drop(self.to_flush.insert(id)),
            Some(connection) => queue_up(&mut self.turns, id, connection),
            None => {}
        }
    }

    /// Returns the connection to read next. Connections with data to send are skipped.
    pub fn next_to_read(&mut self) -> Option<SessionId> {
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

    /// Queues a message for an agent, unless its connection is gone.
    pub fn push(&mut self, id: SessionId, message: &Message) {
        let Some(connection) = self.all.get_mut(&id) else { return };
        connection.push(message);
        if !matches!(message.body, Body::Notification(Notification::Are { .. })) {
            self.to_flush.insert(id);
        } else if !std::mem::replace(&mut connection.has_notifications, true) {
            self.notified.push_back(id);
        }
        self.account(id);
    }

    /// Closes the connection once its queued messages have been sent.
    pub fn close(&mut self, id: SessionId) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.close();
            self.to_flush.insert(id);
        }
    }

    /// Closes the connection at once; closing its socket also removes it from the poller.
    pub fn remove(&mut self, id: SessionId) -> Option<Connection> {
        let connection = self.all.remove(&id)?;
        let (held, wake_at) = connection.accounted;
        self.queued_octets -= held;
        self.timers.remove(&(wake_at, id));
        if let Some(deadline) = connection.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(connection)
    }

    /// Sends what is queued on the connections that changed in this turn, and on some that have notifications; updates
    /// their deadlines and watched events. Returns the connections that have ended, which the caller must remove.
    pub fn flush(
        &mut self,
        now: Time,
        limits: &Limits,
        poller: &Poller<Token>,
    ) -> Vec<(SessionId, EndReason)> {
        let mut over = Vec::new();
        let mut to_settle = std::mem::take(&mut self.to_flush);
        to_settle.extend(self.notified.drain(..self.notified.len().min(Self::MAX_NOTIFIED)));
        for id in to_settle {
            let Some(connection) = self.all.get_mut(&id) else { continue };
            let (interest, deadline) = (connection.interest, connection.deadline);
            connection.has_notifications = false;
            let mut settled = connection.flush(now, limits);
            if connection.interest != interest && !connection.shares_socket() {
                let changed = poller.change(&*connection, Token::Connection(id), connection.interest);
                settled = settled.and(changed.map_err(EndReason::from));
            }
            if connection.deadline != deadline {
                deadline.map(|deadline| self.deadlines.remove(&(deadline, id)));
                self.deadlines.extend(connection.deadline.map(|deadline| (deadline, id)));
            }
            let has_data = connection.has_waiting_messages || connection.has_buffered_data();
            if has_data && connection.interest == Interest::Read {
                queue_up(&mut self.turns, id, connection);
            }
            over.extend(settled.err().map(|reason| (id, reason)));
            self.account(id);
        }
        over
    }

    /// Returns the connections with the longest queues if the sum of the queues exceeds the limit. The caller must
    /// remove these connections.
    pub fn slowest(&self, limits: &Limits) -> Vec<(SessionId, EndReason)> {
        let mut slowest = Vec::new();
        if self.queued_octets > limits.backlog {
            let mut all: Vec<_> =
                self.all.iter().map(|(id, connection)| (connection.accounted.0, *id)).collect();
            all.sort_unstable_by_key(|connection| Reverse(*connection));
            let mut rest = self.queued_octets;
            // The target is well below the limit, so that this does not run every turn.
            while rest > limits.backlog / 4 * 3
                && let Some((waiting, id)) = all.get(slowest.len())
            {
                rest -= waiting;
                slowest.push((*id, EndReason::Slowest(*waiting)));
            }
        }
        slowest
    }

    /// Returns the connections whose deadline has passed. The caller must remove these connections.
    pub fn overdue_connections(&self, now: Time) -> Vec<(SessionId, EndReason)> {
        let late = self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now);
        late.filter_map(|&(_, id)| Some((id, self.all.get(&id)?.overdue_reason()))).collect()
    }

    /// Returns when to act if no socket becomes ready: at once if a connection waits to be read or to be notified;
    /// [`Time::MAX`] if never.
    pub fn wake_at(&self) -> Time {
        let [deadline, timer] =
            [&self.deadlines, &self.timers].map(|times| times.first().map_or(Time::MAX, |(time, _)| *time));
        let deadline = deadline.min(timer);
        if self.turns.is_empty() && self.notified.is_empty() { deadline } else { Time::ZERO }
    }

    /// Returns the number of octets in memory for all connections.
    #[cfg(test)]
    pub fn queued_octets(&self) -> usize {
        self.queued_octets
    }
}

fn queue_up(turns: &mut ReadQueue, id: SessionId, connection: &mut Connection) {
    if !std::mem::replace(&mut connection.is_queued, true) {
        turns.push(connection.agent, id);
    }
}
