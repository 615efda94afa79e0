//! One face for all transports: messages on streams, over associations or over parallel connections.

use std::ops::Range;

use hol_transport::{Command, Framer, FramingError, Message, Received, Reliability};
use hol_workloads::{Delivery, Outgoing};

/// One side's connections, seen as streams.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Its endpoints among all of the world.
    pub(crate) endpoints: Range<usize>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Each stream is a connection; its framer cuts the octets into messages.
    Tcp(Vec<Framer>),
    /// The streams are those of the endpoints, which take them in turn, and messages stay whole.
    Messages { unordered: bool, reliability: Reliability },
}

/// Tells a message's length from its first octets.
pub(crate) type LengthOf = fn(&[u8]) -> Result<Option<usize>, FramingError>;

impl Channel {
    pub(crate) fn tcp(endpoints: Range<usize>, length_of: LengthOf) -> Self {
        let framers = endpoints.clone().map(|_| Framer::new(length_of)).collect();
        Self { endpoints, kind: Kind::Tcp(framers) }
    }

    pub(crate) fn messages(endpoints: Range<usize>, unordered: bool, reliability: Reliability) -> Self {
        Self { endpoints, kind: Kind::Messages { unordered, reliability } }
    }

    /// The endpoint that carries a stream.
    pub(crate) fn endpoint(&self, stream: u16) -> usize {
        self.endpoints.start + usize::from(stream) % self.endpoints.len()
    }

    /// The command that sends a message; the payload is shared, not copied.
    pub(crate) fn send(&self, outgoing: &Outgoing) -> Command {
        let payload = outgoing.payload.clone();
        Command::Send(match self.kind {
            Kind::Tcp(_) => {
                Message { stream: 0, unordered: false, reliability: Reliability::Full, ppid: 0, payload }
            }
            Kind::Messages { unordered, reliability } => {
                let stream = outgoing.stream / self.endpoints.len() as u16;
                Message { stream, unordered, reliability, ppid: 0, payload }
            }
        })
    }

    /// `endpoint` received something: gives every message that is whole now to `deliver`.
    pub(crate) fn receive(
        &mut self,
        endpoint: usize,
        received: Received,
        mut deliver: impl FnMut(Delivery),
    ) -> Result<(), FramingError> {
        let Received { stream, payload, passage, .. } = received;
        let connection = endpoint - self.endpoints.start;
        let Kind::Tcp(framers) = &mut self.kind else {
            let stream = stream * self.endpoints.len() as u16 + connection as u16;
            deliver(Delivery { stream, payload, passage });
            return Ok(());
        };
        let framer = &mut framers[connection];
        framer.push(payload, passage);
        while let Some(framed) = framer.next()? {
            let stream = connection as u16;
            deliver(Delivery { stream, payload: framed.payload, passage: framed.passage });
        }
        Ok(())
    }
}
