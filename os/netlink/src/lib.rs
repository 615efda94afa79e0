//! Netlink, RFC 3549: messages between a program and the kernel's networking.
//!
//! A [`Message`] is a header, a structure and attributes, which nest. [`messages`] and [`attributes`] parse
//! answers. A [`Socket`] sends and receives. Message and attribute types are numbers, which the code that uses a
//! subsystem defines.

mod address;
mod message;
mod parse;
mod socket;

pub use address::address_parts;
pub use message::{CREATE, EXCLUSIVE, Message, REPLACE};
pub use parse::{KernelMessage, attributes, messages};
pub use socket::Socket;
