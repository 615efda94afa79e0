//! What a workload is: keys of an experiment, and the two applications that they make.

use hol_base::Seed;
use hol_measure::RecordKind;
use hol_transport::FramingError;

use crate::{Application, Asker, Host, Lanes, Load, Pace, WorkloadError};

/// Tells how long a message is, from its first octets: what a byte stream's framer needs.
pub type LengthOf = fn(&[u8]) -> Result<Option<usize>, FramingError>;

/// The contract of a workload; its fields are the keys that experiments give.
pub trait Workload {
    /// As it is written in an experiment.
    fn name(&self) -> &'static str;
    /// What it does, for who looks for one.
    fn about(&self) -> &'static str;
    /// The keys of its own; those of its load are not among them.
    fn own_keys(&self) -> &'static [&'static str];
    /// Spells every default out.
    fn settle(&mut self) {
        if let Some(load) = self.load_mut() {
            load.settle();
        }
    }
    /// Refuses keys of its own that contradict each other.
    fn check_own(&self) -> Result<(), WorkloadError>;
    /// Refuses keys that contradict each other.
    fn check(&self) -> Result<(), WorkloadError> {
        self.load().map_or(Ok(()), Load::check)?;
        self.check_own()
    }
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
    /// Octets of its longest message, if anything but its load says so.
    fn longest(&self) -> Option<u64> {
        self.size()
    }
    /// The records that its latency is about. A transaction is done when it is answered, a message when it is there.
    fn record_kind(&self) -> RecordKind;
    /// Whether its server is a middlebox, which a host's packet filter is for.
    fn has_middlebox(&self) -> bool {
        false
    }
    /// How many connections a client opens at most that sends `messages` messages, of a transport that has `parallel` ones.
    fn connections(&self, messages: u64, parallel: u16) -> u64 {
        let _ = messages;
        parallel.into()
    }
    /// Whether it sends before its connection is open, if the transport lets it.
    fn is_early(&self) -> bool {
        false
    }
    /// What cuts a byte stream into its messages.
    fn length_of(&self) -> LengthOf;
    /// The side that connects and sends `messages` messages, or [`ENDLESS`](crate::ENDLESS) ones; of `seed` come the
    /// arrivals and what is asked for.
    fn client(&self, lanes: Lanes, messages: u64, seed: Seed) -> Box<dyn Application>;
    /// The side that connects and sends whenever a request waits for it to ask; `None`: it is not a workload of requests that are
    /// answered one by one, so it can neither ask on behalf of others nor let others ask.
    fn asking(&self, lanes: Lanes, asker: Asker, seed: Seed) -> Option<Box<dyn Application>> {
        let _ = (lanes, asker, seed);
        None
    }
    /// The side that listens, on a host that lends it what it has.
    fn server(&self, lanes: Lanes, messages: u64, host: Host) -> Box<dyn Application>;
    /// In a few words, with what is not as usual.
    fn describe(&self) -> String {
        self.size().map_or_else(|| self.name().to_owned(), |size| format!("{} {size}B", self.name()))
    }
}
