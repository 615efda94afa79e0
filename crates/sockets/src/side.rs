//! One end of a flow: an application and its connections.

use std::io;
use std::net::Shutdown;

use hol_base::Time;
use hol_system::{Interest, Poller};
use hol_transport::Passage;
use hol_workloads::{Application, ConnectionId, Delivery, Input, Outgoing};

use crate::End;
use crate::assignment::Counts;
use crate::token::Token;
use crate::transceiver::{Fault, Heard, Sent, Transceiver};

/// An end of a flow.
pub(crate) struct Side {
    pub(crate) end: End,
    pub(crate) application: Box<dyn Application>,
    /// By number; `None`: it is over.
    connections: Vec<Option<Connection>>,
    /// What those that are over had counted.
    past: Counts,
}

struct Connection {
    transceiver: Box<dyn Transceiver>,
    is_open: bool,
    /// The peer sends no more.
    is_half_closed: bool,
    interest: Interest,
}

/// What follows from a connection's being ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    Nothing,
    /// It is open.
    Opened,
    /// Messages were delivered.
    Delivered,
}

impl Side {
    pub(crate) fn new(end: End, application: Box<dyn Application>) -> Self {
        Self { end, application, connections: Vec::new(), past: Counts::default() }
    }

    /// How many connections it has had.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Takes a connection, which is open when it can be written.
    pub(crate) fn add(
        &mut self,
        poller: &Poller<Token>,
        transceiver: Box<dyn Transceiver>,
    ) -> io::Result<()> {
        let (interest, id) = (Interest::ReadWrite, ConnectionId(self.connections.len() as u32));
        poller.add(transceiver.socket(), Token::Connection(self.end, id), interest)?;
        let connection = Connection { transceiver, is_open: false, is_half_closed: false, interest };
        self.connections.push(Some(connection));
        Ok(())
    }

    /// What the kernel counted for all connections.
    pub(crate) fn counts(&self) -> Counts {
        let present = self.connections.iter().flatten().map(|connection| connection.transceiver.counts());
        present.chain([self.past]).sum()
    }

    /// Ends every connection at once (RST, ABORT).
    pub(crate) fn abort(&mut self) -> io::Result<()> {
        let mut connections = self.connections.drain(..).flatten();
        connections.try_for_each(|one| one.transceiver.socket().set_linger(Some(std::time::Duration::ZERO)))
    }

    /// A connection can be written: it is open now, or there is room again.
    pub(crate) fn write(&mut self, poller: &Poller<Token>, id: ConnectionId, now: Time) -> Followed {
        let token = Token::Connection(self.end, id);
        let Some(connection) = self.connection(id) else { return Followed::Nothing };
        let was_open = connection.is_open;
        if let Err(fault) = connection.becomes_writable(poller, token) {
            self.fail(id, now, &fault);
            return Followed::Nothing;
        }
        let (input, followed) = match (was_open, self.end) {
            (true, _) => (Input::Writable(id), Followed::Nothing),
            (false, End::Client) => (Input::Opened(id), Followed::Opened),
            (false, End::Server) => (Input::Accepted(id), Followed::Opened),
        };
        self.application.handle(now, input);
        followed
    }

    /// A connection can be read: gives its messages to the application, and what else it tells to `tell`.
    pub(crate) fn read(
        &mut self,
        poller: &Poller<Token>,
        id: ConnectionId,
        buffer: &mut [u8],
        now: impl Fn() -> Time,
        mut tell: impl FnMut(Time, Heard),
    ) -> Followed {
        let Self { application, connections, .. } = self;
        let Some(connection) = &mut connections[id.0 as usize] else { return Followed::Nothing };
        let mut followed = Followed::Nothing;
        let result = connection.transceiver.receive(buffer, &mut |heard| match heard {
            Heard::Message(stream, payload) => {
                followed = Followed::Delivered;
                let passage = Passage::default();
                let delivery = Delivery { connection: id, stream, payload, passage };
                application.handle(now(), Input::Message(delivery));
            }
            other @ Heard::Path(..) => tell(now(), other),
        });
        match result {
            Err(Fault::PeerClosed) if connection.is_open => {
                connection.is_half_closed = true;
                // There is nothing more to read, and it would be ready for that for ever.
                let _ = poller.remove(connection.transceiver.socket());
                application.handle(now(), Input::PeerClosed(id));
            }
            Err(fault) if !fault.is_idle() => self.fail(id, now(), &fault),
            _ => {}
        }
        followed
    }

    /// Sends a message; one that the transport does not take goes back to the application.
    pub(crate) fn send(&mut self, poller: &Poller<Token>, outgoing: Outgoing, now: Time) {
        let (end, id) = (self.end, outgoing.connection);
        let Some(connection) = self.connection(id) else { return };
        let sent = connection.transceiver.send(&outgoing).and_then(|sent| {
            if sent == Sent::WouldBlock {
                connection.watch(poller, Token::Connection(end, id), Interest::ReadWrite)?;
            }
            Ok(sent)
        });
        match sent {
            Ok(Sent::Whole) => {}
            Ok(Sent::WouldBlock) => self.application.handle(now, Input::Full(outgoing)),
            Err(error) => self.fail(id, now, &error.into()),
        }
    }

    /// Sends no more on a connection; it is over when the peer does not either.
    pub(crate) fn close(&mut self, id: ConnectionId, now: Time) {
        let Some(connection) = self.connection(id) else { return };
        let _ = connection.transceiver.socket().shutdown(Shutdown::Write);
        if connection.is_half_closed {
            self.forget(id);
            self.application.handle(now, Input::Closed(id));
        }
    }

    /// A connection cannot go on.
    fn fail(&mut self, id: ConnectionId, now: Time, fault: &Fault) {
        self.forget(id);
        self.application.handle(now, Input::Failed(id, fault.reason()));
    }

    fn forget(&mut self, id: ConnectionId) {
        let over = self.connections.get_mut(id.0 as usize).and_then(Option::take);
        self.past = [self.past].into_iter().chain(over.map(|one| one.transceiver.counts())).sum();
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.0 as usize)?.as_mut()
    }
}

impl Connection {
    fn becomes_writable(&mut self, poller: &Poller<Token>, token: Token) -> Result<(), Fault> {
        if self.interest == Interest::ReadWrite {
            self.watch(poller, token, Interest::Read)?;
        }
        if self.is_open {
            return Ok(());
        }
        if let Some(error) = self.transceiver.socket().take_error()? {
            return Err(error.into());
        }
        self.transceiver.opened()?;
        self.is_open = true;
        Ok(())
    }

    fn watch(&mut self, poller: &Poller<Token>, token: Token, interest: Interest) -> io::Result<()> {
        self.interest = interest;
        poller.change(self.transceiver.socket(), token, interest)
    }
}
