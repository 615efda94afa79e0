//! Counts the user data in an endpoint's memory, so that a server with many associations can limit their sum.

use crate::Endpoint;

/// The amount of received user data that waits for earlier data, for the rest of its message, or for the
/// application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldData {
    /// Number of octets of user data.
    pub octets: usize,
    /// Number of chunks and messages that contain this data; each takes additional memory.
    pub pieces: usize,
    /// Number of octets of the longest incomplete message that the application has started to read.
    pub partial_octets: usize,
}

impl Endpoint {
    /// Returns how much received user data is in memory, waiting for other data or for the application.
    pub fn held_data(&self) -> HeldData {
        let Self { reassembly, interleaved, streams_in, reader, .. } = self;
        let partial_octets = reassembly.partial_octets().max(interleaved.partial_octets());
        let octets =
            reassembly.held_octets() + interleaved.held_octets() + streams_in.held_octets() + reader.unread();
        let pieces = reassembly.fragments()
            + interleaved.fragments()
            + streams_in.waiting_messages()
            + reader.unread_deliveries();
        HeldData { octets: octets + partial_octets, pieces, partial_octets }
    }

    /// Returns the number of octets in use of the send buffer: the user data that have not been sent or not
    /// been acknowledged, and what `send_buffer_overhead` and `send_buffer_blocks` of
    /// [`Config`](crate::Config) add.
    pub fn send_buffer_used(&self) -> usize {
        self.streams_out.buffer.used()
    }
}
