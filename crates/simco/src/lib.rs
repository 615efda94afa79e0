//! SIMCO 3.0, RFC 4540: how an agent asks a middlebox to let flows pass.
//!
//! [`Message::parse`] and [`Message::to_bytes`] are the codec, [`length_of`] cuts a byte stream into messages,
//! and [`Middlebox`] answers the requests of one session. Bytes and time are arguments throughout.
//!
//! Names are the RFC's: SE, SA and ST control the session; PRR, PER, PEA, PDR, PLC, PRS and PRL the policy rules.

mod attribute;
mod capabilities;
mod codes;
mod header;
mod message;
mod middlebox;
mod parameters;
mod policy;
mod refusal;
mod reply;
mod request;
mod tuple;

pub use attribute::{Challenge, Gid, Lifetime, Owner, Pid, Token, Version};
pub use capabilities::Capabilities;
pub use header::{Header, PORT, Tid, length_of};
pub use message::{Body, Message, Notification, ParseError};
pub use middlebox::{Answer, Middlebox};
pub use parameters::{
    Direction, IpChoice, NatMode, PerParameters, PortParity, PrrParameters, ReservedParity,
};
pub use refusal::Refusal;
pub use reply::{DisabledRule, EnabledRule, Granted, Reply};
pub use request::{Enable, Request};
pub use tuple::{AddressTuple, Addresses, IpVersion, Location};
