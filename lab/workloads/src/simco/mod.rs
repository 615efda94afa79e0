//! `simco`: requests to a middlebox, which grants them. RFC 4540.

mod agent;
mod middlebox;
mod mix;
mod octets;

use hol_base::Seed;
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use mix::RequestMix;

use crate::load::Pacer;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::{
    Application, ENDLESS, FramingFn, Host, Load, OnwardClient, Pace, StreamLayout, Workload, WorkloadError,
};
use agent::Agent;
use middlebox::Firewall;

/// Settings of the workload `simco`: the keys of `[workload] kind = "simco"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Simco {
    /// The load: when requests are due.
    #[serde(flatten)]
    pub load: Load,
    /// Weights of the kinds of requests. A client that has no rule to extend or delete sends `enable` instead. Default: only `enable`.
    #[serde(default, skip_serializing_if = "RequestMix::only_enables")]
    pub mix: RequestMix,
}

impl Workload for Simco {
    fn name(&self) -> &'static str {
        "simco"
    }

    fn about(&self) -> &'static str {
        "requests to a middlebox (RFC 4540) that enable rules, or a --mix of requests; --filter nftables enforces the rules (kernel world)"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["mix"]
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        if self.mix.is_sustainable() { Ok(()) } else { Err(WorkloadError::Mix(self.mix)) }
    }

    fn pace(&self) -> Pace {
        self.load.pace()
    }

    fn load(&self) -> Option<&Load> {
        Some(&self.load)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        Some(&mut self.load)
    }

    /// Returns `None`, because RFC 4540 determines the sizes of the messages.
    fn size(&self) -> Option<u64> {
        None
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Transaction
    }

    fn has_middlebox(&self) -> bool {
        true
    }

    fn framing_fn(&self) -> FramingFn {
        agent::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application> {
        let requests = Agent::new(lanes, self.mix, seed.derive("workload/mix").rng());
        let pacer = self.load.pacer(messages, seed);
        Box::new(Sender::new(requests, lanes, pacer, messages, self.load.late_limit))
    }

    fn onward_client(
        &self,
        lanes: StreamLayout,
        client: OnwardClient,
        seed: Seed,
    ) -> Option<Box<dyn Application>> {
        let requests = Agent::new(lanes, self.mix, seed.derive("workload/mix").rng());
        Some(Box::new(Sender::new(requests, lanes, Pacer::for_onward_requests(client), ENDLESS, None)))
    }

    fn server(&self, lanes: StreamLayout, messages: u64, host: Host) -> Box<dyn Application> {
        Box::new(
            Receiver::new(Firewall::new(lanes, host.filter), messages)
                .with_pending_requests(host.pending_requests),
        )
    }

    fn describe(&self) -> String {
        if self.mix.only_enables() { self.name().to_owned() } else { format!("{} {}", self.name(), self.mix) }
    }
}
