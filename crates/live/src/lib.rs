//! The live world: an experiment over what is there. Both ends are on this machine, and between them is its loopback interface; the
//! protocols are those of its kernel, and the clock is real.
//!
//! Nothing of the machine is changed: no setting, no queue, no address. What an experiment asks for beyond what the machine is, is
//! refused by name.

mod check;
mod host;
mod world;

pub use host::Host;
pub use world::Live;
