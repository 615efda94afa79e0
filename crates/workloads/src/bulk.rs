//! `bulk`: a greedy sender.

use hol_base::Seed;
use hol_measure::RecordKind;
use serde::{Deserialize, Serialize};

use crate::load::Pacer;
use crate::padding::{self, Numbered, Silence};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::{Application, Host, Lanes, LengthOf, MessageSize, Pace, Workload, WorkloadError};

/// Its keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Octets of a message.
    #[serde(default)]
    pub size: MessageSize<4096>,
}

impl Workload for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn about(&self) -> &'static str {
        "as oneway, each as soon as the transport has taken the last: a greedy sender"
    }

    fn check(&self) -> Result<(), WorkloadError> {
        self.size.check()
    }

    fn pace(&self) -> Pace {
        Pace::Taken
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

    fn client(&self, lanes: Lanes, messages: u64, _: Seed) -> Box<dyn Application> {
        let requests = Numbered::<false>::new(self.size.octets());
        Box::new(Sender::new(requests, lanes, Pacer::greedy(messages), messages, None))
    }

    fn server(&self, _: Lanes, messages: u64, _: Host) -> Box<dyn Application> {
        Box::new(Receiver::new(Silence, messages))
    }
}
