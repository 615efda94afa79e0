//! An experiment as the API returns it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::refusal::Refusal;

/// The state of an experiment: the states of Emulab, and one for completed experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The experiment is held until a user starts it.
    New,
    /// The experiment waits for free cores.
    Queued,
    /// The process has started, and has not reported progress yet.
    Starting,
    /// The process is running.
    Active,
    /// The experiment is stopped; it keeps its results, and uses no cores.
    SwappedOut,
    /// A user has ended the experiment; it keeps its results, and cannot be continued.
    Terminated,
    /// The process has failed.
    Failed,
    /// All runs are complete.
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

    /// Returns the state whose word in JSON is `word`.
    pub fn from_word(word: &str) -> Option<Self> {
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
    /// Runs that have ended, including failed ones.
    pub runs: u64,
    /// Runs that are needed, as far as is known.
    pub runs_wanted: u64,
    /// Failed runs.
    pub failed: u64,
    /// Messages that were delivered or given up.
    pub messages: u64,
    /// Messages of all needed runs.
    pub messages_wanted: u64,
    /// Completed share of the work, 0 to 1.
    pub share: f64,
    /// Estimated remaining seconds, if known.
    #[serde(rename = "left")]
    pub remaining_seconds: Option<f64>,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    /// Number of the experiment, which is never reused.
    pub id: i64,
    /// Short name, which is also used in file names.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// Name of the project.
    pub project: String,
    /// Name of the owner.
    pub owner: String,
    /// State of the experiment.
    pub state: State,
    /// Reason for the state; may be empty.
    pub why: String,
    /// Priority; experiments with a higher one start first.
    pub priority: i64,
    /// Whether the experiment waits for free cores instead of being swapped out.
    pub batch: bool,
    /// Number of cores that the experiment needs.
    pub cores: u32,
    /// Seconds without progress after which the experiment is swapped out.
    pub idle_swap: Option<u32>,
    /// Seconds after which the experiment is swapped out in any case.
    pub auto_swap: Option<u32>,
    /// Name of the study, if the experiment is one.
    pub study: Option<String>,
    /// Whether the experiment sends a twentieth of the study's messages.
    pub quick: bool,
    /// Number of the last version of the text.
    pub version: u32,
    /// Submission time, RFC 3339.
    pub created: String,
    /// Time of the last state change, RFC 3339.
    pub changed: String,
    /// Language of the text.
    pub format: Format,
    /// Progress of the experiment.
    pub progress: Progress,
    /// Paths of related resources.
    pub links: Links,
}

impl Experiment {
    /// Returns an error for a study, which has several experiments and no text.
    pub fn check_is_no_study(&self) -> Result<(), Refusal> {
        match &self.study {
            None => Ok(()),
            Some(study) => {
                let why = format!("{study} is a study, which consists of several experiments");
                Err(Refusal::conflict(why, "submit one of these experiments by itself"))
            }
        }
    }
}

/// Related resources of an experiment, as paths on this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Links {
    /// Path of the experiment.
    #[serde(rename = "self")]
    pub this: String,
    /// Path of the text.
    pub text: String,
    /// Path of the report.
    pub report: String,
    /// Path of the list of files.
    pub files: String,
    /// Path of the event stream.
    pub events: String,
}

impl Links {
    /// Returns the links of experiment `id`.
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
    /// Only experiments in this state.
    pub state: Option<State>,
    /// Only experiments of the project with this name.
    pub project: Option<String>,
    /// Only experiments of the user with this name.
    pub owner: Option<String>,
    /// Only experiments whose title or name contains this text.
    pub search: Option<String>,
    /// Maximum number of experiments.
    pub limit: usize,
    /// Only experiments with a smaller number than this.
    pub before: Option<i64>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { state: None, project: None, owner: None, search: None, limit: 100, before: None }
    }
}
