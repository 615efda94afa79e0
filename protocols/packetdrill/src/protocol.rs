//! What the player needs of a protocol: an endpoint, and how its packets are written.

use hol_stack::{Protocol as Settings, TransportSpec};
use hol_transport::Endpoint;
use hol_wire::Packet;

use crate::sctp::Sctp;
use crate::tcp::Tcp;

/// An endpoint under test, and its language.
pub(crate) trait Protocol {
    fn endpoint(&mut self) -> &mut dyn Endpoint;

    /// The endpoint is to wait for its peer.
    fn listen(&mut self);

    /// The packet that `line` describes, from the peer.
    fn packet(&mut self, line: &str) -> Result<Packet, String>;

    /// What `packet`, which left, is in a script's words if it is not what `line` describes.
    fn differs(&mut self, line: &str, packet: &Packet) -> Result<Option<String>, String>;

    /// What `packet`, which left, is in a script's words.
    fn show(&mut self, packet: &Packet) -> String;

    /// A variable of the endpoint for `%{ assert … }%`.
    fn variable(&self, name: &str) -> Option<String>;

    /// The octet at `offset` of what the application writes (`ours`) or the peer sends.
    fn octet(&self, ours: bool, offset: usize) -> u8;

    /// A read takes one message, and no more.
    fn keeps_messages(&self) -> bool {
        false
    }
}

/// The protocol that `socket()` asks for.
pub(crate) fn named(argument: &str) -> Result<&'static str, String> {
    match argument {
        "IPPROTO_TCP" => Ok("tcp"),
        "IPPROTO_SCTP" => Ok("sctp"),
        other => Err(format!("socket() asks for {other}; write IPPROTO_TCP or IPPROTO_SCTP")),
    }
}

/// An endpoint by `specification`.
pub(crate) fn make(specification: &str) -> Result<Box<dyn Protocol>, String> {
    let spec: TransportSpec = specification.parse().map_err(|error| format!("{specification}: {error}"))?;
    match spec.protocol() {
        Settings::Tcp { config, .. } => Ok(Box::new(Tcp::new(config))),
        Settings::Sctp { config, .. } => Ok(Box::new(Sctp::new(config))),
        _ => Err(format!("{specification} has no scripts")),
    }
}
