//! Splits rules into elements. RFC 4540 sections 8.3 and 8.8, RFC 3989 section 2.3.5.

use std::net::{Ipv4Addr, Ipv6Addr};

use hol_simco::{Action, AddressTuple, Addresses, Binding, Direction, IpVersion, Rule};

use crate::element::{Element, End, Role, Target};
use crate::error::Unsupported;
use crate::ports::PortBlock;

/// Maximum number of elements of a rule; it limits how much a single request changes in the kernel.
pub(crate) const MAX_ELEMENTS: usize = 512;

/// Data between two ends, and how a NAT translates the ends.
#[derive(Debug, Clone, Copy)]
struct Flow {
    protocol: Option<u8>,
    /// The internal host and its port (A0).
    internal: End,
    /// The external host and its port (A3).
    external: End,
    /// The middlebox's address and port as external hosts see it (A2); `None` if it is not translated.
    outside: Option<Target>,
    /// The middlebox's address and port as internal hosts see it (A1); `None` if it is not translated.
    inside: Option<Target>,
}

/// The flows of a rule, not listed one by one.
struct Flows<'a> {
    internal: &'a AddressTuple,
    external: &'a AddressTuple,
    binding: Binding,
    effect: Effect,
    pairs: Pairs,
}

/// The effect of a rule on the packets of a flow.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Pass { inbound: bool, outbound: bool },
    Block,
}

/// How the ports of both ends of a rule are combined to flows.
enum Pairs {
    /// There are this many flows: each port is combined with the port at the same position of the other range.
    Parallel(usize),
    /// Each block of ports of one end is combined with each block of the other end.
    Crossed(Vec<Option<PortBlock>>, Vec<Option<PortBlock>>),
}

/// Returns the elements of a rule, each with its translation; a reservation has no elements.
pub(crate) fn elements(rule: &Rule) -> Result<Vec<(Element, Option<Target>)>, Unsupported> {
    let Some(flows) = Flows::of(rule)? else { return Ok(Vec::new()) };
    let mut elements = Vec::with_capacity(flows.elements());
    flows.list(|flow| flows.effect.add_elements(&flow, &mut elements));
    Ok(elements)
}

/// Returns the number of a rule's elements, and at least one element of each shape. This is less work than listing all
/// elements.
pub(crate) fn sample_elements(rule: &Rule) -> Result<(usize, Vec<Element>), Unsupported> {
    let Some(flows) = Flows::of(rule)? else { return Ok((0, Vec::new())) };
    let mut elements = Vec::new();
    for flow in flows.samples() {
        flows.effect.add_elements(&flow, &mut elements);
    }
    Ok((flows.elements(), elements.into_iter().map(|(element, _)| element).collect()))
}

impl Effect {
    fn add_elements(self, flow: &Flow, elements: &mut Vec<(Element, Option<Target>)>) {
        match self {
            Self::Pass { inbound, outbound } => {
                elements.extend(inbound.then(|| flow.inbound()).into_iter().flatten());
                elements.extend(outbound.then(|| flow.outbound()).into_iter().flatten());
            }
            Self::Block => elements.extend(flow.blocked()),
        }
    }
}

impl<'a> Flows<'a> {
    /// Returns the flows of a rule; `None` for a reservation. Returns an error if there are too many flows.
    fn of(rule: &'a Rule) -> Result<Option<Self>, Unsupported> {
        let (internal, external, binding, effect) = match &rule.action {
            Action::Reserve { .. } => return Ok(None),
            Action::Enable { parameters, internal, external, binding, .. } => {
                let inbound = parameters.direction != Direction::Outbound;
                let outbound = parameters.direction != Direction::Inbound;
                (internal, external, *binding, Effect::Pass { inbound, outbound })
            }
            Action::Disable { internal, external } => (internal, external, Binding::default(), Effect::Block),
        };
        check_versions(internal, external)?;
        let pairs = Pairs::of(internal, external, &binding, effect)?;
        let flows = Self { internal, external, binding, effect, pairs };
        check_count(flows.len(), MAX_ELEMENTS / flows.elements_per_flow())?;
        Ok(Some(flows))
    }

    fn len(&self) -> usize {
        match &self.pairs {
            Pairs::Parallel(count) => *count,
            Pairs::Crossed(internal, external) => internal.len() * external.len(),
        }
    }

    fn elements_per_flow(&self) -> usize {
        match self.effect {
            Effect::Pass { inbound, outbound } => {
                let translations = [self.binding.outside, self.binding.inside].iter().flatten().count();
                (usize::from(inbound) + usize::from(outbound)) * (1 + translations)
            }
            Effect::Block => 2,
        }
    }

    fn elements(&self) -> usize {
        self.len() * self.elements_per_flow()
    }

    fn list(&self, mut take: impl FnMut(Flow)) {
        match &self.pairs {
            Pairs::Parallel(count) => (0..*count).for_each(|n| take(self.parallel(n))),
            Pairs::Crossed(internal, external) => {
                for one in internal {
                    external.iter().for_each(|other| take(self.crossed(*one, *other)));
                }
            }
        }
    }

    /// Returns some of the flows, at least one of each shape. Flows with port blocks of equal sizes have the same
    /// shape.
    fn samples(&self) -> Vec<Flow> {
        match &self.pairs {
            Pairs::Parallel(_) => vec![self.parallel(0)],
            Pairs::Crossed(internal, external) => {
                let (internal, external) = (one_of_each_size(internal), one_of_each_size(external));
                let with_every =
                    |one| external.iter().map(move |other| self.crossed(one, *other)).collect::<Vec<_>>();
                internal.iter().flat_map(|one| with_every(*one)).collect()
            }
        }
    }

    /// Returns the flow between the `n`th ports of both ranges. A NAT translates them to the `n`th ports of its ranges.
    fn parallel(&self, n: usize) -> Flow {
        let Self { internal: a0, external: a3, binding, .. } = self;
        let (internal_port, external_port) = (Ports::of(a0).nth(n), Ports::of(a3).nth(n));
        let (internal, external) =
            (internal_port.map(PortBlock::of_port), external_port.map(PortBlock::of_port));
        Flow {
            outside: binding.outside.and_then(|a2| target(&a2, n, internal_port)),
            inside: binding.inside.and_then(|a1| target(&a1, n, external_port)),
            ..Flow::between(end(a0, internal), end(a3, external), a0.protocol)
        }
    }

    fn crossed(&self, internal: Option<PortBlock>, external: Option<PortBlock>) -> Flow {
        let Self { internal: a0, external: a3, .. } = self;
        Flow::between(end(a0, internal), end(a3, external), a0.protocol)
    }
}

impl Pairs {
    /// Returns how the ports of a rule are combined. The port ranges of an enable rule are combined port by port, which
    /// is why RFC 4540 section 8.3.1 requires equal lengths; a range opposite a wildcard is split into blocks. In a
    /// disable rule each port of one end is combined with each port of the other end, as section 8.8.1 defines
    /// overlaps.
    fn of(
        a0: &AddressTuple,
        a3: &AddressTuple,
        binding: &Binding,
        effect: Effect,
    ) -> Result<Self, Unsupported> {
        let (internal, external) = (Ports::of(a0), Ports::of(a3));
        let is_paired = internal.first.is_some() && external.first.is_some();
        let is_block = matches!(effect, Effect::Block);
        if !is_block && is_paired && internal.count != external.count {
            return Err(Unsupported::PortRanges);
        }
        if is_block || !is_paired && *binding == Binding::default() {
            return Ok(Self::Crossed(internal.blocks(), external.blocks()));
        }
        Ok(Self::Parallel(internal.count().max(external.count())))
    }
}

fn one_of_each_size(blocks: &[Option<PortBlock>]) -> Vec<Option<PortBlock>> {
    let bits = |block: &Option<PortBlock>| block.map(PortBlock::prefix_length);
    let mut some: Vec<Option<PortBlock>> = Vec::new();
    for block in blocks {
        if !some.iter().any(|other| bits(other) == bits(block)) {
            some.push(*block);
        }
    }
    some
}

impl Flow {
    /// Returns the flow between two ends without translation. Protocol 0 means any protocol.
    fn between(internal: End, external: End, protocol: u8) -> Self {
        let protocol = (protocol != 0).then_some(protocol);
        Self { protocol, internal, external, outside: None, inside: None }
    }

    /// Returns the elements for data to the internal host. With a NAT such data are sent to A2 (the middlebox's outside
    /// address); with a twice NAT they arrive as if from A1 (its inside address).
    fn inbound(&self) -> impl Iterator<Item = (Element, Option<Target>)> {
        let to_internal = self.element(Role::Inbound, self.external, self.internal);
        let dnat = self.outside.map(|outside| self.redirect(outside, self.internal));
        let snat = self.inside.map(|inside| (Element { role: Role::Snat, ..to_internal }, Some(inside)));
        [Some((to_internal, None)), dnat, snat].into_iter().flatten()
    }

    /// Returns the elements for data from the internal host. With a NAT such data arrive as if from A2 (the middlebox's
    /// outside address); with a twice NAT they are sent to A1 (its inside address).
    fn outbound(&self) -> impl Iterator<Item = (Element, Option<Target>)> {
        let to_external = self.element(Role::Outbound, self.internal, self.external);
        let dnat = self.inside.map(|inside| self.redirect(inside, self.external));
        let snat = self.outside.map(|outside| (Element { role: Role::Snat, ..to_external }, Some(outside)));
        [Some((to_external, None)), dnat, snat].into_iter().flatten()
    }

    fn blocked(&self) -> [(Element, Option<Target>); 2] {
        let both = [(self.internal, self.external), (self.external, self.internal)];
        both.map(|(source, destination)| (self.element(Role::Block, source, destination), None))
    }

    /// Returns the element that changes the destination of packets, from any host to `address` of the middlebox, to
    /// `end`.
    fn redirect(&self, address: Target, end: End) -> (Element, Option<Target>) {
        let element = self.element(Role::Dnat, End::any(address.address), End::host(address));
        (element, Some(Target { address: end.address, port: end.port.map(PortBlock::first) }))
    }

    fn element(&self, role: Role, source: End, destination: End) -> Element {
        Element { role, protocol: self.protocol, source, destination }
    }
}

/// The ports of an address tuple; a wildcard counts as one port.
#[derive(Debug, Clone, Copy)]
struct Ports {
    /// The first port of the range; `None` for a wildcard.
    first: Option<u16>,
    count: u16,
}

impl Ports {
    /// Returns the ports of an address tuple. Without a protocol or a first port, ports are wildcards, and the length
    /// of the range is ignored. RFC 4540 section 8.3.1.
    fn of(tuple: &AddressTuple) -> Self {
        match tuple.addresses {
            Addresses::Full { port, port_range, .. } if tuple.protocol != 0 && port != 0 => {
                Self { first: Some(port), count: port_range }
            }
            _ => Self { first: None, count: 1 },
        }
    }

    fn count(self) -> usize {
        self.count.into()
    }

    /// Returns the blocks that together are the ports; the block `None` means all ports.
    fn blocks(self) -> Vec<Option<PortBlock>> {
        let blocks = |first| PortBlock::cover(first, self.count).into_iter().map(Some).collect();
        self.first.map_or(vec![None], blocks)
    }

    /// Returns the `n`th port; `None` for a wildcard. The middlebox refuses ranges with ports above 65,535.
    fn nth(self, n: usize) -> Option<u16> {
        Some(self.first? + n as u16)
    }
}

fn end(tuple: &AddressTuple, port: Option<PortBlock>) -> End {
    match tuple.addresses {
        Addresses::Full { address, .. } => End::new(address, tuple.prefix_length, port),
        Addresses::ProtocolsOnly(IpVersion::V4) => End::any(Ipv4Addr::UNSPECIFIED.into()),
        Addresses::ProtocolsOnly(IpVersion::V6) => End::any(Ipv6Addr::UNSPECIFIED.into()),
    }
}

/// Returns the address and port to which the end with `port` is translated in the `n`th flow. The port stays if a whole
/// address is bound.
fn target(tuple: &AddressTuple, n: usize, port: Option<u16>) -> Option<Target> {
    let Addresses::Full { address, .. } = tuple.addresses else { return None };
    Some(Target { address, port: port.map(|port| Ports::of(tuple).nth(n).unwrap_or(port)) })
}

fn check_versions(a0: &AddressTuple, a3: &AddressTuple) -> Result<(), Unsupported> {
    if a0.ip_version() == a3.ip_version() { Ok(()) } else { Err(Unsupported::ProtocolTranslation) }
}

fn check_count(flows: usize, max: usize) -> Result<(), Unsupported> {
    if flows <= max { Ok(()) } else { Err(Unsupported::TooManyPorts { flows, max }) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hol_base::Time;
    use hol_simco::{AgentId, Gid, Location, PerParameters, Pid, PortParity};

    use super::*;
    use crate::shape::Shape;

    fn tuple(location: Location, host: &str, port_range: u16) -> AddressTuple {
        let mut tuple = AddressTuple::of_host(location, 17, host.parse().unwrap());
        if let Addresses::Full { port_range: range, .. } = &mut tuple.addresses {
            *range = port_range;
        }
        tuple
    }

    fn enable(internal: AddressTuple, external: AddressTuple, binding: Binding) -> Rule {
        let parameters = PerParameters { parity: PortParity::Any, direction: Direction::Inbound };
        let action = Action::Enable { gid: Gid(1), parameters, internal, external, binding };
        Rule { pid: Pid(1), owner: AgentId::NOBODY, expires: Time::MAX, action }
    }

    fn ports(elements: &[(Element, Option<Target>)]) -> Vec<(Option<u16>, Option<u16>, Option<u16>)> {
        let ports = |(element, target): &(Element, Option<Target>)| {
            let port = |end: &End| end.port.map(PortBlock::first);
            (port(&element.source), port(&element.destination), target.and_then(|target| target.port))
        };
        elements.iter().map(ports).collect()
    }

    #[test]
    fn port_ranges_are_paired_and_translated_in_parallel() {
        let a0 = tuple(Location::Internal, "10.0.0.1:5004", 2);
        let outside = Some(tuple(Location::Outside, "192.0.2.1:40000", 2));
        let any = tuple(Location::External, "198.51.100.7:0", 1);
        let elements = elements(&enable(a0, any, Binding { outside, inside: None })).unwrap();
        let (first, second) = ((Some(5004), Some(40000)), (Some(5005), Some(40001)));
        let expected = [first, second].map(|(a0, a2)| [(None, a0, None), (None, a2, a0)]).concat();
        assert_eq!(ports(&elements), expected);
    }

    /// A disable rule blocks a packet if both ports of the packet are in the ranges of the rule. RFC 4540 section
    /// 8.8.1.
    #[test]
    fn a_disable_rule_combines_every_pair_of_ports() {
        let internal = tuple(Location::Internal, "10.0.0.1:5004", 2);
        let external = tuple(Location::External, "198.51.100.7:6004", 3);
        let action = Action::Disable { internal, external };
        let rule = Rule { action, ..enable(internal, external, Binding::default()) };
        assert_eq!(elements(&rule).unwrap().len(), 2 * 3 * 2);
    }

    /// `sample_elements` must agree with the full list of elements.
    #[test]
    fn a_sample_has_the_number_and_the_shapes_of_all_elements() {
        let bound = Some(tuple(Location::Outside, "192.0.2.1:40000", 300));
        let bindings = [Binding::default(), Binding { outside: bound, inside: None }];
        let ports = [("10.0.0.1:0", 1), ("10.0.0.1:5004", 1), ("10.0.0.1:1025", 200)];
        let others = [("198.51.100.7:0", 1), ("198.51.100.7:6004", 1), ("198.51.100.7:4095", 200)];
        let cases = ports.iter().flat_map(|a0| others.iter().map(move |a3| (*a0, *a3)));
        let mut listed = 0;
        for ((a0, a3), binding) in cases.flat_map(|ends| bindings.map(|binding| (ends, binding))) {
            let (internal, external) =
                (tuple(Location::Internal, a0.0, a0.1), tuple(Location::External, a3.0, a3.1));
            let enabled = enable(internal, external, binding);
            let disabled = Rule { action: Action::Disable { internal, external }, ..enabled };
            for rule in [enabled, disabled] {
                let (Ok(all), Ok((count, some))) = (elements(&rule), sample_elements(&rule)) else {
                    assert_eq!(elements(&rule).is_err(), sample_elements(&rule).is_err());
                    continue;
                };
                let shapes: BTreeSet<Shape> = all.iter().map(|(element, _)| Shape::of(element)).collect();
                let sampled: BTreeSet<Shape> = some.iter().map(Shape::of).collect();
                assert_eq!((count, sampled), (all.len(), shapes));
                listed += 1;
            }
        }
        assert!(listed > 20, "{listed}");
    }

    #[test]
    fn unsupported_rules_are_refused() {
        let a0 = |host, count| tuple(Location::Internal, host, count);
        let a3 = |host, count| tuple(Location::External, host, count);
        let refusal = |a0, a3| elements(&enable(a0, a3, Binding::default())).unwrap_err();
        let v6 = refusal(a0("10.0.0.1:5004", 1), a3("[2001:db8::1]:6004", 1));
        assert_eq!(v6, Unsupported::ProtocolTranslation);
        let long = refusal(a0("10.0.0.1:1024", 5000), a3("198.51.100.7:1024", 5000));
        assert_eq!(long, Unsupported::TooManyPorts { flows: 5000, max: MAX_ELEMENTS });
        let uneven = refusal(a0("10.0.0.1:5004", 2), a3("198.51.100.7:6004", 3));
        assert_eq!(uneven, Unsupported::PortRanges);
    }
}
