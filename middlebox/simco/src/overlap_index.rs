//! An index of rules by the addresses at both ends. It finds rules that may match the same packets. RFC 4540
//! section 8.8.1.
//!
//! Prefixes of equal length are equal or disjoint. Each pair of lengths therefore has its own table, in which
//! a pair of prefixes is a range: V. Srinivasan, S. Suri and G. Varghese, "Packet Classification Using Tuple
//! Space Search", SIGCOMM 1999.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Bound, RangeInclusive};

use crate::{AddressTuple, Pid, Prefix};

/// The rules, ordered by their internal (A0) and by their external (A3) addresses, to find those that overlap.
#[derive(Debug, Default)]
pub(crate) struct OverlapIndex {
    /// The rules with IPv4 addresses at both ends, which are most rules. They need a third of the memory here.
    v4: Tables<Ipv4Addr>,
    others: Tables<IpAddr>,
}

/// Tables of rules by shape. Their number depends on the shapes of the rules, not on the number of rules.
type Tables<A> = BTreeMap<Shape, Table<A>>;

/// The properties that all rules of a table have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    protocol: u8,
    internal_length: u8,
    external_length: u8,
}

/// The rules of a shape, ordered by each end.
#[derive(Debug)]
struct Table<A> {
    by_internal: BTreeMap<Key<A>, Ports>,
    by_external: BTreeMap<Key<A>, Ports>,
}

/// The key of a rule: the first address of its prefix at each end, and its PID.
type Key<A> = (A, A, Pid);

/// The first and last port at A0 and at A3. They are stored in the tables so that few rules must be looked up.
#[derive(Debug, Clone, Copy)]
struct Ports([(u16, u16); 2]);

impl Ports {
    fn of((internal, external): &(AddressTuple, AddressTuple)) -> Self {
        // Ports end at 65,535.
        Self(
            [internal.ports(), external.ports()].map(|(first, last)| (first as u16, last.min(0xffff) as u16)),
        )
    }

    fn overlap(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
    }
}

impl OverlapIndex {
    pub fn insert(&mut self, pid: Pid, ends: &(AddressTuple, AddressTuple)) {
        let shape = Shape::of(ends);
        match (ends.0.prefix().first(), ends.1.prefix().first()) {
            (IpAddr::V4(a0), IpAddr::V4(a3)) => insert(&mut self.v4, shape, (a0, a3, pid), Ports::of(ends)),
            (a0, a3) => insert(&mut self.others, shape, (a0, a3, pid), Ports::of(ends)),
        }
    }

    pub fn remove(&mut self, pid: Pid, ends: &(AddressTuple, AddressTuple)) {
        let shape = Shape::of(ends);
        match (ends.0.prefix().first(), ends.1.prefix().first()) {
            (IpAddr::V4(a0), IpAddr::V4(a3)) => remove(&mut self.v4, shape, (a0, a3, pid)),
            (a0, a3) => remove(&mut self.others, shape, (a0, a3, pid)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.others.is_empty()
    }

    /// Returns all rules that overlap with these tuples at both ends. The result may contain a rule more than once, and
    /// rules that do not overlap. Each item counts as two examined rules.
    pub fn candidates(
        &self,
        internal: &AddressTuple,
        external: &AddressTuple,
    ) -> impl Iterator<Item = [Option<Pid>; 2]> {
        let search = SearchTuples::of(internal, external);
        search.candidates(&self.v4, of_v4).chain(search.candidates(&self.others, Some))
    }
}

/// A search that can be interrupted. It finds all rules that overlapped when it started and that still exist when it
/// examines them.
///
/// Because of it, no request makes others wait while a million rules are examined.
#[derive(Debug, Clone)]
pub(crate) struct Sweep {
    /// The PID of the disable rule with which the rules overlap.
    pub pid: Pid,
    internal: AddressTuple,
    external: AddressTuple,
    v4: SweepPosition<Ipv4Addr>,
    others: SweepPosition<IpAddr>,
}

/// The position at which a search continues.
#[derive(Debug, Clone)]
enum SweepPosition<A> {
    Start,
    /// The search continues after these keys of a table: the first in the order by A0, the second in the order by A3.
    After(Shape, Key<A>, Key<A>),
    End,
}

impl Sweep {
    pub fn new(pid: Pid, internal: AddressTuple, external: AddressTuple) -> Self {
        Self { pid, internal, external, v4: SweepPosition::Start, others: SweepPosition::Start }
    }

    /// Returns the address tuples with which rules must overlap.
    pub fn address_tuples(&self) -> (&AddressTuple, &AddressTuple) {
        (&self.internal, &self.external)
    }

    /// Returns true if the search may find a rule with these address tuples.
    pub fn may_find(&self, internal: &AddressTuple, external: &AddressTuple) -> bool {
        self.internal.overlaps(internal) && self.external.overlaps(external)
    }

    pub fn is_finished(&self) -> bool {
        matches!((&self.v4, &self.others), (SweepPosition::End, SweepPosition::End))
    }

    pub fn finish(&mut self) {
        (self.v4, self.others) = (SweepPosition::End, SweepPosition::End);
    }

    /// Examines `max` rules, or one more, and returns those that may overlap; some may occur more than once.
    pub fn next_overlaps(&mut self, rules: &OverlapIndex, max: usize) -> Vec<Pid> {
        let search = SearchTuples::of(&self.internal, &self.external);
        let (mut examined, mut found) = (0, Vec::new());
        search.walk(&rules.v4, of_v4, &mut self.v4, max, &mut examined, &mut found);
        search.walk(&rules.others, Some, &mut self.others, max, &mut examined, &mut found);
        found
    }
}

fn insert<A: Ord + Copy>(tables: &mut Tables<A>, shape: Shape, (a0, a3, pid): Key<A>, ports: Ports) {
    let table = tables.entry(shape).or_default();
    table.by_internal.insert((a0, a3, pid), ports);
    table.by_external.insert((a3, a0, pid), ports);
}

fn remove<A: Ord + Copy>(tables: &mut Tables<A>, shape: Shape, (a0, a3, pid): Key<A>) {
    let table = tables.get_mut(&shape).expect("there is a table for the shape of each rule");
    table.by_internal.remove(&(a0, a3, pid));
    table.by_external.remove(&(a3, a0, pid));
    if table.by_internal.is_empty() {
        tables.remove(&shape);
    }
}

fn of_v4(range: RangeInclusive<IpAddr>) -> Option<RangeInclusive<Ipv4Addr>> {
    match range.into_inner() {
        (IpAddr::V4(first), IpAddr::V4(last)) => Some(first..=last),
        _ => None,
    }
}

/// The address tuples with which rules must overlap.
#[derive(Clone, Copy)]
struct SearchTuples {
    protocol: u8,
    a0: Prefix,
    a3: Prefix,
    ports: Ports,
}

impl SearchTuples {
    fn of(internal: &AddressTuple, external: &AddressTuple) -> Self {
        let ports = Ports::of(&(*internal, *external));
        Self { protocol: internal.protocol, a0: internal.prefix(), a3: external.prefix(), ports }
    }

    /// Returns pairs of rules that may overlap. `narrow` converts a range of addresses to the type of these tables;
    /// it returns `None` for addresses that no rule in the tables has.
    fn candidates<A: Ord + Copy>(
        self,
        tables: &Tables<A>,
        narrow: fn(RangeInclusive<IpAddr>) -> Option<RangeInclusive<A>>,
    ) -> impl Iterator<Item = [Option<Pid>; 2]> {
        tables
            .iter()
            .filter_map(move |(shape, table)| {
                let (internal, external) = self.ranges(shape, narrow)?;
                Some(table.pairs(&internal, &external, None))
            })
            .flatten()
            .map(move |pair| self.overlapping(pair))
    }
}

impl SearchTuples {
    /// Continues a search from `position` until `max` rules have been examined.
    fn walk<A: Ord + Copy>(
        self,
        tables: &Tables<A>,
        narrow: fn(RangeInclusive<IpAddr>) -> Option<RangeInclusive<A>>,
        position: &mut SweepPosition<A>,
        max: usize,
        examined: &mut usize,
        found: &mut Vec<Pid>,
    ) {
        let (shape, mut after) = match position {
            SweepPosition::Start => (Shape::FIRST, None),
            SweepPosition::After(shape, by_internal, by_external) => {
                (*shape, Some((*by_internal, *by_external)))
            }
            SweepPosition::End => return,
        };
        for (shape, table) in tables.range(shape..) {
            let from =
                after.take().filter(|_| matches!(position, SweepPosition::After(at, ..) if at == shape));
            let Some((internal, external)) = self.ranges(shape, narrow) else { continue };
            for [one, other] in table.pairs(&internal, &external, from) {
                if *examined >= max {
                    return;
                }
                *examined += 2;
                found.extend(self.overlapping([one, other]).into_iter().flatten());
                *position = SweepPosition::After(*shape, one.0, other.0);
            }
        }
        *position = SweepPosition::End;
    }

    /// Returns the PIDs of those two rules whose ports overlap with the tuples.
    fn overlapping<A>(self, pair: [(Key<A>, Ports); 2]) -> [Option<Pid>; 2] {
        pair.map(|((_, _, pid), ports)| ports.overlap(&self.ports).then_some(pid))
    }

    /// Returns the ranges of the table's internal and external prefixes that overlap with the tuples; `None` if no
    /// prefix does.
    fn ranges<A>(
        self,
        shape: &Shape,
        narrow: fn(RangeInclusive<IpAddr>) -> Option<RangeInclusive<A>>,
    ) -> Option<(RangeInclusive<A>, RangeInclusive<A>)> {
        let has_protocol = self.protocol == 0 || [0, self.protocol].contains(&shape.protocol);
        let internal = has_protocol.then(|| narrow(self.a0.overlapping(shape.internal_length)))??;
        Some((internal, narrow(self.a3.overlapping(shape.external_length))?))
    }
}

impl Shape {
    const FIRST: Self = Self { protocol: 0, internal_length: 0, external_length: 0 };

    fn of((internal, external): &(AddressTuple, AddressTuple)) -> Self {
        Self {
            protocol: internal.protocol,
            internal_length: internal.prefix().length(),
            external_length: external.prefix().length(),
        }
    }
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self { by_internal: BTreeMap::new(), by_external: BTreeMap::new() }
    }
}

impl<A: Ord + Copy> Table<A> {
    /// Returns the rules of two ranges in pairs: one range of the index sorted by internal address, and one of the
    /// index sorted by external address. Each range contains all overlapping rules, so the search ends with the shorter
    /// range. If a range is a single prefix, the index sorted by it has only rules that overlap at both ends.
    fn pairs(
        &self,
        internal: &RangeInclusive<A>,
        external: &RangeInclusive<A>,
        after: Option<(Key<A>, Key<A>)>,
    ) -> impl Iterator<Item = [(Key<A>, Ports); 2]> + use<'_, A> {
        let (one, other) = after.unzip();
        let by_internal = self.by_internal.range(remaining_range(keys(internal, external), one));
        let by_external = self.by_external.range(remaining_range(keys(external, internal), other));
        let copied = |(key, ports): (&Key<A>, &Ports)| (*key, *ports);
        by_internal.map(copied).zip(by_external.map(copied)).map(Into::into)
    }
}

fn keys<A: Copy>(major: &RangeInclusive<A>, minor: &RangeInclusive<A>) -> RangeInclusive<Key<A>> {
    (*major.start(), *minor.start(), Pid(0))..=(*major.end(), *minor.end(), Pid(u32::MAX))
}

/// Returns the part of a range that follows the key `after`.
fn remaining_range<K: Copy>(range: RangeInclusive<K>, after: Option<K>) -> (Bound<K>, Bound<K>) {
    let (first, last) = range.into_inner();
    (after.map_or(Bound::Included(first), Bound::Excluded), Bound::Included(last))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv6Addr;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::{Addresses, IpVersion, Location};

    /// Generates addresses from a small set, so that many prefixes overlap. They differ in the first bits, and some in
    /// the middle and last bits.
    fn addresses() -> impl Strategy<Value = Addresses> {
        let octet = || prop_oneof![Just(0), Just(1), Just(128), Just(255)];
        let address = prop_oneof![
            (octet(), octet()).prop_map(|(a, b)| IpAddr::from(Ipv4Addr::new(a, 0, 0, b))),
            (octet(), octet()).prop_map(|(a, b)| {
                IpAddr::from(Ipv6Addr::from([a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b]))
            }),
        ];
        let ports = (prop_oneof![Just(0), 1..6_u16], 1..4_u16);
        let full = (address, ports).prop_map(|(address, (port, port_range))| Addresses::Full {
            address,
            port,
            port_range,
        });
        let versions = prop_oneof![Just(IpVersion::V4), Just(IpVersion::V6)];
        prop_oneof![9 => full, 1 => versions.prop_map(Addresses::ProtocolsOnly)]
    }

    fn tuples(location: Location) -> impl Strategy<Value = AddressTuple> {
        let lengths = prop_oneof![Just(0), Just(1), Just(8), Just(31), Just(32), Just(127), Just(128)];
        let protocols = prop_oneof![Just(0), Just(6), Just(17)];
        (addresses(), lengths, protocols).prop_map(move |(addresses, length, protocol)| AddressTuple {
            location,
            protocol,
            prefix_length: addresses.ip_version().address_bits().min(length),
            addresses,
        })
    }

    fn pairs() -> impl Strategy<Value = (AddressTuple, AddressTuple)> {
        (tuples(Location::Internal), tuples(Location::External))
    }

    proptest! {
        /// All rules that overlap are among the candidates of the index, even after some rules have ended; the caller
        /// compares the candidates.
        #[test]
        fn the_index_finds_the_same_rules_as_a_full_scan(
            rules in vec((pairs(), any::<bool>()), 1..60),
            search in vec(pairs(), 1..10),
        ) {
            let mut index = OverlapIndex::default();
            let all = || (0..).map(Pid).zip(&rules);
            all().for_each(|(pid, (ends, _))| index.insert(pid, ends));
            all().filter(|(_, (_, has_ended))| *has_ended).for_each(|(pid, (ends, _))| index.remove(pid, ends));
            let overlaps = |pid: Pid, (internal, external): &(AddressTuple, AddressTuple)| {
                let (a0, a3) = rules[pid.0 as usize].0;
                a0.overlaps(internal) && a3.overlaps(external)
            };
            for search in &search {
                let candidates: BTreeSet<Pid> = index.candidates(&search.0, &search.1).flatten().flatten().collect();
                let found: Vec<Pid> = candidates.into_iter().filter(|pid| overlaps(*pid, search)).collect();
                let held = all().filter(|(_, (_, has_ended))| !has_ended).map(|(pid, _)| pid);
                prop_assert_eq!(&found, &held.filter(|pid| overlaps(*pid, search)).collect::<Vec<_>>());
                prop_assert_eq!(swept(&mut index, &rules, search), found);
            }
            all().filter(|(_, (_, has_ended))| !has_ended).for_each(|(pid, (ends, _))| index.remove(pid, ends));
            prop_assert!(index.v4.is_empty() && index.others.is_empty());
        }
    }

    /// Returns the rules that a sweep finds step by step, while the rules found are removed. All rules are restored at
    /// the end.
    fn swept(
        index: &mut OverlapIndex,
        rules: &[((AddressTuple, AddressTuple), bool)],
        search: &(AddressTuple, AddressTuple),
    ) -> Vec<Pid> {
        let ends = |pid: Pid| &rules[pid.0 as usize].0;
        let mut sweep = Sweep::new(Pid(u32::MAX), search.0, search.1);
        let mut found = BTreeSet::new();
        while !sweep.is_finished() {
            for pid in sweep
                .next_overlaps(index, 2)
                .into_iter()
                .filter(|pid| sweep.may_find(&ends(*pid).0, &ends(*pid).1))
            {
                if found.insert(pid) {
                    index.remove(pid, ends(pid));
                }
            }
        }
        found.iter().for_each(|pid| index.insert(*pid, ends(*pid)));
        found.into_iter().collect()
    }

    /// There are a thousand rules for a host and a thousand for an attacker, but none for both.
    #[test]
    fn rules_that_share_only_one_end_are_not_examined() {
        let at = |location, last: u16| {
            let [third, fourth] = last.to_be_bytes();
            AddressTuple::of_host(location, 17, (Ipv4Addr::new(10, 1, third, fourth), 0).into())
        };
        let (internal, external) = (|last| at(Location::Internal, last), |last| at(Location::External, last));
        let mut index = OverlapIndex::default();
        for other in 1..1000 {
            index.insert(Pid(u32::from(other)), &(internal(0), external(other)));
            index.insert(Pid(1000 + u32::from(other)), &(internal(other), external(0)));
        }
        assert_eq!(index.candidates(&internal(0), &external(0)).count(), 0);
        let anywhere = AddressTuple { prefix_length: 0, ..internal(0) };
        let of_one: Vec<Pid> = index.candidates(&anywhere, &external(7)).flatten().flatten().collect();
        assert!(of_one.contains(&Pid(7)) && of_one.len() <= 2, "{of_one:?}");
    }
}
