//! Datagrams of SCTP over UDP.

use std::io;

use hol_base::Time;
use hol_sctp_udp::{Association, UdpPath};
use hol_system::Interest;

use super::Daemon;
use crate::connection::EndReason;
use crate::event_source::Token;
use crate::sctp_port::{Outcome, SctpPort};

impl Daemon {
    /// Cost of a received packet, in units of about a nanosecond of processor time.
    const PACKET_COST: u64 = 4_000;

    /// Starts to serve agents at these ports for SCTP over UDP.
    pub(crate) fn enable_sctp_over_udp(&mut self, ports: Vec<SctpPort>) -> io::Result<()> {
        for (socket, number) in ports.iter().flat_map(SctpPort::sockets).zip(0..) {
            self.poller.add(socket, Token::SctpQueue(number), Interest::Read)?;
        }
        self.sctp_ports = ports;
        Ok(())
    }

    /// Reads datagrams from a queue, up to a limit; the poller reports the queue again if it contains more.
    pub(super) fn receive_datagrams(&mut self, now: Time, number: u32) {
        let (port, queue) = (number as usize / SctpPort::QUEUES, number as usize % SctpPort::QUEUES);
        self.sctp_ports[port].begin_turn();
        for _ in 0..SctpPort::MAX_DATAGRAMS {
            let accepts = self.has_place();
            let Some(outcome) = self.sctp_ports[port].receive(now, queue, accepts) else { return };
            match outcome {
                Outcome::Packet(id, path, packet) => {
                    self.batch.add_work(Self::PACKET_COST);
                    self.connections.receive(now, id, path, packet);
                }
                Outcome::Association(association, path) => {
                    self.admit_association(now, port, *association, path);
                }
                Outcome::None => {}
            }
        }
    }

    /// Returns true if a new association can be accepted, possibly after closing a connection without a session.
    fn has_place(&self) -> bool {
        let is_full = self.connections.len() >= self.limits.connections;
        self.listeners.is_some() && !(is_full && self.without_session.next_to_displace().is_none())
    }

    fn admit_association(&mut self, now: Time, port: usize, association: Association, path: UdpPath) {
        if self.connections.len() >= self.limits.connections
            && let Some(id) = self.without_session.next_to_displace()
        {
            self.remove(now, id, &EndReason::Displaced);
        }
        let (peer_port, tag) = (association.peer_port(), association.verification_tag());
        let connection = self.sctp_ports[port].new_connection(association, path);
        let Some(id) = self.admit(now, connection) else { return };
        // The COOKIE ECHO may be bundled with data. RFC 9260 section 5.1.
        self.connections.note_changed(id);
        if let Some(replaced) = self.sctp_ports[port].add(id, path, peer_port, tag) {
            self.remove(now, replaced, &EndReason::Restarted);
        }
    }
}
