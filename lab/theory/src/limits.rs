//! Conditions under which the closed form is not expected to hold.

use crate::Transfer;
use crate::loss_delay::overlapping_timeouts;
use crate::mathis::{Acks, mean_window};

/// A reason why the closed form may not be accurate for a transfer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum NotApplicable {
    /// The loss is so high that the number of values of the distributions grows without bound.
    #[error("more than half of the packets are lost")]
    Loss,
    /// Times exceed the range of the integers in the closed form.
    #[error("a round-trip time, a timeout or a time between messages exceeds a day")]
    Times,
    /// Losses keep the congestion window too small for the requested rate, so messages wait at the sender.
    ///
    /// The window is counted in packets, as in Linux TCP. SCTP counts octets, so a window may still suffice if messages
    /// are small.
    #[error("the rate needs {in_flight:.0} packets in flight, but losses keep cwnd near {window:.0}")]
    Window {
        /// Number of packets that must be in flight for the requested rate, per connection.
        in_flight: f64,
        /// Mean congestion window, in packets.
        window: f64,
    },
    /// Timeouts overlap, so one timeout repairs several losses. The closed form adds up all timeouts, so its mean is
    /// too high.
    #[error("on average {overlap:.2} timeouts begin during another one, which repairs their losses, too")]
    Timeouts {
        /// Mean number of timeouts that begin during another timeout.
        overlap: f64,
    },
}

/// The largest overlap of timeouts at which the closed form differs from the event simulation by at most 5 %.
const MAX_OVERLAP: f64 = 0.08;

/// The length of a day in ns.
const DAY_NS: u64 = 86_400_000_000_000;

/// Checks whether the closed form is accurate for `transfer`; returns a reason if it may not be.
pub fn check_applicability(transfer: &Transfer) -> Result<(), NotApplicable> {
    if transfer.loss.value() > 0.5 {
        return Err(NotApplicable::Loss);
    }
    if transfer.round_trip().max(transfer.rto_min()).max(transfer.period()) > DAY_NS {
        return Err(NotApplicable::Times);
    }
    let in_flight =
        transfer.round_trip() as f64 / transfer.period().saturating_mul(transfer.connections()) as f64;
    let window = mean_window(transfer.loss, Acks::Every);
    if in_flight > window {
        return Err(NotApplicable::Window { in_flight, window });
    }
    let overlap = overlapping_timeouts(transfer);
    if overlap > MAX_OVERLAP { Err(NotApplicable::Timeouts { overlap }) } else { Ok(()) }
}
