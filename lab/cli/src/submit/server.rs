//! Submits an experiment to the queue of a server.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Experiment, ServerClient, describe_state, follow};
use crate::failure::Failure;
use crate::point_row;
use crate::terminal::print;

/// Options of a server's queue.
#[derive(Debug, Args, Default, PartialEq, Eq)]
pub struct ServerQueueOptions {
    /// Project of the experiment [default: your first]
    #[arg(long)]
    project: Option<String>,
    /// Priority: experiments with a higher one start first; on a server with accounts, only the leader of a project may
    /// set a priority above 0
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// Number of cores [default: all that the server has]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Swap the experiment out (stop it, keep its results and free its cores) after this time without progress or
    /// terminal activity; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_swap: u32,
    /// Swap the experiment out after this time, even if it makes progress; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    auto_swap: u32,
    /// Start the experiment now; if not enough cores are free, swap it out instead of queueing it
    #[arg(long)]
    now: bool,
    /// Hold the experiment until a user starts it
    #[arg(long)]
    hold: bool,
    /// Print the response of the server as JSON
    #[arg(long)]
    json: bool,
}

/// An experiment to be submitted to a server.
pub struct Submission<'s> {
    /// The name of the experiment on the server.
    pub name: &'s str,
    /// The text of an experiment file or ns script.
    pub text: &'s str,
    /// Whether the text is an ns script.
    pub is_script: bool,
}

impl ServerQueueOptions {
    /// Sends the experiment; waits for its end if `waits`.
    pub fn send(
        &self,
        server: &ServerClient,
        submission: &Submission<'_>,
        waits: bool,
    ) -> Result<(), Failure> {
        let submission = json!({
            "text": submission.text,
            "format": if submission.is_script { "ns" } else { "toml" },
            "name": submission.name,
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
            print(&point_row::json(&answer));
        } else {
            print(&describe_state(&experiment));
        }
        if waits { follow(server, experiment.id, self.json) } else { Ok(()) }
    }
}
