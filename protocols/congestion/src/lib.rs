#![doc = include_str!("../README.md")]

mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod delivery_rate;
mod hystart;
mod pacing;
mod prague;
mod reno;
pub mod sctp;
mod window;

use hol_base::{Duration, Time};

pub use bbr::{AckSample, ConnectionStart, RecoveryKind};
pub use bbr3::LostSegment;
pub use delivery_rate::DeliveryAtSend;
pub use hystart::RoundTripSample;
pub use pacing::Pacing;
pub use window::{Algorithm, CongestionWindow};

/// Length of a tick of Linux' clock: HZ=250, as in most distributions.
const TICK: Duration = Duration::from_millis(4);
const TICKS_PER_SECOND: u64 = 250;

/// Returns the number of the clock tick that contains `time`.
fn ticks(time: Time) -> u64 {
    time.as_nanos() / TICK.as_nanos()
}
