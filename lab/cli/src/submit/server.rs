//! For a server: what its queue is told.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Experiment, Server, follow, state};
use crate::failure::Failure;
use crate::row;
use crate::terminal::say;

/// What the queue of a server may be told.
#[derive(Debug, Args, Default, PartialEq, Eq)]
pub struct Queued {
    /// The project that it belongs to [default: your first]
    #[arg(long)]
    project: Option<String>,
    /// Higher ones start first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// Cores that it asks for [default: all that the server has]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Swap the experiment out after this time without activity
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_swap: u32,
    /// Swap the experiment out after this time in any case
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    auto_swap: u32,
    /// Start it now or refuse it
    #[arg(long)]
    now: bool,
    /// Do not start it until somebody does
    #[arg(long)]
    hold: bool,
    /// The answer as JSON
    #[arg(long)]
    json: bool,
}

/// An experiment as a server takes it.
pub struct Sent<'s> {
    /// Name of the experiment there.
    pub name: &'s str,
    /// An experiment file's text, or an ns script's.
    pub text: &'s str,
    /// Whether it is a script's.
    pub is_script: bool,
}

impl Queued {
    /// Sends it, and stays until it has ended if it is to wait.
    pub fn send(&self, server: &Server, sent: &Sent<'_>, waits: bool) -> Result<(), Failure> {
        let submission = json!({
            "text": sent.text,
            "format": if sent.is_script { "ns" } else { "toml" },
            "name": sent.name,
            "project": self.project,
            "batch": !self.now,
            "priority": self.priority,
            "cores": self.cores,
            "idle_swap": self.idle_swap,
            "auto_swap": self.auto_swap,
            "hold": self.hold,
        });
        let answer = server.post("/api/experiments", &submission)?;
        let experiment = Experiment::deserialize(&answer).map_err(Failure::failed)?;
        if self.json {
            say(&row::json(&answer));
        } else {
            say(&state(&experiment));
        }
        if waits { follow(server, experiment.id, self.json) } else { Ok(()) }
    }
}
