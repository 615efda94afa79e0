//! The event loop: waits until a socket or the schedule is ready, and handles it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;

use bytes::Bytes;
use hol_base::Time;
use hol_scenario::{Sample, SampleValue, SenderSample, Side, connection_addresses};
use hol_system::{Events, Poller, Ready};
use hol_wire::Ecn;
use hol_workloads::{ConnectionId, Output, Progress};
use socket2::Socket;

use crate::assignment::{Assignment, EndAddresses, Ending, FlowRun, PathChange};
use crate::clock::{Alarm, Clock};
use crate::datagrams::{self, Read};
use crate::end_result::{EndResult, LocalData, Verdict};
use crate::error::SocketsError;
use crate::filter::Filter;
use crate::flow_side::{FlowSide, Followed};
use crate::host_addresses::HostAddresses;
use crate::peer_report::ReportReceiver;
use crate::read_delays::ReadDelayRecorder;
use crate::referee::Referee;
use crate::ticks::Ticks;
use crate::token::Token;
use crate::transceiver::{self, ConnectionFault, Opener, SocketEvent, own_port, refused};
use crate::turns::MOST_AT_ONCE;
use crate::wake_signal::WakeSignal;

/// A function that moves the thread to the network of an end.
pub(crate) type Enter<'p> = &'p mut dyn FnMut(Side) -> io::Result<()>;

/// The event loop of a flow, with both ends or one.
pub(crate) struct EventLoop<'p> {
    pub(crate) assignment: &'p Assignment,
    pub(crate) enter: Enter<'p>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) poller: Poller<Token>,
    pub(crate) opener: Box<dyn Opener>,
    /// The server's socket: it accepts, or serves the first client; `None` if nobody listens, or if the
    /// client has it.
    pub(crate) listener: Option<Socket>,
    /// The server's address, with the port that the kernel chose.
    pub(crate) server_site: EndAddresses,
    /// The addresses of the client's host, if they change during the run.
    pub(crate) presence: Option<HostAddresses>,
    /// Number of connections that wait for an address.
    pub(crate) homeless: usize,
    /// The source port of each connection.
    pub(crate) client_ports: Vec<u16>,
    pub(crate) client: FlowSide,
    pub(crate) server: FlowSide,
    pub(crate) bell: Option<WakeSignal>,
    pub(crate) filter: Option<Filter>,
    pub(crate) flow: Referee<'p>,
    /// Whether the other end is on another host.
    pub(crate) is_alone: bool,
    /// Reports from the other host.
    pub(crate) mail: Option<ReportReceiver>,
    /// Progress of the application on the other host.
    pub(crate) far_standing: Rc<Cell<Progress>>,
    /// Clients on another host whose datagrams have a socket of their own.
    pub(crate) met: BTreeMap<SocketAddr, ConnectionId>,
    pub(crate) was_stopped: bool,
    pub(crate) paths: Vec<PathChange>,
    /// Sampling times, if samples are requested.
    pub(crate) ticks: Option<Ticks>,
    /// Scratch space for reads.
    pub(crate) buffer: Box<[u8]>,
}

impl EventLoop<'_> {
    /// Sockets handled before the alarm is set again.
    const MOST_READY: usize = 64;

    /// Runs until the flow has ended; returns the time of its end.
    pub(crate) fn run(&mut self) -> Result<Time, SocketsError> {
        let mut ready = Events::with_capacity(Self::MOST_READY);
        self.serve(Side::Client)?;
        if self.is_alone {
            self.serve(Side::Server)?;
        }
        self.await_tick()?;
        while self.flow.stopped().is_none() {
            let wake = self.client.wake.min(self.server.wake).min(self.client.due()).min(self.server.due());
            let deadline = wake.min(self.flow.deadline(self.standings()));
            self.alarm.set(&self.clock, deadline).map_err(refused("set the alarm"))?;
            self.poller.wait(None, &mut ready).map_err(refused("wait for the sockets"))?;
            self.clock.wake();
            (self.client.said, self.server.said) = (0, 0);
            for one in ready.iter() {
                self.handle(one)?;
            }
        }
        Ok(self.clock.now())
    }

    /// Joins the ledgers of both ends, reads the sockets' counters, and ends the connections.
    pub(crate) fn finish(mut self, ended: Time) -> Result<FlowRun, SocketsError> {
        let [client, server] = self.halves(ended)?;
        let Assignment { transport, workload, .. } = self.assignment;
        let joined = client.join(server, workload.reading(transport.gives_up()));
        let (run, _) = joined.expect("the client's end has the rules");
        self.end_connections()?;
        Ok(run)
    }

    /// Returns the result of the local end, and its connections, which are to be ended after the other end
    /// has finished, too.
    pub(crate) fn half(&mut self, ended: Time) -> Result<EndResult, SocketsError> {
        let [client, server] = self.halves(ended)?;
        Ok(if self.mail.is_some() { client } else { server })
    }

    /// Returns the notes of each end.
    fn halves(&mut self, ended: Time) -> Result<[EndResult; 2], SocketsError> {
        // Records are kept to the end: a run in real time has few.
        while !self.was_stopped && !self.client.application.end(ended) {}
        while !self.server.application.end(self.clock.now()) {}
        let samples = self.ticks.as_mut().map_or(Vec::new(), |ticks| std::mem::take(&mut ticks.samples));
        let is_clients = |sample: &Sample| {
            matches!(sample.of, SampleValue::Sender(SenderSample { side: Side::Client, .. }))
        };
        let (of_client, of_server) = samples.into_iter().partition(is_clients);
        let verdict = Verdict {
            connected: self.client.application.connected(self.flow.connected()),
            ended,
            stopped: self.flow.stopped().expect("a run ends when its flow has").clone(),
            was_stopped: self.was_stopped,
        };
        let origin = self.clock.origin();
        let client = EndResult {
            ledger: std::mem::take(self.client.application.ledger()),
            origin,
            counts: self.client.counts(),
            waits: self.client.waits.take().and_then(ReadDelayRecorder::finish),
            verdict: Some(verdict),
            aside: LocalData {
                paths: std::mem::take(&mut self.paths),
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
            aside: LocalData {
                filter: self.filter.as_ref().map_or(Ok(None), Filter::held)?,
                samples: of_server,
                ..LocalData::default()
            },
        };
        Ok([client, server])
    }

    /// Ends the connections as configured; dropping a socket alone would close it in order.
    pub(crate) fn end_connections(mut self) -> Result<(), SocketsError> {
        if self.assignment.ending == Ending::Abort {
            self.client.abort().and_then(|()| self.server.abort()).map_err(refused("set SO_LINGER"))?;
        }
        Ok(())
    }

    /// Handles a ready source.
    fn handle(&mut self, ready: Ready<Token>) -> Result<(), SocketsError> {
        match ready.token {
            Token::Alarm => {
                self.act();
                let (now, standings) = (self.clock.now(), self.standings());
                self.flow.check(now, standings);
                self.serve(Side::Client)?;
                if self.server.wake <= now || self.server.has_timers() {
                    self.serve(Side::Server)
                } else {
                    Ok(())
                }
            }
            Token::Stop => {
                self.was_stopped = self.flow.stopped().is_none();
                self.flow.end();
                Ok(())
            }
            Token::Bell => {
                self.bell.iter().for_each(WakeSignal::silence);
                self.serve(Side::Client)?;
                self.serve(Side::Server)
            }
            Token::Far => {
                self.hear();
                Ok(())
            }
            Token::Tick => self.look(),
            Token::Presence => {
                self.follow()?;
                self.serve(Side::Client)
            }
            Token::Listener => {
                if let Err(fault) = self.accept() {
                    self.flow.note_failure(fault.reason());
                }
                Ok(())
            }
            Token::Connection(end, id) => {
                self.look_after(end, id, ready);
                self.serve(end)
            }
        }
    }

    /// Samples all senders, without influencing the timing of anything else.
    fn look(&mut self) -> Result<(), SocketsError> {
        let Self { ticks: Some(ticks), client, server, clock, .. } = self else { return Ok(()) };
        for flow_side in [client, server] {
            flow_side.look(clock.now(), &mut ticks.samples);
        }
        self.await_tick()
    }

    fn await_tick(&mut self) -> Result<(), SocketsError> {
        let Self { ticks: Some(ticks), clock, .. } = self else { return Ok(()) };
        ticks.set(clock, clock.now()).map_err(refused("set the alarm"))
    }

    fn look_after(&mut self, end: Side, id: ConnectionId, ready: Ready<Token>) {
        let Self { client, server, poller, clock, paths, buffer, .. } = self;
        let flow_side = if end == Side::Client { client } else { server };
        let mut followed = [Followed::Nothing; 2];
        if ready.writable {
            followed[0] = flow_side.write(poller, id, clock.now());
        }
        if ready.readable {
            followed[1] = flow_side.read(poller, id, buffer, || clock.now(), note_path(end, paths));
        }
        followed.into_iter().for_each(|followed| self.note(end, followed));
    }

    /// Lets connections act whose timers are due.
    fn act(&mut self) {
        for end in [Side::Client, Side::Server] {
            let now = self.clock.now();
            // A connection with more to send is called again, up to this number of times; then others get
            // their turn.
            for _ in 0..Self::MOST_READY {
                let (flow_side, poller) = self.party_and_poller(end);
                let Some(id) = flow_side.next_due(now) else { break };
                let followed = flow_side.act(poller, id, now);
                self.note(end, followed);
            }
        }
    }

    /// Reports an event of an end to the flow.
    fn note(&mut self, end: Side, followed: Followed) {
        let now = self.clock.now();
        match (followed, end) {
            (Followed::Nothing, _) => {}
            (Followed::Opened, Side::Client) => self.flow.note_opened(now),
            (Followed::Opened, Side::Server) => self.flow.note_accepted(now),
            (Followed::Delivered, _) => self.flow.note_delivery(now, self.standings()),
        }
    }

    /// Handles news from the other host.
    fn hear(&mut self) {
        let letters = self.mail.as_ref().map_or(Vec::new(), ReportReceiver::take);
        for news in letters {
            self.far_standing.set(news.standing);
            let standings = self.standings();
            self.flow.note_news(self.clock.now(), news, standings);
        }
    }

    /// Accepts waiting connections.
    fn accept(&mut self) -> Result<(), ConnectionFault> {
        if !self.opener.accepts() {
            return self.meet_all();
        }
        if !self.opener.accepts_at_home() || self.is_alone {
            return self.accept_next();
        }
        (self.enter)(Side::Server)?;
        let accepted = self.accept_next();
        (self.enter)(Side::Client)?;
        accepted
    }

    /// Accepts one connection per readiness event: Linux' SCTP sleeps until its next tick in an accept that
    /// finds none, although it is non-blocking (`sctp_wait_for_accept`).
    fn accept_next(&mut self) -> Result<(), ConnectionFault> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let (from, transceiver) =
            match self.opener.accept(listener, &self.assignment.client, self.presence.is_some()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                other => other?,
            };
        if self.is_ours(from) {
            self.server.add(&self.poller, transceiver, self.clock.now())?;
        }
        Ok(())
    }

    /// Returns whether the address is our client's. The ports of a client on another host are unknown here.
    fn is_ours(&self, from: Option<SocketAddr>) -> bool {
        if self.is_alone {
            return from.is_some_and(|from| self.assignment.client.addresses.contains(&from.ip()));
        }
        self.client_ports.contains(&from.map_or(0, |from| from.port()))
    }

    /// Gives each client on another host whose datagrams have arrived its own socket, and passes them on.
    fn meet_all(&mut self) -> Result<(), ConnectionFault> {
        // A limited number at a time, since anybody may send some; then others get their turn.
        for _ in 0..Self::MOST_READY {
            let Some(listener) = &self.listener else { return Ok(()) };
            match early(listener, &mut self.buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // An ICMP error for an earlier datagram.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                other => self.meet_one(other?)?,
            }
        }
        Ok(())
    }

    fn meet_one(&mut self, (from, octets, ecn): Early) -> Result<(), ConnectionFault> {
        if !self.is_ours(Some(from)) {
            return Ok(());
        }
        let (mut own, mut strays) = (vec![(octets, ecn)], Vec::new());
        // The port of a finished connection may be another one's now.
        let id = match self.met.get(&from) {
            Some(id) if self.server.has(*id) => *id,
            _ => self.meet_at_once(from, &mut own, &mut strays)?,
        };
        for (octets, ecn) in own {
            if self.server.handle_early_datagram(id, octets, ecn) {
                let ready = Ready { token: Token::Listener, readable: true, writable: true };
                self.look_after(Side::Server, id, ready);
            }
        }
        strays.into_iter().try_for_each(|stray| self.meet_one(stray))
    }

    /// Creates the socket of a client, with the datagrams that came before it was connected; from then on it
    /// receives only from this client.
    fn meet_at_once(
        &mut self,
        from: SocketAddr,
        own: &mut Vec<(Bytes, Ecn)>,
        strays: &mut Vec<Early>,
    ) -> Result<ConnectionId, ConnectionFault> {
        let at = |_| ConnectionFault::Protocol("the server has no socket for another client");
        let socket = self.opener.listen(&self.server_site).map_err(at)?;
        socket.connect(&from.into())?;
        while let Ok((other, octets, ecn)) = early(&socket, &mut self.buffer) {
            if other == from {
                own.push((octets, ecn));
            } else {
                strays.push((other, octets, ecn));
            }
        }
        let peer = EndAddresses { addresses: vec![from.ip()], port: from.port() };
        let id = ConnectionId(self.server.connections() as u32);
        let transceiver = self.opener.answerer(socket, &peer);
        self.server.add(&self.poller, transceiver, self.clock.now())?;
        self.met.insert(from, id);
        Ok(id)
    }

    /// Handles added or removed addresses of the client: its connections are told, and those waiting for an
    /// address may open.
    fn follow(&mut self) -> Result<(), SocketsError> {
        let changes = self.presence.as_mut().map_or(Ok(Vec::new()), HostAddresses::changes);
        for change in changes.map_err(refused("read the kernel's routing"))? {
            self.client.follow(change, self.clock.now());
        }
        while self.homeless > 0 && self.is_at_home() {
            self.homeless -= 1;
            self.connect()?;
        }
        Ok(())
    }

    /// Returns whether the client has an address.
    fn is_at_home(&self) -> bool {
        let Assignment { client, .. } = self.assignment;
        self.presence.as_ref().is_none_or(|presence| client.addresses.iter().any(|own| presence.has(*own)))
    }

    /// Opens a connection as soon as the client has an address.
    fn open(&mut self, ConnectionId(id): ConnectionId) -> Result<(), SocketsError> {
        let next = self.client.connections() + self.homeless;
        assert_eq!(id as usize, next, "connections are numbered in the order of their opening");
        self.flow.note_opening();
        if self.homeless == 0 && self.is_at_home() {
            return self.connect();
        }
        self.homeless += 1;
        Ok(())
    }

    /// Starts to connect from the client, from the port after that of the last connection, while there are
    /// any.
    fn connect(&mut self) -> Result<(), SocketsError> {
        let [EndAddresses { port, addresses: own }, server] = [&self.assignment.client, &self.server_site];
        let number = self.client.connections() as u16;
        let port = if *port == 0 { 0 } else { port.checked_add(number).unwrap_or(0) };
        let is_here = |address| self.presence.as_ref().is_none_or(|presence| presence.has(address));
        let [own, peer] = connection_addresses(own, &server.addresses, is_here);
        let (from, to) =
            (EndAddresses { addresses: own, port }, EndAddresses { addresses: peer, port: server.port });
        let socket = self.opener.connect(&from, &to)?;
        let port = own_port(&socket)?;
        self.client_ports.push(port);
        let client = self.opener.transceiver(socket, &to);
        self.client.add(&self.poller, client, self.clock.now()).map_err(refused("watch a socket"))?;
        if !self.opener.accepts() && self.assignment.workload.listens && !self.is_alone {
            self.meet(&EndAddresses { port, ..from })?;
        }
        Ok(())
    }

    /// For transports without accept: the server has a socket for each client.
    fn meet(&mut self, peer: &EndAddresses) -> Result<(), SocketsError> {
        let socket = match self.listener.take() {
            Some(socket) => socket,
            None => {
                (self.enter)(Side::Server).map_err(refused("enter the server's network"))?;
                let socket = self.opener.listen(&self.server_site)?;
                (self.enter)(Side::Client).map_err(refused("enter the client's network"))?;
                socket
            }
        };
        transceiver::begin(socket.connect(&transceiver::address(peer)), peer)?;
        let server = self.opener.answerer(socket, peer);
        self.server.add(&self.poller, server, self.clock.now()).map_err(refused("watch a socket"))
    }

    /// Handles the outputs of an end's application until it waits.
    fn serve(&mut self, end: Side) -> Result<(), SocketsError> {
        loop {
            let now = self.clock.now();
            if self.assignment.gathers && self.flow_side(end).said == MOST_AT_ONCE {
                return self.rest(end, now, now);
            }
            match self.flow_side(end).application.poll(now) {
                Output::Send(outgoing) => {
                    if end == Side::Client && outgoing.is_message() {
                        self.flow.note_sending(now, self.standings());
                    }
                    let (flow_side, poller) = self.party_and_poller(end);
                    flow_side.said += 1;
                    flow_side.send(poller, outgoing, now);
                }
                Output::Open(id) => self.open(id)?,
                Output::Close(id) => self.flow_side(end).close(id, now),
                Output::Took => {
                    let standings = self.standings();
                    self.flow.note_delivery(now, standings);
                }
                Output::Wait(until) => return self.rest(end, until, now),
                Output::Stop(quit) => {
                    let (flow_side, poller) = self.party_and_poller(end);
                    flow_side.wake = Time::MAX;
                    flow_side.send_all(poller, now);
                    self.flow.note_quit(now, quit);
                    return Ok(());
                }
            }
        }
    }

    /// Sets the time at which an end's application acts next.
    fn rest(&mut self, end: Side, until: Time, now: Time) -> Result<(), SocketsError> {
        let (flow_side, poller) = self.party_and_poller(end);
        flow_side.wake = if flow_side.send_all(poller, now) { until } else { now };
        flow_side.watch_for_data(poller, now).map_err(refused("watch a socket"))
    }

    fn flow_side(&mut self, end: Side) -> &mut FlowSide {
        self.party_and_poller(end).0
    }

    /// Returns an end, and the poller of its sockets.
    fn party_and_poller(&mut self, end: Side) -> (&mut FlowSide, &Poller<Token>) {
        let flow_side = match end {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        (flow_side, &self.poller)
    }

    fn standings(&self) -> [Progress; 2] {
        [&self.client, &self.server].map(|flow_side| flow_side.application.standing())
    }
}

/// A datagram that arrived at a socket without peer: its source, content and mark.
type Early = (SocketAddr, Bytes, Ecn);

fn early(socket: &Socket, buffer: &mut [u8]) -> io::Result<Early> {
    let from = UdpSocket::from(socket.try_clone()?).peek_from(buffer)?.1;
    let Read { octets, ecn, .. } = datagrams::read(socket, buffer)?;
    Ok((from, Bytes::copy_from_slice(octets), ecn))
}

fn note_path(end: Side, paths: &mut Vec<PathChange>) -> impl FnMut(Time, SocketEvent) {
    move |at, heard| {
        if let SocketEvent::Path(address, status) = heard {
            paths.push(PathChange { at, end, address, status });
        }
    }
}
