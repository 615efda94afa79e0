//! The SCTP common header and its chunks. RFC 9260 section 3.

mod asconf;
mod asconf_ack;
mod auth;
mod cause;
mod chunk;
mod data;
mod display;
mod forward_tsn;
mod i_data;
mod i_forward_tsn;
mod init;
mod packet;
mod parameter;
mod reconfig;
mod sack;
mod tlv;

pub use asconf::{AddressOperation, Asconf, AsconfSerial, Request};
pub use asconf_ack::{AsconfAck, Response};
pub use auth::Auth;
pub use cause::Cause;
pub use chunk::{Chunk, UserData};
pub use data::{Data, DataFlags, Ssn, Tsn};
pub use forward_tsn::ForwardTsn;
pub use i_data::{Fsn, IData, Mid};
pub use i_forward_tsn::{IForwardTsn, SkippedMessages};
pub use init::Init;
pub use packet::Packet;
pub use parameter::Parameter;
pub use reconfig::{Reconfig, ReconfigResult, ReconfigSerial};
pub use sack::{GapAckBlock, Sack};
