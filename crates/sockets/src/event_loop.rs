//! The loop: waits until a socket or the schedule wants something, and does what follows from it.

use std::io;

use hol_base::Time;
use hol_measure::{Leg, Record};
use hol_scenario::{Flow, Tally, ends};
use hol_system::{Events, Poller, Ready};
use hol_workloads::{ConnectionId, Output};
use socket2::Socket;

use crate::assignment::{Assignment, End, Ending, FlowRun, PathChange, Site, SocketsError};
use crate::bell::Bell;
use crate::clock::{Alarm, Clock};
use crate::filter::Filter;
use crate::presence::Presence;
use crate::side::{Followed, Side};
use crate::ticks::Ticks;
use crate::token::Token;
use crate::transceiver::{self, Fault, Heard, Opener, own_port, refused};

/// Moves the thread to the network of an end.
pub(crate) type Enter<'p> = &'p mut dyn FnMut(End) -> io::Result<()>;

/// Everything that takes part in a flow.
pub(crate) struct EventLoop<'p> {
    pub(crate) assignment: &'p Assignment,
    pub(crate) enter: Enter<'p>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) poller: Poller<Token>,
    pub(crate) opener: Box<dyn Opener>,
    /// The server's socket: it accepts, or is there for the first client; `None`: nobody listens, or it has one.
    pub(crate) listener: Option<Socket>,
    /// Where the server is, with the port that it has got.
    pub(crate) server_site: Site,
    /// Which addresses the client's host has, if they come and go …
    pub(crate) presence: Option<Presence>,
    /// … and how many connections wait for one.
    pub(crate) homeless: usize,
    /// By connection: where it comes from.
    pub(crate) client_ports: Vec<u16>,
    pub(crate) client: Side,
    pub(crate) server: Side,
    pub(crate) bell: Option<Bell>,
    pub(crate) filter: Option<Filter>,
    pub(crate) flow: Flow,
    pub(crate) was_stopped: bool,
    pub(crate) paths: Vec<PathChange>,
    /// When it is looked at, if anybody wants to know.
    pub(crate) ticks: Option<Ticks>,
    /// Scratch space for whoever reads.
    pub(crate) buffer: Box<[u8]>,
}

impl EventLoop<'_> {
    /// Sockets that are looked after before the alarm is set anew.
    const MOST_READY: usize = 64;
    /// As much as a datagram may be.
    pub(crate) const BUFFER: usize = 1 << 16;

    /// Goes on until the flow has ended; returns the time.
    pub(crate) fn run(&mut self) -> Result<Time, SocketsError> {
        let mut ready = Events::with_capacity(Self::MOST_READY);
        self.serve(End::Client)?;
        self.await_tick()?;
        while self.flow.stopped().is_none() {
            let wake = self.client.wake.min(self.server.wake).min(self.client.due()).min(self.server.due());
            let deadline = wake.min(self.flow.deadline(self.tally()));
            self.alarm.set(&self.clock, deadline).map_err(refused("set the alarm"))?;
            self.poller.wait(None, &mut ready).map_err(refused("wait for the sockets"))?;
            self.clock.wake();
            for one in ready.iter() {
                self.handle(one)?;
            }
        }
        Ok(self.clock.now())
    }

    /// Joins what both ends noted, asks the sockets for their counts, and lets go of them.
    pub(crate) fn finish(mut self, ended: Time) -> Result<FlowRun, SocketsError> {
        // Records are held here to the end: a run in real time has few.
        while !self.was_stopped && !self.client.application.end(ended) {}
        while !self.server.application.end(self.clock.now()) {}
        let Assignment { transport, workload, ending, .. } = self.assignment;
        let reading = workload.reading(transport.gives_up());
        let mut records = Vec::new();
        let (client, server) = (self.client.application.ledger(), self.server.application.ledger());
        reading.settle_all(client, server, |record| records.push(without_passage(record)));
        let run = FlowRun {
            records,
            epoch: self.clock.epoch(),
            connected: self.flow.connected(),
            ended,
            stopped: self.flow.stopped().expect("a run ends when its flow has").clone(),
            was_stopped: self.was_stopped,
            client: self.client.counts(),
            server: self.server.counts(),
            paths: self.paths,
            secrets: self.opener.secrets(),
            filter: self.filter.as_ref().map_or(Ok(None), Filter::held)?,
            samples: self.ticks.map_or(Vec::new(), |ticks| ticks.samples),
        };
        // Without more ado a socket that is dropped closes in an orderly way.
        if *ending == Ending::Abort {
            self.client.abort().and_then(|()| self.server.abort()).map_err(refused("set SO_LINGER"))?;
        }
        Ok(run)
    }

    /// Does what something ready asks for.
    fn handle(&mut self, ready: Ready<Token>) -> Result<(), SocketsError> {
        match ready.token {
            Token::Alarm => {
                self.act();
                let (now, tally) = (self.clock.now(), self.tally());
                self.flow.check(now, tally);
                self.serve(End::Client)?;
                if self.server.wake <= now || self.server.has_timers() {
                    self.serve(End::Server)
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
                self.bell.iter().for_each(Bell::silence);
                self.serve(End::Client)?;
                self.serve(End::Server)
            }
            Token::Tick => self.look(),
            Token::Presence => {
                self.follow()?;
                self.serve(End::Client)
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

    /// Notes how all senders stand. That is all: nothing else is to happen at another time because of it.
    fn look(&mut self) -> Result<(), SocketsError> {
        let Self { ticks: Some(ticks), client, server, clock, .. } = self else { return Ok(()) };
        for side in [client, server] {
            side.look(clock.now(), &mut ticks.samples);
        }
        self.await_tick()
    }

    fn await_tick(&mut self) -> Result<(), SocketsError> {
        let Self { ticks: Some(ticks), clock, .. } = self else { return Ok(()) };
        ticks.set(clock, clock.now()).map_err(refused("set the alarm"))
    }

    fn look_after(&mut self, end: End, id: ConnectionId, ready: Ready<Token>) {
        let Self { client, server, poller, clock, paths, buffer, .. } = self;
        let side = if end == End::Client { client } else { server };
        let mut followed = [Followed::Nothing; 2];
        if ready.writable {
            followed[0] = side.write(poller, id, clock.now());
        }
        if ready.readable {
            followed[1] = side.read(poller, id, buffer, || clock.now(), note_path(end, paths));
        }
        followed.into_iter().for_each(|followed| self.note(end, followed));
    }

    /// Has connections act that want to by themselves.
    fn act(&mut self) {
        for end in [End::Client, End::Server] {
            let now = self.clock.now();
            // One that has more to say wants to be asked again: at most so often, then others have their turn.
            for _ in 0..Self::MOST_READY {
                let Self { client, server, poller, .. } = self;
                let side = if end == End::Client { client } else { server };
                let Some(id) = side.next_due(now) else { break };
                let followed = side.act(poller, id, now);
                self.note(end, followed);
            }
        }
    }

    /// Tells the flow what followed at an end.
    fn note(&mut self, end: End, followed: Followed) {
        let now = self.clock.now();
        match (followed, end) {
            (Followed::Nothing, _) => {}
            (Followed::Opened, End::Client) => self.flow.note_opened(now),
            (Followed::Opened, End::Server) => self.flow.note_accepted(now),
            (Followed::Delivered, _) => self.flow.note_delivery(now, self.tally()),
        }
    }

    /// Takes the connections that have come.
    fn accept(&mut self) -> Result<(), Fault> {
        if !self.opener.accepts_at_home() {
            return self.accept_all();
        }
        (self.enter)(End::Server)?;
        let accepted = self.accept_all();
        (self.enter)(End::Client)?;
        accepted
    }

    fn accept_all(&mut self) -> Result<(), Fault> {
        let Some(listener) = &self.listener else { return Ok(()) };
        loop {
            let (port, transceiver) =
                match self.opener.accept(listener, &self.assignment.client, self.presence.is_some()) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    other => other?,
                };
            // Any other is a stranger.
            if self.client_ports.contains(&port) {
                self.server.add(&self.poller, transceiver, self.clock.now())?;
            }
        }
    }

    /// Addresses of the client have come or gone: its connections are told, and those that had none to come from may have one
    /// now.
    fn follow(&mut self) -> Result<(), SocketsError> {
        let changes = self.presence.as_mut().map_or(Ok(Vec::new()), Presence::changes);
        for change in changes.map_err(refused("read the kernel's routing"))? {
            self.client.follow(change, self.clock.now());
        }
        while self.homeless > 0 && self.is_at_home() {
            self.homeless -= 1;
            self.connect()?;
        }
        Ok(())
    }

    /// The client has an address.
    fn is_at_home(&self) -> bool {
        let Assignment { client, .. } = self.assignment;
        self.presence.as_ref().is_none_or(|presence| client.addresses.iter().any(|own| presence.has(*own)))
    }

    /// Opens a connection, as soon as the client has an address.
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

    /// Begins to connect from the client; the port after that of the last connection, while there are any.
    fn connect(&mut self) -> Result<(), SocketsError> {
        let [Site { port, addresses: own }, server] = [&self.assignment.client, &self.server_site];
        let number = self.client.connections() as u16;
        let port = if *port == 0 { 0 } else { port.checked_add(number).unwrap_or(0) };
        let is_here = |address| self.presence.as_ref().is_none_or(|presence| presence.has(address));
        let [own, peer] = ends(own, &server.addresses, is_here);
        let (from, to) = (Site { addresses: own, port }, Site { addresses: peer, port: server.port });
        let socket = self.opener.connect(&from, &to)?;
        let port = own_port(&socket)?;
        self.client_ports.push(port);
        let client = self.opener.transceiver(socket, &to);
        self.client.add(&self.poller, client, self.clock.now()).map_err(refused("watch a socket"))?;
        if !self.opener.accepts() && self.assignment.workload.listens {
            self.meet(&Site { port, ..from })?;
        }
        Ok(())
    }

    /// Nobody is accepted: the server has a socket for each client.
    fn meet(&mut self, peer: &Site) -> Result<(), SocketsError> {
        let socket = match self.listener.take() {
            Some(socket) => socket,
            None => {
                (self.enter)(End::Server).map_err(refused("enter the server's network"))?;
                let socket = self.opener.listen(&self.server_site)?;
                (self.enter)(End::Client).map_err(refused("enter the client's network"))?;
                socket
            }
        };
        transceiver::begin(socket.connect(&transceiver::address(peer)), peer)?;
        let server = self.opener.answerer(socket, peer);
        self.server.add(&self.poller, server, self.clock.now()).map_err(refused("watch a socket"))
    }

    /// Does what the application of an end wants, until it waits.
    fn serve(&mut self, end: End) -> Result<(), SocketsError> {
        loop {
            let now = self.clock.now();
            match self.side(end).application.poll(now) {
                Output::Send(outgoing) => {
                    if end == End::Client && outgoing.is_message() {
                        self.flow.note_sending(now, self.tally());
                    }
                    let Self { client, server, poller, .. } = self;
                    let side = if end == End::Client { client } else { server };
                    side.send(poller, outgoing, now);
                }
                Output::Open(id) => self.open(id)?,
                Output::Close(id) => self.side(end).close(id, now),
                Output::Took => {
                    let tally = self.tally();
                    self.flow.note_delivery(now, tally);
                }
                Output::Wait(until) => {
                    let Self { client, server, poller, .. } = self;
                    let side = if end == End::Client { client } else { server };
                    side.wake = until;
                    side.send_all(poller, now);
                    return side.watch_for_data(poller, now).map_err(refused("watch a socket"));
                }
                Output::Stop(quit) => {
                    let Self { client, server, poller, .. } = self;
                    let side = if end == End::Client { client } else { server };
                    side.send_all(poller, now);
                    self.flow.note_quit(now, quit);
                    self.side(end).wake = Time::MAX;
                    return Ok(());
                }
            }
        }
    }

    fn side(&mut self, end: End) -> &mut Side {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    fn tally(&self) -> Tally {
        let [client, server] = [&self.client, &self.server].map(|side| side.application.standing());
        self.flow.terms().tally(client, server)
    }
}

fn note_path(end: End, paths: &mut Vec<PathChange>) -> impl FnMut(Time, Heard) {
    move |at, heard| {
        if let Heard::Path(address, status) = heard {
            paths.push(PathChange { at, end, address, status });
        }
    }
}

/// Sockets tell only when a message was written and when it was delivered.
fn without_passage(record: Record) -> Record {
    let unseen = |Leg { written, delivered, .. }| Leg {
        written,
        first_sent: written,
        last_sent: written,
        arrived: delivered,
        delivered,
    };
    Record { request: record.request.map(unseen), reply: record.reply.map(unseen), ..record }
}
