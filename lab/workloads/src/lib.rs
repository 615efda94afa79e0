//! Applications as sans-IO state machines that open connections, send messages and note measurements; and the
//! load generation that makes their messages due.
//!
//! A workload is two applications, a client and a server ([`contract`](Application)). They see whole
//! messages, and of the transport only its lanes. Each keeps a [`Ledger`]; a [`Reading`] joins the two.
//! Workloads with scheduled messages that are answered one by one share `sender` and `receiver`. `registry`
//! lists all workloads.

mod batches;
mod bulk;
mod contract;
mod desk;
mod echo;
mod error;
mod exchanges;
mod files;
mod greetings;
mod held;
mod host;
#[cfg(test)]
mod in_parts;
mod lanes;
mod ledger;
mod load;
mod media;
mod oneway;
mod openings;
mod padded;
mod padding;
mod page;
mod pingpong;
mod processor;
mod programs;
mod reading;
mod receiver;
mod registry;
mod replay;
mod rpc;
mod sender;
mod simco;
mod sizes;
mod spec;
mod tls;
mod window;
mod workload;

pub use bulk::Bulk;
pub use contract::{
    AbortReason, Application, ConnectionId, Delivery, DeliveryOptions, Input, Outgoing, Output, Progress,
};
pub use desk::{Bell, OnwardClient, PendingRequests};
pub use echo::Echo;
pub use error::WorkloadError;
pub use exchanges::{Exchange, Exchanges};
pub use files::{Deed, Files};
pub use host::{Filter, Host, HostSpec, RuleEnforcer};
pub use lanes::StreamLayout;
pub use ledger::{Arrived, DueMessage, EntryId, Ledger};
pub use load::{Arrivals, Load, Pace};
pub use media::{Fec, Media, Packing};
pub use oneway::Oneway;
pub use padded::MessageSize;
pub use page::{Page, Way};
pub use pingpong::Pingpong;
pub use processor::Processor;
pub use programs::{Measure, Programs};
pub use reading::Reading;
pub use registry::Kind;
pub use replay::Replay;
pub use rpc::Rpc;
pub use simco::{Mix, Simco};
pub use sizes::{LogNormal, SizeClass, Sizes};
pub use spec::WorkloadSpec;
pub use tls::Handshake;
pub use workload::{LengthOf, Workload};

/// Number of messages of a workload that continues until something else ends the run.
pub const ENDLESS: u64 = u64::MAX;
