//! The event loop of a run.

use hol_base::{Duration, Time};
use hol_network::{AddressChange, Arrival, Drops, EventQueue, Network, NodeId};
use hol_scenario::{Observer, RunError, Side};
use hol_transport::{Command, Endpoint, Event, Input, Output, Statistics, drain};
use hol_wire::Address;
use hol_workloads::{ConnectionId, Outgoing, Output as ApplicationOutput};

use crate::closed_port;
use crate::connection::Connection;
use crate::demux::{Demux, PacketReceiver};
use crate::host_addresses::HostAddresses;
use crate::record_sink::RecordSink;
use crate::running_flow::RunningFlow;
use crate::sampling::{self, SampleTimes};
use crate::wake_ups::WakeUps;

/// The state of a run.
///
/// If several events have the same time, the network acts first, then the endpoints in the order of their creation,
/// then the client and the server of each flow. Last comes the check whether a flow has stalled.
pub(crate) struct Simulation<'t> {
    network: Network<'t>,
    /// The addresses that hosts have at the current time.
    host_addresses: HostAddresses,
    /// Indices of sockets that will connect when their host gets an address again.
    awaiting_address: Vec<usize>,
    /// The endpoints of each node.
    hosts: Vec<Demux>,
    sockets: Vec<Socket>,
    running_flows: Vec<RunningFlow>,
    /// When each endpoint acts next.
    timers: EventQueue,
    /// When the client and the server of each flow act, and when the end of the flow is checked; the last entry is
    /// the next change of an address.
    flow_schedule: EventQueue,
    /// Which servers to wake, because they wait for replies from other servers (`[[onward]]`); `None` without such
    /// servers.
    wake_ups: Option<WakeUps>,
    /// The lowest client port that is free.
    free_port: u16,
    /// The current virtual time.
    now: Time,
}

/// The index of the measured flow.
const MEASURED_FLOW: usize = 0;

/// An endpoint, with its host and the flow to which it belongs.
struct Socket {
    connection: Connection,
    id: ConnectionId,
    node: NodeId,
    running_flow: usize,
    role: Side,
}

impl<'t> Simulation<'t> {
    /// The longest time that an orderly close may take, including TIME-WAIT and lost packets.
    const MAX_CLOSE: Duration = Duration::from_secs(600);

    /// Creates a simulation at the start of the run.
    pub(crate) fn new(
        network: Network<'t>,
        host_addresses: HostAddresses,
        hosts: Vec<Demux>,
        running_flows: Vec<RunningFlow>,
        free_port: u16,
        wake_ups: Option<WakeUps>,
    ) -> Self {
        let mut flow_schedule = EventQueue::new(ENTRIES_PER_FLOW * running_flows.len() + 1);
        flow_schedule.set(ENTRIES_PER_FLOW * running_flows.len(), host_addresses.next_change());
        let (sockets, timers) = (Vec::new(), EventQueue::new(1));
        let awaiting_address = Vec::new();
        Self {
            network,
            host_addresses,
            awaiting_address,
            hosts,
            sockets,
            running_flows,
            timers,
            flow_schedule,
            wake_ups,
            free_port,
            now: Time::ZERO,
        }
    }

    /// Starts every flow at its time, and runs until the measured flow has ended. Returns the time of its end, or
    /// an error if the observer stops the run. Passes records on after a few events each time, while they are
    /// still in the processor's cache.
    pub(crate) fn run(&mut self, record_sink: &mut RecordSink<'_>) -> Result<Time, RunError> {
        const STEPS_AT_ONCE: usize = 256;
        let mut sample_times = SampleTimes::new(record_sink.interval());
        for running_flow in 0..self.running_flows.len() {
            self.flow_schedule
                .set(entry(running_flow, Side::Client), self.running_flows[running_flow].flow.start_time());
        }
        while self.running_flows[MEASURED_FLOW].flow.run_end().is_none() {
            record_sink.pass_on_settled(&mut self.running_flows)?;
            if !self.run_for(STEPS_AT_ONCE, sample_times.next()) {
                self.sample(sample_times.next(), record_sink);
                sample_times.advance();
            }
        }
        Ok(self.now)
    }

    /// Handles up to `steps` events; stops earlier if the measured flow ends. Returns false if the next event is
    /// after `limit`.
    fn run_for(&mut self, steps: usize, limit: Time) -> bool {
        for _ in 0..steps {
            if !self.step(limit) {
                if self.has_events() {
                    return false;
                }
                let (now, measured) = (self.now, self.measured());
                measured.flow.end_with_deadlock(now, measured.progress());
            }
            if self.running_flows[MEASURED_FLOW].flow.run_end().is_some() {
                return true;
            }
        }
        true
    }

    /// Passes samples of all senders and queues to the observer.
    fn sample(&self, at: Time, record_sink: &mut RecordSink<'_>) {
        for Socket { connection, id, running_flow, role, .. } in &self.sockets {
            let whose = (*running_flow as u32, id.0, *role);
            sampling::sample_senders(at, whose, connection, &mut |sample| record_sink.sample(sample));
        }
        for (line, backlog) in (0..).zip(self.network.backlogs(at)) {
            record_sink.sample(&sampling::sample_queue(at, line, backlog));
        }
    }

    /// Passes on the records of messages that were not settled when the measured flow ended, and of messages
    /// that were never due.
    pub(crate) fn pass_on_rest(&mut self, record_sink: &mut RecordSink<'_>) -> Result<(), RunError> {
        let ended = self.now;
        while !self.measured().client.application.end(ended) {
            record_sink.pass_on_rest(&mut self.running_flows[..=MEASURED_FLOW])?;
        }
        self.measured().server.application.end(ended);
        record_sink.pass_on_rest(&mut self.running_flows)
    }

    /// Aborts the background flows, then closes the measured flow in an orderly way. Returns when the close was
    /// complete, or `None` if it failed.
    pub(crate) fn close(&mut self) -> Option<Time> {
        for running_flow in MEASURED_FLOW + 1..self.running_flows.len() {
            self.abort(running_flow);
        }
        let limit = self.now + Self::MAX_CLOSE;
        self.begin_to_close(MEASURED_FLOW);
        while !self.measured().is_closed() {
            if !self.step(limit) {
                return None;
            }
        }
        Some(self.now)
    }

    /// Returns the measured flow.
    pub(crate) fn measured(&mut self) -> &mut RunningFlow {
        &mut self.running_flows[MEASURED_FLOW]
    }

    /// Returns all flows except the measured one, background flows first.
    pub(crate) fn unmeasured_flows(&self) -> &[RunningFlow] {
        &self.running_flows[MEASURED_FLOW + 1..]
    }

    /// Returns the record sink for an observer of the run.
    pub(crate) fn record_sink<'o>(&self, observer: &'o mut dyn Observer) -> RecordSink<'o> {
        RecordSink::new(observer, &self.running_flows)
    }

    /// Returns the number of packets sent by hosts.
    pub(crate) fn packets(&self) -> u64 {
        self.network.packets()
    }

    /// Returns how many times a queue marked a packet.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.network.marked_packets()
    }

    /// Returns the number of packets that did not arrive, by reason.
    pub(crate) fn drops(&self) -> Drops {
        self.network.drops()
    }

    /// Returns the sums of the counters of all endpoints at one end of the measured flow.
    pub(crate) fn statistics(&self, role: Side) -> Statistics {
        let own =
            self.sockets.iter().filter(|socket| socket.running_flow == MEASURED_FLOW && socket.role == role);
        own.fold(Statistics::default(), |total, socket| add(total, socket.connection.statistics()))
    }

    /// Returns whether any event is pending.
    fn has_events(&self) -> bool {
        self.timers.first().0.min(self.flow_schedule.first().0).min(self.network.next_action()) < Time::MAX
    }

    /// Handles the next event, unless it is after `limit`. Returns false if no event was handled.
    fn step(&mut self, limit: Time) -> bool {
        let (timer_at, socket) = self.timers.first();
        let (entry_at, entry) = self.flow_schedule.first();
        let network_at = self.network.next_action();
        let next = timer_at.min(entry_at).min(network_at);
        if next == Time::MAX || next > limit {
            return false;
        }
        debug_assert!(next >= self.now, "time ran backwards: {next} after {}", self.now);
        self.now = next;
        if network_at == next {
            while let Some(arrival) = self.network.poll(next) {
                self.receive(arrival);
            }
        } else if timer_at == next {
            self.serve(socket);
        } else if entry == ENTRIES_PER_FLOW * self.running_flows.len() {
            self.change_address();
        } else {
            self.run_entry(entry / ENTRIES_PER_FLOW, entry % ENTRIES_PER_FLOW);
        }
        true
    }

    /// Adds or removes an address of a host, and informs the host's endpoints. Sockets that have waited for an address
    /// connect now.
    fn change_address(&mut self) {
        let Some(AddressChange { node, address, is_added, .. }) = self.host_addresses.apply_next_change()
        else {
            return;
        };
        self.flow_schedule
            .set(ENTRIES_PER_FLOW * self.running_flows.len(), self.host_addresses.next_change());
        for socket in 0..self.sockets.len() {
            if self.sockets[socket].node == node {
                let has_event =
                    if is_added { Input::AddressAdded(address) } else { Input::AddressRemoved(address) };
                self.handle_input(socket, has_event);
                self.serve(socket);
            }
        }
        if is_added {
            for socket in std::mem::take(&mut self.awaiting_address) {
                self.command(socket, Command::Connect);
            }
        }
    }

    /// Lets an application of a flow act, or checks whether the flow ends.
    fn run_entry(&mut self, running_flow: usize, entry: usize) {
        match entry {
            0 => self.run_application(running_flow, Side::Client),
            1 => self.run_application(running_flow, Side::Server),
            _ => {
                let progress = self.running_flows[running_flow].progress();
                self.running_flows[running_flow].flow.check(self.now, progress);
                self.watch(running_flow);
            }
        }
    }

    fn receive(&mut self, arrival: Arrival) {
        let (remote, local) = arrival.packet.ports();
        let socket = match self.hosts[usize::from(arrival.node.0)].packet_receiver(local, remote) {
            PacketReceiver::Endpoint(socket) => socket,
            PacketReceiver::Server(running_flow) => {
                self.accept(running_flow, remote, arrival.packet.destination)
            }
            PacketReceiver::Nobody => {
                if let Some(answer) = closed_port::answer(&arrival.packet) {
                    self.network.send(self.now, arrival.node, answer);
                }
                return;
            }
        };
        self.handle_input(socket, Input::Packet(arrival.packet));
        self.serve(socket);
    }

    /// Creates an endpoint for a new peer of a flow's server.
    fn accept(&mut self, running_flow: usize, remote: u16, address: Address) -> usize {
        let RunningFlow { endpoints, server, .. } = &self.running_flows[running_flow];
        let (local, connection) = (endpoints.port, endpoints.listen(server.sockets.len(), address));
        self.add(running_flow, Side::Server, connection, (local, remote))
    }

    /// Creates an endpoint for a connection that a flow's client opens, and lets it connect.
    fn open(&mut self, running_flow: usize, ConnectionId(id): ConnectionId) {
        let RunningFlow { endpoints, client, flow, .. } = &mut self.running_flows[running_flow];
        let (number, (first, own)) = (client.sockets.len(), endpoints.own_ports);
        assert_eq!(id as usize, number, "connections are numbered in the order of their opening");
        flow.note_opening();
        let port = if number < usize::from(own) { Some(first + number as u16) } else { self.next_port() };
        let RunningFlow { endpoints, flow, .. } = &mut self.running_flows[running_flow];
        let Some(port) = port else { return flow.end_with_failure("no dynamic port is free") };
        let (remote, lacks_address) = (endpoints.port, endpoints.lacks_address(&self.host_addresses));
        let connection = endpoints.connect(number, port, endpoints.ends(&self.host_addresses));
        let socket = self.add(running_flow, Side::Client, connection, (port, remote));
        if lacks_address {
            return self.awaiting_address.push(socket);
        }
        self.handle_input(socket, Input::Command(Command::Connect));
        self.drive(socket);
    }

    fn next_port(&mut self) -> Option<u16> {
        let port = self.free_port;
        self.free_port = port.checked_add(1)?;
        Some(port)
    }

    fn add(&mut self, running_flow: usize, role: Side, connection: Connection, ports: (u16, u16)) -> usize {
        let socket = self.sockets.len();
        let RunningFlow { endpoints, .. } = &self.running_flows[running_flow];
        let node = if role == Side::Client { endpoints.client } else { endpoints.server };
        self.hosts[usize::from(node.0)].bind(ports.0, ports.1, socket);
        let id = self.running_flows[running_flow].flow_side(role).add(socket);
        self.sockets.push(Socket { connection, id, node, running_flow, role });
        self.timers.make_room(socket);
        socket
    }

    /// Starts to close a flow in an orderly way, if every message is settled.
    fn begin_to_close(&mut self, running_flow: usize) {
        if self.running_flows[running_flow].start_closing() {
            for socket in self.running_flows[running_flow].client.sockets.clone() {
                self.command(socket, Command::Close);
            }
        }
    }

    /// Aborts a flow, or prevents its start if it has not started.
    fn abort(&mut self, running_flow: usize) {
        self.end_applications(running_flow);
        let RunningFlow { client, server, .. } = &self.running_flows[running_flow];
        for socket in [client.sockets.clone(), server.sockets.clone()].concat() {
            self.command(socket, Command::Abort);
        }
    }

    fn command(&mut self, socket: usize, command: Command) {
        self.handle_input(socket, Input::Command(command));
        self.serve(socket);
    }

    /// Passes an input to an endpoint. Its consequences are handled by the next [`drive`](Self::drive).
    #[inline]
    fn handle_input(&mut self, socket: usize, input: Input) {
        self.sockets[socket].connection.handle(self.now, input);
    }

    /// Handles everything that is due now at an endpoint and its application.
    fn serve(&mut self, socket: usize) {
        if self.drive(socket) {
            let Socket { running_flow, role, .. } = self.sockets[socket];
            self.run_application(running_flow, role);
        }
    }

    /// Handles everything that is due now at an endpoint. Returns whether the endpoint produced an event for its
    /// application.
    fn drive(&mut self, index: usize) -> bool {
        let Self { network, sockets, running_flows, timers, flow_schedule, now, .. } = self;
        let Socket { connection, id, node, running_flow, role } = &mut sockets[index];
        let (number, running_flow) = (*running_flow, &mut running_flows[*running_flow]);
        let was_connected = running_flow.flow.connected_at().is_some();
        let mut has_event = false;
        let deadline = drain(connection, *now, |connection, output| match output {
            Output::Transmit(packet) => network.send(*now, *node, packet),
            Output::Event(event) => {
                has_event = true;
                let is_data = matches!(event, Event::Received(_));
                running_flow.handle_event(*now, *role, *id, event);
                if running_flow.flow_side(*role).should_buffer(index, is_data && connection.has_unread()) {
                    connection.handle(*now, Input::Command(Command::Read(false)));
                }
            }
            Output::Wait(_) => unreachable!("`drain` returns the time of a wait"),
        });
        timers.set(index, deadline.unwrap_or(Time::MAX));
        if !was_connected && running_flow.flow.connected_at().is_some() {
            // From now on the flow may stall.
            flow_schedule.set(watch_entry(number), running_flow.flow.deadline(running_flow.progress()));
        }
        has_event
    }

    fn run_application(&mut self, running_flow: usize, role: Side) {
        self.poll_application(running_flow, role);
        self.schedule_woken();
        // The measured flow closes when its records have been passed on.
        if running_flow != MEASURED_FLOW {
            self.begin_to_close(running_flow);
        }
    }

    /// Schedules the applications that other flows have woken.
    #[inline]
    fn schedule_woken(&mut self) {
        let Some(wake_ups) = &self.wake_ups else { return };
        for running_flow in wake_ups.take_woken() {
            for role in [Side::Client, Side::Server] {
                self.flow_schedule.set(entry(running_flow, role), self.now);
            }
        }
    }

    /// Performs the actions of the application at one end of a flow until the application waits.
    fn poll_application(&mut self, index: usize, role: Side) {
        let now = self.now;
        loop {
            let running_flow = &mut self.running_flows[index];
            if running_flow.flow.was_aborted() {
                self.end_applications(index);
                return;
            }
            match running_flow.flow_side(role).application.poll(now) {
                ApplicationOutput::Send(outgoing) => {
                    if role == Side::Client && outgoing.is_message() {
                        let progress = running_flow.progress();
                        running_flow.flow.note_sending(now, progress);
                    }
                    self.send(index, role, outgoing);
                }
                ApplicationOutput::Open(id) => self.open(index, id),
                ApplicationOutput::Close(connection) => {
                    let socket = running_flow.flow_side(role).socket(connection);
                    self.handle_input(socket, Input::Command(Command::Close));
                    self.drive(socket);
                }
                ApplicationOutput::Processed => {
                    let progress = running_flow.progress();
                    running_flow.flow.note_delivery(now, progress);
                }
                ApplicationOutput::Wait(until) => {
                    if let Some(socket) = running_flow.flow_side(role).next_to_read() {
                        // The endpoint may have a message, on which the application then acts.
                        self.handle_input(socket, Input::Command(Command::Read(true)));
                        self.drive(socket);
                        continue;
                    }
                    self.flow_schedule.set(entry(index, role), until);
                    if role == Side::Client && until == Time::MAX {
                        // The application may have sent its last message, which starts the grace period.
                        self.watch(index);
                    }
                    return;
                }
                ApplicationOutput::Stop(quit) => {
                    running_flow.flow.end_with_abort(now, quit);
                    self.end_applications(index);
                    return;
                }
            }
        }
    }

    /// Passes a message to its connection, in parts if the transport supports that. If the send buffer has too
    /// little room, the rest of the message is returned to the application.
    fn send(&mut self, index: usize, role: Side, mut outgoing: Outgoing) {
        loop {
            let flow_side = self.running_flows[index].flow_side(role);
            let socket = flow_side.socket(outgoing.connection);
            let length = outgoing.payload.len();
            let accepted = self.sockets[socket].connection.accepts(length);
            if accepted == 0 && length > 0 {
                flow_side.application.handle(self.now, hol_workloads::Input::Full(outgoing));
                return;
            }
            let command = flow_side.send_command(&mut outgoing, accepted);
            self.handle_input(socket, Input::Command(command));
            self.drive(socket);
            if outgoing.payload.is_empty() {
                return;
            }
        }
    }

    fn watch(&mut self, running_flow: usize) {
        let RunningFlow { flow, .. } = &self.running_flows[running_flow];
        let deadline = flow.deadline(self.running_flows[running_flow].progress());
        // An overdue check takes place now: time does not run backwards.
        self.flow_schedule.set(watch_entry(running_flow), deadline.max(self.now));
    }

    /// Ends the applications of a flow.
    fn end_applications(&mut self, running_flow: usize) {
        for role in [Side::Client, Side::Server] {
            self.flow_schedule.set(entry(running_flow, role), Time::MAX);
        }
    }
}

/// Number of entries that each flow has in `flow_schedule`: its client, its server, and the check of its end.
const ENTRIES_PER_FLOW: usize = 3;

/// Returns the index of an application's entry in `flow_schedule`.
const fn entry(running_flow: usize, role: Side) -> usize {
    ENTRIES_PER_FLOW * running_flow + role as usize
}

const fn watch_entry(running_flow: usize) -> usize {
    ENTRIES_PER_FLOW * running_flow + 2
}

fn add(total: Statistics, one: &Statistics) -> Statistics {
    // Destructured, so that a new field cannot be forgotten.
    let Statistics {
        packets_sent,
        packets_received,
        data_sent,
        fast_retransmissions,
        timeout_retransmissions,
        timeouts,
        backoffs,
        tail_loss_probes,
        congestion_events,
        duplicates_received,
    } = total;
    Statistics {
        packets_sent: packets_sent + one.packets_sent,
        packets_received: packets_received + one.packets_received,
        data_sent: data_sent + one.data_sent,
        fast_retransmissions: fast_retransmissions + one.fast_retransmissions,
        timeout_retransmissions: timeout_retransmissions + one.timeout_retransmissions,
        timeouts: timeouts + one.timeouts,
        backoffs: backoffs + one.backoffs,
        tail_loss_probes: tail_loss_probes + one.tail_loss_probes,
        congestion_events: congestion_events + one.congestion_events,
        duplicates_received: duplicates_received + one.duplicates_received,
    }
}
