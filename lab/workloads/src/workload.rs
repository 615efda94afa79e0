//! The trait of a workload: its keys in an experiment, and its two applications.

use hol_base::Seed;
use hol_measure::RecordKind;
use hol_transport::FramingError;

use crate::{Application, Host, Load, OnwardClient, Pace, SizeClass, Sizes, StreamLayout, WorkloadError};

/// A function that returns the length of a message from its first octets, for the framer of a byte stream.
pub type FramingFn = fn(&[u8]) -> Result<Option<usize>, FramingError>;

/// A workload; the fields of the type that implements it are the keys in experiments.
pub trait Workload {
    /// Returns the name of the workload in experiments.
    fn name(&self) -> &'static str;
    /// Returns a one-line description for lists of workloads.
    fn about(&self) -> &'static str;
    /// Returns the workload's own keys, without the keys of its load.
    fn own_keys(&self) -> &'static [&'static str];
    /// Replaces each missing key by its default.
    fn set_defaults(&mut self) {
        if let Some(load) = self.load_mut() {
            load.set_defaults();
        }
    }
    /// Rejects contradictions among the workload's own keys.
    fn check_own(&self) -> Result<(), WorkloadError>;
    /// Rejects keys that contradict each other.
    fn check(&self) -> Result<(), WorkloadError> {
        self.load().map_or(Ok(()), Load::check)?;
        self.check_own()
    }
    /// Returns what makes the next message due.
    fn pace(&self) -> Pace;
    /// Returns the settings of the load, if time makes its messages due.
    fn load(&self) -> Option<&Load> {
        None
    }
    /// Returns the settings as [`Self::load`], mutable.
    fn load_mut(&mut self) -> Option<&mut Load> {
        None
    }
    /// Returns the keys for sizes that may differ from message to message.
    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        Vec::new()
    }
    /// Returns the number of octets per message; `None` if sizes differ.
    fn size(&self) -> Option<u64>;
    /// Returns the number of octets of the longest message; `None` if it is unknown.
    fn longest_message(&self) -> Option<u64> {
        self.size()
    }
    /// Returns the classes of sizes that are also reported separately; empty if all sizes are the same.
    fn classes(&self) -> Vec<SizeClass> {
        Vec::new()
    }
    /// Returns the kind of records whose latency is reported. A transaction is done when answered, a message
    /// when it arrives.
    fn record_kind(&self) -> RecordKind;
    /// Returns whether the server of the workload is a middlebox, which can use a host's packet filter.
    fn has_middlebox(&self) -> bool {
        false
    }
    /// Returns the maximum number of connections of a client that sends `messages` messages over a transport
    /// with `parallel` connections.
    fn connections(&self, messages: u64, parallel: u16) -> u64 {
        let _ = messages;
        parallel.into()
    }
    /// Returns whether the client sends before its connection is open, if the transport allows early data.
    fn is_early(&self) -> bool {
        false
    }
    /// Returns the function that finds message boundaries in a byte stream.
    fn framing_fn(&self) -> FramingFn;
    /// Creates the client, which sends `messages` messages, or [`ENDLESS`](crate::ENDLESS) ones; arrivals and
    /// requests derive from `seed`.
    fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application>;
    /// Creates a client that sends a message whenever a request of a server waits for it. `None` if the
    /// workload's messages have no replies.
    fn onward_client(
        &self,
        lanes: StreamLayout,
        client: OnwardClient,
        seed: Seed,
    ) -> Option<Box<dyn Application>> {
        let _ = (lanes, client, seed);
        None
    }
    /// Creates the server application, which runs on `host`.
    fn server(&self, lanes: StreamLayout, messages: u64, host: Host) -> Box<dyn Application>;
    /// Returns a short description with all non-default keys.
    fn describe(&self) -> String {
        self.size().map_or_else(|| self.name().to_owned(), |size| format!("{} {size}B", self.name()))
    }
}
