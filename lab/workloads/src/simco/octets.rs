//! Messages as octets, many to an allocation.

use bytes::{Bytes, BytesMut};
use hol_simco::Message;

/// Where messages are laid one behind the other; a piece of memory goes when all that are in it have gone.
#[derive(Debug)]
pub(super) struct Octets {
    /// The one that is being written.
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
