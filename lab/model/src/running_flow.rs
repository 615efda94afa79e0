//! A flow in the simulation: its two applications, the rules of its end, and the factory of its endpoints.

use hol_base::{Duration, Time};
use hol_measure::Record;
use hol_scenario::{Flow, FlowProgress, Side};
use hol_transport::Event;
use hol_workloads::{ConnectionId, Input, LedgerJoin};

use crate::endpoints::Endpoints;
use crate::flow_side::FlowSide;

/// A flow between applications on two nodes.
#[derive(Debug)]
pub(crate) struct RunningFlow {
    pub(crate) client: FlowSide,
    pub(crate) server: FlowSide,
    pub(crate) flow: Flow,
    pub(crate) endpoints: Endpoints,
    ledger_join: LedgerJoin,
    /// Whether the client has begun to close the connections.
    is_closing: bool,
}

impl RunningFlow {
    /// Creates a flow that has not started.
    pub(crate) fn new(
        [client, server]: [FlowSide; 2],
        flow: Flow,
        endpoints: Endpoints,
        ledger_join: LedgerJoin,
    ) -> Self {
        Self { client, server, flow, endpoints, ledger_join, is_closing: false }
    }

    #[inline]
    /// Returns the client's or the server's end of the flow.
    pub(crate) fn flow_side(&mut self, role: Side) -> &mut FlowSide {
        match role {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Returns the progress of the client and the server, combined.
    #[inline]
    pub(crate) fn progress(&self) -> FlowProgress {
        let [client, server] = [&self.client, &self.server].map(|flow_side| flow_side.application.progress());
        self.flow.limits().combine_progress(client, server)
    }

    /// Starts to close the flow in an orderly way. Returns false, and does nothing, if a message is not settled
    /// yet, or if the flow is being closed already.
    pub(crate) fn start_closing(&mut self) -> bool {
        self.flow.is_finished() && !std::mem::replace(&mut self.is_closing, true)
    }

    /// Returns whether all connections have closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed() && self.server.is_closed()
    }

    /// Removes the records of settled messages and passes each to `record`.
    pub(crate) fn take_settled(&mut self, record: impl FnMut(Record)) {
        let Self { client, server, ledger_join, .. } = self;
        ledger_join.settle(client.application.ledger(), server.application.ledger(), record);
    }

    /// Removes all remaining records and passes each to `record`. They belong to messages in flight, which will
    /// never be settled.
    pub(crate) fn take_rest(&mut self, record: impl FnMut(Record)) {
        let Self { client, server, ledger_join, .. } = self;
        ledger_join.settle_all(client.application.ledger(), server.application.ledger(), record);
    }

    /// Returns the time from the workload's start until the client could send.
    pub(crate) fn connect_time(&self) -> Option<Duration> {
        self.flow.connect_time(self.client.application.connected(self.flow.connected_at()))
    }

    /// Handles an event of the endpoint of a connection, at the end `role` of the flow.
    pub(crate) fn handle_event(&mut self, now: Time, role: Side, connection: ConnectionId, event: Event) {
        let input = match event {
            Event::Received(received) => {
                match self.flow_side(role).receive(now, connection, received) {
                    Ok(()) => self.flow.note_delivery(now, self.progress()),
                    Err(error) => self.flow.end_with_failure(error.0),
                }
                return;
            }
            Event::Connected if role == Side::Client => {
                self.flow.note_opened(now);
                Input::Opened(connection)
            }
            Event::Connected => {
                self.flow.note_accepted(now);
                Input::Accepted(connection)
            }
            Event::Abandoned { .. } => return self.flow.note_abandoned(now, self.progress()),
            Event::Path { .. } | Event::Reconfigured { .. } => return,
            Event::Writable => Input::Writable(connection),
            Event::PeerClosed => Input::PeerClosed(connection),
            Event::Failed { reason } => Input::Failed(connection, reason.text()),
            Event::Closed => {
                self.flow_side(role).closed_connections += 1;
                Input::Closed(connection)
            }
        };
        self.flow_side(role).application.handle(now, input);
    }
}
