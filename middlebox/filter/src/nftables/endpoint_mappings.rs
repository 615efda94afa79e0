//! Endpoint-independent filtering of masqueraded UDP flows: RFC 4787 section 5, REQ-8.
//!
//! Packets fill two maps for each IP version: one from outside to inside endpoints, and its inverse, which gives later
//! flows of an inside endpoint the same outside endpoint (REQ-1). Only packets from the inside extend a mapping (REQ-6,
//! RFC 7857 section 7), so nobody outside can keep it open.

use hol_base::Duration;
use hol_simco::IpVersion;

use super::expression::{CtKey, Expressions, MetaKey, Nat};
use super::lookup::{PacketDirection, load_field, match_version, protocol_family};
use super::ruleset::UDP;
use super::transaction::Transaction;
use crate::shape::{Field, Side};
use crate::{Filtering, Masquerade};

/// The time for which a mapping lasts after the last packet from the inside. RFC 4787, REQ-5c.
const MAPPING_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of mappings: one per port of an address. Without room a flow is filtered by its endpoints.
const MAX_MAPPINGS: u32 = 1 << 16;

/// A map between endpoints, each an address and a port.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndpointMap {
    from: Location,
    version: IpVersion,
}

/// The side of the NAT to which the keys of a map belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    Inside,
    Outside,
}

/// Returns the maps that a table needs; none if masqueraded flows are filtered by their endpoints.
pub(super) fn maps(masquerade: &Masquerade) -> Vec<EndpointMap> {
    if !masquerade.is_used() || masquerade.filtering != Filtering::EndpointIndependent {
        return Vec::new();
    }
    let versions = masquerade.sources().map(IpVersion::of);
    versions
        .flat_map(|version| [Location::Inside, Location::Outside].map(|from| EndpointMap { from, version }))
        .collect()
}

impl EndpointMap {
    /// Returns true if the keys are inside endpoints.
    pub fn is_from(self, location: Location) -> bool {
        self.from == location
    }

    pub fn name(self) -> String {
        let from = if self.from == Location::Inside { "inside" } else { "outside" };
        format!("{from}_endpoints{}", if self.version == IpVersion::V4 { 4 } else { 6 })
    }

    pub fn create(self, transaction: &mut Transaction<'_>) {
        transaction.create_dynamic_map(
            &self.name(),
            &self.endpoint(Side::Source),
            MAPPING_TIMEOUT,
            MAX_MAPPINGS,
        );
    }

    /// Translates packets from or to an endpoint in the map. Their rule begins with `rule`.
    pub fn translate(self, rule: Expressions, begin: impl FnOnce(Expressions) -> Expressions) -> Expressions {
        let (side, nat) = match self.from {
            Location::Inside => (Side::Source, Nat::Source),
            Location::Outside => (Side::Destination, Nat::Destination),
        };
        let rule = self.load_endpoint(match_udp(match_version(rule, self.version)), side, 0);
        let port = self.port_register();
        begin(rule.lookup(&self.name(), 0, Some(0))).nat(
            nat,
            protocol_family(self.version),
            0,
            Some([port; 2]),
        )
    }

    /// Adds the mapping of a packet that leaves with its outside endpoint as source, or extends it. `direction` is
    /// that of the packet in its connection, and the source of the connection's tuple in this direction is the
    /// inside endpoint: see `nf_ct_invert_tuple` in net/netfilter/nf_nat_core.c.
    pub fn learn(self, rule: Expressions, direction: PacketDirection) -> Expressions {
        let width = self.port_register() + 1;
        let (inside, outside) = if self.from == Location::Inside { (0, width) } else { (width, 0) };
        let address = if self.version == IpVersion::V4 { CtKey::SourceV4 } else { CtKey::SourceV6 };
        let rule = self.load_endpoint(match_udp(match_version(rule, self.version)), Side::Source, outside);
        let rule = rule.ct_tuple(address, direction as u8, inside);
        let rule = rule.ct_tuple(CtKey::SourcePort, direction as u8, inside + self.port_register());
        rule.update(&self.name(), 0, width)
    }

    fn endpoint(self, side: Side) -> [Field; 2] {
        [Field::Address(side, self.version, self.version.address_bits()), Field::Port(side, 16)]
    }

    fn load_endpoint(self, rule: Expressions, side: Side, at: usize) -> Expressions {
        let [address, port] = self.endpoint(side);
        let rule = load_field(rule, address, PacketDirection::Original, at);
        load_field(rule, port, PacketDirection::Original, at + self.port_register())
    }

    /// Returns the register of an endpoint's port, relative to the first register of the endpoint.
    fn port_register(self) -> usize {
        usize::from(self.version.address_bits()) / 32
    }
}

fn match_udp(rule: Expressions) -> Expressions {
    rule.meta(MetaKey::Protocol, 0).equals(0, &[UDP])
}
