//! Incoming connections and messages.

use std::io;

use hol_base::Time;
use hol_simco::{ConnectionInfo, SessionId};

use super::Daemon;
use crate::Transport;
use crate::connection::{Connection, EndReason};
use crate::listeners::NewConnection;
use crate::log::{Field, Level};
use crate::message_transport::ReadOutcome;
use crate::port_mapping::PortMapper;

impl Daemon {
    /// Maximum number of octets read from a connection per turn.
    const MAX_READ: usize = 16 * Self::READ_OCTETS;
    /// Cost of a failed TLS handshake, in units of about a nanosecond of processor time.
    const FAILED_HANDSHAKE_COST: u64 = 500_000;
    /// Maximum number of connections accepted per turn.
    const MAX_ACCEPTED: usize = 64;

    /// Maximum number of TLS handshakes in progress.
    pub(super) const MAX_HANDSHAKES: usize = 512;

    /// Accepts waiting connections. If there are too many, closes one without a session: the oldest one from the
    /// address that has most connections without a session.
    pub(super) fn accept(&mut self, now: Time, number: u32) -> io::Result<()> {
        for _ in 0..Self::MAX_ACCEPTED {
            let Some(listeners) = &mut self.listeners else { return Ok(()) };
            let is_full = self.connections.len() >= self.limits.connections;
            let idle = self.without_session.next_to_displace().filter(|_| is_full);
            if is_full && idle.is_none() {
                return listeners.pause(now, &self.poller);
            }
            match listeners.accept(number) {
                Ok(Some(arrival)) => {
                    idle.into_iter().for_each(|id| self.remove(now, id, &EndReason::Displaced));
                    self.admit(now, arrival);
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    // There are too many open files, or no memory; an immediate retry would fail.
                    self.log.write(now, Level::Warn, "not-accepted", &[("reason", &error)]);
                    return listeners.pause(now, &self.poller);
                }
            }
        }
        Ok(())
    }

    /// Adds a new connection, unless the poller cannot watch it; returns the identifier of its session.
    pub(super) fn admit(
        &mut self,
        now: Time,
        NewConnection { listen, line, peer }: NewConnection,
    ) -> Option<SessionId> {
        self.metrics.lock().accepted += 1;
        let is_secure = listen.is_protected || listen.transport == Transport::Tls;
        let id = self
            .middlebox
            .connect(now, ConnectionInfo { is_secure, ..ConnectionInfo::plain(line.framing()) });
        self.log.write(now, Level::Debug, "connected", &[("session", &id.0), ("peer", &peer)]);
        if let Err(error) = self.connections.add(id, Connection::new(line, peer), &self.poller) {
            self.log.write(now, Level::Warn, "not-accepted", &[("reason", &error)]);
            self.middlebox.disconnect(id);
            return None;
        }
        self.without_session.add(id, peer.ip());
        if listen.transport == Transport::Tls {
            self.handshakes.add(id, peer.ip());
            let is_crowded = self.handshakes.len() > Self::MAX_HANDSHAKES;
            if let Some(other) = self.handshakes.next_to_displace().filter(|_| is_crowded) {
                self.remove(now, other, &EndReason::Displaced);
            }
        }
        Some(id)
    }

    /// Reads one connection after the other until the batch of requests is full. A connection whose sweep is running is
    /// read after the sweep.
    pub(super) fn read_connections(&mut self, now: Time) {
        let mut to_wait = Vec::new();
        while !self.batch.is_full()
            && let Some(id) = self.connections.next_to_read()
        {
            if self.middlebox.is_sweeping_for(id) {
                to_wait.push(id);
                continue;
            }
            self.batch.begin_share();
            self.read_connection(now, id);
            self.connections.note_read(id);
            let has_waiting_messages = self.middlebox.has_waiting_messages(id);
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.has_waiting_messages = has_waiting_messages || connection.has_buffered_data();
            let has_buffered_data = connection.has_buffered_data();
            if self.batch.is_full() {
                // Requests are answered first; buffered data are processed after that.
                to_wait.extend(has_buffered_data.then_some(id));
            } else if has_waiting_messages || has_buffered_data {
                // The session has used its share, and gets the next one after the other sessions.
                self.connections.note_ready(id);
            }
        }
        to_wait.into_iter().for_each(|id| self.connections.note_ready(id));
    }

    /// Reads requests for port mappings, up to an agent's share of a turn. Further datagrams wait in the kernel.
    pub(super) fn read_datagrams(&mut self, now: Time) -> io::Result<()> {
        let Some(mapper) = &mut self.mapper else { return Ok(()) };
        self.batch.begin_share();
        let mut count = 0;
        while count < PortMapper::MAX_DATAGRAMS
            && self.batch.has_room()
            && let Some(&number) = self.readable_mappers.first()
        {
            count += 1;
            let was_received =
                mapper.receive(now, number, &mut self.buffer, &mut self.middlebox, &mut self.batch);
            // ICMP errors about unreachable hosts also arrive here, and are ignored.
            if !was_received.unwrap_or(true) {
                self.readable_mappers.remove(&number);
            }
        }
        // The poller reports sockets with more data again.
        self.readable_mappers.clear();
        Ok(())
    }

    /// Processes the buffered data and the new data of a connection.
    fn read_connection(&mut self, now: Time, id: SessionId) {
        self.middlebox.resume(now, id, &mut self.batch);
        let mut count = 0;
        while count < Self::MAX_READ && self.batch.has_room() && !self.middlebox.is_sweeping_for(id) {
            let Some(connection) = self.connections.get_mut(id) else { return };
            match connection.read(now, &mut self.buffer) {
                Ok(ReadOutcome::Octets(octets)) => {
                    count += octets.len();
                    self.metrics.lock().received += octets.len() as u64;
                    self.middlebox.receive(now, id, octets, &mut self.batch);
                }
                Ok(ReadOutcome::Work(work)) => self.batch.add_work(work),
                Ok(ReadOutcome::Names(Some(names))) if names.is_empty() => {
                    let reason =
                        "the certificate has no DNS name; issue it with one (subjectAltName=DNS:AGENT)";
                    return self.refuse_handshake(
                        now,
                        id,
                        io::Error::new(io::ErrorKind::InvalidData, reason),
                    );
                }
                Ok(ReadOutcome::Names(names)) => self.identify(id, names.unwrap_or_default()),
                Ok(ReadOutcome::Nothing) => return,
                Ok(ReadOutcome::End) if connection.is_open() => {
                    self.middlebox.disconnect(id);
                    return self.connections.close(id);
                }
                Ok(ReadOutcome::End) => return self.remove(now, id, &EndReason::Closed),
                Err(error) if self.handshakes.has(id) => return self.refuse_handshake(now, id, error),
                Err(error) => return self.remove(now, id, &error.into()),
            }
        }
    }

    /// Handles the end of a TLS handshake. The agent gets the first authenticated name that the policy contains, or
    /// else the first name.
    fn identify(&mut self, id: SessionId, mut names: Vec<String>) {
        self.handshakes.remove(id);
        let policy = self.middlebox.policy();
        let known = names.iter().position(|name| policy.agent(name).is_some()).unwrap_or(0);
        if known < names.len() {
            self.middlebox.set_agent(id, names.swap_remove(known));
        }
    }

    fn refuse_handshake(&mut self, now: Time, id: SessionId, error: io::Error) {
        self.batch.add_work(Self::FAILED_HANDSHAKE_COST);
        self.metrics.lock().refused_handshakes += 1;
        if let Some(peer) = self.connections.get_mut(id).map(|connection| connection.peer) {
            let fields: [Field<'_>; 2] = [("peer", &peer.ip()), ("reason", &error)];
            self.log.write_limited(now, Level::Warn, "handshake-refused", &fields);
        }
        self.remove(now, id, &EndReason::HandshakeFailed(error));
    }
}
