//! Linux socket features without a safe wrapper elsewhere: options that are structures, ancillary data, SCTP
//! [`Association`]s with whole messages, and a [`Poller`] with tokens chosen by its user.

mod association;
mod calls;
mod octets;
mod poller;

pub use association::Association;
pub use calls::{ReceiveResult, peel_off, read_option, receive, set_option};
pub use octets::{items, push_item, u16_at, u32_at};
pub use poller::{Events, Interest, Poller, ReadyFile};
