//! What Linux can do with sockets that has no safe wrapper elsewhere: options that are structures, ancillary data,
//! SCTP [`Association`]s that keep messages whole, and a [`Poller`] that calls what is ready as its user does.

mod association;
mod calls;
mod octets;
mod poller;

pub use association::Association;
pub use calls::{Read, option, peel_off, receive, set_option};
pub use octets::{items, push_item, u16_at, u32_at};
pub use poller::{Events, Interest, Poller, Ready};
