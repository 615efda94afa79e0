//! The handshake (RFC 9000 section 7), and the events that quinn-proto reports for a connection.

use hol_base::Time;
use hol_transport::{Event, Failure, Violation};
use quinn_proto::{ConnectionError, Event as QuinnEvent, Side, StreamEvent};

use crate::packet_form::PacketForm;
use crate::socket_address::socket_address;
use crate::tls::SERVER_NAME;
use crate::{Endpoint, clock};

impl<S: PacketForm> Endpoint<S> {
    /// Starts the handshake of the client.
    pub(crate) fn open(&mut self, now: Time) {
        let (Some(settings), Some(remote)) = (self.settings.take(), self.remote) else { return };
        let opened = self.quinn.connect(clock::instant(now), settings, socket_address(remote), SERVER_NAME);
        self.connection = Some(opened.expect("the settings of a client are complete"));
        self.open_early();
    }

    /// Opens the streams before the end of the handshake, if 0-RTT permits this: the client sends data with its
    /// first packets, and the server reads and answers them. RFC 9001 sections 4.6 and 5.7.
    pub(crate) fn open_early(&mut self) {
        if self.connection.as_ref().is_some_and(|(_, connection)| connection.has_0rtt()) {
            self.open_streams();
            self.reader.push_event(Event::Connected);
        }
    }

    /// Lets quinn-proto's endpoint and connection exchange events, such as connection IDs; returns whether
    /// there were any.
    pub(crate) fn exchange_events(&mut self) -> bool {
        let mut has_any = false;
        let Some((handle, connection)) = &mut self.connection else { return has_any };
        while let Some(event) = connection.poll_endpoint_events() {
            has_any = true;
            if let Some(answer) = self.quinn.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        has_any
    }

    /// Handles all pending events of the connection; returns whether there were any.
    pub(crate) fn handle_events(&mut self) -> bool {
        let mut has_any = false;
        while let Some(told) = self.connection.as_mut().and_then(|(_, connection)| connection.poll()) {
            has_any = true;
            match told {
                QuinnEvent::Connected if self.outgoing.is_open() => self.end_early_data(),
                QuinnEvent::Connected => {
                    self.open_streams();
                    self.reader.push_event(Event::Connected);
                }
                QuinnEvent::ConnectionLost { reason } => self.lost(&reason),
                QuinnEvent::Stream(StreamEvent::Opened { .. }) => self.accept_streams(),
                QuinnEvent::Stream(StreamEvent::Readable { id }) => self.incoming.note_readable(id),
                QuinnEvent::Stream(StreamEvent::Finished { id }) => {
                    self.form.on_stream_acknowledged(id.into());
                }
                // Blocked writes are retried after any of these; datagrams were processed with their packet.
                QuinnEvent::Stream(_)
                | QuinnEvent::DatagramsUnblocked
                | QuinnEvent::DatagramReceived
                | QuinnEvent::HandshakeDataReady => {}
            }
        }
        has_any
    }

    /// Ends 0-RTT when the handshake is complete. If the server has rejected the early data, the client sends them
    /// again. RFC 9001 section 4.6.2.
    fn end_early_data(&mut self) {
        let early = std::mem::take(&mut self.outgoing.early_messages);
        let Some((_, connection)) = &self.connection else { return };
        if connection.side() == Side::Client && !connection.accepted_0rtt() {
            self.closing.forget_ended_streams();
            self.outgoing.waiting_messages.clear();
            self.open_streams();
            early.into_iter().for_each(|message| self.queue(message));
            self.write();
        }
    }

    fn lost(&mut self, reason: &ConnectionError) {
        const NO_ERROR: u32 = 0;
        let orderly = match reason {
            ConnectionError::ApplicationClosed(close) => close.error_code == NO_ERROR.into(),
            // The peer's CONNECTION_CLOSE was lost, but everything else arrived.
            ConnectionError::TimedOut => self.closing.both_sides_ended(),
            _ => false,
        };
        self.end(if orderly { Event::Closed } else { Event::Failed { reason: failure_of(reason) } });
    }
}

/// Converts quinn-proto's reason for the end of a connection.
fn failure_of(reason: &ConnectionError) -> Failure {
    match reason {
        ConnectionError::TimedOut => Failure::IdleTimeout,
        ConnectionError::ApplicationClosed(_) => Failure::ClosedByPeerApplication,
        ConnectionError::ConnectionClosed(close) if has_gaps(&close.reason) => Failure::TooManyGaps,
        ConnectionError::ConnectionClosed(_) => Failure::ClosedByPeer,
        ConnectionError::Reset => Failure::StatelessReset,
        ConnectionError::LocallyClosed => Failure::Aborted,
        ConnectionError::VersionMismatch => Failure::VersionMismatch,
        ConnectionError::CidsExhausted => Failure::ConnectionIdsExhausted,
        ConnectionError::TransportError(error) if has_gaps(error.reason.as_bytes()) => Failure::TooManyGaps,
        ConnectionError::TransportError(_) => Failure::Violation(Violation::Transport),
    }
}

/// Returns whether quinn-proto's receiver closed the connection because a stream has too many gaps: it buffers a
/// limited number of pieces (`assembler.rs`, `MAX_CHUNKS`), which may be exceeded when a long queue overflows.
fn has_gaps(reason: &[u8]) -> bool {
    reason.starts_with(b"too many gaps")
}
