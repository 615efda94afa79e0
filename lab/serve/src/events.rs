//! Events for watchers.
//!
//! One channel for all; a watcher filters it. A watcher that is too slow loses events and gets the current
//! state.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{broadcast, watch};

/// Maximum events that a watcher may lag behind.
const BACKLOG: usize = 1024;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The state of the experiment changed.
    State,
    /// Its progress changed.
    Progress,
    /// A point has new values.
    Point,
    /// A line of its log.
    Log,
    /// A new entry of its shell.
    Shell,
    /// It was deleted, or somebody may no longer see it: streams end, and clients with access reconnect.
    Closed,
}

impl Kind {
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

/// An event.
#[derive(Debug)]
pub struct ServerEvent {
    /// The experiment; 0 in `Closed` means all.
    pub experiment: i64,
    /// Its project.
    pub project: i64,
    /// Its kind.
    pub kind: Kind,
    /// Details, as JSON in one line.
    pub data: String,
}

/// Distributes events to watchers.
#[derive(Debug)]
pub struct Hub {
    sender: broadcast::Sender<Arc<ServerEvent>>,
    stop: watch::Sender<bool>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG), stop: watch::Sender::new(false) }
    }
}

impl Hub {
    /// Sends an event to all watchers.
    pub fn publish(&self, experiment: i64, project: i64, kind: Kind, data: &impl Serialize) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let data = serde_json::to_string(data).expect("what happens is JSON");
        // There may be no watcher left.
        let _ = self.sender.send(Arc::new(ServerEvent { experiment, project, kind, data }));
    }

    /// Watches from now on.
    pub fn watch(&self) -> broadcast::Receiver<Arc<ServerEvent>> {
        self.sender.subscribe()
    }

    /// Returns the number of watchers.
    pub fn watchers(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Ends all streams, so that the server can stop.
    pub fn stop(&self) {
        let _ = self.stop.send_replace(true);
    }

    /// Becomes true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }
}
