//! A sans-IO QUIC endpoint: quinn-proto without its clock and chance. RFC 9000, RFC 9002, RFC 9221.
//!
//! One idea a file. `endpoint` says what follows from what, and `connect`, `receive`, `send`, `close` and `timers` add to it;
//! the others are small machines of their own. quinn-proto does QUIC; what is here lays messages upon its streams.
//!
//! What is seen of its packets differs (`sight`). In the model world nothing encrypts them (`clear`): an endpoint keeps the contract of
//! all transports, and reads in its packets which octets of which stream were sent when, `first_sent` at the sender, `arrivals`
//! at the receiver. Over sockets TLS does (`sealed`, `tls`), and datagrams go in and out as octets.
//!
//! Each direction of a stream of the contract is a unidirectional stream, and the first of all is the control stream, whose end
//! says that no more is sent. Left out: 0-RTT, migration, Retry, and BBR, which quinn-proto seeds from the operating system.
//! Pacing is quinn-proto's and cannot be switched off.

mod arrivals;
mod clear;
mod clock;
mod close;
mod config;
mod connect;
mod connection_ids;
mod ecn;
mod endpoint;
mod first_sent;
mod in_flight;
mod keys;
mod receive;
mod sealed;
mod send;
mod session;
mod settings;
mod sight;
mod site;
mod tickets;
mod timers;
mod tls;

pub use clear::Clear;
pub use config::{Carriage, Config, Congestion};
pub use endpoint::Endpoint;
pub use sealed::{Sealed, Sending};
pub use sight::Next;
pub use tls::{KeyLog, Tls};
