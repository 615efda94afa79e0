//! The three-way shutdown. RFC 9260 section 9.2.

use hol_base::Time;
use hol_transport::{Event, Failure, Violation};
use hol_wire::sctp::{Cause, Chunk, Tsn};

use crate::Endpoint;
use crate::state::State;

impl Endpoint {
    /// Closes the association: delivers the queued data, then shuts down.
    pub(crate) fn close(&mut self) {
        match self.state {
            State::Closed | State::CookieWait | State::CookieEchoed => self.end(Event::Closed),
            State::Established => self.state = State::ShutdownPending,
            _ => {}
        }
    }

    /// Continues the shutdown if all data have been acknowledged; returns whether it did.
    pub(crate) fn shutdown_if_delivered(&mut self, now: Time) -> bool {
        let closing = matches!(self.state, State::ShutdownPending | State::ShutdownReceived);
        if !closing
            || !self.flight.is_empty()
            || !self.streams_out.is_empty()
            || self.streams_out.is_holding()
        {
            return false;
        }
        if self.state == State::ShutdownPending {
            self.state = State::ShutdownSent;
            self.timers.t5_shutdown_guard = Some(self.clock.expiry(now, self.config.rto_max * 5));
            self.queue_shutdown(now);
        } else {
            self.send_shutdown_ack(now);
        }
        true
    }

    /// Queues a SHUTDOWN chunk. It contains the cumulative TSN, so it must be built again after each DATA
    /// chunk. RFC 9260 section 9.2.
    pub(crate) fn queue_shutdown(&mut self, now: Time) {
        let cumulative_tsn = self.tsn_map.cumulative();
        self.control.push_back((None, Chunk::Shutdown { cumulative_tsn }));
        self.start_t2(now);
    }

    fn send_shutdown_ack(&mut self, now: Time) {
        self.state = State::ShutdownAckSent;
        self.timers.sack = None;
        self.control.push_back((None, Chunk::ShutdownAck));
        self.start_t2(now);
    }

    fn start_t2(&mut self, now: Time) {
        let rto = self.paths.list[self.paths.active].rto();
        self.timers.t2_shutdown = Some(self.clock.expiry(now, rto));
    }

    /// Handles the expiry of T2-shutdown: a SHUTDOWN or SHUTDOWN ACK was not answered.
    pub(crate) fn on_t2_expired(&mut self, now: Time) {
        if self.error_count >= self.config.association_max_retrans {
            return self.on_association_max_retrans();
        }
        self.count_timeout(now, self.paths.active);
        match self.state {
            State::ShutdownSent => self.queue_shutdown(now),
            State::ShutdownAckSent => self.send_shutdown_ack(now),
            _ => {}
        }
    }

    /// Handles the expiry of T5-shutdown-guard: the shutdown as a whole takes too long.
    pub(crate) fn on_t5_expired(&mut self) {
        self.abort(Cause::UserInitiatedAbort(bytes::Bytes::new()), Failure::ShutdownTimedOut);
    }

    pub(crate) fn on_shutdown(&mut self, now: Time, cumulative: Tsn, from: usize) {
        if !self.state.is_established_or_shutting_down() || self.state == State::ShutdownAckSent {
            return;
        }
        if cumulative.at_or_after(self.flight.next_tsn()) {
            let violation =
                Cause::ProtocolViolation(bytes::Bytes::from_static(b"cumulative TSN not yet sent"));
            return self.abort(violation, Failure::Violation(Violation::AcknowledgedUnsent));
        }
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.push_event(Event::PeerClosed);
            }
            // Both ends shut down at once: each acknowledges the other's SHUTDOWN.
            State::ShutdownSent => {
                self.push_event(Event::PeerClosed);
                return self.send_shutdown_ack(now);
            }
            _ => {}
        }
        let advanced = cumulative.after(self.flight.cumulative());
        self.acknowledge_through(now, cumulative);
        self.update_paths(now, from, advanced);
        self.queue_forward_tsn();
    }

    pub(crate) fn on_shutdown_ack(&mut self, from: usize) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.send_single_chunk(from, self.peer_tag, Chunk::ShutdownComplete { reflected: false });
            self.end(Event::Closed);
        }
    }

    pub(crate) fn on_shutdown_complete(&mut self) {
        if self.state == State::ShutdownAckSent {
            self.end(Event::Closed);
        }
    }
}
