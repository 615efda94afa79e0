//! The standby: a second middlebox that has every rule on its disk before the agent gets its reply.
//!
//! The active side sends its journal to the standby as it is written, over TLS; both sides have a certificate.
//! Numbers after names are lengths in octets:
//!
//! ```text
//! active to standby   version 1, then messages
//! message             kind 1 | number 8 | length 4 | content
//! standby to active   number 8: every message up to this number is on the standby's disk
//! ```
//!
//! `MessageKind` in `wire` lists the messages. There is no election: the side with the floating address is
//! active, and only that side writes.

mod follower;
mod handshake;
mod replicator;
mod wire;

pub use follower::follow;
pub(crate) use replicator::{Event, ReplicationThread, Replicator};
