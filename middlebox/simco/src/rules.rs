//! The rules of a middlebox, indexed by PID, end, owner and group.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hol_base::{Duration, Time};

use crate::overlap_index::{OverlapIndex, Sweep};
use crate::{Action, AddressTuple, AgentId, Change, Gid, Pid, Rule};

/// The rule table. Only [`apply`](Self::apply) changes it, so each change can be undone.
///
/// A PID encodes the index of a slot and how often the slot has been used, so the time of a lookup does not
/// depend on the number of rules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    slots: Vec<Slot>,
    /// Free slots in the order in which they became free. Some are not free any more: a rule read from the
    /// records may have taken its old slot.
    free_slots: VecDeque<usize>,
    count: usize,
    /// PIDs of rules by the tick (of length [`END_RESOLUTION`]) at whose start they have ended: the first tick
    /// that starts at or after the end of their lifetime.
    ends: BTreeMap<u64, Vec<Pid>>,
    owned: BTreeMap<AgentId, Vec<Pid>>,
    /// Groups that have or had more than one member. A rule alone in its group has a group number equal to its
    /// PID and is not listed here.
    groups: BTreeMap<Gid, Group>,
    /// Index of the enable rules; `None` if no agent may create disable rules.
    enabling: Option<OverlapIndex>,
    disabling: OverlapIndex,
}

/// A slot of the rule table.
#[derive(Debug)]
struct Slot {
    /// The PID of the rule that used the slot last.
    pid: Pid,
    entry: Option<Entry>,
}

/// A rule, and its positions in the lists of rules of its tick and of its owner.
#[derive(Debug)]
struct Entry {
    rule: Rule,
    index_in_tick: u32,
    index_at_owner: u32,
}

/// A group of rules, whose members have one owner. RFC 3989 section 2.1.5.
#[derive(Debug)]
struct Group {
    owner: AgentId,
    members: u32,
}

/// The maximum number of slots. Each reuse of a slot increases its PID by this number.
const SLOT_COUNT: u32 = 1 << 24;
/// A slot is reused only when more than this many are free, so that the PID of an ended rule is not reused
/// soon.
const MIN_FREE_SLOTS: usize = 64;

fn slot_of(pid: Pid) -> usize {
    (pid.0 % SLOT_COUNT) as usize
}

/// The resolution of the times at which rules end: a rule ends at most this long after its lifetime. With exact
/// times, a million rules would need a million keys.
const END_RESOLUTION: Duration = Duration::from_millis(125);

/// Returns the first tick that starts at or after `end`.
fn tick_of(end: Time) -> u64 {
    end.as_nanos().div_ceil(END_RESOLUTION.as_nanos())
}

impl Rules {
    /// Maximum number of rules in a table.
    pub const MAX_RULES: usize = SLOT_COUNT as usize - MIN_FREE_SLOTS - 2;

    /// Creates a table without rules.
    pub fn new() -> Self {
        let mut rules = Self::default();
        // PID 0 is unused because people read it as "none"; a recorded rule may still have it.
        rules.add_slot();
        rules
    }

    /// Builds the index of enable rules if agents may create disable rules.
    pub fn prepare_for_disable_rules(&mut self, may_disable: bool) {
        if may_disable == self.enabling.is_some() {
            return;
        }
        self.enabling = may_disable.then(OverlapIndex::default);
        let entries = self.slots.iter().filter_map(|slot| slot.entry.as_ref());
        for rule in entries.map(|entry| &entry.rule) {
            if let (Some(enabling), Action::Enable { .. }, Some(ends)) =
                (&mut self.enabling, &rule.action, rule.address_tuples())
            {
                enabling.insert(rule.pid, &ends);
            }
        }
    }

    /// Returns the rule with this PID if the rule is in force.
    pub fn get(&self, now: Time, pid: Pid) -> Option<&Rule> {
        self.get_or_expired(pid).filter(|rule| rule.is_in_force(now))
    }

    /// Returns the rule with this PID if it is in the table, even if its lifetime has ended.
    pub fn get_or_expired(&self, pid: Pid) -> Option<&Rule> {
        self.entry(pid).map(|entry| &entry.rule)
    }

    /// Returns true if a rule with this PID can be added to the table.
    pub fn has_room_for(&self, pid: Pid) -> bool {
        self.slots.get(slot_of(pid)).is_none_or(|slot| slot.entry.is_none())
    }

    /// Returns the number of rules in the table, including ended ones that have not been removed.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns every rule in force.
    pub fn in_force(&self, now: Time) -> impl Iterator<Item = &Rule> {
        let entries = self.slots.iter().filter_map(|slot| slot.entry.as_ref());
        entries.map(|entry| &entry.rule).filter(move |rule| rule.is_in_force(now))
    }

    /// Returns this agent's number of rules in the table, including ended ones that have not been removed.
    pub fn count_owned_by(&self, owner: AgentId) -> usize {
        self.owned.get(&owner).map_or(0, Vec::len)
    }

    /// Returns the number of rules that may have ended. All other rules in the table are in force.
    pub fn possibly_expired(&self, now: Time) -> usize {
        self.ends.range(..=tick_of(now)).map(|(_, pids)| pids.len()).sum()
    }

    /// Returns this agent's rules in force.
    pub fn owned_by(&self, now: Time, owner: AgentId) -> impl Iterator<Item = &Rule> {
        self.owned.get(&owner).into_iter().flatten().filter_map(move |&pid| self.get(now, pid))
    }

    /// Continues a search for enable rules that a disable rule ends. Returns those found in force, in the order
    /// of PIDs. Examines at most `max + 1` rules. RFC 4540 section 8.8.1.
    pub fn sweep(&self, now: Time, sweep: &mut Sweep, max: usize) -> Vec<Rule> {
        let Some(enabling) = &self.enabling else {
            sweep.finish();
            return Vec::new();
        };
        let candidates = sweep.next_overlaps(enabling, max);
        let (internal, external) = sweep.address_tuples();
        let pids: BTreeSet<Pid> =
            candidates.into_iter().filter(|pid| self.overlaps(now, *pid, internal, external)).collect();
        pids.into_iter().filter_map(|pid| self.get(now, pid).copied()).collect()
    }

    /// Returns true if a disable rule in force covers some packet that matches these tuples; also returns how
    /// many rules it has examined. RFC 4540 section 8.8.1.
    pub fn are_disabled(&self, now: Time, internal: &AddressTuple, external: &AddressTuple) -> (bool, u64) {
        if self.disabling.is_empty() {
            return (false, 0);
        }
        let mut examined = 0;
        let candidates = self.disabling.candidates(internal, external).inspect(|_| examined += 2);
        let is_disabled =
            candidates.flatten().flatten().any(|pid| self.overlaps(now, pid, internal, external));
        (is_disabled, examined)
    }

    fn overlaps(&self, now: Time, pid: Pid, internal: &AddressTuple, external: &AddressTuple) -> bool {
        let ends = self.get(now, pid).and_then(Rule::address_tuples);
        ends.is_some_and(|(a0, a3)| a0.overlaps(internal) && a3.overlaps(external))
    }

    /// Returns the owner of a group's members; `None` if the group has no members. RFC 3989 section 2.3.3.
    pub fn owner_of_group(&self, gid: Gid) -> Option<AgentId> {
        let alone =
            || self.get_or_expired(Pid(gid.0)).filter(|rule| rule.gid() == Some(gid)).map(|rule| rule.owner);
        self.groups.get(&gid).map(|group| group.owner).or_else(alone)
    }

    /// Returns the start of the tick at which the next rules end, and one of these rules; `None` without rules.
    pub fn first_to_end(&self) -> Option<(Time, Pid)> {
        let (tick, pids) = self.ends.first_key_value()?;
        Some((Time::ZERO + END_RESOLUTION * *tick, *pids.last()?))
    }

    /// Returns an unused PID that is not the number of a group either. The caller adds the rule at once.
    pub fn unused_pid(&mut self) -> Pid {
        loop {
            let slot =
                if self.free_slots.len() > MIN_FREE_SLOTS { self.free_slots.pop_front() } else { None };
            let slot = slot.unwrap_or_else(|| self.add_slot());
            let Slot { pid, entry } = &self.slots[slot];
            let pid = Pid(pid.0.wrapping_add(SLOT_COUNT));
            match entry {
                None if !self.groups.contains_key(&Gid(pid.0)) => return pid,
                None => self.free_slots.push_back(slot),
                // A recorded rule has taken the slot again.
                Some(_) => {}
            }
        }
    }

    /// Delays the reuse of the PID of a rule from the records that has ended, as if the rule had ended now.
    pub fn delay_pid_reuse(&mut self, pid: Pid) {
        let slot = slot_of(pid);
        self.add_slots_to(slot);
        if self.slots[slot].entry.is_none() {
            self.slots[slot].pid = pid;
        }
    }

    /// Returns a PID that was not used for a rule to the free PIDs. It is the next to be used.
    pub fn return_pid(&mut self, pid: Pid) {
        self.free_slots.push_front(slot_of(pid));
    }

    /// Adds free slots until the table has a slot with the index `last`.
    fn add_slots_to(&mut self, last: usize) {
        while self.slots.len() <= last {
            let slot = self.add_slot();
            self.free_slots.push_back(slot);
        }
    }

    fn add_slot(&mut self) -> usize {
        let slot = self.slots.len();
        assert!(slot < SLOT_COUNT as usize, "the table has no more slots");
        // Each use adds SLOT_COUNT to the PID, so the first PID is the number of the slot.
        let pid = Pid((slot as u32).wrapping_sub(SLOT_COUNT));
        self.slots.push(Slot { pid, entry: None });
        slot
    }

    /// Replaces the state of the rule before the change with the state after it.
    pub fn apply(&mut self, change: &Change) {
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => self.replace(before, after),
            (Some(before), None) => self.remove(before),
            (None, Some(after)) => self.insert(after),
            (None, None) => {}
        }
    }

    fn insert(&mut self, rule: &Rule) {
        let slot = slot_of(rule.pid);
        if slot >= self.slots.len() {
            self.add_slots_to(slot);
            self.free_slots.pop_back();
        }
        let owned = self.owned.entry(rule.owner).or_default();
        owned.push(rule.pid);
        let entry = Entry { rule: *rule, index_at_owner: owned.len() as u32 - 1, index_in_tick: 0 };
        let replaced = self.slots[slot].entry.replace(entry);
        assert!(replaced.is_none(), "{:?} begins while another rule occupies its slot", rule.pid);
        self.slots[slot].pid = rule.pid;
        self.count += 1;
        self.add_to_tick(rule);
        self.join_group(rule);
        self.add_to_overlaps(rule);
    }

    fn remove(&mut self, rule: &Rule) {
        self.remove_from_tick(rule);
        let slot = slot_of(rule.pid);
        let index_at_owner = self.entry_mut(rule.pid).index_at_owner;
        debug_assert_eq!(
            self.get_or_expired(rule.pid),
            Some(rule),
            "the rule that ends is the one that was in force"
        );
        self.slots[slot].entry = None;
        self.free_slots.push_back(slot);
        self.count -= 1;
        let owned = self.owned.get_mut(&rule.owner).expect("the owner's list contains the rule");
        owned.swap_remove(index_at_owner as usize);
        if let Some(&moved) = owned.get(index_at_owner as usize) {
            self.entry_mut(moved).index_at_owner = index_at_owner;
        }
        self.leave_group(rule);
        self.remove_from_overlaps(rule);
    }

    /// Replaces a rule with the same PID, owner and group; only its effect and end may differ.
    fn replace(&mut self, before: &Rule, after: &Rule) {
        debug_assert_eq!((before.pid, before.owner, before.gid()), (after.pid, after.owner, after.gid()));
        self.remove_from_tick(before);
        let entry = self.entry_mut(after.pid);
        debug_assert_eq!(entry.rule, *before, "the rule that is replaced is the one that was in force");
        entry.rule = *after;
        self.add_to_tick(after);
        if before.action != after.action {
            self.remove_from_overlaps(before);
            self.add_to_overlaps(after);
        }
    }

    fn add_to_tick(&mut self, rule: &Rule) {
        let ending = self.ends.entry(tick_of(rule.expires)).or_default();
        ending.push(rule.pid);
        let index = ending.len() as u32 - 1;
        self.entry_mut(rule.pid).index_in_tick = index;
    }

    fn remove_from_tick(&mut self, rule: &Rule) {
        let index = self.entry_mut(rule.pid).index_in_tick;
        let tick = tick_of(rule.expires);
        let ending =
            self.ends.get_mut(&tick).expect("the list of rules that end in this tick contains the rule");
        ending.swap_remove(index as usize);
        match ending.get(index as usize) {
            Some(&moved) => self.entry_mut(moved).index_in_tick = index,
            None if ending.is_empty() => drop(self.ends.remove(&tick)),
            None => {}
        }
    }

    fn add_to_overlaps(&mut self, rule: &Rule) {
        if let (Some(overlaps), Some(ends)) = (self.overlaps_of(&rule.action), rule.address_tuples()) {
            overlaps.insert(rule.pid, &ends);
        }
    }

    fn remove_from_overlaps(&mut self, rule: &Rule) {
        if let (Some(overlaps), Some(ends)) = (self.overlaps_of(&rule.action), rule.address_tuples()) {
            overlaps.remove(rule.pid, &ends);
        }
    }

    fn overlaps_of(&mut self, action: &Action) -> Option<&mut OverlapIndex> {
        match action {
            Action::Reserve { .. } => None,
            Action::Enable { .. } => self.enabling.as_mut(),
            Action::Disable { .. } => Some(&mut self.disabling),
        }
    }

    fn join_group(&mut self, rule: &Rule) {
        let Some(gid) = rule.gid() else { return };
        if let Some(group) = self.groups.get_mut(&gid) {
            group.members += 1;
        } else if gid.0 != rule.pid.0 {
            let founder = self.get_or_expired(Pid(gid.0)).filter(|founder| founder.gid() == Some(gid));
            let members = if founder.is_some() { 2 } else { 1 };
            self.groups.insert(gid, Group { owner: rule.owner, members });
        }
    }

    fn leave_group(&mut self, rule: &Rule) {
        if let Some(gid) = rule.gid()
            && let Some(group) = self.groups.get_mut(&gid)
        {
            group.members -= 1;
            if group.members == 0 {
                self.groups.remove(&gid);
            }
        }
    }

    fn entry(&self, pid: Pid) -> Option<&Entry> {
        self.slots.get(slot_of(pid))?.entry.as_ref().filter(|entry| entry.rule.pid == pid)
    }

    fn entry_mut(&mut self, pid: Pid) -> &mut Entry {
        let entry = self.slots[slot_of(pid)].entry.as_mut();
        entry.filter(|entry| entry.rule.pid == pid).expect("the lists contain existing rules")
    }
}
