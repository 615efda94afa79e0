//! What a workload is: keys of an experiment, and the two applications that they make.

use hol_base::{ByteCount, Seed};
use hol_measure::RecordKind;
use hol_transport::FramingError;
use serde::{Deserialize, Serialize};

use crate::{Application, Host, Lanes, Load, Pace, WorkloadError};

/// Tells how long a message is, from its first octets: what a byte stream's framer needs.
pub type LengthOf = fn(&[u8]) -> Result<Option<usize>, FramingError>;

/// The contract of a workload; its fields are the keys that experiments give.
pub trait Workload {
    /// As it is written in an experiment.
    fn name(&self) -> &'static str;
    /// What it does, for who looks for one.
    fn about(&self) -> &'static str;
    /// The keys of its own; those of its load are not among them.
    fn own_keys(&self) -> &'static [&'static str] {
        &["size"]
    }
    /// Spells every default out.
    fn settle(&mut self) {}
    /// Refuses keys that contradict each other.
    fn check(&self) -> Result<(), WorkloadError>;
    /// What makes the next message due.
    fn pace(&self) -> Pace;
    /// The keys of its load, if time makes its messages due.
    fn load(&self) -> Option<&Load> {
        None
    }
    /// The same, to be changed.
    fn load_mut(&mut self) -> Option<&mut Load> {
        None
    }
    /// Octets of a message; `None`: its messages have sizes of their own.
    fn size(&self) -> Option<u64>;
    /// The records that its latency is about. A transaction is done when it is answered, a message when it is there.
    fn record_kind(&self) -> RecordKind;
    /// Whether its server is a middlebox, which a host's packet filter is for.
    fn has_middlebox(&self) -> bool {
        false
    }
    /// What cuts a byte stream into its messages.
    fn length_of(&self) -> LengthOf;
    /// The side that connects and sends `messages` messages, or [`ENDLESS`](crate::ENDLESS) ones; of `seed` come the
    /// arrivals and what is asked for.
    fn client(&self, lanes: Lanes, messages: u64, seed: Seed) -> Box<dyn Application>;
    /// The side that listens, on a host that lends it what it has.
    fn server(&self, lanes: Lanes, messages: u64, host: Host) -> Box<dyn Application>;
    /// In a few words, with what is not as usual.
    fn describe(&self) -> String {
        self.size().map_or_else(|| self.name().to_owned(), |size| format!("{} {size}B", self.name()))
    }
}

/// Octets of a message that is padding, `DEFAULT` unless an experiment says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageSize<const DEFAULT: u64>(pub ByteCount);

impl<const DEFAULT: u64> Default for MessageSize<DEFAULT> {
    fn default() -> Self {
        Self(ByteCount(DEFAULT))
    }
}

impl<const DEFAULT: u64> MessageSize<DEFAULT> {
    /// As a number.
    pub const fn octets(self) -> u64 {
        self.0.0
    }

    pub(crate) fn check(self) -> Result<(), WorkloadError> {
        let possible = (WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE).contains(&self.octets());
        if possible { Ok(()) } else { Err(WorkloadError::Size { size: self.octets() }) }
    }
}
