//! The orderly and the abrupt end of a connection.
//!
//! QUIC ends both directions at once (RFC 9000 section 10.2). An endpoint that closes ends its streams, waits until
//! everything is acknowledged, and ends the control stream; when both ends have done so, the client sends
//! CONNECTION_CLOSE.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::Event;
use quinn_proto::Side;

use crate::packet_form::PacketForm;
use crate::{Endpoint, clock};

/// The progress of closing a connection.
#[derive(Debug, Default)]
pub(crate) struct CloseState {
    /// Whether the application has requested the close and has nothing more to send.
    pub(crate) requested: bool,
    /// Whether our data streams have ended.
    finished: bool,
    /// Whether our control stream has ended.
    control_ended: bool,
    /// Whether the peer's control stream has ended.
    peer_ended: bool,
    /// Whether the connection has ended and the application has been told.
    ended: bool,
}

impl CloseState {
    /// Marks our streams as open again, because the server has rejected the early data and with them the end of
    /// these streams.
    pub(crate) fn forget_ended_streams(&mut self) {
        (self.finished, self.control_ended) = (false, false);
    }

    /// Returns whether both sides have announced that they send no more data.
    pub(crate) fn both_sides_ended(&self) -> bool {
        self.control_ended && self.peer_ended
    }
}

impl<S: PacketForm> Endpoint<S> {
    /// Continues an orderly close as far as the state of the peer permits.
    pub(crate) fn close_if_done(&mut self, now: Time) {
        let Some((_, connection)) = &mut self.connection else { return };
        let Some(control) = self.outgoing.control else { return };
        let CloseState { requested, finished, control_ended, ended, .. } = &mut self.closing;
        if !*requested || *ended || !self.outgoing.waiting_messages.is_empty() {
            return;
        }
        if !std::mem::replace(finished, true) {
            for id in &self.outgoing.streams {
                connection.send_stream(*id).finish().expect("a stream is finished only once");
            }
        }
        // Only the control stream itself is left.
        if connection.streams().send_streams() == 1 && !std::mem::replace(control_ended, true) {
            connection.send_stream(control).finish().expect("a stream is finished only once");
        }
        let is_acknowledged = connection.streams().send_streams() == 0;
        if self.closing.both_sides_ended() && is_acknowledged && connection.side() == Side::Client {
            connection.close(clock::instant(now), 0u32.into(), Bytes::new());
            self.end(Event::Closed);
        }
    }

    /// Handles the announcement that the peer sends no more data.
    pub(crate) fn note_peer_closed(&mut self) {
        if !std::mem::replace(&mut self.closing.peer_ended, true) {
            self.reader.push_event(Event::PeerClosed);
        }
    }

    /// Closes the connection at once, with an error code.
    pub(crate) fn abort(&mut self, now: Time) {
        const ABORTED: u32 = 1;
        if let Some((_, connection)) = &mut self.connection {
            connection.close(clock::instant(now), ABORTED.into(), Bytes::new());
        }
        self.closing.ended = true;
    }

    /// Ends the connection and reports `event`, unless it has already ended.
    pub(crate) fn end(&mut self, event: Event) {
        if !std::mem::replace(&mut self.closing.ended, true) {
            self.outgoing.waiting_messages.clear();
            self.outgoing.control = None;
            self.reader.push_event(event);
        }
    }
}
