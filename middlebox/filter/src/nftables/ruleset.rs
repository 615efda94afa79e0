//! The rules around the sets; every packet passes through them. `docs/simco-filter.md` shows them as `nft`
//! does.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use hol_simco::{IpVersion, Prefix};

use super::endpoint_mappings::{self, Location};
use super::expression::{
    Comparison, CtKey, Expressions, Header, Label, MetaKey, Nat, TRANSLATED_DESTINATION, TRANSLATED_SOURCE,
    Verdict,
};
use super::lookup::{PacketDirection, add_lookup, load_field, match_version, protocol_family};
use super::transaction::Transaction;
use crate::element::{Role, mask_v4, mask_v6};
use crate::shape::{Field, Shape, Side};
use crate::{Config, DefaultPolicy, Interfaces, Masquerade, Pool};

const ICMP: u8 = 1;
const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// A chain of the table. It consists of the rules of `begin`, a lookup in each set that has one of the `roles`, and the
/// rules of `end`.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    name: &'static str,
    begin: Begin<'a>,
    roles: &'static [Role],
    direction: PacketDirection,
    label: Option<Label>,
    /// The addresses of the NAT, if packets to internal hosts pass the inbound sets only if they were sent to one of
    /// these addresses.
    hidden_pool: Option<&'a Pool>,
    end: End<'a>,
}

/// What happens to a packet at the end of a chain.
#[derive(Debug, Clone, Copy)]
enum End<'a> {
    Accept,
    /// Packets of masqueraded connections are accepted.
    Masqueraded,
    /// Translates connections to mapped outside endpoints.
    ToMapped(&'a Masquerade),
    /// Masqueraded connections get the address of the NAT.
    Masquerade(&'a Masquerade),
    Drop,
    Goto(&'static str),
}

/// The rules at the beginning of a chain, before the lookups in its sets.
#[derive(Debug, Clone, Copy)]
enum Begin<'a> {
    /// The rules for all forwarded packets, which then continue in the chain of their direction.
    Forward(Option<&'a Interfaces>, &'a Masquerade, [&'static str; 2]),
    /// The checks for all packets.
    Checks,
    /// The rules for packets whose destination is the middlebox itself.
    Input(&'a Pool),
    /// The rules that let packets of permitted flows pass. Replies continue in the chain `replies`, except those of
    /// masqueraded connections, which pass. Connections to mapped endpoints pass if there are any.
    Passage { replies: &'static str, masquerades: bool, maps: bool },
    /// The rules of a NAT without a firewall: all packets pass, except translated packets whose rule has ended.
    Translator,
    /// No rules: other chains lead to this chain.
    Nothing,
    /// The rules for the first packet of each connection, before routing.
    Prerouting,
    /// The rules for the first packet of each connection, after routing.
    Postrouting,
    /// The rules that map endpoints, for all packets after their translation.
    Mapping(&'a Masquerade),
}

const INBOUND: &[Role] = &[Role::Inbound];
const OUTBOUND: &[Role] = &[Role::Outbound];
const BOTH: &[Role] = &[Role::Inbound, Role::Outbound];

const FORWARD_CHAIN: &str = "forward";
const CHECKS_CHAIN: &str = "checks";
const BLOCKED_CHAIN: &str = "blocked";
const PASSING_CHAIN: &str = "passing";
const PASSING_REPLIES: &str = "passing_replies";
const ENTERING_CHAIN: &str = "entering";
const ENTERING_REPLIES: &str = "entering_replies";
const LEAVING_CHAIN: &str = "leaving";
const LEAVING_REPLIES: &str = "leaving_replies";
const BOUND_CHAIN: &str = "bound";
const BOUND_REPLIES: &str = "bound_replies";
/// The label of connections that a rule translates: bit 126.
const TRANSLATED_LABEL: Label = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40];
/// The label of masqueraded connections, which are translated without a rule: bit 125.
const MASQUERADED_LABEL: Label = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20];
/// The label of connections to the mapped endpoint of a masqueraded flow: 124.
const MAPPED_LABEL: Label = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10];

/// Returns the chains of the table. If interfaces are configured, there are separate chains for the two directions.
pub(super) fn chains(config: &Config) -> Vec<Chain<'_>> {
    let is_translator = config.default_policy() == DefaultPolicy::Accept;
    let ways = if is_translator { [PASSING_CHAIN, PASSING_CHAIN] } else { [ENTERING_CHAIN, LEAVING_CHAIN] };
    let masquerade = config.masquerade();
    // Connections that a binding translates are labelled if packets pass without a rule: they must stop when
    // the binding ends.
    let label = (is_translator || masquerade.is_used()).then_some(TRANSLATED_LABEL);
    let end = if masquerade.is_used() { End::Masquerade(masquerade) } else { End::Accept };
    let mut chains = vec![
        Chain::new(FORWARD_CHAIN, Begin::Forward(config.interfaces(), masquerade, ways), &[]),
        Chain::new(CHECKS_CHAIN, Begin::Checks, &[]),
        Chain::new(BLOCKED_CHAIN, Begin::Nothing, &[Role::Block]),
        Chain::new("input", Begin::Input(config.pool()), &[]),
        Chain {
            label,
            end: End::ToMapped(masquerade),
            ..Chain::new("prerouting", Begin::Prerouting, &[Role::Dnat])
        },
        Chain { label, end, ..Chain::new("postrouting", Begin::Postrouting, &[Role::Snat]) },
    ];
    if !endpoint_mappings::maps(masquerade).is_empty() {
        chains.push(Chain::new("mapping", Begin::Mapping(masquerade), &[]));
    }
    if is_translator {
        chains.extend(translator());
    } else if config.interfaces().is_some() {
        chains.extend(passage(config, ENTERING_CHAIN, ENTERING_REPLIES, INBOUND, OUTBOUND));
        chains.extend(passage(config, LEAVING_CHAIN, LEAVING_REPLIES, OUTBOUND, INBOUND));
    } else {
        chains.extend(passage(config, PASSING_CHAIN, PASSING_REPLIES, BOTH, BOTH));
    }
    chains
}

/// Returns the chains of a firewall for packets of one direction. A packet passes if it matches a set with a role in
/// `own`, or if it is a reply to packets that match a set with a role in `other`.
fn passage<'a>(
    config: &'a Config,
    name: &'static str,
    replies: &'static str,
    own: &'static [Role],
    other: &'static [Role],
) -> [Chain<'a>; 2] {
    let masquerades = config.masquerade().is_used();
    let end = if masquerades && name == LEAVING_CHAIN { End::Masqueraded } else { End::Drop };
    let maps = !endpoint_mappings::maps(config.masquerade()).is_empty();
    let begin = Begin::Passage { replies, masquerades: masquerades && name == ENTERING_CHAIN, maps };
    [
        Chain { end, hidden_pool: Some(config.pool()), ..Chain::new(name, begin, own) },
        Chain {
            end: End::Drop,
            direction: PacketDirection::Reply,
            ..Chain::new(replies, Begin::Nothing, other)
        },
    ]
}

/// Returns the chains of a NAT without a firewall: all packets pass, except translated packets whose rule has ended.
fn translator() -> [Chain<'static>; 3] {
    let bound = |name, direction, end| Chain { direction, end, ..Chain::new(name, Begin::Nothing, BOTH) };
    [
        Chain::new(PASSING_CHAIN, Begin::Translator, &[]),
        bound(BOUND_CHAIN, PacketDirection::Original, End::Goto(BOUND_REPLIES)),
        bound(BOUND_REPLIES, PacketDirection::Reply, End::Drop),
    ]
}

/// The chains that the table of every middlebox has, by which such tables are recognized. The first chain filters all
/// forwarded packets.
pub(super) const COMMON_CHAINS: [&str; 3] = [FORWARD_CHAIN, CHECKS_CHAIN, BLOCKED_CHAIN];

/// Returns true if the configured table has a chain of this name.
pub(super) fn is_known(name: &str, config: &Config) -> bool {
    chains(config).iter().any(|chain| chain.name == name)
}

impl<'a> Chain<'a> {
    fn new(name: &'static str, begin: Begin<'a>, roles: &'static [Role]) -> Self {
        Self {
            name,
            begin,
            roles,
            direction: PacketDirection::Original,
            label: None,
            hidden_pool: None,
            end: End::Accept,
        }
    }

    pub fn uses(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Returns true if the chain is needed. A firewall does not need the chains for NAT, which cost time for every
    /// connection.
    pub fn is_needed(&self, shapes: &[&Shape]) -> bool {
        match self.begin {
            Begin::Prerouting | Begin::Postrouting => {
                let ends = match self.end {
                    End::ToMapped(masquerade) => !endpoint_mappings::maps(masquerade).is_empty(),
                    end => matches!(end, End::Masquerade(_)),
                };
                !shapes.is_empty() || ends
            }
            Begin::Input(pool) => !pool.addresses.is_empty(),
            _ => true,
        }
    }

    /// Creates the chain. Its hook is from linux/netfilter.h, its priority from linux/netfilter_ipv4.h.
    pub fn create(&self, transaction: &mut Transaction<'_>) {
        match self.begin {
            Begin::Input(_) => transaction.create_base_chain(self.name, "filter", 1, 0),
            Begin::Forward(..) => transaction.create_base_chain(self.name, "filter", 2, 0),
            Begin::Prerouting => transaction.create_base_chain(self.name, "nat", 0, -100),
            Begin::Postrouting => transaction.create_base_chain(self.name, "nat", 4, 100),
            Begin::Mapping(_) => transaction.create_base_chain(self.name, "filter", 4, 101),
            Begin::Checks | Begin::Passage { .. } | Begin::Translator | Begin::Nothing => {
                transaction.create_chain(self.name);
            }
        }
    }

    /// Removes all rules of the chain.
    pub fn flush(&self, transaction: &mut Transaction<'_>) {
        transaction.flush(Some(self.name));
    }

    /// Creates the rules of the chain; `shapes` are the shapes of the sets in which the chain looks up packets.
    pub fn fill(&self, transaction: &mut Transaction<'_>, shapes: &[&Shape]) {
        let mut rules = Rules { transaction, chain: self.name };
        self.begin.fill(&mut rules);
        // Inbound sets come last, after the rules that drop untranslated packets.
        let (inbound, others): (Vec<&Shape>, _) =
            shapes.iter().partition(|shape| shape.role == Role::Inbound);
        for shape in others {
            rules.add(|rule| add_lookup(rule, shape, self.direction, self.label));
        }
        for version in
            self.hidden_pool.filter(|_| self.uses(Role::Inbound)).into_iter().flat_map(Pool::versions)
        {
            rules.add(|rule| match_untranslated(match_version(rule, version)).verdict(Verdict::Drop));
        }
        for shape in inbound {
            rules.add(|rule| add_lookup(rule, shape, self.direction, self.label));
        }
        match self.end {
            End::Accept => {}
            End::Masqueraded => {
                rules.add(|rule| {
                    match_direction(match_masqueraded(rule), ORIGINAL_DIRECTION).verdict(Verdict::Accept)
                });
                rules.add(|rule| rule.verdict(Verdict::Drop));
            }
            End::ToMapped(masquerade) => translate_to_mapped(&mut rules, masquerade),
            End::Masquerade(masquerade) => masquerade_connections(&mut rules, masquerade),
            End::Drop => rules.add(|rule| rule.verdict(Verdict::Drop)),
            End::Goto(chain) => rules.add(|rule| rule.verdict(Verdict::Goto(chain))),
        }
    }
}

/// The rules of a chain that is being built.
struct Rules<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    chain: &'a str,
}

impl Rules<'_, '_> {
    fn add(&mut self, rule: impl FnOnce(Expressions) -> Expressions) {
        self.transaction.add_rule(self.chain, rule);
    }
}

impl Begin<'_> {
    fn fill(self, rules: &mut Rules<'_, '_>) {
        match self {
            Self::Forward(None, ..) => rules.add(|rule| rule.verdict(Verdict::Goto(PASSING_CHAIN))),
            Self::Forward(
                Some(interfaces @ Interfaces { inside, outside }),
                masquerade,
                [entering, leaving],
            ) => {
                add_label_rules(rules, interfaces, masquerade);
                rules.add(|rule| match_interfaces(rule, outside, inside).verdict(Verdict::Goto(entering)));
                rules.add(|rule| match_interfaces(rule, inside, outside).verdict(Verdict::Goto(leaving)));
            }
            Self::Input(pool) => protect(rules, pool),
            Self::Checks => add_check_rules(rules),
            Self::Passage { replies, masquerades, maps } => {
                add_passage_rules(rules, replies, masquerades, maps);
            }
            Self::Mapping(masquerade) => add_mapping_rules(rules, masquerade),
            Self::Translator => translate(rules),
            Self::Nothing | Self::Prerouting | Self::Postrouting => {}
        }
    }
}

/// Adds the checks of all packets. ICMP errors pass without a rule, because senders depend on them.
fn add_check_rules(rules: &mut Rules<'_, '_>) {
    const INVALID_STATE: u32 = 1;
    const RELATED_STATE: u32 = 4;
    rules.add(|rule| match_state(rule, INVALID_STATE).verdict(Verdict::Drop));
    rules.add(|rule| rule.verdict(Verdict::Jump(BLOCKED_CHAIN)));
    for error in [ICMP, ICMPV6] {
        rules.add(|rule| match_protocol(match_state(rule, RELATED_STATE), error).verdict(Verdict::Accept));
    }
}

/// Adds the rules for packets of permitted connections. A UDP or IP rule covers packets of one direction; a TCP rule
/// covers connections, by the direction of their first packet (RFC 3989 section 2.3.5). SCTP and DCCP are treated like
/// TCP.
fn add_passage_rules(rules: &mut Rules<'_, '_>, replies: &str, masquerades: bool, maps: bool) {
    rules.add(|rule| rule.verdict(Verdict::Jump(CHECKS_CHAIN)));
    if masquerades {
        rules.add(|rule| match_direction(match_masqueraded(rule), REPLY_DIRECTION).verdict(Verdict::Accept));
    }
    if maps {
        rules.add(|rule| match_unbound(rule, MAPPED_LABEL).verdict(Verdict::Accept));
    }
    for connected in [TCP, DCCP, SCTP] {
        rules.add(|rule| {
            match_protocol(match_direction(rule, REPLY_DIRECTION), connected).verdict(Verdict::Goto(replies))
        });
    }
}

/// Adds the rules that label new connections that need no rule of the middlebox: connections from masqueraded hosts to
/// the outside, and hairpin connections, in which an internal host sends to the outside address of another internal
/// host.
fn add_label_rules(
    rules: &mut Rules<'_, '_>,
    Interfaces { inside, outside }: &Interfaces,
    masquerade: &Masquerade,
) {
    let label = |rule: Expressions| rule.load(&MASQUERADED_LABEL, 8).store(CtKey::Label, 8);
    for hosts in &masquerade.hosts {
        rules.add(|rule| {
            label(match_source(match_state(match_interfaces(rule, inside, outside), NEW_STATE), hosts))
        });
    }
    if masquerade.hairpin {
        rules.add(|rule| {
            let rule = match_state(match_interfaces(rule, inside, inside), NEW_STATE).ct(CtKey::Status, 0);
            let rule = rule.mask(0, &TRANSLATED_DESTINATION.to_ne_bytes());
            label(rule.compare(0, Comparison::Unequal, &[0; 4]))
        });
    }
}

/// Lets the rule continue only for packets from these hosts.
fn match_source(rule: Expressions, hosts: &Prefix) -> Expressions {
    let (address, version) = (hosts.address(), IpVersion::of(hosts.address()));
    let field = Field::Address(Side::Source, version, hosts.length());
    let rule = load_field(match_version(rule, version), field, PacketDirection::Original, 0);
    match address {
        IpAddr::V4(v4) => rule.equals(0, &(v4.to_bits() & mask_v4(hosts.length())).to_be_bytes()),
        IpAddr::V6(v6) => rule.equals(0, &(v6.to_bits() & mask_v6(hosts.length())).to_be_bytes()),
    }
}

/// Lets the rule continue only for packets of connections with the label of masqueraded connections.
fn match_labelled(rule: Expressions) -> Expressions {
    let rule = rule.ct(CtKey::Label, 0).mask(0, &MASQUERADED_LABEL);
    rule.compare(0, Comparison::Unequal, &[0; size_of::<Label>()])
}

/// Lets the rule continue only for packets of connections that need no binding. A connection that a binding translates
/// needs it even if its host is masqueraded; otherwise the connection would outlast the binding, whose port another
/// connection may get.
fn match_masqueraded(rule: Expressions) -> Expressions {
    match_unbound(rule, MASQUERADED_LABEL)
}

/// Matches packets of connections with this label that no binding translates.
fn match_unbound(rule: Expressions, label: Label) -> Expressions {
    let mut bits = TRANSLATED_LABEL;
    bits[15] |= label[15];
    rule.ct(CtKey::Label, 0).mask(0, &bits).equals(0, &label)
}

/// Translates connections to mapped outside endpoints, and labels them.
fn translate_to_mapped(rules: &mut Rules<'_, '_>, masquerade: &Masquerade) {
    for map in endpoint_mappings::maps(masquerade) {
        if map.is_from(Location::Outside) {
            rules.add(|rule| map.translate(rule, |rule| rule.load(&MAPPED_LABEL, 8).store(CtKey::Label, 8)));
        }
    }
}

/// Gives masqueraded connections the endpoint that their source is mapped to, or another one of the NAT.
fn masquerade_connections(rules: &mut Rules<'_, '_>, masquerade: &Masquerade) {
    for map in endpoint_mappings::maps(masquerade) {
        if map.is_from(Location::Inside) {
            rules.add(|rule| map.translate(match_labelled(rule), |rule| rule));
        }
    }
    for source in masquerade.sources() {
        rules.add(|rule| masquerade_as(match_labelled(rule), source, &masquerade.ports));
    }
}

/// Maps the endpoints of masqueraded connections, and extends the mappings by replies to external hosts.
fn add_mapping_rules(rules: &mut Rules<'_, '_>, masquerade: &Masquerade) {
    use PacketDirection::{Original, Reply};
    for map in endpoint_mappings::maps(masquerade) {
        for (label, direction) in [(MASQUERADED_LABEL, Original), (MAPPED_LABEL, Reply)] {
            rules.add(|rule| {
                let rule = match_direction(match_unbound(rule, label), direction as u8);
                map.learn(rule, direction)
            });
        }
    }
}

/// Translates the source of a connection to this address, and to a port that no binding uses.
fn masquerade_as(rule: Expressions, source: IpAddr, ports: &RangeInclusive<u16>) -> Expressions {
    let version = IpVersion::of(source);
    let rule = match_version(rule, version);
    let rule = match source {
        IpAddr::V4(v4) => rule.load(&v4.octets(), 0),
        IpAddr::V6(v6) => rule.load(&v6.octets(), 0),
    };
    // An address takes up to four registers.
    let rule = rule.load(&ports.start().to_be_bytes(), 4).load(&ports.end().to_be_bytes(), 5);
    rule.nat(Nat::Source, protocol_family(version), 0, Some([4, 5]))
}

/// Lets the rule continue only for packets of connections whose addresses are not translated. External hosts send to A2
/// (RFC 4540 section 8.3.3), so a pinhole for A0 behind A2 must not bypass the NAT.
fn match_untranslated(rule: Expressions) -> Expressions {
    let rule = rule.ct(CtKey::Status, 0).mask(0, &(TRANSLATED_SOURCE | TRANSLATED_DESTINATION).to_ne_bytes());
    rule.equals(0, &[0; 4])
}

/// Adds the rules of a NAT without a firewall: connections that it translates have a label and need a binding; all
/// other connections pass.
fn translate(rules: &mut Rules<'_, '_>) {
    rules.add(|rule| rule.verdict(Verdict::Jump(CHECKS_CHAIN)));
    rules.add(|rule| {
        let rule = rule.ct(CtKey::Label, 0).mask(0, &TRANSLATED_LABEL);
        rule.compare(0, Comparison::Unequal, &[0; size_of::<Label>()]).verdict(Verdict::Goto(BOUND_CHAIN))
    });
}

/// Drops UDP datagrams to the NAT's addresses and ports that arrive before their binding. Otherwise conntrack would
/// assign these and all later datagrams of the flow to the middlebox itself.
fn protect(rules: &mut Rules<'_, '_>, pool: &Pool) {
    let [first, last] = [pool.ports.start(), pool.ports.end()].map(|port| port.to_be_bytes());
    for address in &pool.addresses {
        let version = IpVersion::of(*address);
        let destination = Field::Address(Side::Destination, version, version.address_bits());
        rules.add(|rule| {
            let rule = load_field(
                match_version(match_state(rule, NEW_STATE), version),
                destination,
                PacketDirection::Original,
                0,
            );
            let rule = match address {
                IpAddr::V4(v4) => rule.equals(0, &v4.octets()),
                IpAddr::V6(v6) => rule.equals(0, &v6.octets()),
            };
            let rule = match_protocol(rule, UDP).payload(Header::Transport, 2, 2, 0);
            let rule = rule.compare(0, Comparison::NotBelow, &first).compare(0, Comparison::NotAbove, &last);
            rule.verdict(Verdict::Drop)
        });
    }
}

fn match_interfaces(rule: Expressions, from: &str, to: &str) -> Expressions {
    let padded = |name: &str| {
        let mut octets = [0; 16];
        octets[..name.len()].copy_from_slice(name.as_bytes());
        octets
    };
    let rule = rule.meta(MetaKey::InputInterface, 0).equals(0, &padded(from));
    rule.meta(MetaKey::OutputInterface, 0).equals(0, &padded(to))
}

fn match_protocol(rule: Expressions, protocol: u8) -> Expressions {
    rule.meta(MetaKey::Protocol, 0).equals(0, &[protocol])
}

/// Lets the rule continue only for packets of connections in one of these states, each of which is a bit.
fn match_state(rule: Expressions, states: u32) -> Expressions {
    rule.ct(CtKey::State, 0).mask(0, &states.to_ne_bytes()).compare(0, Comparison::Unequal, &[0; 4])
}

/// Directions of a packet in its connection: `enum ip_conntrack_dir`.
const ORIGINAL_DIRECTION: u8 = 0;
const REPLY_DIRECTION: u8 = 1;
/// The state of a new connection: `NF_CT_STATE_BIT(IP_CT_NEW)`.
const NEW_STATE: u32 = 8;

/// Lets the rule continue only for packets with this direction in their connection.
fn match_direction(rule: Expressions, direction: u8) -> Expressions {
    rule.ct(CtKey::Direction, 0).equals(0, &[direction])
}
