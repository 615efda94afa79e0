//! One end of a flow: an application and its connections.

use std::io;

use bytes::Bytes;
use hol_base::Time;
use hol_scenario::{Sample, SampleValue, SenderSample, Side};
use hol_system::{Interest, Poller};
use hol_transport::DeliveryTimes;
use hol_wire::Ecn;
use hol_workloads::{Application, ConnectionId, Delivery, Input, Outgoing};

use crate::event_source::Token;
use crate::flow_parameters::SocketCounters;
use crate::host_addresses::AddressChange;
use crate::read_delays::ReadDelayRecorder;
use crate::transceiver::{ConnectionFault, SendOutcome, SocketEvent, Transceiver};

/// An end of a flow.
pub(crate) struct FlowSide {
    pub(crate) end: Side,
    pub(crate) application: Box<dyn Application>,
    /// When the application acts next without an input.
    pub(crate) wake: Time,
    /// Messages sent in the current turn.
    pub(crate) sent_this_turn: usize,
    /// Whether the connections have their own timers.
    has_timers: bool,
    /// Whether the connections may hold back data to send several messages at once.
    may_hold_back: bool,
    /// Whether the connections are watched for data to read.
    reads: bool,
    /// Connections by number; `None` for a finished connection.
    connections: Vec<Option<Connection>>,
    /// Counters of finished connections.
    finished_counts: SocketCounters,
    /// How long messages waited in their sockets, if that is measured.
    pub(crate) waits: Option<ReadDelayRecorder>,
    /// Connections that may hold back messages of the application.
    sending: Vec<ConnectionId>,
}

/// A connection of one end of a flow.
struct Connection {
    transceiver: Box<dyn Transceiver>,
    is_open: bool,
    /// Whether the peer has closed its direction.
    is_half_closed: bool,
    /// Whether this end has closed its direction.
    is_closing: bool,
    /// Whether the socket is not read because the application is busy with other messages.
    is_held: bool,
    /// Whether the application knows that the connection has ended. The connection then remains only to answer its
    /// peer.
    is_over: bool,
    /// Whether the connection's socket has failed, so that it cannot answer the peer any more.
    cannot_linger: bool,
    /// The events for which the socket is watched, if any.
    interest: Option<Interest>,
}

/// The result of handling a ready connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionProgress {
    Nothing,
    /// The connection is open.
    Opened,
    /// Messages, or parts of a message, were delivered.
    Delivered,
}

impl FlowSide {
    /// Creates an end without connections.
    pub(crate) fn new(
        end: Side,
        application: Box<dyn Application>,
        (has_timers, is_batching): (bool, bool),
        waits: Option<ReadDelayRecorder>,
    ) -> Self {
        Self {
            end,
            application,
            wake: Time::MAX,
            sent_this_turn: 0,
            has_timers,
            may_hold_back: has_timers || is_batching,
            reads: true,
            connections: Vec::new(),
            finished_counts: SocketCounters::default(),
            waits,
            sending: Vec::new(),
        }
    }

    /// Returns how many connections the end has had.
    pub(crate) fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Adds a connection, which counts as open when it is writable.
    pub(crate) fn add(
        &mut self,
        poller: &Poller<Token>,
        mut transceiver: Box<dyn Transceiver>,
        now: Time,
    ) -> io::Result<()> {
        let (interest, id) = (Interest::ReadWrite, ConnectionId(self.connections.len() as u32));
        poller.add(transceiver.socket(), Token::Connection(self.end, id), interest)?;
        let is_held = !self.reads && !transceiver.set_reading(false, now);
        let connection = Connection {
            transceiver,
            is_open: false,
            is_half_closed: false,
            is_closing: false,
            is_held,
            is_over: false,
            cannot_linger: false,
            interest: Some(interest),
        };
        self.connections.push(Some(connection));
        Ok(())
    }

    /// Returns the kernel's counters of all connections.
    pub(crate) fn counts(&self) -> SocketCounters {
        let present = self.connections.iter().flatten().map(|connection| connection.transceiver.counts());
        present.chain([self.finished_counts]).sum()
    }

    /// Adds a sample of each connection that has sent data; the caller fills in the flow.
    pub(crate) fn sample(&self, at: Time, samples: &mut Vec<Sample>) {
        for (connection, open) in (0..).zip(&self.connections) {
            let Some(sending) = open.as_ref().and_then(|open| open.transceiver.sending()) else { continue };
            let sender = |path| SenderSample {
                flow: 0,
                connection,
                side: self.end,
                path,
                sent_again: Some(sending.retransmissions),
            };
            let path_samples =
                sending.paths.iter().map(|path| Sample { at, value: SampleValue::Sender(sender(*path)) });
            samples.extend(path_samples);
        }
    }

    /// Aborts every connection (RST, ABORT).
    pub(crate) fn abort(&mut self) -> io::Result<()> {
        let mut connections = self.connections.drain(..).flatten();
        connections.try_for_each(|one| one.transceiver.socket().set_linger(Some(std::time::Duration::ZERO)))
    }

    /// Returns whether the connections have their own timers.
    pub(crate) fn has_timers(&self) -> bool {
        self.has_timers
    }

    /// Returns the time of the next timer of a connection.
    pub(crate) fn due(&self) -> Time {
        if !self.has_timers {
            return Time::MAX;
        }
        let due = self.connections.iter().flatten().map(|connection| connection.transceiver.due());
        due.min().unwrap_or(Time::MAX)
    }

    /// Returns a connection whose timer is due.
    pub(crate) fn due_connection(&self, now: Time) -> Option<ConnectionId> {
        let is_due = |connection: &Option<Connection>| {
            connection.as_ref().is_some_and(|connection| connection.transceiver.due() <= now)
        };
        let first = self.has_timers.then(|| self.connections.iter().position(is_due)).flatten();
        first.map(|number| ConnectionId(number as u32))
    }

    /// Handles the timer of a connection.
    pub(crate) fn handle_timer(
        &mut self,
        poller: &Poller<Token>,
        id: ConnectionId,
        now: Time,
    ) -> ConnectionProgress {
        self.handle_events(
            poller,
            id,
            || now,
            |_, _| {},
            |transceiver, take| transceiver.handle_timer(now, take),
        )
    }

    /// Handles a writable connection: it has opened, or has room again.
    pub(crate) fn write(
        &mut self,
        poller: &Poller<Token>,
        id: ConnectionId,
        now: Time,
    ) -> ConnectionProgress {
        if self.has_timers {
            return self.handle_timer(poller, id, now);
        }
        let token = Token::Connection(self.end, id);
        let Some(connection) = self.connection(id) else { return ConnectionProgress::Nothing };
        let was_open = connection.is_open;
        if let Err(fault) = connection.becomes_writable(poller, token, now) {
            self.fail(id, now, &fault);
            return ConnectionProgress::Nothing;
        }
        if connection.transceiver.waits_for_room() {
            return ConnectionProgress::Nothing;
        }
        let has_opened = connection.is_open && !was_open;
        let input = if has_opened { self.opened(id) } else { Input::Writable(id) };
        self.application.handle(now, input);
        if has_opened { ConnectionProgress::Opened } else { ConnectionProgress::Nothing }
    }

    /// Passes on a datagram that arrived before the socket of its connection existed; returns false if the
    /// connection has finished.
    pub(crate) fn handle_early_datagram(&mut self, id: ConnectionId, octets: Bytes, ecn: Ecn) -> bool {
        let connection = self.connection(id);
        connection.map(|connection| connection.transceiver.handle_early_datagram(octets, ecn)).is_some()
    }

    /// Returns the application's input for a connection that has opened.
    fn opened(&self, id: ConnectionId) -> Input {
        match self.end {
            Side::Client => Input::Opened(id),
            Side::Server => Input::Accepted(id),
        }
    }

    /// Reads a connection: passes its messages to the application, and other events to `report`.
    pub(crate) fn read(
        &mut self,
        poller: &Poller<Token>,
        id: ConnectionId,
        buffer: &mut [u8],
        now: impl Fn() -> Time,
        report: impl FnMut(Time, SocketEvent),
    ) -> ConnectionProgress {
        let at = now();
        self.handle_events(poller, id, now, report, |transceiver, take| transceiver.receive(buffer, at, take))
    }

    /// Performs an action on a connection, and handles the events that it reports.
    fn handle_events(
        &mut self,
        poller: &Poller<Token>,
        id: ConnectionId,
        now: impl Fn() -> Time,
        mut report: impl FnMut(Time, SocketEvent),
        action: impl FnOnce(&mut dyn Transceiver, &mut dyn FnMut(SocketEvent)) -> Result<(), ConnectionFault>,
    ) -> ConnectionProgress {
        let token = Token::Connection(self.end, id);
        let Self { application, connections, waits, .. } = self;
        let connection = connections[id.0 as usize].as_mut().filter(|connection| !connection.is_half_closed);
        let Some(connection) = connection else { return ConnectionProgress::Nothing };
        let reports_events = connection.transceiver.reports_events();
        if !reports_events && !application.is_reading() {
            return ConnectionProgress::Nothing;
        }
        // Octets of an incomplete message are progress, too; path changes are not.
        let mut progress =
            if reports_events { ConnectionProgress::Nothing } else { ConnectionProgress::Delivered };
        let (mut is_up, mut has_closed, mut received_at) = (false, false, None);
        let is_over = connection.is_over;
        let result = action(&mut *connection.transceiver, &mut |event| match event {
            _ if is_over => {}
            SocketEvent::ReceivedAt(at) => received_at = at,
            SocketEvent::Message(stream, payload) => {
                progress = ConnectionProgress::Delivered;
                let delivery_times = DeliveryTimes::default();
                let delivery = Delivery { connection: id, stream, payload, delivery_times };
                let now = now();
                if let Some((waits, received_at)) = waits.as_mut().zip(received_at) {
                    waits.note(now, received_at);
                }
                application.handle(now, Input::Message(delivery));
            }
            SocketEvent::Part => progress = ConnectionProgress::Delivered,
            SocketEvent::Up(_) => is_up = true,
            SocketEvent::Writable => application.handle(now(), Input::Writable(id)),
            SocketEvent::PeerClosed => application.handle(now(), Input::PeerClosed(id)),
            SocketEvent::Closed => has_closed = true,
            other @ SocketEvent::Path(..) => {
                progress = ConnectionProgress::Nothing;
                report(now(), other);
            }
        });
        if is_over {
            let has_failed = result.is_err_and(|fault| !fault.is_would_block());
            connection.cannot_linger |= has_failed;
            self.forget(id);
            return ConnectionProgress::Nothing;
        }
        if result.is_err() {
            progress = ConnectionProgress::Nothing;
        }
        let result = result.and_then(|()| Ok(connection.watch_for_own_room(poller, token)?));
        if is_up && !connection.is_open {
            return self.open(id, now());
        }
        match result {
            Err(ConnectionFault::PeerClosed) if connection.is_closing => {
                self.forget(id);
                self.application.handle(now(), Input::Closed(id));
            }
            Err(ConnectionFault::PeerClosed) if connection.is_open => {
                connection.is_half_closed = true;
                // The socket would be readable for ever, although there is nothing to read.
                match connection.watch_for_room(poller, token, connection.waits_for_room()) {
                    Ok(()) => application.handle(now(), Input::PeerClosed(id)),
                    Err(error) => self.fail(id, now(), &error.into()),
                }
            }
            Err(fault) if !fault.is_would_block() => self.fail(id, now(), &fault),
            _ if has_closed => {
                self.forget(id);
                self.application.handle(now(), Input::Closed(id));
            }
            _ => {}
        }
        progress
    }

    /// Handles the report of a connection that it is open.
    fn open(&mut self, id: ConnectionId, now: Time) -> ConnectionProgress {
        let Some(connection) = self.connection(id) else { return ConnectionProgress::Nothing };
        if let Err(fault) = connection.opens() {
            self.fail(id, now, &fault);
            return ConnectionProgress::Nothing;
        }
        let input = self.opened(id);
        self.application.handle(now, input);
        ConnectionProgress::Opened
    }

    /// Watches the connections for data if the application reads.
    pub(crate) fn watch_for_data(&mut self, poller: &Poller<Token>, now: Time) -> io::Result<()> {
        let reads = self.application.is_reading();
        if std::mem::replace(&mut self.reads, reads) == reads {
            return Ok(());
        }
        for (id, connection) in (0..).map(ConnectionId).zip(&mut self.connections) {
            let Some(connection) = connection else { continue };
            connection.is_held = !connection.transceiver.set_reading(reads, now) && !reads;
            connection.watch_for_room(
                poller,
                Token::Connection(self.end, id),
                connection.waits_for_room(),
            )?;
        }
        Ok(())
    }

    /// Reports an added or removed address of the host to every connection.
    pub(crate) fn change_address(&mut self, change: AddressChange, now: Time) {
        for id in (0..self.connections.len() as u32).map(ConnectionId) {
            let progress =
                self.connection(id).map(|connection| connection.transceiver.change_address(change));
            if let Some(Err(fault)) = progress {
                self.fail(id, now, &fault);
            }
        }
    }

    /// Sends a message; if the transport rejects it, the application gets it back.
    pub(crate) fn send(&mut self, poller: &Poller<Token>, outgoing: Outgoing, now: Time) {
        let (end, id) = (self.end, outgoing.connection);
        let Some(connection) = self.connection(id) else { return };
        let sent = connection.transceiver.send(&outgoing, now).and_then(|sent| {
            connection.watch_for_own_room(poller, Token::Connection(end, id))?;
            if sent == SendOutcome::WouldBlock && !connection.transceiver.reports_events() {
                connection.watch_for_room(poller, Token::Connection(end, id), true)?;
            }
            Ok(sent)
        });
        match sent {
            Ok(SendOutcome::Complete) if self.may_hold_back && self.sending.last() != Some(&id) => {
                self.sending.push(id);
            }
            Ok(SendOutcome::Complete) => {}
            Ok(SendOutcome::WouldBlock) => self.application.handle(now, Input::Full(outgoing)),
            Err(error) => self.fail(id, now, &error.into()),
        }
    }

    /// Sends the held-back messages when the application has nothing more to send now, or when its turn ends; returns
    /// false after a failure.
    pub(crate) fn send_all(&mut self, poller: &Poller<Token>, now: Time) -> bool {
        let mut went_well = true;
        for id in std::mem::take(&mut self.sending) {
            let token = Token::Connection(self.end, id);
            let Some(connection) = self.connection(id) else { continue };
            let sent = connection.transceiver.send_all(now);
            if let Err(error) = sent.and_then(|()| connection.watch_for_own_room(poller, token)) {
                self.fail(id, now, &error.into());
                went_well = false;
            }
        }
        went_well
    }

    /// Closes a connection for sending; the connection has finished when the peer has closed, too.
    pub(crate) fn close(&mut self, id: ConnectionId, now: Time) {
        let Some(connection) = self.connection(id) else { return };
        connection.is_closing = true;
        let _ = connection.transceiver.shutdown(now);
        if connection.is_half_closed {
            self.forget(id);
            self.application.handle(now, Input::Closed(id));
        }
    }

    /// Ends a failed connection.
    fn fail(&mut self, id: ConnectionId, now: Time, fault: &ConnectionFault) {
        self.forget(id);
        self.application.handle(now, Input::Failed(id, fault.reason()));
    }

    /// Removes a finished connection, unless it must still answer its peer.
    fn forget(&mut self, id: ConnectionId) {
        let entry = self.connections.get_mut(id.0 as usize);
        let over = entry.and_then(|entry| {
            entry.as_mut().into_iter().for_each(|connection| connection.is_over = true);
            entry.take_if(|connection| connection.cannot_linger || !connection.transceiver.lingers())
        });
        self.finished_counts =
            [self.finished_counts].into_iter().chain(over.map(|one| one.transceiver.counts())).sum();
    }

    /// Returns whether this connection exists and has not finished.
    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        let entry = self.connections.get(id.0 as usize);
        entry.is_some_and(|connection| connection.as_ref().is_some_and(|connection| !connection.is_over))
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.0 as usize)?.as_mut().filter(|connection| !connection.is_over)
    }
}

impl Connection {
    fn becomes_writable(
        &mut self,
        poller: &Poller<Token>,
        token: Token,
        now: Time,
    ) -> Result<(), ConnectionFault> {
        if self.waits_for_room() {
            self.watch_for_room(poller, token, false)?;
        }
        if self.transceiver.waits_for_room() {
            self.transceiver.send_all(now)?;
            self.watch_for_own_room(poller, token)?;
        }
        if self.is_open || !self.transceiver.is_open_when_writable() {
            return Ok(());
        }
        self.opens()
    }

    fn opens(&mut self) -> Result<(), ConnectionFault> {
        if let Some(error) = self.transceiver.error()? {
            return Err(error.into());
        }
        self.transceiver.opened()?;
        self.is_open = true;
        Ok(())
    }

    fn waits_for_room(&self) -> bool {
        matches!(self.interest, Some(Interest::Write | Interest::ReadWrite))
    }

    /// Watches the socket for room to write, if the connection itself needs room.
    fn watch_for_own_room(&mut self, poller: &Poller<Token>, token: Token) -> io::Result<()> {
        let wants = self.transceiver.waits_for_room();
        // The application may wait for room, too, unless the connection reports room as an event.
        let is_watched = wants == self.waits_for_room() || !(wants || self.transceiver.reports_events());
        if is_watched {
            return Ok(());
        }
        self.watch_for_room(poller, token, wants)
    }

    /// Watches for data to read, and for `room` to write if requested.
    fn watch_for_room(&mut self, poller: &Poller<Token>, token: Token, room: bool) -> io::Result<()> {
        let before = self.interest;
        self.interest = match (self.is_half_closed || self.is_held, room) {
            (false, true) => Some(Interest::ReadWrite),
            (false, false) => Some(Interest::Read),
            (true, true) => Some(Interest::Write),
            (true, false) => None,
        };
        match (before, self.interest) {
            (None, None) => Ok(()),
            (Some(_), None) => poller.remove(self.transceiver.socket()),
            (None, Some(interest)) => poller.add(self.transceiver.socket(), token, interest),
            (Some(_), Some(interest)) => poller.change(self.transceiver.socket(), token, interest),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::rc::Rc;

    use hol_workloads::{Ledger, Output, Progress, WorkloadSpec};

    use super::*;
    use crate::flow_parameters::EndAddresses;
    use crate::transceiver::Opener;
    use crate::unix::Unix;

    /// An application that records its inputs.
    #[derive(Debug, Default)]
    struct EventRecorder(Rc<RefCell<Vec<String>>>, Ledger);

    impl Application for EventRecorder {
        fn handle(&mut self, _: Time, input: Input) {
            let word = format!("{input:?}");
            self.0.borrow_mut().push(word.split('(').next().unwrap_or_default().to_owned());
        }
        fn poll(&mut self, _: Time) -> Output {
            Output::Wait(Time::MAX)
        }
        fn progress(&self) -> Progress {
            Progress::default()
        }
        fn ledger(&mut self) -> &mut Ledger {
            &mut self.1
        }
        fn end(&mut self, _: Time) -> bool {
            true
        }
    }

    const ID: ConnectionId = ConnectionId(0);

    /// Returns a client with an open connection, its poller, its peer, and the inputs of its application.
    fn connected() -> (FlowSide, Poller<Token>, TcpStream, Rc<RefCell<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        own.set_nonblocking(true).unwrap();
        let workload: WorkloadSpec = toml::from_str("kind = 'oneway'").unwrap();
        let opener = Unix { framing_fn: workload.kind.workload().framing_fn(), is_batching: false };
        let transceiver = opener.transceiver(own.into(), &EndAddresses { addresses: vec![], port: 0 });
        let (recorder, poller) = (EventRecorder::default(), Poller::new().unwrap());
        let words = Rc::clone(&recorder.0);
        let mut flow_side = FlowSide::new(Side::Client, Box::new(recorder), (false, false), None);
        flow_side.add(&poller, transceiver, Time::ZERO).unwrap();
        assert_eq!(flow_side.write(&poller, ID, Time::ZERO), ConnectionProgress::Opened);
        (flow_side, poller, listener.accept().unwrap().0, words)
    }

    fn read(flow_side: &mut FlowSide, poller: &Poller<Token>) {
        flow_side.read(poller, ID, &mut [0; 100], || Time::ZERO, |_, _| {});
    }

    /// RFC 9293 section 3.6: a half-closed connection still carries data the other way.
    #[test]
    fn a_half_close_of_the_peer_is_reported_once_and_allows_waiting_for_room() {
        let (mut flow_side, poller, peer, recorder) = connected();
        peer.shutdown(Shutdown::Write).unwrap();
        while recorder.borrow().len() < 2 {
            read(&mut flow_side, &poller);
        }
        read(&mut flow_side, &poller);
        assert_eq!(*recorder.borrow(), ["Opened", "PeerClosed"]);
        let connection = flow_side.connection(ID).expect("the connection exists");
        for room in [true, false, false, true] {
            connection.watch_for_room(&poller, Token::Connection(Side::Client, ID), room).unwrap();
        }
        flow_side.close(ID, Time::ZERO);
        assert_eq!(*recorder.borrow(), ["Opened", "PeerClosed", "Closed"]);
    }

    #[test]
    fn the_end_that_closes_first_is_notified_when_closed() {
        let (mut flow_side, poller, peer, recorder) = connected();
        flow_side.close(ID, Time::ZERO);
        assert_eq!(*recorder.borrow(), ["Opened"]);
        drop(peer);
        while recorder.borrow().len() < 2 {
            read(&mut flow_side, &poller);
        }
        assert_eq!(*recorder.borrow(), ["Opened", "Closed"]);
    }
}
