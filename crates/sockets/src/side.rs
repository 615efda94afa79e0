//! One end of a flow: an application and its connections.

use hol_base::Time;
use hol_system::{Interest, Poller};
use hol_workloads::{Application, Input, Outgoing, Output, Trouble};

use crate::End;
use crate::clock::Clock;
use crate::plan::Counts;
use crate::token::Token;
use crate::transceiver::{Fault, Heard, Sent, Transceiver};

/// Why an end cannot go on.
pub(crate) enum Halt {
    Fault(Fault),
    Trouble(Trouble),
}

/// An end of a flow.
pub(crate) struct Side<A> {
    pub(crate) end: End,
    pub(crate) application: A,
    /// One for each connection, by its number; the server's come as they are accepted.
    connections: Vec<Option<Connection>>,
    open: usize,
}

struct Connection {
    transceiver: Box<dyn Transceiver>,
    is_open: bool,
    interest: Interest,
}

impl<A: Application> Side<A> {
    pub(crate) fn new(end: End, application: A, connections: u16) -> Self {
        let connections = (0..connections).map(|_| None).collect();
        Self { end, application, connections, open: 0 }
    }

    /// Takes a connection, which is open when it can be written.
    pub(crate) fn add(
        &mut self,
        poller: &Poller<Token>,
        number: u16,
        transceiver: Box<dyn Transceiver>,
    ) -> std::io::Result<()> {
        let interest = Interest::ReadWrite;
        poller.add(transceiver.socket(), Token::Connection(self.end, number), interest)?;
        self.connections[usize::from(number)] = Some(Connection { transceiver, is_open: false, interest });
        Ok(())
    }

    pub(crate) fn has(&self, number: u16) -> bool {
        self.connections[usize::from(number)].is_some()
    }

    /// What the kernel counted for all connections.
    pub(crate) fn counts(&self) -> Counts {
        self.connections.iter().flatten().map(|connection| connection.transceiver.counts()).sum()
    }

    /// Ends every connection at once (RST, ABORT).
    pub(crate) fn abort(&mut self) -> std::io::Result<()> {
        let mut connections = self.connections.drain(..).flatten();
        connections.try_for_each(|one| one.transceiver.socket().set_linger(Some(std::time::Duration::ZERO)))
    }

    /// A connection can be written: it is open now, or there is room again. True when that was the last to open.
    pub(crate) fn write(&mut self, poller: &Poller<Token>, number: u16, now: Time) -> Result<bool, Fault> {
        let Some(connection) = &mut self.connections[usize::from(number)] else { return Ok(false) };
        if connection.interest == Interest::ReadWrite {
            connection.watch(poller, Token::Connection(self.end, number), Interest::Read)?;
        }
        if connection.is_open {
            self.application.handle(now, Input::Writable);
            return Ok(false);
        }
        if let Some(error) = connection.transceiver.socket().take_error()? {
            return Err(error.into());
        }
        connection.transceiver.opened()?;
        connection.is_open = true;
        self.open += 1;
        let all = self.open == self.connections.len();
        if all {
            self.application.handle(now, Input::Connected);
        }
        Ok(all)
    }

    /// A connection can be read: gives its messages to the application, and what else it tells to `tell`.
    pub(crate) fn read(
        &mut self,
        number: u16,
        buffer: &mut [u8],
        now: impl Fn() -> Time,
        mut tell: impl FnMut(Time, Heard),
    ) -> Result<bool, Fault> {
        let Self { application, connections, .. } = self;
        let Some(connection) = &mut connections[usize::from(number)] else { return Ok(false) };
        let mut delivered = false;
        let result = connection.transceiver.receive(buffer, &mut |heard| match heard {
            Heard::Message(delivery) => {
                delivered = true;
                application.handle(now(), Input::Message(delivery));
            }
            other @ Heard::Path(..) => tell(now(), other),
        });
        match result {
            Err(fault) if !fault.is_idle() => Err(fault),
            _ => Ok(delivered),
        }
    }

    /// Does what the application wants, until it waits; returns until when. `note_sending` hears of each message.
    pub(crate) fn serve(
        &mut self,
        poller: &Poller<Token>,
        clock: &Clock,
        mut note_sending: impl FnMut(&A, Time),
    ) -> Result<Time, Halt> {
        loop {
            let now = clock.now();
            match self.application.poll(now) {
                Output::Send(outgoing) => {
                    note_sending(&self.application, now);
                    self.send(poller, outgoing, now).map_err(Halt::Fault)?;
                }
                Output::Wait(until) => return Ok(until),
                Output::Stop(trouble) => return Err(Halt::Trouble(trouble)),
            }
        }
    }

    /// Sends a message; one that the transport does not take goes back to the application.
    fn send(&mut self, poller: &Poller<Token>, outgoing: Outgoing, now: Time) -> Result<(), Fault> {
        // Parallel connections (associations) take the streams in turn.
        let number = usize::from(outgoing.stream) % self.connections.len();
        let Some(connection) = &mut self.connections[number] else {
            return Err(Fault::Protocol("a message for a connection that was never opened"));
        };
        if connection.transceiver.send(&outgoing)? == Sent::WouldBlock {
            connection.watch(poller, Token::Connection(self.end, number as u16), Interest::ReadWrite)?;
            self.application.handle(now, Input::Full(outgoing));
        }
        Ok(())
    }
}

impl Connection {
    fn watch(&mut self, poller: &Poller<Token>, token: Token, interest: Interest) -> std::io::Result<()> {
        self.interest = interest;
        poller.change(self.transceiver.socket(), token, interest)
    }
}
