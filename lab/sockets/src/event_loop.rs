//! The event loop: waits until a socket or the schedule is ready, and handles it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;

use bytes::Bytes;
use hol_base::Time;
use hol_scenario::{Sample, SampleValue, SenderSample, Side, connection_addresses};
use hol_system::{Events, Poller, ReadyFile};
use hol_wire::Ecn;
use hol_workloads::{ConnectionId, Output, Progress};
use socket2::Socket;

use crate::clock::{Alarm, Clock};
use crate::datagrams::{self, DatagramBatch};
use crate::end_result::{EndResult, FlowOutcome, LocalData};
use crate::error::SocketsError;
use crate::event_source::Token;
use crate::filter::Filter;
use crate::flow_parameters::{EndAddresses, Ending, FlowParameters, FlowRun, PathChange};
use crate::flow_side::{ConnectionProgress, FlowSide};
use crate::flow_supervisor::FlowSupervisor;
use crate::host_addresses::HostAddresses;
use crate::peer_report::ReportReceiver;
use crate::read_delays::ReadDelayRecorder;
use crate::sample_timer::SampleTimer;
use crate::transceiver::{self, ConnectionFault, Opener, SocketEvent, failed_to, own_port};
use crate::turns::MAX_PER_TURN;
use crate::wake_signal::WakeSignal;

/// A function that moves the thread to the network of an end.
pub(crate) type EnterNetwork<'p> = &'p mut dyn FnMut(Side) -> io::Result<()>;

/// The event loop of a flow, with one or both ends.
pub(crate) struct EventLoop<'p> {
    pub(crate) parameters: &'p FlowParameters,
    pub(crate) enter: EnterNetwork<'p>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) poller: Poller<Token>,
    pub(crate) opener: Box<dyn Opener>,
    /// The server's socket, which accepts connections or serves the first client. `None` if the server does
    /// not listen, or if the client's connection uses the socket.
    pub(crate) listener: Option<Socket>,
    /// The server's address, with the port that the kernel chose.
    pub(crate) server_site: EndAddresses,
    /// The addresses of the client's host, if they change during the run.
    pub(crate) host_addresses: Option<HostAddresses>,
    /// Number of connections that wait for an address.
    pub(crate) awaiting_address: usize,
    /// The source port of each connection.
    pub(crate) client_ports: Vec<u16>,
    pub(crate) client: FlowSide,
    pub(crate) server: FlowSide,
    pub(crate) wake_signal: Option<WakeSignal>,
    pub(crate) filter: Option<Filter>,
    pub(crate) flow: FlowSupervisor<'p>,
    /// Whether the other end is on another host.
    pub(crate) is_single_ended: bool,
    /// Reports from the other host.
    pub(crate) peer_reports: Option<ReportReceiver>,
    /// Progress of the application on the other host.
    pub(crate) remote_progress: Rc<Cell<Progress>>,
    /// The connections of clients on another host, by the client's address; each connection has a socket of its own.
    pub(crate) remote_clients: BTreeMap<SocketAddr, ConnectionId>,
    pub(crate) was_stopped: bool,
    /// The changes of paths so far.
    pub(crate) path_changes: Vec<PathChange>,
    /// Sampling times, if samples are requested.
    pub(crate) sample_timer: Option<SampleTimer>,
    /// Scratch space for reads.
    pub(crate) buffer: Box<[u8]>,
}

impl EventLoop<'_> {
    /// Maximum number of events handled before the alarm is set again.
    const MAX_READY: usize = 64;

    /// Runs until the flow has ended; returns the time of its end.
    pub(crate) fn run(&mut self) -> Result<Time, SocketsError> {
        let mut ready = Events::with_capacity(Self::MAX_READY);
        self.poll_application(Side::Client)?;
        if self.is_single_ended {
            self.poll_application(Side::Server)?;
        }
        self.await_tick()?;
        while self.flow.run_end().is_none() {
            let wake = self.client.wake.min(self.server.wake).min(self.client.due()).min(self.server.due());
            let deadline = wake.min(self.flow.deadline(self.progress()));
            self.alarm.set(&self.clock, deadline).map_err(failed_to("set the timer"))?;
            self.poller.wait(None, &mut ready).map_err(failed_to("wait for the sockets"))?;
            self.clock.wake();
            (self.client.sent_this_turn, self.server.sent_this_turn) = (0, 0);
            for one in ready.iter() {
                self.handle(one)?;
            }
        }
        Ok(self.clock.now())
    }

    /// Joins the ledgers of both ends, reads the sockets' counters, and ends the connections.
    pub(crate) fn finish(mut self, ended: Time) -> Result<FlowRun, SocketsError> {
        let [client, server] = self.end_results(ended)?;
        let FlowParameters { transport, workload, .. } = self.parameters;
        let joined = client.join(server, workload.ledger_join(transport.may_lose_messages()));
        let (run, _) = joined.expect("the client's end has the rules");
        self.end_connections()?;
        Ok(run)
    }

    /// Returns the result of the local end. Call [`end_connections`](Self::end_connections) only after the other end
    /// has finished, too.
    pub(crate) fn end_result(&mut self, ended: Time) -> Result<EndResult, SocketsError> {
        let [client, server] = self.end_results(ended)?;
        Ok(if self.peer_reports.is_some() { client } else { server })
    }

    /// Returns the results of both ends.
    fn end_results(&mut self, ended: Time) -> Result<[EndResult; 2], SocketsError> {
        // Records stay in memory to the end, because a run in real time has few.
        while !self.was_stopped && !self.client.application.end(ended) {}
        while !self.server.application.end(self.clock.now()) {}
        let samples = self
            .sample_timer
            .as_mut()
            .map_or(Vec::new(), |sample_timer| std::mem::take(&mut sample_timer.samples));
        let is_clients = |sample: &Sample| {
            matches!(sample.value, SampleValue::Sender(SenderSample { side: Side::Client, .. }))
        };
        let (of_client, of_server) = samples.into_iter().partition(is_clients);
        let verdict = FlowOutcome {
            connected: self.client.application.connected(self.flow.connected()),
            ended,
            run_end: self.flow.run_end().expect("the event loop runs until the flow has ended").clone(),
            was_stopped: self.was_stopped,
        };
        let origin = self.clock.origin();
        let client = EndResult {
            ledger: std::mem::take(self.client.application.ledger()),
            origin,
            counts: self.client.counts(),
            waits: self.client.waits.take().and_then(ReadDelayRecorder::finish),
            verdict: Some(verdict),
            local: LocalData {
                paths: std::mem::take(&mut self.path_changes),
                secrets: self.opener.secrets(),
                filter: None,
                samples: of_client,
            },
        };
        let server = EndResult {
            ledger: std::mem::take(self.server.application.ledger()),
            origin,
            counts: self.server.counts(),
            waits: self.server.waits.take().and_then(ReadDelayRecorder::finish),
            verdict: None,
            local: LocalData {
                filter: self.filter.as_ref().map_or(Ok(None), Filter::report)?,
                samples: of_server,
                ..LocalData::default()
            },
        };
        Ok([client, server])
    }

    /// Ends the connections as configured; dropping a socket without further calls would close its connection in order.
    pub(crate) fn end_connections(mut self) -> Result<(), SocketsError> {
        if self.parameters.ending == Ending::Abort {
            self.client.abort().and_then(|()| self.server.abort()).map_err(failed_to("set SO_LINGER"))?;
        }
        Ok(())
    }

    /// Handles a ready source.
    fn handle(&mut self, ready: ReadyFile<Token>) -> Result<(), SocketsError> {
        match ready.token {
            Token::Alarm => {
                self.run_timers();
                let (now, progress) = (self.clock.now(), self.progress());
                self.flow.check(now, progress);
                self.poll_application(Side::Client)?;
                if self.server.wake <= now || self.server.has_timers() {
                    self.poll_application(Side::Server)
                } else {
                    Ok(())
                }
            }
            Token::Stop => {
                self.was_stopped = self.flow.run_end().is_none();
                self.flow.end();
                Ok(())
            }
            Token::WakeSignal => {
                self.wake_signal.iter().for_each(WakeSignal::clear);
                self.poll_application(Side::Client)?;
                self.poll_application(Side::Server)
            }
            Token::PeerReport => {
                self.take_peer_reports();
                Ok(())
            }
            Token::Tick => self.sample(),
            Token::HostAddresses => {
                self.change_addresses()?;
                self.poll_application(Side::Client)
            }
            Token::Listener => {
                if let Err(fault) = self.accept() {
                    self.flow.end_with_failure(fault.reason());
                }
                Ok(())
            }
            Token::Connection(end, id) => {
                self.handle_connection(end, id, ready);
                self.poll_application(end)
            }
        }
    }

    /// Samples all senders, without influencing the timing of anything else.
    fn sample(&mut self) -> Result<(), SocketsError> {
        let Self { sample_timer: Some(sample_timer), client, server, clock, .. } = self else {
            return Ok(());
        };
        for flow_side in [client, server] {
            flow_side.sample(clock.now(), &mut sample_timer.samples);
        }
        self.await_tick()
    }

    fn await_tick(&mut self) -> Result<(), SocketsError> {
        let Self { sample_timer: Some(sample_timer), clock, .. } = self else { return Ok(()) };
        sample_timer.set(clock, clock.now()).map_err(failed_to("set the timer"))
    }

    fn handle_connection(&mut self, end: Side, id: ConnectionId, ready: ReadyFile<Token>) {
        let Self { client, server, poller, clock, path_changes: paths, buffer, .. } = self;
        let flow_side = if end == Side::Client { client } else { server };
        let mut progress = [ConnectionProgress::Nothing; 2];
        if ready.writable {
            progress[0] = flow_side.write(poller, id, clock.now());
        }
        if ready.readable {
            progress[1] = flow_side.read(poller, id, buffer, || clock.now(), note_path(end, paths));
        }
        progress.into_iter().for_each(|progress| self.report(end, progress));
    }

    /// Handles the timers of connections that are due.
    fn run_timers(&mut self) {
        for end in [Side::Client, Side::Server] {
            let now = self.clock.now();
            // A connection with more to send is due again at once; the limit gives other events their turn.
            for _ in 0..Self::MAX_READY {
                let (flow_side, poller) = self.side_and_poller(end);
                let Some(id) = flow_side.due_connection(now) else { break };
                let progress = flow_side.handle_timer(poller, id, now);
                self.report(end, progress);
            }
        }
    }

    /// Reports the progress of a connection to the flow.
    fn report(&mut self, end: Side, progress: ConnectionProgress) {
        let now = self.clock.now();
        match (progress, end) {
            (ConnectionProgress::Nothing, _) => {}
            (ConnectionProgress::Opened, Side::Client) => self.flow.note_opened(now),
            (ConnectionProgress::Opened, Side::Server) => self.flow.note_accepted(now),
            (ConnectionProgress::Delivered, _) => self.flow.note_delivery(now, self.progress()),
        }
    }

    /// Handles the reports from the other host.
    fn take_peer_reports(&mut self) {
        let reports = self.peer_reports.as_ref().map_or(Vec::new(), ReportReceiver::take);
        for report in reports {
            self.remote_progress.set(report.progress);
            let progress = self.progress();
            self.flow.note_peer_report(self.clock.now(), report, progress);
        }
    }

    /// Accepts waiting connections.
    fn accept(&mut self) -> Result<(), ConnectionFault> {
        if !self.opener.accepts() {
            return self.accept_datagrams();
        }
        if !self.opener.accepts_in_server_network() || self.is_single_ended {
            return self.accept_next();
        }
        (self.enter)(Side::Server)?;
        let accepted = self.accept_next();
        (self.enter)(Side::Client)?;
        accepted
    }

    /// Accepts one connection per readiness event: Linux's SCTP sleeps until its next tick in an accept without a
    /// pending association, although the socket is non-blocking (`sctp_wait_for_accept`).
    fn accept_next(&mut self) -> Result<(), ConnectionFault> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let (from, transceiver) =
            match self.opener.accept(listener, &self.parameters.client, self.host_addresses.is_some()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                other => other?,
            };
        if self.is_from_client(from) {
            self.server.add(&self.poller, transceiver, self.clock.now())?;
        }
        Ok(())
    }

    /// Returns whether the address belongs to the client of this run. The ports of a client on another host
    /// are unknown here.
    fn is_from_client(&self, from: Option<SocketAddr>) -> bool {
        if self.is_single_ended {
            return from.is_some_and(|from| self.parameters.client.addresses.contains(&from.ip()));
        }
        self.client_ports.contains(&from.map_or(0, |from| from.port()))
    }

    /// Handles datagrams from clients on another host: each client gets a socket of its own.
    fn accept_datagrams(&mut self) -> Result<(), ConnectionFault> {
        // The number is limited, because any host may send datagrams; then other events get their turn.
        for _ in 0..Self::MAX_READY {
            let Some(listener) = &self.listener else { return Ok(()) };
            match read_early(listener, &mut self.buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // An ICMP error for an earlier datagram.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                other => self.accept_datagram(other?)?,
            }
        }
        Ok(())
    }

    fn accept_datagram(&mut self, (from, octets, ecn): Early) -> Result<(), ConnectionFault> {
        if !self.is_from_client(Some(from)) {
            return Ok(());
        }
        let (mut own, mut strays) = (vec![(octets, ecn)], Vec::new());
        // Another connection may use the port of a finished one.
        let id = match self.remote_clients.get(&from) {
            Some(id) if self.server.has(*id) => *id,
            _ => self.add_remote_client(from, &mut own, &mut strays)?,
        };
        for (octets, ecn) in own {
            if self.server.handle_early_datagram(id, octets, ecn) {
                let ready = ReadyFile { token: Token::Listener, readable: true, writable: true };
                self.handle_connection(Side::Server, id, ready);
            }
        }
        strays.into_iter().try_for_each(|stray| self.accept_datagram(stray))
    }

    /// Creates the socket of a client, and collects the datagrams that arrived before the socket was connected; once
    /// connected, the socket receives only from this client.
    fn add_remote_client(
        &mut self,
        from: SocketAddr,
        own: &mut Vec<(Bytes, Ecn)>,
        strays: &mut Vec<Early>,
    ) -> Result<ConnectionId, ConnectionFault> {
        let at = |_| ConnectionFault::Protocol("the server has no socket for another client");
        let socket = self.opener.listen(&self.server_site).map_err(at)?;
        socket.connect(&from.into())?;
        while let Ok((other, octets, ecn)) = read_early(&socket, &mut self.buffer) {
            if other == from {
                own.push((octets, ecn));
            } else {
                strays.push((other, octets, ecn));
            }
        }
        let peer = EndAddresses { addresses: vec![from.ip()], port: from.port() };
        let id = ConnectionId(self.server.connection_count() as u32);
        let transceiver = self.opener.dedicated_transceiver(socket, &peer);
        self.server.add(&self.poller, transceiver, self.clock.now())?;
        self.remote_clients.insert(from, id);
        Ok(id)
    }

    /// Handles added or removed addresses of the client: informs its connections, and opens those that waited
    /// for an address.
    fn change_addresses(&mut self) -> Result<(), SocketsError> {
        let changes = self.host_addresses.as_mut().map_or(Ok(Vec::new()), HostAddresses::changes);
        for change in changes.map_err(failed_to("read changes of the host's addresses"))? {
            self.client.change_address(change, self.clock.now());
        }
        while self.awaiting_address > 0 && self.has_address() {
            self.awaiting_address -= 1;
            self.connect()?;
        }
        Ok(())
    }

    /// Returns whether the client has an address.
    fn has_address(&self) -> bool {
        let FlowParameters { client, .. } = self.parameters;
        self.host_addresses
            .as_ref()
            .is_none_or(|host_addresses| client.addresses.iter().any(|own| host_addresses.has(*own)))
    }

    /// Opens a connection as soon as the client has an address.
    fn open(&mut self, ConnectionId(id): ConnectionId) -> Result<(), SocketsError> {
        let next = self.client.connection_count() + self.awaiting_address;
        assert_eq!(id as usize, next, "connections are numbered in the order of their opening");
        self.flow.note_opening();
        if self.awaiting_address == 0 && self.has_address() {
            return self.connect();
        }
        self.awaiting_address += 1;
        Ok(())
    }

    /// Starts to connect from the client, from the port after that of the last connection; after port 65535
    /// the kernel chooses.
    fn connect(&mut self) -> Result<(), SocketsError> {
        let [EndAddresses { port, addresses: own }, server] = [&self.parameters.client, &self.server_site];
        let number = self.client.connection_count() as u16;
        let port = if *port == 0 { 0 } else { port.checked_add(number).unwrap_or(0) };
        let is_here =
            |address| self.host_addresses.as_ref().is_none_or(|host_addresses| host_addresses.has(address));
        let [own, peer] = connection_addresses(own, &server.addresses, is_here);
        let (from, to) =
            (EndAddresses { addresses: own, port }, EndAddresses { addresses: peer, port: server.port });
        let socket = self.opener.connect(&from, &to)?;
        let port = own_port(&socket)?;
        self.client_ports.push(port);
        let client = self.opener.transceiver(socket, &to);
        self.client.add(&self.poller, client, self.clock.now()).map_err(failed_to("wait for a socket"))?;
        if !self.opener.accepts() && self.parameters.workload.listens && !self.is_single_ended {
            self.add_local_client(&EndAddresses { port, ..from })?;
        }
        Ok(())
    }

    /// Adds the socket of a local client to the server, for transports without accept.
    fn add_local_client(&mut self, peer: &EndAddresses) -> Result<(), SocketsError> {
        let socket = match self.listener.take() {
            Some(socket) => socket,
            None => {
                (self.enter)(Side::Server).map_err(failed_to("enter the server's network"))?;
                let socket = self.opener.listen(&self.server_site)?;
                (self.enter)(Side::Client).map_err(failed_to("enter the client's network"))?;
                socket
            }
        };
        transceiver::check_connecting(socket.connect(&transceiver::address(peer)), peer)?;
        let server = self.opener.dedicated_transceiver(socket, peer);
        self.server.add(&self.poller, server, self.clock.now()).map_err(failed_to("wait for a socket"))
    }

    /// Handles the outputs of the application at one end until it waits.
    fn poll_application(&mut self, end: Side) -> Result<(), SocketsError> {
        loop {
            let now = self.clock.now();
            if self.parameters.is_batching && self.flow_side(end).sent_this_turn == MAX_PER_TURN {
                return self.set_wake(end, now, now);
            }
            match self.flow_side(end).application.poll(now) {
                Output::Send(outgoing) => {
                    if end == Side::Client && outgoing.is_message() {
                        self.flow.note_sending(now, self.progress());
                    }
                    let (flow_side, poller) = self.side_and_poller(end);
                    flow_side.sent_this_turn += 1;
                    flow_side.send(poller, outgoing, now);
                }
                Output::Open(id) => self.open(id)?,
                Output::Close(id) => self.flow_side(end).close(id, now),
                Output::Processed => {
                    let progress = self.progress();
                    self.flow.note_delivery(now, progress);
                }
                Output::Wait(until) => return self.set_wake(end, until, now),
                Output::Stop(quit) => {
                    let (flow_side, poller) = self.side_and_poller(end);
                    flow_side.wake = Time::MAX;
                    flow_side.send_all(poller, now);
                    self.flow.end_with_abort(now, quit);
                    return Ok(());
                }
            }
        }
    }

    /// Sets the time at which an end's application acts next.
    fn set_wake(&mut self, end: Side, until: Time, now: Time) -> Result<(), SocketsError> {
        let (flow_side, poller) = self.side_and_poller(end);
        flow_side.wake = if flow_side.send_all(poller, now) { until } else { now };
        flow_side.watch_for_data(poller, now).map_err(failed_to("wait for a socket"))
    }

    fn flow_side(&mut self, end: Side) -> &mut FlowSide {
        self.side_and_poller(end).0
    }

    /// Returns an end, and the poller of its sockets.
    fn side_and_poller(&mut self, end: Side) -> (&mut FlowSide, &Poller<Token>) {
        let flow_side = match end {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        (flow_side, &self.poller)
    }

    fn progress(&self) -> [Progress; 2] {
        [&self.client, &self.server].map(|flow_side| flow_side.application.progress())
    }
}

/// A datagram that arrived at a socket without a peer: its source, content and ECN mark.
type Early = (SocketAddr, Bytes, Ecn);

fn read_early(socket: &Socket, buffer: &mut [u8]) -> io::Result<Early> {
    let from = UdpSocket::from(socket.try_clone()?).peek_from(buffer)?.1;
    let DatagramBatch { octets, ecn, .. } = datagrams::read(socket, buffer)?;
    Ok((from, Bytes::copy_from_slice(octets), ecn))
}

fn note_path(end: Side, paths: &mut Vec<PathChange>) -> impl FnMut(Time, SocketEvent) {
    move |at, event| {
        if let SocketEvent::Path(address, status) = event {
            paths.push(PathChange { at, end, address, status });
        }
    }
}
