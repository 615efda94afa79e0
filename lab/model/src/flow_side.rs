//! One end of a flow: its application and its connections.

use std::collections::VecDeque;

use hol_base::Time;
use hol_transport::{Command, Framer, FramingError, Message, ReceivedData, Reliability};
use hol_workloads::{Application, ConnectionId, Delivery, FramingFn, Input, Outgoing};
use smallvec::SmallVec;

/// One end of a flow: an application and its connections.
#[derive(Debug)]
pub(crate) struct FlowSide {
    pub(crate) application: Box<dyn Application>,
    /// Index of each connection's endpoint in the simulation.
    pub(crate) sockets: Vec<usize>,
    /// The number of connections that have closed in an orderly way.
    pub(crate) closed_connections: usize,
    /// Endpoints that buffer received data until the application reads again; the endpoint that has waited longest
    /// comes first.
    unread_endpoints: VecDeque<usize>,
    framing: Framing,
}

/// The framers of a connection, one per stream. For TCP there is one, which is stored inline.
type Framers = SmallVec<[Framer; 1]>;

/// How an application's messages are mapped to a connection.
#[derive(Debug)]
pub(crate) enum Framing {
    /// The connection carries byte streams. For each stream of each connection, a framer cuts the octets into
    /// messages.
    Octets { framing_fn: FramingFn, framers: Vec<Framers> },
    /// The connection carries whole messages, with these options unless a message has its own.
    Messages { unordered: bool, reliability: Reliability },
}

impl Framing {
    /// Creates the framing of a byte stream.
    pub(crate) const fn octets(framing_fn: FramingFn) -> Self {
        Self::Octets { framing_fn, framers: Vec::new() }
    }
}

impl FlowSide {
    /// Creates an end of a flow without connections.
    pub(crate) fn new(application: Box<dyn Application>, framing: Framing) -> Self {
        Self {
            application,
            sockets: Vec::new(),
            closed_connections: 0,
            unread_endpoints: VecDeque::new(),
            framing,
        }
    }

    /// Adds an endpoint; returns the number of its connection.
    pub(crate) fn add(&mut self, socket: usize) -> ConnectionId {
        self.sockets.push(socket);
        if let Framing::Octets { framers, .. } = &mut self.framing {
            framers.push(Framers::new());
        }
        ConnectionId(self.sockets.len() as u32 - 1)
    }

    /// Returns the index of the endpoint of a connection.
    pub(crate) fn socket(&self, ConnectionId(number): ConnectionId) -> usize {
        self.sockets[number as usize]
    }

    /// Returns whether an endpoint has to buffer received data: the application is busy, or it has read a message and
    /// there is `more`. In the second case it acts on the message first, like a program that polls its sockets, reads
    /// one message, acts, and polls again. From a byte stream it reads all available data.
    #[inline]
    pub(crate) fn should_buffer(&mut self, socket: usize, more: bool) -> bool {
        let acts_first = more && matches!(self.framing, Framing::Messages { .. });
        let holds =
            (acts_first || !self.application.is_reading()) && !self.unread_endpoints.contains(&socket);
        if holds {
            self.unread_endpoints.push_back(socket);
        }
        holds
    }

    /// Returns the endpoint from which the application reads next; `None` if it does not read now, or if no
    /// endpoint waits.
    pub(crate) fn next_to_read(&mut self) -> Option<usize> {
        let reads = !self.unread_endpoints.is_empty() && self.application.is_reading();
        if reads { self.unread_endpoints.pop_front() } else { None }
    }

    /// Returns whether all connections have closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed_connections == self.sockets.len()
    }

    /// Returns the command that sends the first `length` octets of a message, and removes them from the message.
    pub(crate) fn send_command(&self, outgoing: &mut Outgoing, length: usize) -> Command {
        let payload = outgoing.payload.split_to(length);
        let (stream, unordered, reliability) = match (&self.framing, outgoing.delivery) {
            (Framing::Octets { .. }, _) => (outgoing.stream, false, Reliability::Full),
            (Framing::Messages { .. }, Some(delivery)) => {
                (outgoing.stream, delivery.unordered, delivery.reliability)
            }
            (Framing::Messages { unordered, reliability }, None) => {
                (outgoing.stream, *unordered, *reliability)
            }
        };
        Command::Send(Message { stream, unordered, reliability, ppid: 0, payload })
    }

    /// Handles received data: passes every complete message to the application.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        connection: ConnectionId,
        received: ReceivedData,
    ) -> Result<(), FramingError> {
        let ReceivedData { stream, payload, delivery_times, .. } = received;
        let mut deliver = |stream, payload, delivery_times| {
            let delivery = Delivery { connection, stream, payload, delivery_times };
            self.application.handle(now, Input::Message(delivery));
        };
        let Framing::Octets { framers, framing_fn } = &mut self.framing else {
            deliver(stream, payload, delivery_times);
            return Ok(());
        };
        let (framers, place) = (&mut framers[connection.0 as usize], usize::from(stream));
        if place >= framers.len() {
            framers.resize_with(place + 1, || Framer::new(*framing_fn));
        }
        let framer = &mut framers[place];
        framer.push(payload, delivery_times);
        while let Some(framed) = framer.next()? {
            deliver(stream, framed.payload, framed.delivery_times);
        }
        Ok(())
    }
}
