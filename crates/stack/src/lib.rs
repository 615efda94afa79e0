//! Named sets of endpoint behaviour, and transport specifications such as `sctp:streams=8,rto_min=200ms`.
//!
//! A stack is one file in `stacks/`: a table of behaviours for each protocol, every one named. A specification
//! is a protocol, a stack and what differs from it.

mod metrics_cache;
mod spec;
mod stacks;

pub use metrics_cache::MetricsCache;
pub use spec::{Kind, Protocol, SpecError, TransportSpec};
pub use stacks::{DEFAULT_STACK, Stack, stack, stacks};
