//! A rule as recorded in a store: its attributes of RFC 4540, and the end of its lifetime.

use bytes::BufMut;
use hol_base::Time;

use crate::attribute::{Attribute, Attributes, Sink};
use crate::{
    Action, AddressTuple, AgentId, Binding, Gid, Location, Owner, ParseError, PerParameters, PrrParameters,
    Rule,
};

/// A rule from a journal, which [`Middlebox::restore`](crate::Middlebox::restore) can restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRule {
    /// The rule. Its [`owner`](Rule::owner) is [`AgentId::NOBODY`], because identifiers are valid only for one policy.
    pub rule: Rule,
    /// The name of the agent that owns the rule.
    pub owner: String,
}

/// The time at which a rule expires, in nanoseconds on a clock that continues over restarts.
struct Expiry(Time);

impl Attribute for Expiry {
    /// An attribute type that RFC 4540 does not use; there is no registry for attribute types.
    const KIND: u16 = 0xFF01;
    fn parse(value: &[u8]) -> Option<Self> {
        Some(Self(Time::from_nanos(u64::from_be_bytes(value.try_into().ok()?))))
    }
    fn length(&self) -> usize {
        8
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u64(self.0.as_nanos());
    }
}

impl Rule {
    /// Encodes the rule and appends it to `out`, with the owner's name instead of its identifier.
    /// [`RecordedRule::parse`] parses it.
    pub fn record(&self, owner: &Owner, out: &mut Vec<u8>) {
        out.add(&self.pid);
        out.add(&Expiry(self.expires));
        out.add(owner);
        match &self.action {
            Action::Reserve { gid, parameters, .. } => {
                out.add(parameters);
                out.add(gid);
            }
            Action::Enable { gid, parameters, internal, external, .. } => {
                out.add(parameters);
                out.add(gid);
                out.add(internal);
                out.add(external);
            }
            Action::Disable { internal, external } => {
                out.add(internal);
                out.add(external);
            }
        }
        let Binding { outside, inside } = self.binding();
        out.add_if_any(&outside);
        out.add_if_any(&inside);
    }
}

impl RecordedRule {
    /// Parses octets that are exactly one rule encoded by [`Rule::record`].
    pub fn parse(octets: &[u8]) -> Result<Self, ParseError> {
        let mut body = Attributes::new(octets);
        let (pid, Expiry(expires)) = (body.next()?, body.next()?);
        let owner = String::from_utf8(body.next::<Owner>()?.octets().to_vec());
        let owner = owner.map_err(|_| ParseError::Attribute(Owner::KIND))?;
        let action = parse_action(body)?;
        Ok(Self { rule: Rule { pid, owner: AgentId::NOBODY, expires, action }, owner })
    }
}

fn parse_action(mut body: Attributes<'_>) -> Result<Action, ParseError> {
    if let Some(parameters) = body.next_if::<PrrParameters>()? {
        return Ok(Action::Reserve { gid: body.next::<Gid>()?, parameters, binding: parse_binding(body)? });
    }
    let granted = body.next_if::<PerParameters>()?;
    let granted = granted.map(|parameters| Ok((parameters, body.next()?))).transpose()?;
    let (internal, external) = (body.next()?, body.next()?);
    match granted {
        Some((parameters, gid)) => {
            Ok(Action::Enable { gid, parameters, internal, external, binding: parse_binding(body)? })
        }
        None => body.finish().map(|()| Action::Disable { internal, external }),
    }
}

/// Parses the address tuples of a NAT binding. They contain their location, so their order does not matter.
fn parse_binding(mut body: Attributes<'_>) -> Result<Binding, ParseError> {
    let mut binding = Binding::default();
    while let Some(tuple) = body.next_if_any::<AddressTuple>()? {
        let end = match tuple.location {
            Location::Outside if binding.inside.is_none() => &mut binding.outside,
            Location::Inside => &mut binding.inside,
            _ => return Err(ParseError::Attribute(AddressTuple::KIND)),
        };
        if end.replace(tuple).is_some() {
            return Err(ParseError::SurplusAttribute);
        }
    }
    Ok(binding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, IpChoice, NatMode, Pid, PortParity, ReservedParity};

    const UDP: u8 = 17;

    fn tuple(location: Location, host: &str) -> AddressTuple {
        AddressTuple::of_host(location, UDP, host.parse().unwrap())
    }

    fn one_of_each() -> [Rule; 4] {
        let outside = Some(tuple(Location::Outside, "192.0.2.1:40000"));
        let twice = Binding { outside, inside: Some(tuple(Location::Inside, "[2001:db8::1]:9")) };
        let internal = tuple(Location::Internal, "10.0.0.5:5004");
        let external = AddressTuple { prefix_length: 24, ..tuple(Location::External, "198.51.100.0:0") };
        let request = PerParameters { parity: PortParity::Same, direction: Direction::BiDirectional };
        let reserved = PrrParameters {
            nat_mode: NatMode::Twice,
            parity: ReservedParity::Even,
            inside: IpChoice::V4,
            outside: IpChoice::V6,
            protocol: UDP,
            port_range: 2,
        };
        let enable =
            |binding| Action::Enable { gid: Gid(7), parameters: request, internal, external, binding };
        let actions = [
            Action::Reserve { gid: Gid(7), parameters: reserved, binding: twice },
            enable(Binding::default()),
            enable(Binding { outside, inside: None }),
            Action::Disable { internal, external },
        ];
        let expires = Time::from_nanos(1_800_000_000_123_456_789);
        actions.map(|action| Rule { pid: Pid(0x0102_0304), owner: AgentId::NOBODY, expires, action })
    }

    fn octets(rule: &Rule) -> Vec<u8> {
        let mut out = Vec::new();
        rule.record(&Owner::new("call-server"), &mut out);
        out
    }

    #[test]
    fn a_recorded_rule_parses_to_the_same_value() {
        for rule in one_of_each() {
            let recorded = RecordedRule { rule, owner: "call-server".to_owned() };
            assert_eq!(RecordedRule::parse(&octets(&rule)), Ok(recorded));
        }
    }

    /// The format does not change, because files of earlier versions must stay readable.
    #[test]
    fn the_format_of_a_recorded_rule_is_stable() {
        let [.., disable] = one_of_each();
        let mut expected = b"\x00\x05\x00\x04\x01\x02\x03\x04".to_vec();
        expected.extend(b"\xff\x01\x00\x08\x18\xfa\xe2\x76\x9b\x0f\xcd\x15");
        expected.extend(b"\x00\x08\x00\x0bcall-server");
        expected.extend(b"\x00\x09\x00\x0c\x01\x20\x11\x00\x13\x8c\x00\x01\x0a\x00\x00\x05");
        expected.extend(b"\x00\x09\x00\x0c\x01\x18\x11\x03\x00\x00\x00\x01\xc6\x33\x64\x00");
        assert_eq!(octets(&disable), expected);
    }

    #[test]
    fn a_surplus_or_misplaced_attribute_is_refused() {
        for rule in one_of_each() {
            let octets = octets(&rule);
            let mut surplus = octets.clone();
            surplus.add(&tuple(Location::Internal, "10.0.0.5:5004"));
            assert!(RecordedRule::parse(&surplus).is_err());
            assert!(RecordedRule::parse(&octets[..octets.len() - 1]).is_err());
        }
        let [twice, ..] = one_of_each();
        let mut repeated = octets(&twice);
        repeated.add(&tuple(Location::Inside, "10.0.0.1:9"));
        assert_eq!(RecordedRule::parse(&repeated), Err(ParseError::SurplusAttribute));
    }
}
