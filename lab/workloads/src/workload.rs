//! The trait of a workload: its keys in an experiment, and its two applications.

use hol_base::Seed;
use hol_measure::RecordKind;
use hol_transport::FramingError;

use crate::{Application, Host, Load, OnwardClient, Pace, SizeClass, Sizes, StreamLayout, WorkloadError};

/// A function that returns the length of a message from its first octets, with which a framer splits a byte stream.
pub type FramingFn = fn(&[u8]) -> Result<Option<usize>, FramingError>;

/// A workload. The fields of the type that implements the trait are the workload's keys in experiments.
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
    /// Returns an error if the workload's own keys contradict each other.
    fn check_own(&self) -> Result<(), WorkloadError>;
    /// Returns an error if keys contradict each other.
    fn check(&self) -> Result<(), WorkloadError> {
        self.load().map_or(Ok(()), Load::check)?;
        self.check_own()
    }
    /// Returns what makes the next message of the workload due.
    fn pace(&self) -> Pace;
    /// Returns the settings of the load; `None` unless messages are due at given times.
    fn load(&self) -> Option<&Load> {
        None
    }
    /// Returns the settings of [`Self::load`], mutable.
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
    /// Returns the classes of sizes for which results are also reported separately; empty if all sizes are the same.
    fn classes(&self) -> Vec<SizeClass> {
        Vec::new()
    }
    /// Returns the kind of records whose response times are reported. A transaction ends with its reply, a message with
    /// its arrival.
    fn record_kind(&self) -> RecordKind;
    /// Returns whether the server of the workload is a middlebox, which can use the packet filter of its host.
    fn has_middlebox(&self) -> bool {
        false
    }
    /// Returns the maximum number of connections of a client that sends `messages` messages over a transport
    /// with `parallel` connections.
    fn connections(&self, messages: u64, parallel: u16) -> u64 {
        let _ = messages;
        parallel.into()
    }
    /// Returns whether the client sends before its connection is open if the transport supports early data.
    fn is_early(&self) -> bool {
        false
    }
    /// Returns the function that finds message boundaries in a byte stream.
    fn framing_fn(&self) -> FramingFn;
    /// Creates the client, which sends `messages` messages ([`ENDLESS`](crate::ENDLESS): unlimited). Arrivals and
    /// requests derive from `seed`.
    fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application>;
    /// Creates a client that sends a message whenever a request of a server waits for it to do so. `None` if the
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
    /// Returns a short description of the workload with all keys that differ from their defaults.
    fn describe(&self) -> String {
        self.size().map_or_else(|| self.name().to_owned(), |size| format!("{} {size}B", self.name()))
    }
}
