//! The shape of an element: the fields of its key. nftables' own interval sets reject overlapping intervals,
//! but SIMCO's rules may overlap. So each combination of prefix lengths and wildcards has its own hash table,
//! and every packet is looked up in each ("tuple space search", Srinivasan, Suri and Varghese 1999).

use std::fmt::Write;
use std::net::IpAddr;

use hol_simco::{IpVersion, ShapeId};

use crate::element::{Element, End, Role, Target};
use crate::ports::PortBlock;

/// The shape of elements: the fields that the keys of their set contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub role: Role,
    pub version: IpVersion,
    /// Whether the keys contain the protocol number.
    protocol: bool,
    source: EndShape,
    destination: EndShape,
}

/// The fields of a key that describe one end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EndShape {
    /// Length of the address prefix in bits; 0 if the keys match every address.
    length: u8,
    /// Number of significant bits of the port: 16 for a single port, fewer for a block of ports; `None` if the keys
    /// match every port.
    port: Option<u8>,
}

/// A field of a key, or of a map's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Protocol,
    Address(Side, IpVersion, u8),
    Port(Side, u8),
}

/// The end of a flow to which a field belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Destination,
}

impl Shape {
    pub fn of(element: &Element) -> Self {
        let end =
            |end: &End| EndShape { length: end.length, port: end.port.map(|port| port.prefix_length()) };
        Self {
            role: element.role,
            version: element.version(),
            protocol: element.protocol.is_some(),
            source: end(&element.source),
            destination: end(&element.destination),
        }
    }

    /// Returns a number that identifies the shape.
    pub fn id(&self) -> ShapeId {
        let end = |end: EndShape| u64::from(end.length) << 8 | end.port.map_or(0, |bits| u64::from(bits) + 1);
        let rest = (self.role as u64) << 2
            | u64::from(self.version == IpVersion::V6) << 1
            | u64::from(self.protocol);
        ShapeId(rest << 32 | end(self.source) << 16 | end(self.destination))
    }

    /// Returns the fields of a key, in order. A source address that is a wildcard is omitted; the destination address
    /// is always a field, because it determines the IP version.
    pub fn key(&self) -> impl Iterator<Item = Field> {
        let Self { version, protocol, source, destination, .. } = *self;
        let fields = [
            protocol.then_some(Field::Protocol),
            (source.length > 0).then_some(Field::Address(Side::Source, version, source.length)),
            source.port.map(|bits| Field::Port(Side::Source, bits)),
            Some(Field::Address(Side::Destination, version, destination.length)),
            destination.port.map(|bits| Field::Port(Side::Destination, bits)),
        ];
        fields.into_iter().flatten()
    }

    /// Returns the fields of a map's value: an address, and a port if the port is translated. Sets have no values.
    pub fn data(&self) -> impl Iterator<Item = Field> {
        let translated = match self.role {
            Role::Block | Role::Inbound | Role::Outbound => None,
            Role::Dnat => Some((Side::Destination, self.destination.port)),
            Role::Snat => Some((Side::Source, self.source.port)),
        };
        translated.into_iter().flat_map(|(side, port)| {
            let address = Field::Address(side, self.version, self.version.address_bits());
            [Some(address), port.map(|_| Field::Port(side, PortBlock::PORT_BITS))].into_iter().flatten()
        })
    }

    /// Returns the name of the set for this shape; the name encodes the fields.
    pub fn name(&self) -> String {
        let role = match self.role {
            Role::Block => "blocked",
            Role::Inbound => "inbound",
            Role::Outbound => "outbound",
            Role::Dnat => "dnat",
            Role::Snat => "snat",
        };
        let version = if self.version == IpVersion::V4 { 4 } else { 6 };
        let mut name = format!("{role}{version}");
        for field in self.key() {
            let written = match field {
                Field::Protocol => write!(name, "_proto"),
                Field::Address(side, version, length) if length == version.address_bits() => {
                    write!(name, "_{}addr", side.letter())
                }
                Field::Address(side, _, length) => write!(name, "_{}net{length}", side.letter()),
                Field::Port(side, PortBlock::PORT_BITS) => write!(name, "_{}port", side.letter()),
                Field::Port(side, bits) => write!(name, "_{}port{bits}", side.letter()),
            };
            written.expect("writing to a string does not fail");
        }
        name
    }
}

impl Side {
    fn letter(self) -> char {
        match self {
            Self::Source => 's',
            Self::Destination => 'd',
        }
    }
}

impl Field {
    /// Returns the length of the field's value in octets.
    pub fn length(self) -> usize {
        match self {
            Self::Protocol => 1,
            Self::Address(_, version, _) => usize::from(version.address_bits() / 8),
            Self::Port(..) => 2,
        }
    }

    /// Returns the length of the field in a concatenation, in octets: a multiple of four, the size of a register.
    pub fn width(self) -> usize {
        self.length().next_multiple_of(4)
    }

    /// Returns the number of the field's data type in `nft`: `inet_proto`, `ipv4_addr`, `ipv6_addr` or `inet_service`.
    /// Only listings by `nft` use it.
    pub fn data_type(self) -> u32 {
        match self {
            Self::Protocol => 12,
            Self::Address(_, IpVersion::V4, _) => 7,
            Self::Address(_, IpVersion::V6, _) => 8,
            Self::Port(..) => 13,
        }
    }
}

/// Encodes the key of an element.
pub(crate) fn key(element: &Element) -> Vec<u8> {
    let mut octets = Vec::with_capacity(44);
    for field in Shape::of(element).key() {
        let end = |side| if side == Side::Source { element.source } else { element.destination };
        match field {
            Field::Protocol => octets.extend(element.protocol),
            Field::Address(side, ..) => put_address(&mut octets, end(side).address),
            Field::Port(side, _) => {
                octets.extend(end(side).port.map_or(0, |port| port.first()).to_be_bytes());
            }
        }
        octets.resize(octets.len().next_multiple_of(4), 0);
    }
    octets
}

/// Encodes the value of a map's element.
pub(crate) fn data(target: &Target) -> Vec<u8> {
    let mut octets = Vec::with_capacity(20);
    put_address(&mut octets, target.address);
    octets.extend(target.port.into_iter().flat_map(u16::to_be_bytes));
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

fn put_address(octets: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => octets.extend(v4.octets()),
        IpAddr::V6(v6) => octets.extend(v6.octets()),
    }
}
