//! What the application has handed over and is not sent: octets, and the FIN behind them. RFC 9293 section 3.10.4.

use bytes::Bytes;

use crate::send_buffer::SendBuffer;

/// The octets that wait, and what has become of our FIN.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    buffer: SendBuffer,
    fin: Fin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Fin {
    /// The application sends on.
    #[default]
    Open,
    /// It goes out behind the data.
    Queued,
    /// It has gone out.
    Sent,
}

impl SendQueue {
    /// The application has not closed.
    pub(crate) fn is_open(&self) -> bool {
        self.fin == Fin::Open
    }

    /// No octet waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Octets that wait.
    pub(crate) fn length(&self) -> usize {
        self.buffer.length()
    }

    /// Something, data or FIN, has not been sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.buffer.is_empty() || self.fin == Fin::Queued
    }

    /// The application appends to the byte stream.
    pub(crate) fn push(&mut self, octets: Bytes) {
        self.buffer.push(octets);
    }

    /// The application has no more to send.
    pub(crate) fn close(&mut self) {
        self.fin = Fin::Queued;
    }

    /// The application has closed, and the FIN waits for its turn.
    pub(crate) fn fin_is_queued(&self) -> bool {
        self.fin == Fin::Queued
    }

    /// The FIN has gone out.
    pub(crate) fn fin_is_sent(&self) -> bool {
        self.fin == Fin::Sent
    }

    /// The FIN leaves with a segment of the next `size` octets.
    pub(crate) fn fin_follows(&self, size: usize) -> bool {
        self.fin == Fin::Queued && size == self.buffer.length()
    }

    /// Takes exactly `size` octets, and the FIN if it goes along.
    pub(crate) fn take(&mut self, size: usize, fin: bool) -> Bytes {
        if fin {
            self.fin = Fin::Sent;
        }
        self.buffer.take(size)
    }

    /// Nothing of it will be sent.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
    }
}
