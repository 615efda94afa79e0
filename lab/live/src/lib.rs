//! The live world: an experiment over what is there. Both ends are on this machine, and between them is its loopback interface; or the
//! servers are on other hosts, where a [`Server`] runs, and between them is the network. The protocols are those of the kernels, and the
//! clock is real.
//!
//! Nothing of these machines is changed: no setting, no queue, no address. What an experiment asks for beyond what they are, is
//! refused by name. A third one between them, where [`Server`] has a [`Router`], has the path be what an experiment says while a run is under
//! way, and what it was before afterwards.

mod across;
mod bare;
mod bottleneck;
mod cautions;
mod check;
mod clocks;
mod control;
mod ends;
mod host;
mod namespaces;
mod others;
mod outcome;
mod peer;
mod place;
mod placement;
mod places;
mod ports;
mod relay;
mod router;
mod secret;
mod server;
mod service;
mod session;
mod via;
mod world;

pub use host::Host;
pub use namespaces::{NAMESPACES, Namespaces};
pub use place::DEFAULT_PORT;
pub use ports::Ports;
pub use router::{Router, guard};
pub use secret::{SECRET_VARIABLE, Secret};
pub use server::{Server, Service};
pub use world::{Live, VIA};
