//! The checks of the address tuples of PER, PEA and PDR. RFC 4540 sections 8.3.1, 8.4.1 and 8.8.2.

use super::Middlebox;
use crate::{AddressTuple, Addresses, AgentId, Capabilities, Location, Refusal};

impl Middlebox {
    /// Performs the checks that need only the address tuples: first those that the RFC requires, in its order, then
    /// those for which it only names a refusal, then those of the policy.
    pub(super) fn check_tuples(
        &self,
        agent: AgentId,
        internal: &AddressTuple,
        external: &AddressTuple,
    ) -> Result<(), Refusal> {
        check_consistency(internal, external)?;
        check_wildcards(internal, external, &self.config.capabilities)?;
        check_versions(internal, external, &self.config.capabilities)?;
        check_values(internal)?;
        check_values(external)?;
        // Section 8.3.2: "the pinhole would conflict with high-level firewall policies".
        if self.policy.covers(agent, internal, external) { Ok(()) } else { Err(Refusal::ConfigurationFailed) }
    }
}

fn check_consistency(internal: &AddressTuple, external: &AddressTuple) -> Result<(), Refusal> {
    let are_consistent = (internal.location, external.location) == (Location::Internal, Location::External)
        && internal.protocol == external.protocol
        && match (port_range(internal), port_range(external)) {
            (Some(internal), Some(external)) => internal == external,
            _ => true,
        };
    if are_consistent { Ok(()) } else { Err(Refusal::Inconsistent) }
}

/// Returns the number of ports in a range; `None` if it is irrelevant (RFC 4540 section 8.3.1).
fn port_range(tuple: &AddressTuple) -> Option<u16> {
    match tuple.addresses {
        Addresses::Full { port, port_range, .. } if port != 0 && tuple.protocol != 0 => Some(port_range),
        _ => None,
    }
}

fn check_wildcards(
    internal: &AddressTuple,
    external: &AddressTuple,
    capabilities: &Capabilities,
) -> Result<(), Refusal> {
    let needs = |tuple: &AddressTuple, addresses: u8| {
        let for_addresses = if tuple.has_address_wildcard() { addresses } else { 0 };
        let is_any_port = tuple.has_port_wildcard() || tuple.has_protocol_wildcard();
        for_addresses | if is_any_port { Capabilities::PORT_WILDCARD } else { 0 }
    };
    let needed =
        needs(internal, Capabilities::INTERNAL_WILDCARD) | needs(external, Capabilities::EXTERNAL_WILDCARD);
    if capabilities.allows(needed) { Ok(()) } else { Err(Refusal::WildcardNotSupported) }
}

/// Checks the IP versions: the addresses on each side have one version, which is the same on both sides unless a NAT
/// translates it. RFC 3989 section 2.3.6.
fn check_versions(
    internal: &AddressTuple,
    external: &AddressTuple,
    capabilities: &Capabilities,
) -> Result<(), Refusal> {
    let are_served = capabilities.supports_internal(internal.ip_version())
        && capabilities.supports_external(external.ip_version())
        && (internal.ip_version() == external.ip_version()
            || capabilities.includes(Capabilities::PROTOCOL_TRANSLATION));
    if are_served { Ok(()) } else { Err(Refusal::IpVersionMismatch) }
}

/// Returns a refusal for unspecified, broadcast, multicast and loopback addresses, which are not those of single hosts,
/// and for ports above 65,535.
fn check_values(tuple: &AddressTuple) -> Result<(), Refusal> {
    if let Addresses::Full { address, .. } = tuple.addresses
        && !tuple.has_address_wildcard()
        && (address.is_unspecified()
            || address.is_multicast()
            || address.is_loopback()
            || address == std::net::Ipv4Addr::BROADCAST)
    {
        return Err(Refusal::IllegalAddress);
    }
    let (_, last) = tuple.ports();
    if last > u32::from(u16::MAX) { Err(Refusal::IllegalPortCount) } else { Ok(()) }
}

/// Returns true if a tuple has a wildcard as address or port. A wildcard as protocol alone does not count. RFC 4540
/// section 8.3.1.
pub(super) fn has_wildcard_but_protocol(internal: &AddressTuple, external: &AddressTuple) -> bool {
    [internal, external].iter().any(|tuple| tuple.has_address_wildcard() || tuple.has_port_wildcard())
}
