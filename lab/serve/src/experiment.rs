//! An experiment as the server tells of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What becomes of an experiment: the states of the thesis, section 2.2, and one for nothing left to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is held back until somebody starts it.
    New,
    /// It starts when cores are free.
    Queued,
    /// Its process has begun and has told nothing yet.
    Starting,
    /// It runs.
    Active,
    /// It has all it had and takes no core.
    SwappedOut,
    /// Somebody ended it; what was measured stays.
    Terminated,
    /// It could not go on.
    Failed,
    /// Nothing is left to run.
    Done,
}

impl State {
    /// All of them, in the order of a life.
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

    /// As in JSON.
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

    /// The state that is called so.
    pub fn called(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// In which language the text of an experiment is.
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
    /// As in JSON, and the ending of a file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Toml => "toml",
            Self::Ns => "ns",
        }
    }
}

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Runs that are done.
    pub runs: u64,
    /// Runs that are known to be needed.
    pub runs_wanted: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Messages that are settled.
    pub messages: u64,
    /// Messages of all runs that are known to be needed.
    pub messages_wanted: u64,
    /// The share of the work that is done, 0 to 1.
    pub share: f64,
    /// About how many seconds are left, where anybody knows.
    pub left: Option<f64>,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    /// Its number, never used again.
    pub id: i64,
    /// Short, as in the name of a file.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Whose it is, as a group.
    pub project: String,
    /// Whose it is.
    pub owner: String,
    /// What becomes of it.
    pub state: State,
    /// Why it is in that state, in words; empty if there is nothing to say.
    pub why: String,
    /// Higher ones start first.
    pub priority: i64,
    /// Whether it waits for free cores rather than to be rejected.
    pub batch: bool,
    /// Cores that it asks for.
    pub cores: u32,
    /// Seconds without any news after which it is swapped out.
    pub idle_swap: Option<u32>,
    /// Seconds after which it is swapped out whatever it does.
    pub auto_swap: Option<u32>,
    /// The study that it is, of one that comes with the program.
    pub study: Option<String>,
    /// Whether it has a twentieth of the study's messages.
    pub quick: bool,
    /// How often its text was given.
    pub version: u32,
    /// When it came, RFC 3339.
    pub created: String,
    /// When its state changed last, RFC 3339.
    pub changed: String,
    /// The language of its text.
    pub format: Format,
    /// How far it is.
    pub progress: Progress,
    /// Where there is more.
    pub links: Links,
}

/// Where there is more of an experiment, each a path on this server.
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
    /// What happens to it, as it happens.
    pub events: String,
}

impl Links {
    /// The links of experiment `id`.
    pub fn of(id: i64) -> Self {
        let path = |rest| format!("/api/experiments/{id}{rest}");
        Self {
            this: path(""),
            text: path("/text"),
            report: path("/report"),
            files: path("/files/"),
            events: path("/events"),
        }
    }
}

/// Which experiments of a list.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// At most so many.
    pub limit: usize,
    /// Only those that came before this one.
    pub before: Option<i64>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { state: None, limit: 100, before: None }
    }
}
