//! Changes of a link during a run.

use hol_base::Duration;

use crate::event_rate::EventRate;
use crate::loss::LossSpec;

/// The effect of a scheduled event on a link.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkChange {
    /// The link goes down: no packet passes, and packets on the link are lost.
    Down,
    /// The link works again.
    Up,
    /// The new bit rate, from the next bit on; at 0 packets wait.
    Rate(EventRate),
    /// The new loss, from the next packet on.
    Loss(LossSpec),
    /// The new delay, from the next packet on.
    Delay(Duration),
}
