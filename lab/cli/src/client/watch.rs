//! `hol watch`: prints the events of an experiment on a server.

use std::io::BufReader;

use clap::Args;
use serde::Deserialize;

use super::server::{ServerArgs, ServerClient};
use super::stream::read_event;
use crate::failure::Failure;
use crate::progress::format_seconds;
use crate::terminal::{group_digits, print};

/// Maximum number of consecutive event streams that end without an event before the command gives up.
const MAX_SILENT_STREAMS: u32 = 5;

/// Print the events of an experiment on a server until it has ended.
#[derive(Debug, Args)]
pub struct Watch {
    /// Number of the experiment
    id: i64,
    #[command(flatten)]
    server_args: ServerArgs,
    /// Print a JSON object for each event, with its name and its data, one per line
    #[arg(long)]
    json: bool,
}

/// An experiment on a server, with the fields that are shown; docs/serve.md describes the API.
#[derive(Debug, Deserialize)]
pub struct Experiment {
    /// Number of the experiment.
    pub id: i64,
    name: String,
    state: String,
    /// Why the experiment is in its current state; may be empty.
    why: String,
}

/// The numbers of completed and failed runs of the experiment.
#[derive(Deserialize)]
struct Progress {
    /// Number of completed runs.
    runs: u64,
    runs_wanted: u64,
    /// Number of failed runs.
    failed: u64,
    share: f64,
    #[serde(rename = "left")]
    remaining_seconds: Option<f64>,
}

impl Watch {
    /// Prints the events of the experiment until it ends.
    pub fn run(&self) -> Result<(), Failure> {
        follow(&self.server_args.server()?, self.id, self.json)
    }
}

/// Prints the events of experiment `id` until it has ended; returns an error if it failed.
pub fn follow(server: &ServerClient, id: i64, is_json: bool) -> Result<(), Failure> {
    let mut silent = 0;
    while silent < MAX_SILENT_STREAMS {
        silent += 1;
        let answer = server.get(&format!("/api/experiments/{id}/events"), &[])?;
        let mut stream = BufReader::new(answer.into_body().into_reader());
        // A stream ends if the server stops or the user's rights change; the next one begins with the current state.
        while let Ok(Some(event)) = read_event(&mut stream) {
            silent = 0;
            if is_json {
                print(&format!("{{\"event\":\"{}\",\"data\":{}}}\n", event.name, event.data));
            }
            match event.name.as_str() {
                "state" => {
                    let experiment: Experiment =
                        serde_json::from_str(&event.data).map_err(Failure::failed)?;
                    if !is_json {
                        print(&describe_state(&experiment));
                    }
                    if let Some(end) = final_result(&experiment) {
                        return end;
                    }
                }
                "progress" if !is_json => {
                    let progress = serde_json::from_str(&event.data).map_err(Failure::failed)?;
                    print(&progress_line(&progress));
                }
                _ => (),
            }
        }
    }
    Err(Failure::Failed(format!(
        "the server ended the stream {MAX_SILENT_STREAMS} times; run `hol watch {id}` to try again"
    )))
}

fn final_result(experiment: &Experiment) -> Option<Result<(), Failure>> {
    let Experiment { id, state, why, .. } = experiment;
    match state.as_str() {
        "done" => Some(Ok(())),
        "failed" => Some(Err(Failure::Failed(format!("experiment {id} failed: {why}")))),
        "terminated" | "swapped_out" => {
            let what = state.replace('_', " ");
            Some(Err(Failure::Failed(format!("experiment {id} was {what}: {why}"))))
        }
        _ => None,
    }
}

/// Returns the state of an experiment as a line.
pub fn describe_state(experiment: &Experiment) -> String {
    let Experiment { id, name, state, why } = experiment;
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("experiment {id}, {name}: {}{why}\n", state.replace('_', " "))
}

fn progress_line(progress: &Progress) -> String {
    let Progress { runs, runs_wanted, failed, share, remaining_seconds } = *progress;
    let failed = if failed > 0 { format!(", {} failed", group_digits(failed)) } else { String::new() };
    let left = remaining_seconds
        .map_or(String::new(), |seconds| format!(", about {} left", format_seconds(seconds)));
    format!(
        "{:.0} % ({} of {} runs{failed}){left}\n",
        (100.0 * share).floor(),
        group_digits(runs),
        group_digits(runs_wanted)
    )
}
