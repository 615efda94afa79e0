//! What agents may believe of rules, whatever happened to the daemon.

use std::collections::BTreeMap;

use hol_simco::{Action, AddressTuple, Addresses, EnabledRule, Lifetime, Pid, Rule};

/// What a test knows of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Which flow it lets pass: the internal address, without the first octet.
    pub flow: u32,
    /// Its lifetime when it was last set, in steps that are longer than a test.
    pub steps: u32,
}

/// Seconds of a step.
const STEP: u32 = 20_000;

impl Known {
    pub fn lifetime(&self) -> Lifetime {
        Lifetime(self.steps * STEP)
    }

    pub fn told(rule: &EnabledRule) -> Self {
        Self { flow: flow(&rule.internal), steps: rule.lifetime.0.div_ceil(STEP) }
    }

    /// A journal says when a rule ends, so this is right as long as the clock of the host is.
    pub fn recorded(rule: &Rule) -> Self {
        let Action::Enable { internal, .. } = &rule.action else { panic!("{rule:?} is not of this test") };
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let remaining = rule.expires.as_nanos() / 1_000_000_000 - now.tv_sec as u64;
        Self { flow: flow(internal), steps: (remaining as u32).div_ceil(STEP) }
    }
}

fn flow(internal: &AddressTuple) -> u32 {
    match internal.addresses {
        Addresses::Full { address: std::net::IpAddr::V4(address), .. } => address.to_bits() & 0x00ff_ffff,
        other => panic!("{other:?} is not of this test"),
    }
}

/// What an agent has asked for without having had an answer.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    Begin(Known),
    Change(Pid, u32),
    End(Pid),
}

/// Rules as they were last acknowledged, and what may have become of them since.
#[derive(Debug, Default)]
pub struct Beliefs {
    pub acknowledged: BTreeMap<Pid, Known>,
    pub unanswered: Vec<Asked>,
    /// Number of requests that were refused.
    pub refused: usize,
}

impl Beliefs {
    /// A positive answer, with the PID if a rule began.
    pub fn acknowledge(&mut self, asked: Asked, begun: Option<Pid>) {
        match asked {
            Asked::Begin(known) => drop(self.acknowledged.insert(begun.expect("it has a PID"), known)),
            Asked::Change(pid, steps) => self.acknowledged.get_mut(&pid).expect("it was there").steps = steps,
            Asked::End(pid) => drop(self.acknowledged.remove(&pid)),
        }
    }

    /// Compares with what there is, which is then what is believed.
    pub fn settle(&mut self, held: &BTreeMap<Pid, Known>) -> Result<(), String> {
        for (pid, known) in &self.acknowledged {
            let now = held.get(pid);
            if now != Some(known) && !self.unanswered.iter().any(|asked| asked.explains(*pid, known, now)) {
                return Err(format!("rule {} was acknowledged as {known:?} and is {now:?}", pid.0));
            }
        }
        for (pid, known) in held.iter().filter(|(pid, _)| !self.acknowledged.contains_key(pid)) {
            if !self.unanswered.iter().any(|asked| matches!(asked, Asked::Begin(begun) if begun == known)) {
                return Err(format!("nobody asked for rule {}: {known:?}", pid.0));
            }
        }
        *self = Self { acknowledged: held.clone(), unanswered: Vec::new(), refused: self.refused };
        Ok(())
    }

    /// Gives each of so many agents some of the rules.
    pub fn split(&mut self, agents: usize) -> Vec<Beliefs> {
        let mut shares: Vec<Beliefs> = (0..agents).map(|_| Beliefs::default()).collect();
        for (number, (pid, known)) in std::mem::take(&mut self.acknowledged).into_iter().enumerate() {
            shares[number % agents].acknowledged.insert(pid, known);
        }
        shares
    }

    pub fn merge(&mut self, share: Beliefs) {
        self.acknowledged.extend(share.acknowledged);
        self.unanswered.extend(share.unanswered);
        self.refused += share.refused;
    }
}

impl Asked {
    /// The rule that it is about; one that is to begin has no PID yet.
    pub fn pid(&self) -> Option<Pid> {
        match self {
            Self::Begin(_) => None,
            Self::Change(pid, _) | Self::End(pid) => Some(*pid),
        }
    }

    /// True if this makes of the rule what it is now.
    fn explains(&self, pid: Pid, before: &Known, now: Option<&Known>) -> bool {
        match *self {
            Self::Begin(_) => false,
            Self::Change(changed, steps) => changed == pid && now == Some(&Known { steps, ..*before }),
            Self::End(ended) => ended == pid && now.is_none(),
        }
    }
}
