//! What arrives: agents, and what they say.

use std::io;
use std::net::SocketAddr;

use hol_base::Time;
use hol_simco::{SessionId, Underlay};

use super::Daemon;
use crate::connection::{Connection, Over};
use crate::line::{Heard, Line};
use crate::log::Level;

impl Daemon {
    /// Octets that are heard of a connection in a turn: then it is another's turn.
    const MOST_HEARD: usize = 16 * Self::PIECE;
    /// Agents that are accepted in a turn.
    const MOST_ACCEPTED: usize = 64;

    /// Takes in the agents that wait. If there is no room, the oldest connection without a session makes some.
    pub(super) fn accept(&mut self, now: Time, number: u32) -> io::Result<()> {
        for _ in 0..Self::MOST_ACCEPTED {
            let Some(listeners) = &mut self.listeners else { return Ok(()) };
            let is_full = self.connections.len() >= self.limits.connections;
            let idle = self.middlebox.longest_unopened().filter(|_| is_full);
            if is_full && idle.is_none() {
                return listeners.pause(now, &self.poller);
            }
            match listeners.accept(number) {
                Ok(Some((line, peer))) => {
                    idle.into_iter().for_each(|id| self.remove(now, id, &Over::Displaced));
                    self.admit(now, line, peer);
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    // Too many files, or no memory: to try again at once would be in vain.
                    self.log.write(now, Level::Warn, "not-accepted", &[("reason", &error)]);
                    return listeners.pause(now, &self.poller);
                }
            }
        }
        Ok(())
    }

    fn admit(&mut self, now: Time, line: Box<dyn Line>, peer: SocketAddr) {
        self.metrics.numbers().accepted += 1;
        let id = self.middlebox.connect(now, Underlay::plain(line.framing()));
        self.log.write(now, Level::Debug, "connected", &[("session", &id.0), ("peer", &peer)]);
        if let Err(error) = self.connections.add(id, Connection::new(line, peer), &self.poller) {
            self.log.write(now, Level::Warn, "not-accepted", &[("reason", &error)]);
            self.middlebox.disconnect(id);
        }
    }

    /// Hears one connection after the other, until there is enough to answer. One whose request still ends rules is heard
    /// when that is over.
    pub(super) fn hear(&mut self, now: Time) {
        let mut to_wait = Vec::new();
        while !self.batch.is_full()
            && let Some(id) = self.connections.next_speaker()
        {
            if self.middlebox.is_sweeping_for(id) {
                to_wait.push(id);
                continue;
            }
            self.batch.begin_share();
            self.hear_one(now, id);
            let is_behind = self.middlebox.is_behind(id);
            if let Some(connection) = self.connections.get_mut(id) {
                connection.is_behind = is_behind;
            }
            if is_behind && !self.batch.is_full() {
                // It has had its share, and may have another one when the others have had theirs.
                self.connections.note_ready(id);
            }
        }
        to_wait.into_iter().for_each(|id| self.connections.note_ready(id));
    }

    /// Hears what a connection has said before and has to say now.
    fn hear_one(&mut self, now: Time, id: SessionId) {
        self.middlebox.resume(now, id, &mut self.batch);
        let mut count = 0;
        while count < Self::MOST_HEARD && self.batch.has_room() && !self.middlebox.is_sweeping_for(id) {
            let Some(connection) = self.connections.get_mut(id) else { return };
            match connection.read(&mut self.buffer) {
                Ok(Heard::Octets(octets)) => {
                    count += octets.len();
                    self.metrics.numbers().received += octets.len() as u64;
                    self.middlebox.receive(now, id, octets, &mut self.batch);
                }
                Ok(Heard::Nothing) => return,
                Ok(Heard::End) if connection.is_open() => {
                    self.middlebox.disconnect(id);
                    return self.connections.close(id);
                }
                Ok(Heard::End) => return self.remove(now, id, &Over::Closed),
                Err(error) => return self.remove(now, id, &error.into()),
            }
        }
    }
}
