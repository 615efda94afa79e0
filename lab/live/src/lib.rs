//! The live world: experiments on real machines. Either both ends are on this machine and use its loopback interface, or some are on other
//! hosts that run a [`Server`]. Protocols are the kernels', and the clock is real.
//!
//! These machines are not changed: no setting, queue or address. If an experiment requires a change, the error names it. A third machine
//! between them, a [`Server`] with a [`Router`], shapes the path during a run and restores it afterwards.

mod bottleneck;
mod check;
mod clocks;
mod control;
mod ends;
mod host_and_port;
mod host_list;
mod host_properties;
mod multi_host_run;
mod namespaces;
mod other_hosts;
mod outcome;
mod path_router;
mod peer;
mod placement;
mod plain_network;
mod ports;
mod relay;
mod router;
mod secret;
mod server;
mod service;
mod session;
mod warnings;
mod world;

pub use host_and_port::DEFAULT_PORT;
pub use host_properties::Host;
pub use namespaces::{NAMESPACES, Namespaces};
pub use ports::Ports;
pub use router::{Router, guard};
pub use secret::{SECRET_VARIABLE, Secret};
pub use server::{Server, Service};
pub use world::{Live, VIA_SEPARATOR};
