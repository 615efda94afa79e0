//! `hol submit`: an experiment for a server's queue.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::server::At;
use super::watch::follow;
use crate::failure::Failure;
use crate::row;
use crate::terminal::say;

/// Send an experiment to a server, where it waits for its cores.
#[derive(Debug, Args)]
pub struct Submit {
    /// The experiment, or an ns script (FILE.ns)
    file: PathBuf,
    #[command(flatten)]
    at: At,
    /// What it is called there [default: the file's name without the ending]
    #[arg(long)]
    name: Option<String>,
    /// The project that it belongs to [default: your first]
    #[arg(long)]
    project: Option<String>,
    /// Higher ones start first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// Cores that it asks for [default: all that the server has]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Swap it out when nothing was heard of it for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_swap: u32,
    /// Swap it out after so long whatever it does
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    auto_swap: u32,
    /// Start it now or not at all
    #[arg(long)]
    now: bool,
    /// Keep it from starting until somebody starts it
    #[arg(long)]
    hold: bool,
    /// Stay until it has ended
    #[arg(long)]
    wait: bool,
    /// The answer as JSON
    #[arg(long)]
    json: bool,
}

impl Submit {
    /// Sends it.
    pub fn run(&self) -> Result<(), Failure> {
        let server = self.at.server()?;
        let text = std::fs::read_to_string(&self.file).map_err(|e| {
            Failure::Usage(format!("{}: {e}; name a file that is there", self.file.display()))
        })?;
        let ending = self.file.extension().unwrap_or_default();
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let submission = json!({
            "text": text,
            "format": if ending == "ns" { "ns" } else { "toml" },
            "name": self.name.as_ref().unwrap_or(&stem),
            "project": self.project,
            "batch": !self.now,
            "priority": self.priority,
            "cores": self.cores,
            "idle_swap": self.idle_swap,
            "auto_swap": self.auto_swap,
            "hold": self.hold,
        });
        let experiment = server.post("/api/experiments", &submission)?;
        if self.json {
            say(&row::json(&experiment));
        } else {
            say(&format!(
                "experiment {}, {}, is {}\n",
                experiment.id,
                experiment.name,
                experiment.state.word()
            ));
        }
        if self.wait { follow(&server, experiment.id, self.json) } else { Ok(()) }
    }
}
