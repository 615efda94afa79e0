//! The interface between the player and a protocol: an endpoint and the syntax of its packets.

use std::collections::VecDeque;

use hol_base::Time;
use hol_stack::{Protocol as Settings, TransportSpec};
use hol_transport::{Endpoint, ReceivedData};
use hol_wire::Packet;

use crate::python::Value;
use crate::sctp::Sctp;
use crate::tcp::Tcp;

/// Maximum number of octets of user data in one packet or one call.
pub(crate) const MAX_OCTETS: usize = 1 << 24;

/// A received message, with the attributes that a script can check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ArrivedMessage {
    /// Length of the message in octets.
    pub(crate) length: usize,
    pub(crate) stream: u16,
    /// Whether the message was sent unordered.
    pub(crate) unordered: bool,
    pub(crate) ppid: u32,
    /// SSN or MID of the message's first fragment; `None` if the octets of the message do not identify the
    /// fragment.
    pub(crate) number: Option<u32>,
    /// TSN of the message's first fragment.
    pub(crate) tsn: Option<u32>,
}

/// An endpoint under test, and the syntax of its packets.
pub(crate) trait Protocol {
    fn endpoint(&mut self) -> &mut dyn Endpoint;

    /// Makes the endpoint wait for a connection.
    fn listen(&mut self);

    /// Replaces the endpoint by a new one that has no connection.
    fn forget(&mut self);

    /// Applies the options of a transport specification from now on.
    fn apply_specification(&mut self, specification: &str) -> Result<(), String>;

    /// Parses `line` as a packet from the peer.
    fn packet(&mut self, line: &str) -> Result<Packet, String>;

    /// Merges the first outbound packets into one if `line` describes several as one. Returns whether more packets
    /// are needed to match it. With `exact`, merges only segments of one block of segmentation offload: these are
    /// sent together, and all but the last lack PSH and FIN.
    fn merge_packets(
        &mut self,
        line: &str,
        sent: &mut VecDeque<(Time, Packet)>,
        exact: bool,
    ) -> Result<bool, String> {
        let _ = (line, sent, exact);
        Ok(false)
    }

    /// Compares the outbound `packet` with `line`. Returns the packet in the script's syntax if they differ.
    fn differs(&mut self, line: &str, packet: &Packet) -> Result<Option<String>, String>;

    /// Returns the outbound `packet` in the script's syntax.
    fn show(&mut self, packet: &Packet) -> String;

    /// Returns a variable of the endpoint for an assertion in `%{ assert … }%`.
    fn variable(&self, name: &str) -> Option<Value>;

    /// Returns the octet at `offset` in the data that the application writes (`ours`) or the peer sends.
    fn octet(&self, ours: bool, offset: usize) -> u8;

    /// Returns the received message if a read returns exactly one message; `None` for byte streams.
    fn message(&self, received: &ReceivedData) -> Option<Result<ArrivedMessage, String>> {
        let _ = received;
        None
    }

    /// Sets how far an outbound timestamp may differ from the script, in ticks of its clock; `None` disables the
    /// check.
    fn tolerate_stamps(&mut self, tolerance: Option<u32>) {
        let _ = tolerance;
    }

    /// Returns whether the application has not read all received data.
    fn has_unread(&self) -> bool;
}

/// Returns the protocol that an argument of `socket()` selects.
pub(crate) fn protocol_name(argument: &str) -> Result<&'static str, String> {
    match argument {
        "IPPROTO_TCP" => Ok("tcp"),
        "IPPROTO_SCTP" => Ok("sctp"),
        other => Err(format!("socket() requests {other}; write IPPROTO_TCP or IPPROTO_SCTP")),
    }
}

/// Creates an endpoint from a transport specification.
pub(crate) fn create_endpoint(specification: &str) -> Result<Box<dyn Protocol>, String> {
    match parse_settings(specification)? {
        Settings::Tcp { config, .. } => Ok(Box::new(Tcp::new(&config))),
        Settings::Sctp { config, .. } => Ok(Box::new(Sctp::new(&config))),
        _ => Err(format!("{specification}: packetdrill scripts test TCP and SCTP only")),
    }
}

/// Parses a transport specification and returns its settings.
pub(crate) fn parse_settings(specification: &str) -> Result<Settings, String> {
    let spec: TransportSpec = specification.parse().map_err(|error| format!("{specification}: {error}"))?;
    Ok(spec.protocol().clone())
}

/// Returns whether an endpoint of `protocol` has a variable called `name`.
pub(crate) fn has_variable(protocol: &str, name: &str) -> bool {
    match protocol {
        "tcp" => crate::tcp::VARIABLES.contains(&name),
        _ => crate::sctp::VARIABLES.contains(&name),
    }
}

/// Checks that `line` can be parsed as a packet of `protocol`.
pub(crate) fn check(protocol: &str, line: &str, is_inbound: bool) -> Result<(), String> {
    match protocol {
        "tcp" => crate::tcp::check(line, is_inbound),
        _ => crate::sctp::check(line, is_inbound),
    }
}
