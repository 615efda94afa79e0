//! What applications do: sans-IO state machines that open connections, send messages and note what is to be measured, and
//! the load generation that makes their messages due.
//!
//! A workload is two applications, one that connects and one that listens ([`contract`](Application)); they see whole
//! messages and nothing of the transport but its lanes. Each keeps a [`Ledger`], and a [`Reading`] joins the two. Those whose
//! messages come due by time and are answered one by one share `sender` and `receiver`; `registry` lists them all.

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
mod sender;
mod simco;
mod spec;
mod window;
mod workload;

pub use bulk::Bulk;
pub use contract::{Application, ConnectionId, Delivery, Input, Outgoing, Output, Quit, Standing, Terms};
pub use desk::{Asker, Bell, Desk};
pub use echo::Echo;
pub use error::WorkloadError;
pub use exchanges::{Exchange, Exchanges};
pub use files::{Deed, Files};
pub use host::{Enforce, Filter, Host, HostSpec};
pub use lanes::Lanes;
pub use ledger::{Arrived, Due, EntryId, Ledger};
pub use load::{Arrivals, Load, Pace};
pub use media::{Fec, Media, Packing};
pub use oneway::Oneway;
pub use padded::MessageSize;
pub use page::{FileSize, Page, Way};
pub use pingpong::Pingpong;
pub use processor::Processor;
pub use programs::{Measure, Programs};
pub use reading::Reading;
pub use registry::Kind;
pub use replay::Replay;
pub use simco::{Mix, Simco};
pub use spec::WorkloadSpec;
pub use workload::{LengthOf, Workload};

/// So many messages has a workload that goes on until something else ends the run.
pub const ENDLESS: u64 = u64::MAX;
