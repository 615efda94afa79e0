//! Events of experiments, for watchers: clients with an open stream.
//!
//! All watchers share one channel, and each filters it. A watcher that is too slow loses events and gets the current state.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{broadcast, watch};

/// Maximum number of events that a watcher may lag behind.
const MAX_LAG: usize = 1024;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The state of the experiment changed.
    State,
    /// The progress of the experiment changed.
    Progress,
    /// A point has new results.
    Point,
    /// The log of the experiment has a new line.
    Log,
    /// The transcript of the experiment's shell has a new entry.
    Shell,
    /// The experiment was deleted, or access rights changed: streams end, and clients that still have access reconnect.
    Closed,
}

impl EventKind {
    /// Returns the name of the event. HTML standard, section 9.2.6
    pub const fn word(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Progress => "progress",
            Self::Point => "point",
            Self::Log => "log",
            Self::Shell => "shell",
            Self::Closed => "closed",
        }
    }
}

/// An event of an experiment.
#[derive(Debug)]
pub struct ServerEvent {
    /// Number of the experiment; 0 in `Closed` means all experiments.
    pub experiment: i64,
    /// Number of the experiment's project.
    pub project: i64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Data of the event, as JSON on one line.
    pub data: String,
}

/// Distributes events to watchers.
#[derive(Debug)]
pub struct EventHub {
    sender: broadcast::Sender<Arc<ServerEvent>>,
    /// True when the server stops, which ends all streams.
    stop: watch::Sender<bool>,
}

impl Default for EventHub {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(MAX_LAG), stop: watch::Sender::new(false) }
    }
}

impl EventHub {
    /// Sends an event to all watchers.
    pub fn publish(&self, experiment: i64, project: i64, kind: EventKind, data: &impl Serialize) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let data = serde_json::to_string(data).expect("the data of an event can be written as JSON");
        // Sending fails if the last watcher has just left.
        let _ = self.sender.send(Arc::new(ServerEvent { experiment, project, kind, data }));
    }

    /// Subscribes to all events from now on.
    pub fn watch(&self) -> broadcast::Receiver<Arc<ServerEvent>> {
        self.sender.subscribe()
    }

    /// Returns the number of watchers.
    pub fn watcher_count(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Ends all streams, so that the server can stop.
    pub fn stop(&self) {
        let _ = self.stop.send_replace(true);
    }

    /// Returns a value that becomes true when the server stops.
    pub fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }
}
