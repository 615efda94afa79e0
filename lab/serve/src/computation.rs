//! Computations over the text of an experiment. Their time and memory depend on the text, so a child process runs them:
//! see [`worker`](crate::worker).

use std::collections::BTreeMap;

use hol_lab::{Experiment, Permission};
use serde::{Deserialize, Serialize};
use serde_json::Error;

use crate::draft::{self, Change, ReadRequest};
use crate::experiment::Format;
use crate::mail::tables;
use crate::plan::{Plan, point_of};
use crate::reading::{self, check_size};
use crate::refusal::Refusal;
use crate::settings::settings;
use crate::submission::{title_of, with_values};

/// A computation, and the resources that the experiment may use.
#[derive(Debug, Serialize, Deserialize)]
pub struct Computation {
    /// The task.
    pub task: Task,
    /// The resources of this machine that the experiment may use.
    pub permission: Permission,
}

/// The kind of a computation, and its input.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// Analyses a draft; the number is that of parallel runs on this machine. The answer is a [`draft::Reading`].
    Read(ReadRequest, usize),
    /// Applies a change to a text. The answer is a [`draft::Translation`].
    Write(Change),
    /// Checks a submitted text. The answer is its title.
    Check(NamedText),
    /// Sets keys of a text. The answer is the new text.
    Set(NamedText, BTreeMap<String, String>),
    /// Returns the [`Plan`] of an experiment.
    Plan(NamedText),
    /// Records the animation of a run: the indices of its point and of its repetition. The answer is a [`draft::Movie`].
    Movie(NamedText, usize, u32),
    /// Returns the settings of an experiment by their keys; none if its text cannot be read.
    Settings(NamedText),
    /// Adds placeholder traffic to a text. The answer is `None` if it has traffic of its own.
    AddPlaceholderTraffic(NamedText),
    /// Returns tables of the nodes and links of a text's network.
    Tables(NamedText),
    /// Returns the paths of the project's files that a text names.
    ProjectFiles(NamedText),
    /// Checks a text, and returns its [`PointSummary`] for the point of this index.
    Point(NamedText, usize),
}

/// A text, and the name by which messages refer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedText {
    /// Name of the experiment.
    pub name: String,
    /// The text.
    pub text: String,
    /// Language of the text.
    pub format: Format,
}

/// A point of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PointSummary {
    /// Number of points of the experiment.
    pub points: usize,
    /// Description of the point.
    pub title: String,
}

impl Computation {
    /// Returns the answer as JSON.
    pub fn run(&self) -> Result<Vec<u8>, Refusal> {
        let permission = &self.permission;
        let answer = match &self.task {
            Task::Read(request, jobs) => {
                check_size(&request.text, request.format, permission)?;
                to_json(&draft::read(request, *jobs, permission))
            }
            Task::Write(change) => to_json(&write(change, permission)?),
            Task::Check(text) => to_json(&title_of(text, permission)?),
            Task::Set(text, values) => to_json(&with_values(text, values, permission)?),
            Task::Plan(text) => to_json(&Plan::of(&SubmittedExperiment::read(text, permission)?.experiment)),
            Task::Movie(text, point, repetition) => to_json(&movie(text, *point, *repetition, permission)?),
            Task::Settings(text) => {
                check_size(&text.text, text.format, permission)?;
                let read = draft::experiment(&text.name, &text.text, text.format, permission);
                to_json(&read.map_or(BTreeMap::new(), |read| settings(&read)))
            }
            Task::AddPlaceholderTraffic(text) => {
                to_json(&draft::with_placeholder_traffic(&text.text, text.format, permission))
            }
            Task::Tables(text) => to_json(&tables(text, permission)),
            Task::ProjectFiles(NamedText { name, text, format }) => {
                to_json(&reading::project_files(name, text, *format, permission)?)
            }
            Task::Point(text, point) => to_json(&summary(text, *point, permission)?),
        };
        answer.map_err(Refusal::internal)
    }
}

fn to_json(answer: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(answer)
}

fn write(change: &Change, permission: &Permission) -> Result<draft::Translation, Refusal> {
    check_size(&change.text, change.format, permission)?;
    draft::write(change, permission).map_err(|problem| {
        Refusal::bad_request(problem, "correct the text, then change the drawing or the form again")
    })
}

fn movie(
    text: &NamedText,
    point: usize,
    repetition: u32,
    permission: &Permission,
) -> Result<draft::Movie, Refusal> {
    let SubmittedExperiment { experiment, text, is_idle } = SubmittedExperiment::read(text, permission)?;
    if is_idle {
        let problem = "the experiment has no traffic, so it has no run to show";
        return Err(Refusal::bad_request(problem, "add traffic, or use the terminal on the nodes"));
    }
    draft::movie(&experiment, &text, point, repetition)
        .map_err(|problem| Refusal::bad_request(problem, "choose another run"))
}

fn summary(text: &NamedText, point: usize, permission: &Permission) -> Result<PointSummary, Refusal> {
    let experiment = reading::read(&text.name, &text.text, text.format, permission)?;
    let chosen = point_of(&experiment, point)
        .map_err(|problem| Refusal::bad_request(problem, "choose another point"))?;
    Ok(PointSummary { points: experiment.points.len(), title: chosen.to_string() })
}

/// A submitted experiment, read from the last version of its text.
struct SubmittedExperiment {
    experiment: Experiment,
    /// Text of the experiment, with placeholder traffic if it has none.
    text: String,
    /// Whether the experiment has no traffic, so that the traffic of `experiment` is a placeholder.
    is_idle: bool,
}

impl SubmittedExperiment {
    fn read(NamedText { name, text, format }: &NamedText, permission: &Permission) -> Result<Self, Refusal> {
        check_size(text, *format, permission)?;
        let whole = draft::with_placeholder_traffic(text, *format, permission);
        let (is_idle, text) = (whole.is_some(), whole.unwrap_or_else(|| text.clone()));
        let experiment = draft::experiment(name, &text, *format, permission);
        let experiment = experiment
            .map_err(|e| Refusal::bad_request(e.to_string(), "correct the text of the experiment"))?;
        Ok(Self { experiment, text, is_idle })
    }
}
