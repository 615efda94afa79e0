//! Closed-form models that the measurements are held against, and where they hold.
//!
//! [`Transfer`] describes requests and replies on a path with independent losses; its methods are the
//! closed form, [`mechanistic::simulate`] plays the same rules out event by event, and [`applies`] says
//! where the two part. Means are in ms.

mod ceiling;
mod detection;
pub mod failover;
mod limits;
mod loss_delay;
pub mod mathis;
pub mod mechanistic;
pub mod pingpong;
pub mod queueing;
mod resequencing;
mod transfer;

pub use ceiling::Stream;
pub use limits::{Limit, applies};
pub use transfer::{Arrivals, Recovery, Transfer};
