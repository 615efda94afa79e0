//! The standby: a second middlebox that has every rule on its disk before the agent gets its reply.
//!
//! The journal is copied as it is written, over TLS, in which both sides have a certificate:
//!
//! ```text
//! active to standby   version 1, then messages
//! message             kind 1 | number 8 | length 4 | content      snapshot 1: entries of all rules; complete 2, with the time: that was all;
//!                                                                 batch 3: entries; heartbeat 4, with the time: the standby is
//!                                                                 synchronized, once a second
//! standby to active   number 8                                    everything up to this number is on its disk
//! ```
//!
//! There is no election and no agreement: one side writes, and that is the side with the floating address.

mod follower;
mod handshake;
mod replicator;
mod wire;

pub use follower::follow;
pub(crate) use replicator::{Event, ReplicationThread, Replicator};
