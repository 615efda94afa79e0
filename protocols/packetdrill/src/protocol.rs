//! What the player needs of a protocol: an endpoint, and how its packets are written.

use std::collections::VecDeque;

use hol_base::Time;
use hol_stack::{Protocol as Settings, TransportSpec};
use hol_transport::{Endpoint, Received};
use hol_wire::Packet;

use crate::python::Value;
use crate::sctp::Sctp;
use crate::tcp::Tcp;

/// The most octets of user data that one packet or one call has.
pub(crate) const MOST_OCTETS: usize = 1 << 24;

/// A message that came, as a script may ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ArrivedMessage {
    pub(crate) length: usize,
    pub(crate) stream: u16,
    pub(crate) unordered: bool,
    pub(crate) ppid: u32,
    /// SSN or MID and TSN of its first fragment, where its octets tell which that was.
    pub(crate) number: Option<u32>,
    pub(crate) tsn: Option<u32>,
}

/// An endpoint under test, and its language.
pub(crate) trait Protocol {
    fn endpoint(&mut self) -> &mut dyn Endpoint;

    /// The endpoint is to wait for its peer.
    fn listen(&mut self);

    /// The endpoint is to know no connection.
    fn forget(&mut self);

    /// The endpoint behaves as `specification` has it from now on.
    fn adopt(&mut self, specification: &str) -> Result<(), String>;

    /// The packet that `line` describes, from the peer.
    fn packet(&mut self, line: &str) -> Result<Packet, String>;

    /// Makes the packets at the front one, where `line` describes what several make together, and says whether there are to be more of
    /// them. With `exact` they are what a network interface cuts: they leave together, and all but the last lack PSH and FIN.
    fn join(&mut self, line: &str, sent: &mut VecDeque<(Time, Packet)>, exact: bool) -> Result<bool, String> {
        let _ = (line, sent, exact);
        Ok(false)
    }

    /// What `packet`, which left, is in a script's words if it is not what `line` describes.
    fn differs(&mut self, line: &str, packet: &Packet) -> Result<Option<String>, String>;

    /// What `packet`, which left, is in a script's words.
    fn show(&mut self, packet: &Packet) -> String;

    /// A variable of the endpoint for `%{ assert … }%`.
    fn variable(&self, name: &str) -> Option<Value>;

    /// The octet at `offset` of what the application writes (`ours`) or the peer sends.
    fn octet(&self, ours: bool, offset: usize) -> u8;

    /// A message that is delivered, if a read takes one and no more.
    fn message(&self, received: &Received) -> Option<Result<ArrivedMessage, String>> {
        let _ = received;
        None
    }

    /// What the value of a timestamp that leaves may differ from the script's, in steps of its clock; nothing if it does not matter.
    fn tolerate_stamps(&mut self, tolerance: Option<u32>) {
        let _ = tolerance;
    }

    /// The application has not read all that has come.
    fn has_unread(&self) -> bool;
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
    match settings(specification)? {
        Settings::Tcp { config, .. } => Ok(Box::new(Tcp::new(&config))),
        Settings::Sctp { config, .. } => Ok(Box::new(Sctp::new(&config))),
        _ => Err(format!("{specification} has no scripts")),
    }
}

/// What `specification` says.
pub(crate) fn settings(specification: &str) -> Result<Settings, String> {
    let spec: TransportSpec = specification.parse().map_err(|error| format!("{specification}: {error}"))?;
    Ok(spec.protocol().clone())
}

/// Whether an endpoint of `protocol` has a variable of this name.
pub(crate) fn has_variable(protocol: &str, name: &str) -> bool {
    match protocol {
        "tcp" => crate::tcp::VARIABLES.contains(&name),
        _ => crate::sctp::VARIABLES.contains(&name),
    }
}

/// Whether `line` can be read as a packet of `protocol`.
pub(crate) fn check(protocol: &str, line: &str, comes: bool) -> Result<(), String> {
    match protocol {
        "tcp" => crate::tcp::check(line, comes),
        _ => crate::sctp::check(line, comes),
    }
}
