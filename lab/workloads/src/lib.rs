//! Applications as sans-IO state machines that open connections, send messages and note measurements; and
//! the load generation that makes their messages due.
//!
//! A workload is two applications, a client and a server ([`contract`](Application)). They handle whole messages; of
//! the transport they know only how many streams (lanes) it has. Each keeps a [`Ledger`]; a [`LedgerJoin`] joins the
//! two. Workloads with scheduled messages that are answered one by one share `sender` and `receiver`. `registry` lists
//! all workloads.

mod batches;
mod bulk;
mod contract;
mod echo;
mod error;
mod exchanges;
mod files;
mod host;
mod ledger;
mod ledger_join;
mod load;
mod media;
mod oneway;
mod openings;
mod padded_messages;
mod padded_workloads;
mod page;
#[cfg(test)]
mod partial_transport;
mod pending_requests;
mod pingpong;
mod processor;
mod programs;
mod receiver;
mod registry;
mod rejected_messages;
mod replay;
mod rpc;
mod sender;
mod session_setups;
mod simco;
mod size_file;
mod sizes;
mod spec;
mod stream_layout;
mod tls;
mod window;
mod workload;

pub use bulk::Bulk;
pub use contract::{
    AbortReason, Application, ConnectionId, Delivery, DeliveryOptions, Input, Outgoing, Output, Progress,
};
pub use echo::Echo;
pub use error::WorkloadError;
pub use exchanges::{Exchange, Exchanges};
pub use files::{FileOperation, Files};
pub use host::{Filter, Host, HostSpec, RuleEnforcer};
pub use ledger::{DueMessage, EntryId, Ledger, MessageArrival};
pub use ledger_join::LedgerJoin;
pub use load::{Arrivals, Load, Pace};
pub use media::{Fec, Media, Packing};
pub use oneway::Oneway;
pub use padded_workloads::MessageSize;
pub use page::{ConnectionReuse, Page};
pub use pending_requests::{OnwardClient, PendingRequests, WakeCallback};
pub use pingpong::Pingpong;
pub use processor::Processor;
pub use programs::{Measure, Programs};
pub use registry::WorkloadKind;
pub use replay::Replay;
pub use rpc::Rpc;
pub use simco::{RequestMix, Simco};
pub use sizes::{LogNormal, SizeClass, Sizes, SizesFile};
pub use spec::WorkloadSpec;
pub use stream_layout::StreamLayout;
pub use tls::Handshake;
pub use workload::{FramingFn, Workload};

/// The number of messages of a workload that continues until something else ends the run.
pub const ENDLESS: u64 = u64::MAX;
