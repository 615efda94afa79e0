//! What Linux can do with sockets that has no safe wrapper elsewhere: options that are structures, ancillary data, and
//! SCTP [`Association`]s that keep messages whole.

mod association;
mod calls;
mod octets;

pub use association::Association;
pub use calls::{Read, option, receive, set_option};
pub use octets::{items, push_item, u16_at, u32_at};
