//! The standby: a second middlebox that has every rule on its disk before an agent hears of it.
//!
//! The journal is copied as it is written, over TLS, in which both sides have a certificate:
//!
//! ```text
//! active to standby   version 1, then messages
//! message             kind 1 | number 8 | length 4 | content      whole 1: entries of all rules; complete 2, with the time: that was all;
//!                                                                 batch 3: entries; beat 4, with the time: the standby is
//!                                                                 synchronized, once a second
//! standby to active   number 8                                    everything up to this number is on its disk
//! ```
//!
//! There is no election and no agreement: one side writes, and whoever has the floating address is that side.

mod follow;
mod handshake;
mod ship;
mod wire;

pub use follow::follow;
pub(crate) use ship::{Event, Shipper, Shipping};
