//! The loop: who acts next, and what follows from it.

use hol_base::{Duration, Time};
use hol_network::{Agenda, Arrival, Drops, Network, NodeId};
use hol_transport::{Command, Endpoint, Input, Output, Statistics, drain};
use hol_workloads::{Application, Output as Answer};

use crate::connection::Connection;
use crate::demux::Demux;
use crate::flow::{Flow, Role, Side};

/// Everything that takes part in a run.
///
/// At one instant the network acts first, then endpoints by index, then each flow's client, then the check
/// whether a flow is stuck.
pub(crate) struct World<'t> {
    network: Network<'t>,
    /// By node.
    hosts: Vec<Demux>,
    sockets: Vec<Socket>,
    flows: Vec<Flow>,
    /// Sockets, then a client and a deadline for each flow.
    agenda: Agenda,
    now: Time,
}

/// The flow that the run is about is the first.
const MEASURED: usize = 0;

/// An endpoint and where it belongs.
pub(crate) struct Socket {
    pub(crate) connection: Connection,
    pub(crate) node: NodeId,
    pub(crate) flow: usize,
    pub(crate) role: Role,
}

impl<'t> World<'t> {
    /// How long an orderly close may take, TIME-WAIT and lost packets included.
    const CLOSING: Duration = Duration::from_secs(600);

    pub(crate) fn new(
        network: Network<'t>,
        hosts: Vec<Demux>,
        sockets: Vec<Socket>,
        flows: Vec<Flow>,
    ) -> Self {
        let agenda = Agenda::new(sockets.len() + 2 * flows.len());
        Self { network, hosts, sockets, flows, agenda, now: Time::ZERO }
    }

    /// Starts every flow at its time and goes on until the measured one has ended; returns the time.
    pub(crate) fn run(&mut self) -> Time {
        for flow in 0..self.flows.len() {
            self.agenda.set(self.client_entry(flow), self.flows[flow].start());
        }
        while self.measured().stopped.is_none() {
            if !self.step(Time::MAX) {
                let now = self.now;
                self.measured().deadlock(now);
            }
        }
        self.now
    }

    /// Ends the background at once, then closes the measured flow in an orderly way; returns when that was done,
    /// `None` if it did not succeed.
    pub(crate) fn close(&mut self) -> Option<Time> {
        for flow in MEASURED + 1..self.flows.len() {
            self.abort(flow);
        }
        let limit = self.now + Self::CLOSING;
        self.begin_to_close(MEASURED);
        while !(self.measured().client.is_closed() && self.measured().server.is_closed()) {
            if !self.step(limit) {
                return None;
            }
        }
        Some(self.now)
    }

    /// The flow that the run is about.
    pub(crate) fn measured(&mut self) -> &mut Flow {
        &mut self.flows[MEASURED]
    }

    /// The other flows.
    pub(crate) fn background(&self) -> &[Flow] {
        &self.flows[MEASURED + 1..]
    }

    pub(crate) fn packets(&self) -> u64 {
        self.network.packets()
    }

    pub(crate) fn drops(&self) -> Drops {
        self.network.drops()
    }

    /// What all endpoints of one side of the measured flow have counted.
    pub(crate) fn statistics(&self, role: Role) -> Statistics {
        let own = self.sockets.iter().filter(|socket| socket.flow == MEASURED && socket.role == role);
        own.fold(Statistics::default(), |total, socket| add(total, socket.connection.statistics()))
    }

    /// Lets whoever is next act, unless that is after `limit`; false if there is nobody.
    fn step(&mut self, limit: Time) -> bool {
        let (at, component) = self.agenda.first();
        let network_at = self.network.next_action();
        let next = at.min(network_at);
        if next == Time::MAX || next > limit {
            return false;
        }
        debug_assert!(next >= self.now, "time ran backwards: {next} after {}", self.now);
        self.now = next;
        if network_at <= at {
            while let Some(arrival) = self.network.poll(next) {
                self.receive(arrival);
            }
        } else if component < self.sockets.len() {
            self.serve(component, None);
        } else {
            let flow = (component - self.sockets.len()) / 2;
            if component != self.client_entry(flow) {
                self.flows[flow].check(next);
                self.watch(flow);
            } else if self.flows[flow].started {
                self.run_application(flow, Role::Client);
            } else {
                self.start(flow);
            }
        }
        true
    }

    fn receive(&mut self, arrival: Arrival) {
        let (remote, local) = arrival.packet.ports();
        // No endpoint: the port is closed, and in this world nobody asks why.
        if let Some(socket) = self.hosts[usize::from(arrival.node.0)].endpoint(local, remote) {
            self.serve(socket, Some(Input::Packet(arrival.packet)));
        }
    }

    /// Opens the connections of a flow.
    fn start(&mut self, flow: usize) {
        self.agenda.set(self.client_entry(flow), Time::MAX);
        self.flows[flow].started = true;
        self.watch(flow);
        for socket in self.flows[flow].client.channel.endpoints.clone() {
            self.command(socket, Command::Connect);
        }
    }

    /// Closes a flow in an orderly way, if everything is done.
    fn begin_to_close(&mut self, flow: usize) {
        if self.flows[flow].begins_to_close() {
            for socket in self.flows[flow].client.channel.endpoints.clone() {
                self.command(socket, Command::Close);
            }
        }
    }

    /// Ends a flow at once, or keeps it from starting.
    fn abort(&mut self, flow: usize) {
        self.agenda.set(self.client_entry(flow), Time::MAX);
        let Flow { client, server, .. } = &self.flows[flow];
        for socket in client.channel.endpoints.clone().chain(server.channel.endpoints.clone()) {
            self.command(socket, Command::Abort);
        }
    }

    fn command(&mut self, socket: usize, command: Command) {
        self.serve(socket, Some(Input::Command(command)));
    }

    /// Gives a socket an input, or the time it waited for, and its application what follows from it.
    fn serve(&mut self, socket: usize, input: Option<Input>) {
        if self.drive(socket, input) {
            let Socket { flow, role, .. } = self.sockets[socket];
            self.run_application(flow, role);
        }
    }

    /// Lets an endpoint do all that it has to do now; true if it had something to tell.
    fn drive(&mut self, index: usize, input: Option<Input>) -> bool {
        let Self { network, sockets, flows, agenda, now, .. } = self;
        let Socket { connection, node, flow, role } = &mut sockets[index];
        let flow = &mut flows[*flow];
        if let Some(input) = input {
            connection.handle(*now, input);
        }
        let mut told = false;
        let deadline = drain(connection, *now, |_, output| match output {
            Output::Transmit(packet) => network.send(*now, *node, packet),
            Output::Event(event) => {
                told = true;
                flow.take(*now, *role, index, event);
            }
            Output::Wait(_) => unreachable!("drain keeps it"),
        });
        agenda.set(index, deadline.unwrap_or(Time::MAX));
        told
    }

    fn run_application(&mut self, flow: usize, role: Role) {
        match role {
            Role::Client => self.poll_application(flow, |flow| &mut flow.client, role),
            Role::Server => self.poll_application(flow, |flow| &mut flow.server, role),
        }
        // The measured flow closes when its records have been taken.
        if flow != MEASURED {
            self.begin_to_close(flow);
        }
    }

    /// Does what the application of one side wants, until it waits.
    fn poll_application<A: Application>(
        &mut self,
        index: usize,
        side: impl Fn(&mut Flow) -> &mut Side<A>,
        role: Role,
    ) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            if flow.was_given_up() {
                self.agenda.set(self.client_entry(index), Time::MAX);
                break;
            }
            match side(flow).application.poll(now) {
                Answer::Send(outgoing) => {
                    flow.note_sending(now, role);
                    let channel = &side(flow).channel;
                    let socket = channel.endpoint(outgoing.stream);
                    let command = channel.send(&outgoing);
                    if self.sockets[socket].connection.can_send(outgoing.payload.len()) {
                        self.drive(socket, Some(Input::Command(command)));
                    } else {
                        side(flow).application.handle(now, hol_workloads::Input::Full(outgoing));
                    }
                }
                Answer::Wait(until) => {
                    if role == Role::Client {
                        self.agenda.set(self.client_entry(index), until);
                        if until == Time::MAX {
                            // Perhaps that was the last message: the grace time begins.
                            self.watch(index);
                        }
                    }
                    break;
                }
                Answer::Stop(trouble) => {
                    flow.note_trouble(now, trouble);
                    self.agenda.set(self.client_entry(index), Time::MAX);
                    break;
                }
            }
        }
        while let Some(socket) = side(&mut self.flows[index]).half_closed.pop() {
            self.drive(socket, Some(Input::Command(Command::Close)));
        }
    }

    fn watch(&mut self, flow: usize) {
        self.agenda.set(self.client_entry(flow) + 1, self.flows[flow].deadline());
    }

    fn client_entry(&self, flow: usize) -> usize {
        self.sockets.len() + 2 * flow
    }
}

fn add(total: Statistics, one: &Statistics) -> Statistics {
    // Spelt out, so that a new field cannot be forgotten.
    let Statistics {
        packets_sent,
        packets_received,
        data_sent,
        fast_retransmissions,
        timeout_retransmissions,
        timeouts,
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
        tail_loss_probes: tail_loss_probes + one.tail_loss_probes,
        congestion_events: congestion_events + one.congestion_events,
        duplicates_received: duplicates_received + one.duplicates_received,
    }
}
