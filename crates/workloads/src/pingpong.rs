//! `pingpong`: as `echo`, but the next message goes out when the reply to the last came back.

use hol_base::Seed;
use hol_measure::RecordKind;
use serde::{Deserialize, Serialize};

use crate::load::Pacer;
use crate::padding::{self, Echoes, Numbered};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::{Application, Host, Lanes, LengthOf, MessageSize, Pace, Workload, WorkloadError};

/// Its keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pingpong {
    /// Octets of a message, and of its reply.
    #[serde(default)]
    pub size: MessageSize<128>,
}

impl Workload for Pingpong {
    fn name(&self) -> &'static str {
        "pingpong"
    }

    fn about(&self) -> &'static str {
        "as echo, but the next message goes out when the reply to the last came back"
    }

    fn check(&self) -> Result<(), WorkloadError> {
        self.size.check()
    }

    fn pace(&self) -> Pace {
        Pace::Replied
    }

    fn size(&self) -> Option<u64> {
        Some(self.size.octets())
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Transaction
    }

    fn length_of(&self) -> LengthOf {
        padding::length_of
    }

    fn client(&self, lanes: Lanes, messages: u64, _: Seed) -> Box<dyn Application> {
        let requests = Numbered::<true>::new(self.size.octets());
        Box::new(Sender::new(requests, lanes, Pacer::by_replies(messages), messages, None))
    }

    fn server(&self, _: Lanes, messages: u64, _: Host) -> Box<dyn Application> {
        Box::new(Receiver::new(Echoes, messages))
    }
}
