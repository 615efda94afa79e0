//! The policy rules of a middlebox: which are in force, and until when. RFC 4540 section 8.1.

use std::collections::VecDeque;

use hol_base::{Duration, Time};

use crate::{Enable, Gid, Lifetime, Pid};

/// An enabled rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub enable: Enable,
    pub gid: Gid,
    pub expires: Time,
}

/// Rules by PID. PIDs are given out in turn, so a rule's place follows from its PID.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// The PID of the front rule.
    first: u32,
    /// Ended rules stay until they reach the front.
    rules: VecDeque<Rule>,
    groups: u32,
}

impl Rule {
    fn is_in_force(&self, now: Time) -> bool {
        self.expires > now
    }

    /// What remains, in whole seconds that have begun.
    pub fn remaining(&self, now: Time) -> Lifetime {
        let nanos = self.expires.saturating_since(now).as_nanos();
        Lifetime(u32::try_from(nanos.div_ceil(1_000_000_000)).expect("a lifetime was 32 bits of seconds"))
    }
}

impl Rules {
    /// Puts a rule in force, in its own group unless `gid` names one.
    pub fn add(&mut self, now: Time, enable: Enable, gid: Option<Gid>, lifetime: Lifetime) -> (Pid, Gid) {
        self.forget_ended(now);
        let gid = gid.unwrap_or_else(|| {
            self.groups += 1;
            Gid(self.groups)
        });
        let pid = Pid(self.first.wrapping_add(self.rules.len() as u32));
        self.rules.push_back(Rule { enable, gid, expires: now + seconds(lifetime) });
        (pid, gid)
    }

    /// The rule, if it is in force.
    pub fn get(&self, now: Time, pid: Pid) -> Option<&Rule> {
        self.rules.get(self.place(pid)).filter(|rule| rule.is_in_force(now))
    }

    /// Lets the rule end `lifetime` from now; false if it is not in force. RFC 4540 section 8.5.
    pub fn change_lifetime(&mut self, now: Time, pid: Pid, lifetime: Lifetime) -> bool {
        let place = self.place(pid);
        let Some(rule) = self.rules.get_mut(place).filter(|rule| rule.is_in_force(now)) else {
            return false;
        };
        rule.expires = now + seconds(lifetime);
        true
    }

    /// The PIDs of all rules in force.
    pub fn pids(&self, now: Time) -> impl Iterator<Item = Pid> {
        let numbered = self.rules.iter().zip(0u32..);
        numbered.filter(move |(rule, _)| rule.is_in_force(now)).map(|(_, i)| Pid(self.first.wrapping_add(i)))
    }

    /// Whether such a group was ever given out.
    pub fn knows_group(&self, gid: Gid) -> bool {
        (1..=self.groups).contains(&gid.0)
    }

    fn place(&self, pid: Pid) -> usize {
        pid.0.wrapping_sub(self.first) as usize
    }

    fn forget_ended(&mut self, now: Time) {
        while self.rules.front().is_some_and(|rule| !rule.is_in_force(now)) {
            self.rules.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

fn seconds(lifetime: Lifetime) -> Duration {
    Duration::from_secs(u64::from(lifetime.0))
}
