//! Netlink, RFC 3549: how a program speaks to the kernel's networking.
//!
//! A [`Message`] is a header, a structure and attributes, which nest. [`messages`] and [`attributes`] take apart what
//! came back. A [`Socket`] carries both; what the numbers mean is for the subsystem's own code.

mod address;
mod message;
mod parse;
mod socket;

pub use address::parts;
pub use message::{CREATE, EXCLUSIVE, Message, REPLACE};
pub use parse::{Received, attributes, messages};
pub use socket::Socket;
