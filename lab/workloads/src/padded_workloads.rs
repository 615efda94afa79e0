//! Workloads whose messages are padding: `echo`, `pingpong`, `oneway` and `bulk`. They differ in what makes
//! a message due, and in whether it is returned.

use hol_base::{ByteCount, Duration, Seed};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Pacer;
use crate::padded_messages::{self, NumberedRequests};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::{
    Application, ENDLESS, FramingFn, Host, Load, OnwardClient, Pace, StreamLayout, Workload, WorkloadError,
};

/// A workload whose messages contain only a number and zeros.
pub trait Padded {
    /// Name of the workload in experiments.
    const NAME: &'static str;
    /// A one-line description for lists of workloads.
    const ABOUT: &'static str;
    /// Whether the server sends each message back.
    const IS_ECHOED: bool;
    /// The keys of the workload, without the keys of its load.
    const KEYS: &'static [&'static str] = &["size"];

    /// Returns the number of octets per message.
    fn octets(&self) -> u64;
    /// Returns what makes the next message of the workload due.
    fn pace(&self) -> Pace;
    /// Returns the maximum time for which the workload sends after its connections are open; `None`: no limit.
    fn max_duration(&self) -> Option<Duration> {
        None
    }
    /// Returns the settings of the load; `None` unless messages are due at given times.
    fn load(&self) -> Option<&Load> {
        None
    }
    /// Returns the settings of [`Self::load`], mutable.
    fn load_mut(&mut self) -> Option<&mut Load> {
        None
    }
}

impl<W: Padded> Workload for W {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn about(&self) -> &'static str {
        W::ABOUT
    }

    fn own_keys(&self) -> &'static [&'static str] {
        W::KEYS
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        let (size, possible) = (self.octets(), WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE);
        if possible.contains(&size) { Ok(()) } else { Err(WorkloadError::Size { size }) }
    }

    fn pace(&self) -> Pace {
        Padded::pace(self)
    }

    fn load(&self) -> Option<&Load> {
        Padded::load(self)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        Padded::load_mut(self)
    }

    fn size(&self) -> Option<u64> {
        Some(self.octets())
    }

    fn record_kind(&self) -> RecordKind {
        if W::IS_ECHOED { RecordKind::Transaction } else { RecordKind::Message }
    }

    fn framing_fn(&self) -> FramingFn {
        padded_messages::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application> {
        let (requests, pace) = (NumberedRequests::new(self.octets(), self.record_kind()), Padded::pace(self));
        let (pacer, late_limit) = match Padded::load(self) {
            Some(load) => (load.pacer(messages, seed), load.late_limit),
            None => (Pacer::untimed(pace, messages).with_max_duration(Padded::max_duration(self)), None),
        };
        Box::new(Sender::new(requests, lanes, pacer, messages, late_limit))
    }

    fn onward_client(
        &self,
        lanes: StreamLayout,
        client: OnwardClient,
        _: Seed,
    ) -> Option<Box<dyn Application>> {
        let requests = NumberedRequests::new(self.octets(), self.record_kind());
        let sender = Sender::new(requests, lanes, Pacer::for_onward_requests(client), ENDLESS, None);
        W::IS_ECHOED.then(|| Box::new(sender) as Box<dyn Application>)
    }

    fn server(&self, _: StreamLayout, messages: u64, host: Host) -> Box<dyn Application> {
        let reader = padded_messages::PaddingReplies { is_echo: W::IS_ECHOED };
        Box::new(Receiver::new(reader, messages).with_pending_requests(host.pending_requests))
    }
}

/// The size of messages in octets; the default is `DEFAULT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MessageSize<const DEFAULT: u64>(pub ByteCount);

impl<const DEFAULT: u64> Default for MessageSize<DEFAULT> {
    fn default() -> Self {
        Self(ByteCount(DEFAULT))
    }
}
