//! An agent that begins, changes and ends rules as fast as it gets answers, and remembers the answers.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::mpsc::Sender;

use hol_agent::{Server, Session};
use hol_base::{Rng, Seed};
use hol_simco::{
    AddressTuple, Direction, Enable, Location, PerParameters, Pid, PortParity, Refusal, Reply, Request, Tid,
    Unauthenticated,
};

use super::expected_rules::{ExpectedRules, KnownRule, PendingRequest};

/// Maximum number of pending requests.
pub const WINDOW: usize = 8;
/// Maximum number of rules of an agent.
const MAX_RULES: usize = 50;
const UDP: u8 = 17;

pub struct Agent {
    expected: ExpectedRules,
    pending: VecDeque<(Tid, PendingRequest)>,
    /// The next flow. No other agent uses it or those that follow.
    next_flow: u32,
    rng: Rng,
}

impl Agent {
    pub fn new(expected: ExpectedRules, first_flow: u32, seed: u64) -> Self {
        Self { expected, pending: VecDeque::new(), next_flow: first_flow, rng: Seed(seed).rng() }
    }

    /// Sends requests until the daemon ends; reports each answer.
    pub fn load(mut self, server: &Server, answered: &Sender<()>) -> ExpectedRules {
        if let Ok(mut session) = Session::open(server, Box::new(Unauthenticated)) {
            while self.step(&mut session).is_some() {
                let _ = answered.send(());
            }
        }
        self.expected.unanswered.extend(self.pending.into_iter().map(|(_, asked)| asked));
        self.expected
    }

    /// Sends requests up to the window, and takes one answer; `None` if the daemon is gone.
    fn step(&mut self, session: &mut Session) -> Option<()> {
        while self.pending.len() < WINDOW {
            let asked = self.choose();
            match session.send(request(&asked)) {
                Ok(tid) => self.pending.push_back((tid, asked)),
                Err(_) => {
                    self.expected.unanswered.push(asked);
                    return None;
                }
            }
        }
        let (tid, asked) = self.pending[0];
        match session.answer(tid).ok()? {
            Ok(Reply::Per(granted)) => self.expected.acknowledge(asked, Some(granted.pid)),
            Ok(_) => self.expected.acknowledge(asked, None),
            // The disk is full: nothing has changed.
            Err(Refusal::ConfigurationFailed) => self.expected.refused += 1,
            // The kernel refuses the change for now: nothing has changed.
            Err(Refusal::NoResources) => {}
            Err(refusal) => panic!("{asked:?}: {refusal}"),
        }
        self.pending.pop_front();
        Some(())
    }

    fn choose(&mut self) -> PendingRequest {
        let steps = 1 + self.rng.below(10) as u32;
        match (self.idle_rule(), self.rng.below(4)) {
            (Some(pid), 0) => PendingRequest::Change(pid, steps),
            (Some(pid), 1) => PendingRequest::End(pid),
            (Some(pid), _) if self.expected.acknowledged.len() >= MAX_RULES => PendingRequest::End(pid),
            _ => {
                self.next_flow += 1;
                PendingRequest::Begin(KnownRule { flow: self.next_flow, steps })
            }
        }
    }

    /// Returns a rule without a pending request.
    fn idle_rule(&mut self) -> Option<Pid> {
        let is_busy = |pid: &Pid| self.pending.iter().any(|(_, asked)| asked.pid() == Some(*pid));
        let at_rest: Vec<Pid> =
            self.expected.acknowledged.keys().copied().filter(|pid| !is_busy(pid)).collect();
        let chosen = self.rng.below(at_rest.len().max(1) as u64) as usize;
        at_rest.get(chosen).copied()
    }
}

fn request(asked: &PendingRequest) -> Request {
    match *asked {
        PendingRequest::Change(pid, steps) => {
            Request::Plc { pid, lifetime: KnownRule { flow: 0, steps }.lifetime() }
        }
        PendingRequest::End(pid) => Request::Plc { pid, lifetime: hol_simco::Lifetime(0) },
        PendingRequest::Begin(known) => {
            let host = Ipv4Addr::from_bits(10 << 24 | known.flow);
            let internal = AddressTuple::of_host(Location::Internal, UDP, (host, 5004).into());
            let external = "198.51.100.7:6000".parse().unwrap();
            let enable = Enable {
                parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
                internal,
                external: AddressTuple::of_host(Location::External, UDP, external),
                lifetime: known.lifetime(),
            };
            Request::Per { enable, gid: None }
        }
    }
}
