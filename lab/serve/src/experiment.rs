//! An experiment as shown by the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::refusal::Refusal;

/// The state of an experiment, as in section 2.2 of the thesis, and one for completed experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Held until somebody starts it.
    New,
    /// Starts when cores are free.
    Queued,
    /// Its process has started without reporting yet.
    Starting,
    /// Running.
    Active,
    /// Stopped with its results so far, without cores.
    SwappedOut,
    /// Ended by a user; results stay.
    Terminated,
    /// Could not continue.
    Failed,
    /// Completed.
    Done,
}

impl State {
    /// All states, in the order of a life cycle.
    pub const ALL: [Self; 8] = [
        Self::New,
        Self::Queued,
        Self::Starting,
        Self::Active,
        Self::SwappedOut,
        Self::Terminated,
        Self::Failed,
        Self::Done,
    ];

    /// Returns the word used in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::SwappedOut => "swapped_out",
            Self::Terminated => "terminated",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }

    /// Returns the state with this word.
    pub fn called(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// The language of an experiment's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// An experiment file.
    #[default]
    Toml,
    /// An ns script.
    Ns,
}

impl Format {
    /// Returns the word used in JSON, which is also the file suffix.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Toml => "toml",
            Self::Ns => "ns",
        }
    }
}

/// The progress of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Completed runs.
    pub runs: u64,
    /// Runs known to be needed.
    pub runs_wanted: u64,
    /// Failed runs.
    pub failed: u64,
    /// Settled messages.
    pub messages: u64,
    /// Messages of all runs known to be needed.
    pub messages_wanted: u64,
    /// Completed share of the work, 0 to 1.
    pub share: f64,
    /// Estimated seconds left, if known.
    pub left: Option<f64>,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    /// Its number, which is never reused.
    pub id: i64,
    /// Short, as in the name of a file.
    pub name: String,
    /// A one-line title.
    pub title: String,
    /// Its project.
    pub project: String,
    /// Its owner.
    pub owner: String,
    /// Its state.
    pub state: State,
    /// The reason for its state; may be empty.
    pub why: String,
    /// Priority; higher ones start first.
    pub priority: i64,
    /// Whether it waits for free cores instead of being rejected.
    pub batch: bool,
    /// Cores that it uses.
    pub cores: u32,
    /// Seconds without progress after which it is swapped out.
    pub idle_swap: Option<u32>,
    /// Seconds after which it is swapped out in any case.
    pub auto_swap: Option<u32>,
    /// Name of the study, if it is one.
    pub study: Option<String>,
    /// Whether it has a twentieth of the study's messages.
    pub quick: bool,
    /// Version of its text.
    pub version: u32,
    /// Submission time, RFC 3339.
    pub created: String,
    /// Time of the last state change, RFC 3339.
    pub changed: String,
    /// The language of its text.
    pub format: Format,
    /// Its progress.
    pub progress: Progress,
    /// Related resources.
    pub links: Links,
}

impl Experiment {
    /// Returns an error for a study, which has several experiments and no text.
    pub fn check_is_no_study(&self) -> Result<(), Refusal> {
        match &self.study {
            None => Ok(()),
            Some(study) => {
                let why = format!("{study} is a study, which has several experiments");
                Err(Refusal::conflict(why, "submit one of them as an experiment of its own"))
            }
        }
    }
}

/// Related resources of an experiment, as paths on this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Links {
    /// The experiment.
    #[serde(rename = "self")]
    pub this: String,
    /// Its text.
    pub text: String,
    /// The page of its results.
    pub report: String,
    /// Its files.
    pub files: String,
    /// Its event stream.
    pub events: String,
}

impl Links {
    /// The links of experiment `id`.
    pub fn of(id: i64) -> Self {
        let path = |rest| format!("/api/experiments/{id}{rest}");
        Self {
            this: path(""),
            text: path("/text"),
            report: path("/report/"),
            files: path("/files/"),
            events: path("/events"),
        }
    }
}

/// Selects experiments of a list.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those of the project of this name.
    pub project: Option<String>,
    /// Only those of the user of this name.
    pub owner: Option<String>,
    /// Only those with this in their title or name.
    pub search: Option<String>,
    /// Maximum number.
    pub limit: usize,
    /// Only those before this one.
    pub before: Option<i64>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { state: None, project: None, owner: None, search: None, limit: 100, before: None }
    }
}
