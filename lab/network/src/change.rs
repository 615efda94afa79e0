//! What changes about a line during a run.

use hol_base::{BitRate, Duration};

use crate::loss::LossSpec;

/// What a scheduled event does to a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Nothing passes any more, and what is under way is lost.
    Down,
    /// It works again.
    Up,
    /// The new bit rate, from the next bit on.
    Rate(BitRate),
    /// The new loss, from the next packet on.
    Loss(LossSpec),
    /// The new delay, from the next packet on.
    Delay(Duration),
}
