//! Protocols of flows.

use clap::Args;

use crate::failure::Failure;

/// The protocols that have names, with their IP protocol numbers; 0 means any protocol.
/// <https://www.iana.org/assignments/protocol-numbers>
const PROTOCOL_NAMES: [(&str, u8); 9] = [
    ("any", 0),
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("esp", 50),
    ("icmpv6", 58),
    ("sctp", 132),
    ("udplite", 136),
];

/// The options for the protocol of a flow.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Protocol {
    /// Protocol UDP
    #[arg(long)]
    udp: bool,
    /// Protocol TCP
    #[arg(long)]
    tcp: bool,
    /// Any protocol, by name or number: any, icmp, tcp, udp, dccp, esp, icmpv6, sctp, udplite, 0 to 255
    #[arg(long, value_name = "PROTOCOL", value_parser = parse)]
    protocol: Option<u8>,
}

impl Protocol {
    /// Returns the IP protocol number. 0 means any protocol, and is an error for a flow with ports.
    pub fn number(&self, has_ports: bool) -> Result<u8, Failure> {
        match self {
            Self { udp: true, .. } => Ok(17),
            Self { tcp: true, .. } => Ok(6),
            Self { protocol: Some(number), .. } if *number != 0 || !has_ports => Ok(*number),
            Self { protocol: None, .. } if !has_ports => Ok(0),
            _ => Err(Failure::Usage(
                "a flow with ports needs a protocol; add --udp, --tcp or --protocol NAME".to_owned(),
            )),
        }
    }
}

fn parse(text: &str) -> Result<u8, String> {
    let named = PROTOCOL_NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let names = PROTOCOL_NAMES.map(|(name, _)| name).join(", ");
    named
        .or_else(|| text.parse().ok())
        .ok_or_else(|| format!("write a number from 0 to 255, or one of {names}"))
}

/// Returns the name of a protocol, or its number as text if it has no name.
pub fn name(number: u8) -> String {
    let named = PROTOCOL_NAMES.iter().find(|(_, protocol)| *protocol == number);
    named.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}
