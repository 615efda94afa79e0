//! A lookup in one set with fields of a packet as the key.

use hol_simco::IpVersion;

use super::expression::{Expressions, Header, Label, Meta, Nat, Tracked, Verdict};
use crate::element::{Role, mask_v4, mask_v6};
use crate::ports::Block;
use crate::shape::{Field, Shape, Side};

/// How a packet is compared with a rule: replies are reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    AsItIs,
    Reversed,
}

/// Looks a packet of the version up in the shape's set and acts accordingly. A translated connection gets the
/// label, if given.
pub(super) fn look(rule: Expressions, shape: &Shape, seen: Seen, label: Option<Label>) -> Expressions {
    let mut register = 0;
    let rule = shape.key().fold(of_version(rule, shape.version), |rule, field| {
        let at = register;
        register += field.width() / 4;
        load(rule, field, seen, at)
    });
    let name = shape.name();
    let nat = |rule: Expressions, nat| {
        let port = (shape.data().count() == 2).then_some(usize::from(shape.version.address_bits()) / 32);
        let rule = rule.lookup(&name, 0, Some(0));
        // A map returns at most five registers.
        let rule = label.into_iter().fold(rule, |rule, label| rule.load(&label, 8).store(Tracked::Label, 8));
        rule.nat(nat, number(shape.version), 0, port.map(|port| [port; 2]))
    };
    match shape.role {
        Role::Block => rule.lookup(&name, 0, None).verdict(Verdict::Drop),
        Role::Inbound | Role::Outbound => rule.lookup(&name, 0, None).verdict(Verdict::Accept),
        Role::Dnat => nat(rule, Nat::Destination),
        Role::Snat => nat(rule, Nat::Source),
    }
}

/// Continues only with packets of the version.
pub(super) fn of_version(rule: Expressions, version: IpVersion) -> Expressions {
    rule.meta(Meta::Version, 0).equals(0, &[number(version)])
}

/// linux/netfilter.h
pub(super) fn number(version: IpVersion) -> u8 {
    match version {
        IpVersion::V4 => 2,
        IpVersion::V6 => 10,
    }
}

/// Loads a field of a packet. RFC 791 and RFC 8200 have the addresses, and all transports begin with their ports.
pub(super) fn load(rule: Expressions, field: Field, seen: Seen, at: usize) -> Expressions {
    let is_first = |side| (side == Side::Source) == (seen == Seen::AsItIs);
    match field {
        Field::Protocol => rule.meta(Meta::Protocol, at),
        Field::Port(side, bits) => {
            let rule = rule.payload(Header::Transport, if is_first(side) { 0 } else { 2 }, 2, at);
            match bits {
                Block::PORT => rule,
                bits => rule.mask(at, &(u16::MAX << (Block::PORT - bits)).to_be_bytes()),
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
