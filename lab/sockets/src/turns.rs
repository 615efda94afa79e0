//! Limits on the work that one socket or application may do per turn of the event loop.

use crate::transceiver::ConnectionFault;

/// Maximum number of messages that an end sends, and of reads from its sockets, in a turn of the event loop in real
/// time.
pub(crate) const MAX_PER_TURN: usize = 64;

/// The size of the buffer for reads, in octets; the largest datagram fits.
pub(crate) const BUFFER_SIZE: usize = 1 << 16;

/// Returns how often a socket is read in a turn of the event loop.
pub(crate) const fn reads_per_turn(is_batching: bool) -> usize {
    if is_batching { MAX_PER_TURN } else { 1 }
}

/// Reads from a socket until it has no more data, at most `max` times.
pub(crate) fn read_up_to(
    max: usize,
    mut one: impl FnMut() -> Result<(), ConnectionFault>,
) -> Result<(), ConnectionFault> {
    for number in 0..max {
        match one() {
            Err(fault) if fault.is_would_block() && number > 0 => return Ok(()),
            read => read?,
        }
    }
    Ok(())
}
