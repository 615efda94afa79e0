//! The rules that may exist after the daemon was killed, according to the answers of its agents.

use std::collections::BTreeMap;

use hol_simco::{Action, AddressTuple, Addresses, EnableRuleStatus, Lifetime, Pid, Rule};

/// The flow and the lifetime of a rule, as the test knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRule {
    /// The flow that the rule passes: the internal address without the first octet.
    pub flow: u32,
    /// The lifetime when it was last set, in steps that are longer than a test.
    pub steps: u32,
}

/// Seconds of a step.
const STEP: u32 = 20_000;

impl KnownRule {
    pub fn lifetime(&self) -> Lifetime {
        Lifetime(self.steps * STEP)
    }

    /// Converts the status of a rule.
    pub fn from_status(rule: &EnableRuleStatus) -> Self {
        Self { flow: flow(&rule.internal), steps: rule.lifetime.0.div_ceil(STEP) }
    }

    /// Converts a recorded rule. The journal contains the end of a rule, so this needs a correct clock of the
    /// host.
    pub fn from_record(rule: &Rule) -> Self {
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

/// A request without an answer yet.
#[derive(Debug, Clone, Copy)]
pub enum PendingRequest {
    Begin(KnownRule),
    Change(Pid, u32),
    End(Pid),
}

/// Rules as last acknowledged, and pending requests about them.
#[derive(Debug, Default)]
pub struct ExpectedRules {
    pub acknowledged: BTreeMap<Pid, KnownRule>,
    pub unanswered: Vec<PendingRequest>,
    /// Number of refused requests.
    pub refused: usize,
}

impl ExpectedRules {
    /// Processes a positive answer, with the PID if a rule began.
    pub fn acknowledge(&mut self, asked: PendingRequest, begun: Option<Pid>) {
        match asked {
            PendingRequest::Begin(known) => {
                self.acknowledged.insert(begun.expect("a granted rule has a PID"), known);
            }
            PendingRequest::Change(pid, steps) => {
                self.acknowledged.get_mut(&pid).expect("a changed rule was acknowledged").steps = steps;
            }
            PendingRequest::End(pid) => drop(self.acknowledged.remove(&pid)),
        }
    }

    /// Compares with the existing rules, which then replace the expected ones.
    pub fn compare(&mut self, held: &BTreeMap<Pid, KnownRule>) -> Result<(), String> {
        for (pid, known) in &self.acknowledged {
            let now = held.get(pid);
            if now != Some(known) && !self.unanswered.iter().any(|asked| asked.explains(*pid, known, now)) {
                return Err(format!("rule {} was acknowledged as {known:?} and is {now:?}", pid.0));
            }
        }
        for (pid, known) in held.iter().filter(|(pid, _)| !self.acknowledged.contains_key(pid)) {
            if !self
                .unanswered
                .iter()
                .any(|asked| matches!(asked, PendingRequest::Begin(begun) if begun == known))
            {
                return Err(format!("no pending request explains rule {}: {known:?}", pid.0));
            }
        }
        *self = Self { acknowledged: held.clone(), unanswered: Vec::new(), refused: self.refused };
        Ok(())
    }

    /// Divides the rules among this many agents.
    pub fn split(&mut self, agents: usize) -> Vec<ExpectedRules> {
        let mut shares: Vec<ExpectedRules> = (0..agents).map(|_| ExpectedRules::default()).collect();
        for (number, (pid, known)) in std::mem::take(&mut self.acknowledged).into_iter().enumerate() {
            shares[number % agents].acknowledged.insert(pid, known);
        }
        shares
    }

    pub fn merge(&mut self, share: ExpectedRules) {
        self.acknowledged.extend(share.acknowledged);
        self.unanswered.extend(share.unanswered);
        self.refused += share.refused;
    }
}

impl PendingRequest {
    /// Returns the PID of the request's rule; `None` for a rule that is to begin.
    pub fn pid(&self) -> Option<Pid> {
        match self {
            Self::Begin(_) => None,
            Self::Change(pid, _) | Self::End(pid) => Some(*pid),
        }
    }

    /// Returns whether a pending request explains the present state of the rule.
    fn explains(&self, pid: Pid, before: &KnownRule, now: Option<&KnownRule>) -> bool {
        match *self {
            Self::Begin(_) => false,
            Self::Change(changed, steps) => changed == pid && now == Some(&KnownRule { steps, ..*before }),
            Self::End(ended) => ended == pid && now.is_none(),
        }
    }
}
