//! How much one socket or application may do before others get their turn.

use crate::transceiver::Fault;

/// Messages sent by an end, or reads of its sockets, per turn in real time.
pub(crate) const MOST_AT_ONCE: usize = 64;

/// Octets of the largest datagram: scratch space for reads.
pub(crate) const BUFFER: usize = 1 << 16;

/// Returns the reads of a socket per turn.
pub(crate) const fn reads(gathers: bool) -> usize {
    if gathers { MOST_AT_ONCE } else { 1 }
}

/// Reads until nothing is left, at most `most` times.
pub(crate) fn read_up_to(most: usize, mut one: impl FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
    for number in 0..most {
        match one() {
            Err(fault) if fault.is_idle() && number > 0 => return Ok(()),
            read => read?,
        }
    }
    Ok(())
}
