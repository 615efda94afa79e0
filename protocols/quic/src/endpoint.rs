//! A QUIC endpoint: its state, inputs and outputs.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_transport::{Command, PathState, ReceivingApplication, Statistics};
use hol_wire::Address;
use quinn_proto as quinn;

use crate::cleartext::CleartextPackets;
use crate::close::CloseState;
use crate::in_flight::in_flight;
use crate::packet_form::{EndpointOutput, PacketForm};
use crate::receive::IncomingStreams;
use crate::send::OutgoingStreams;
use crate::socket_address::SocketAddress;
use crate::{Config, MessageMapping, clock};

/// One end of one QUIC connection. Its packet form `S` is cleartext in the simulator and encrypted over sockets.
pub struct Endpoint<S = CleartextPackets> {
    pub(crate) config: Arc<Config>,
    pub(crate) mapping: MessageMapping,
    /// The peer's address; a server learns it from the first packet.
    pub(crate) remote: Option<SocketAddress>,
    pub(crate) quinn: quinn::Endpoint,
    /// Settings of a client that has not connected yet.
    pub(crate) settings: Option<quinn::ClientConfig>,
    pub(crate) connection: Option<(quinn::ConnectionHandle, quinn::Connection)>,
    pub(crate) outgoing: OutgoingStreams,
    pub(crate) incoming: IncomingStreams,
    pub(crate) closing: CloseState,
    pub(crate) form: S,
    pub(crate) reader: ReceivingApplication,
    /// Whether the application is waiting for room to send.
    pub(crate) blocked: Cell<bool>,
    /// Whether the endpoint has had an input since quinn-proto was last polled.
    pub(crate) has_new_input: bool,
    /// Buffer for a packet that quinn-proto writes.
    pub(crate) buffer: Vec<u8>,
    pub(crate) statistics: Statistics,
}

impl<S: PacketForm> Endpoint<S> {
    /// Creates an endpoint whose application wakes up `wakeup` after data has arrived.
    pub(crate) fn new(
        config: Arc<Config>,
        mapping: MessageMapping,
        quinn: quinn::Endpoint,
        wakeup: Duration,
        form: S,
    ) -> Self {
        Self {
            config,
            mapping,
            remote: None,
            quinn,
            settings: None,
            connection: None,
            outgoing: OutgoingStreams::default(),
            incoming: IncomingStreams::default(),
            closing: CloseState::default(),
            form,
            reader: ReceivingApplication::new(wakeup),
            blocked: Cell::new(false),
            has_new_input: false,
            buffer: Vec::with_capacity(2048),
            statistics: Statistics::default(),
        }
    }

    /// Handles a command of the application.
    pub(crate) fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Connect => self.open(now),
            Command::Send(message) => self.send(message),
            Command::Close => self.closing.requested = true,
            Command::Reconfigure(what) => {
                self.reader.push_event(hol_transport::Event::Reconfigured { what, done: false });
            }
            Command::Abort => self.abort(now),
            Command::Read(reads) => {
                self.incoming.reads = reads;
                self.reader.set_reading(reads);
            }
        }
    }

    /// Returns the next output of the endpoint.
    pub(crate) fn next(&mut self, now: Time) -> EndpointOutput<S::Packet> {
        loop {
            if let Some(packet) = self.form.next_packet() {
                return EndpointOutput::Transmit(packet);
            }
            if let Some(event) = self.reader.next_event() {
                return EndpointOutput::Event(event);
            }
            if self.reader.wake_if_due(now) {
                continue;
            }
            let due = self.deadline();
            if std::mem::take(&mut self.has_new_input) || due.is_some_and(|at| at <= now) {
                self.advance(now);
                continue;
            }
            return EndpointOutput::Wait(Time::earliest([due, self.reader.deadline()]));
        }
    }

    /// Polls quinn-proto until it produces no more output.
    fn advance(&mut self, now: Time) {
        let is_probing = self.handle_due_timers(now);
        self.exchange_events();
        self.handle_events();
        loop {
            self.read(now);
            self.write();
            self.close_if_done(now);
            self.transmit(now, is_probing);
            // Sending may have caused events.
            if !self.exchange_events() && !self.handle_events() {
                return;
            }
        }
    }

    /// Returns when quinn-proto must be polled again.
    pub(crate) fn deadline(&mut self) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(clock::time)
    }

    /// Returns whether the endpoint accepts another message. If not, it reports later when it does.
    pub(crate) fn has_room_or_will_report(&self) -> bool {
        let fits = self.has_room();
        if !fits {
            self.blocked.set(true);
        }
        fits
    }

    /// Reports the state of the path to `tell` while the connection is open.
    pub fn report_path(&self, tell: &mut dyn FnMut(PathState)) {
        let (Some((peer, _)), Some((_, connection))) = (self.remote, &self.connection) else { return };
        if !connection.is_closed() {
            tell(path_state(peer, connection));
        }
    }
}

/// Returns the state of quinn-proto's congestion controller, in octets of UDP payload. RFC 9002 section 7.
fn path_state(peer: Address, connection: &quinn::Connection) -> PathState {
    let metrics = connection.congestion_state().metrics();
    PathState {
        peer,
        cwnd: Some(metrics.congestion_window),
        ssthresh: metrics.ssthresh.filter(|octets| *octets < u64::MAX),
        srtt: Some(Duration::from_nanos(connection.rtt().as_nanos() as u64)),
        // BBR of quinn-proto reports a rate with random gains, at which quinn-proto does not send.
        pacing_rate: None,
        in_flight: in_flight(connection),
    }
}

impl<S: fmt::Debug> fmt::Debug for Endpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remote, mapping, closing, form, statistics, .. } = self;
        f.debug_struct("Endpoint")
            .field("remote", remote)
            .field("mapping", mapping)
            .field("closing", closing)
            .field("form", form)
            .field("statistics", statistics)
            .finish_non_exhaustive()
    }
}
