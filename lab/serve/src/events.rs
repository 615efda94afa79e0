//! What happens, as it happens, for whoever watches.
//!
//! One channel for all: a watcher takes out what it asked for. One that is too slow loses what it missed and is told where things are.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{broadcast, watch};

/// Events that a slow watcher may be behind.
const BACKLOG: usize = 1024;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The experiment has another state.
    State,
    /// It is further.
    Progress,
    /// A point has other numbers.
    Point,
    /// A line of its log.
    Log,
    /// Something was said in its shell.
    Shell,
    /// It is no more, or somebody may no longer see it: streams end, and whoever may comes back.
    Closed,
}

impl Kind {
    /// The name of the event. HTML standard, section 9.2.6
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

/// Something that has happened.
#[derive(Debug)]
pub struct Happening {
    /// To which experiment; of `Closed`, 0 is all.
    pub experiment: i64,
    /// In which project.
    pub project: i64,
    /// What.
    pub kind: Kind,
    /// More of it, as JSON in one line.
    pub data: String,
}

/// Where happenings go, and where watchers get them.
#[derive(Debug)]
pub struct Hub {
    sender: broadcast::Sender<Arc<Happening>>,
    stop: watch::Sender<bool>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG), stop: watch::Sender::new(false) }
    }
}

impl Hub {
    /// Tells all that watch.
    pub fn tell(&self, experiment: i64, project: i64, kind: Kind, data: &impl Serialize) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let data = serde_json::to_string(data).expect("what happens is JSON");
        // Nobody may be left to hear it.
        let _ = self.sender.send(Arc::new(Happening { experiment, project, kind, data }));
    }

    /// Watches from now on.
    pub fn watch(&self) -> broadcast::Receiver<Arc<Happening>> {
        self.sender.subscribe()
    }

    /// How many watch.
    pub fn watchers(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Ends all streams: a server that waits for them to end would wait for ever.
    pub fn stop(&self) {
        let _ = self.stop.send_replace(true);
    }

    /// Becomes true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }
}
