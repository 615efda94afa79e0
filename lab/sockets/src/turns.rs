//! How much one socket or application may do before others have their turn.

use crate::transceiver::Fault;

/// Messages that leave an end, or reads of its sockets, before others have their turn, where a real clock goes on.
pub(crate) const MOST_AT_ONCE: usize = 64;

/// As much as a datagram may be: scratch space for whoever reads.
pub(crate) const BUFFER: usize = 1 << 16;

/// Reads of a socket before others have their turn.
pub(crate) const fn reads(gathers: bool) -> usize {
    if gathers { MOST_AT_ONCE } else { 1 }
}

/// Reads one at a time until nothing is there, so many at most: then others have their turn.
pub(crate) fn read_up_to(most: usize, mut one: impl FnMut() -> Result<(), Fault>) -> Result<(), Fault> {
    for number in 0..most {
        match one() {
            Err(fault) if fault.is_idle() && number > 0 => return Ok(()),
            read => read?,
        }
    }
    Ok(())
}
