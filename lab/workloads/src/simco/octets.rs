//! Encodes messages, many per allocation.

use bytes::{Bytes, BytesMut};
use hol_simco::Message;

/// Encodes consecutive messages into shared buffers. The memory of a buffer is freed when all its messages are gone.
#[derive(Debug)]
pub(super) struct MessageBuffer {
    /// The message that is being written.
    message: Vec<u8>,
    rest: BytesMut,
}

impl MessageBuffer {
    const BUFFER_OCTETS: usize = 16 << 10;

    /// Creates an empty buffer.
    pub(super) fn new() -> Self {
        Self { message: Vec::new(), rest: BytesMut::with_capacity(Self::BUFFER_OCTETS) }
    }

    /// Encodes a message as octets.
    pub(super) fn encode(&mut self, message: &Message) -> Bytes {
        self.message.clear();
        message.append_to(&mut self.message);
        self.rest.extend_from_slice(&self.message);
        self.rest.split().freeze()
    }
}
