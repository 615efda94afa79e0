//! The live world: an experiment over what is there. Both ends are on this machine, and between them is its loopback interface; or the
//! servers are on another host, where a [`Server`] runs, and between them is the network. The protocols are those of the kernels, and the
//! clock is real.
//!
//! Nothing of the machine is changed: no setting, no queue, no address. What an experiment asks for beyond what the machine is, is
//! refused by name.

mod cautions;
mod check;
mod clocks;
mod control;
mod host;
mod peer;
mod placement;
mod ports;
mod secret;
mod server;
mod session;
mod two_hosts;
mod world;

pub use host::Host;
pub use peer::DEFAULT_PORT;
pub use ports::Ports;
pub use secret::{SECRET_VARIABLE, Secret};
pub use server::Server;
pub use world::Live;
