//! Looks up a packet in a set, with fields of the packet as the key.

use hol_simco::IpVersion;

use super::expression::{CtKey, Expressions, Header, Label, MetaKey, Nat, Verdict};
use crate::element::{Role, mask_v4, mask_v6};
use crate::ports::PortBlock;
use crate::shape::{Field, Shape, Side};

/// Whether a packet has the direction of the rule, or is a reply. The numbers are those of `enum ip_conntrack_dir`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketDirection {
    Original = 0,
    Reply = 1,
}

/// Appends expressions that look up a packet in the set of `shape`, and the verdict or translation for packets that are
/// found. Connections that are translated get `label`, if one is given.
pub(super) fn add_lookup(
    rule: Expressions,
    shape: &Shape,
    direction: PacketDirection,
    label: Option<Label>,
) -> Expressions {
    let mut register = 0;
    let rule = shape.key().fold(match_version(rule, shape.version), |rule, field| {
        let at = register;
        register += field.width() / 4;
        load_field(rule, field, direction, at)
    });
    let name = shape.name();
    let nat = |rule: Expressions, nat| {
        let port = (shape.data().count() == 2).then_some(usize::from(shape.version.address_bits()) / 32);
        let rule = rule.lookup(&name, 0, Some(0));
        // A map returns at most five registers, so register 8 is free.
        let rule = label.into_iter().fold(rule, |rule, label| rule.load(&label, 8).store(CtKey::Label, 8));
        rule.nat(nat, protocol_family(shape.version), 0, port.map(|port| [port; 2]))
    };
    match shape.role {
        Role::Block => rule.lookup(&name, 0, None).verdict(Verdict::Drop),
        Role::Inbound | Role::Outbound => rule.lookup(&name, 0, None).verdict(Verdict::Accept),
        Role::Dnat => nat(rule, Nat::Destination),
        Role::Snat => nat(rule, Nat::Source),
    }
}

/// Lets the rule continue only for packets with this IP version.
pub(super) fn match_version(rule: Expressions, version: IpVersion) -> Expressions {
    rule.meta(MetaKey::Version, 0).equals(0, &[protocol_family(version)])
}

/// Returns the number of the protocol family of an IP version in linux/netfilter.h.
pub(super) fn protocol_family(version: IpVersion) -> u8 {
    match version {
        IpVersion::V4 => 2,
        IpVersion::V6 => 10,
    }
}

/// Loads a field of a packet into registers. The offsets of addresses are those of RFC 791 and RFC 8200; all transport
/// headers begin with the ports.
pub(super) fn load_field(
    rule: Expressions,
    field: Field,
    direction: PacketDirection,
    at: usize,
) -> Expressions {
    let is_first = |side| (side == Side::Source) == (direction == PacketDirection::Original);
    match field {
        Field::Protocol => rule.meta(MetaKey::Protocol, at),
        Field::Port(side, bits) => {
            let rule = rule.payload(Header::Transport, if is_first(side) { 0 } else { 2 }, 2, at);
            match bits {
                PortBlock::PORT_BITS => rule,
                bits => rule.mask(at, &(u16::MAX << (PortBlock::PORT_BITS - bits)).to_be_bytes()),
            }
        }
        Field::Address(side, version, length) => {
            let offset = match (version, is_first(side)) {
                (IpVersion::V4, true) => 12,
                (IpVersion::V4, false) => 16,
                (IpVersion::V6, true) => 8,
                (IpVersion::V6, false) => 24,
            };
            let rule = rule.payload(Header::Network, offset, field.length(), at);
            match version {
                _ if length == version.address_bits() => rule,
                IpVersion::V4 => rule.mask(at, &mask_v4(length).to_be_bytes()),
                IpVersion::V6 => rule.mask(at, &mask_v6(length).to_be_bytes()),
            }
        }
    }
}
