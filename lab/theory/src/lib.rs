//! Closed-form models to compare with measurements, and their limits.
//!
//! [`Transfer`] describes requests and replies on a path with independent losses. Its methods are the closed form,
//! [`mechanistic::simulate`] simulates the same rules event by event, and [`check_applicability`] checks whether the closed form is
//! expected to hold. Means are in ms.

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

pub use ceiling::ConstantRateFlow;
pub use limits::{NotApplicable, check_applicability};
pub use transfer::{Arrivals, Recovery, Transfer};
