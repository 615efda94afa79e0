//! Congestion controllers: pure state, facts in, window and pace out. One algorithm a file.

mod bbr;
mod cubic;
mod dctcp;
mod delivery;
mod hystart;
mod pacing;
mod reno;
pub mod sctp;
mod window;

use hol_base::{Duration, Time};

pub use bbr::{Acknowledged, Beginning, Recovery};
pub use delivery::Departure;
pub use hystart::Round;
pub use pacing::Pacing;
pub use window::{Algorithm, CongestionWindow};

/// What kernels count time in: HZ=250, the distributions' choice.
const TICK: Duration = Duration::from_millis(4);

/// The tick in which `time` lies.
fn ticks(time: Time) -> u64 {
    time.as_nanos() / TICK.as_nanos()
}
