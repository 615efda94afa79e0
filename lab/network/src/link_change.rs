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
    /// The bit rate changes from the next bit on; at a rate of 0 packets wait.
    Rate(EventRate),
    /// The packet loss changes from the next packet on.
    Loss(LossSpec),
    /// The delay changes from the next packet on.
    Delay(Duration),
}
