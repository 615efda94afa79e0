//! Encodes messages, many per allocation.

use bytes::{Bytes, BytesMut};
use hol_simco::Message;

/// Buffers for consecutive messages; memory is freed when all messages in it are gone.
#[derive(Debug)]
pub(super) struct Octets {
    /// The message being written.
    message: Vec<u8>,
    rest: BytesMut,
}

impl Octets {
    const PIECE: usize = 16 << 10;

    pub(super) fn new() -> Self {
        Self { message: Vec::new(), rest: BytesMut::with_capacity(Self::PIECE) }
    }

    pub(super) fn of(&mut self, message: &Message) -> Bytes {
        self.message.clear();
        message.append_to(&mut self.message);
        self.rest.extend_from_slice(&self.message);
        self.rest.split().freeze()
    }
}
