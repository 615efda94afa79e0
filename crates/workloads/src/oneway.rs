//! `oneway`: messages without replies.

use hol_base::Seed;
use hol_measure::RecordKind;
use serde::{Deserialize, Serialize};

use crate::padding::{self, Numbered, Silence};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::{Application, Host, Lanes, LengthOf, Load, MessageSize, Pace, Workload, WorkloadError};

/// Its keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oneway {
    /// When messages are due.
    #[serde(flatten)]
    pub load: Load,
    /// Octets of a message.
    #[serde(default)]
    pub size: MessageSize<128>,
}

impl Workload for Oneway {
    fn name(&self) -> &'static str {
        "oneway"
    }

    fn about(&self) -> &'static str {
        "messages without replies"
    }

    fn settle(&mut self) {
        self.load.settle();
    }

    fn check(&self) -> Result<(), WorkloadError> {
        self.load.check()?;
        self.size.check()
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

    fn size(&self) -> Option<u64> {
        Some(self.size.octets())
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Message
    }

    fn length_of(&self) -> LengthOf {
        padding::length_of
    }

    fn client(&self, lanes: Lanes, messages: u64, seed: Seed) -> Box<dyn Application> {
        let requests = Numbered::<false>::new(self.size.octets());
        let pacer = self.load.pacer(messages, seed.derive("workload/arrivals").rng());
        Box::new(Sender::new(requests, lanes, pacer, messages, self.load.late_limit))
    }

    fn server(&self, _: Lanes, messages: u64, _: Host) -> Box<dyn Application> {
        Box::new(Receiver::new(Silence, messages))
    }
}
