//! Analyses a draft of an experiment: finds its errors and their positions, translates it, and estimates the cost of running it.

use hol_lab::{Experiment, InputError, Permission, Plan, RunResults};
use hol_network::Topology;
use hol_testbed::emulab_tables;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{File, Graph, Question, Translation, experiment, ns, with_placeholder_traffic};
use crate::experiment::Format;
use crate::mistakes::find_mistakes;
use crate::reading::octets_to_parse;

/// Maximum number of messages of a plan whose duration is estimated.
const MAX_ESTIMATED_MESSAGES: u64 = 10_000_000_000;

/// A draft to analyse.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadRequest {
    /// Text of the draft.
    pub text: String,
    /// Language of the text.
    pub format: Format,
    /// Project whose files the text names; by default the user's first.
    pub project: Option<String>,
    /// Whether to estimate the run time, which takes up to two seconds.
    pub estimate: bool,
}

/// The result of analysing a draft.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Reading {
    /// Errors of the draft.
    pub errors: Vec<Fault>,
    /// The draft as an experiment file.
    pub toml: Option<String>,
    /// The draft as an ns script.
    pub ns: Option<String>,
    /// Why ns cannot express the draft.
    pub ns_cannot: Option<String>,
    /// The draft as a drawing.
    pub graph: Option<Graph>,
    /// The draft as a form.
    pub question: Option<Question>,
    /// Number of points, runs and messages.
    pub plan: Option<PlanSize>,
    /// Whether the draft is a network without traffic. While such an experiment is swapped in, users can run commands
    /// on its nodes.
    pub is_idle: bool,
    /// Parts of the draft that this machine cannot run.
    pub cannot: Vec<Unsupported>,
    /// Ignored commands of a script: position, command, reason.
    pub ignored: Vec<String>,
    /// Nodes and links with their addresses and settings, as in the mails of Emulab.
    pub mapping: Vec<TitledTable>,
}

/// An error of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Fault {
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error, from 1, in characters.
    pub column: usize,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub cure: String,
}

/// Something that this machine cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Unsupported {
    /// The part of the experiment that this machine cannot run.
    pub what: String,
    /// The remedy.
    pub cure: String,
}

/// How large a plan is, and how long its runs take.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlanSize {
    /// Number of points: combinations of the axes.
    pub points: usize,
    /// Number of runs, with the minimum number of repetitions.
    pub runs: usize,
    /// Number of messages, with the minimum number of repetitions.
    pub messages: u64,
    /// Estimated seconds with the minimum number of repetitions; none if no estimate was requested, or if the plan is
    /// too large for an estimate.
    pub min_seconds: Option<f64>,
    /// Estimated seconds with the maximum number of repetitions, which the key `precision` may require.
    pub max_seconds: Option<f64>,
}

/// A table with its title; the first row names the columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TitledTable {
    /// Title of the table, as in Emulab.
    pub title: &'static str,
    /// Rows of cells; a row may end early.
    pub rows: Vec<Vec<String>>,
}

/// Analyses a draft; `jobs` is the number of parallel runs on this machine.
pub fn read(request: &ReadRequest, jobs: usize, permission: &Permission) -> Reading {
    let mut file = match request.format {
        Format::Toml => Some(File::read(request.text.clone(), permission)),
        Format::Ns => {
            ns::to_experiment_file(&request.text, permission).ok().map(|text| File::read(text, permission))
        }
    };
    let mut reading = Reading::default();
    match (&mut file, request.format) {
        (Some(File { experiment: Ok(experiment), .. }), _) => {
            reading.add_plan(experiment, request.estimate.then_some(jobs));
        }
        (Some(File { experiment: Err(_), .. }), Format::Toml) => {
            let read = |text: &str| experiment("draft", text, Format::Toml, permission).map(drop);
            reading.errors = find_mistakes(&request.text, octets_to_parse(&request.text), read)
                .iter()
                .flat_map(faults)
                .collect();
        }
        // Positions of errors refer to the script, not to the experiment file made from it.
        (_, _) => match experiment("draft", &request.text, request.format, permission) {
            Err(error) => reading.errors = faults(&error),
            Ok(mut whole) => reading.add_plan(&mut whole, request.estimate.then_some(jobs)),
        },
    }
    if !reading.errors.is_empty()
        && let Some(whole) = with_placeholder_traffic(&request.text, request.format, permission)
        && experiment("draft", &whole, request.format, permission).is_ok()
    {
        reading.errors.clear();
        reading.is_idle = true;
    }
    if let Some(file) = file {
        reading.translate(file, request);
    }
    reading
}

impl Reading {
    /// Adds the size of the plan, and the points that this machine cannot run.
    fn add_plan(&mut self, experiment: &mut Experiment, jobs: Option<usize>) {
        self.plan = Some(plan_size(experiment, jobs));
        self.cannot.extend(experiment.why_unsupported().map(|problem| to_unsupported(&problem)));
    }

    /// Adds the translation, the drawing and the form, as far as the draft allows.
    fn translate(&mut self, file: File, request: &ReadRequest) {
        let network = file.network().ok();
        self.graph = network.as_ref().and_then(|network| Graph::of(network, &file.text));
        self.question = Question::of(&file.text);
        let topology = network.and_then(|network| Topology::new(&network).ok());
        let sections = topology.iter().flat_map(emulab_tables);
        self.mapping =
            sections.map(|section| TitledTable { title: section.title, rows: section.rows }).collect();
        if request.format == Format::Ns {
            self.ignored = ns::ignored_commands(&request.text, &file.permission);
            (self.toml, self.ns) = (Some(file.text), Some(request.text.clone()));
            return;
        }
        let Translation { toml, ns, ns_cannot } = Translation::of(file);
        (self.toml, self.ns, self.ns_cannot) = (Some(toml), ns, ns_cannot);
    }
}

fn plan_size(experiment: &mut Experiment, jobs: Option<usize>) -> PlanSize {
    // A copy of many points would occupy as much memory as the experiment.
    let plan = Plan::of_points(std::mem::take(&mut experiment.points));
    let (runs, messages) = (plan.next_runs(&RunResults::default()).len(), plan.message_count());
    let estimate = jobs.filter(|_| messages <= MAX_ESTIMATED_MESSAGES).map(|jobs| plan.estimate(jobs));
    experiment.points = plan.into_points();
    PlanSize {
        points: experiment.points.len(),
        runs,
        messages,
        min_seconds: estimate.map(|estimate| estimate.min),
        max_seconds: estimate.map(|estimate| estimate.max),
    }
}

fn to_unsupported(problem: &str) -> Unsupported {
    let (what, cure) = split_cure(problem);
    Unsupported { what, cure }
}

/// Returns the errors of a text with their positions. The error of a script may contain several, one per line.
fn faults(error: &InputError) -> Vec<Fault> {
    let whole = error.to_string();
    let mut faults: Vec<Fault> = Vec::new();
    for line in whole.lines() {
        match fault(line) {
            Some(fault) => faults.push(fault),
            None => match faults.last_mut() {
                Some(last) => last.message += &format!("\n{line}"),
                None => faults.push(fault_at_start(line)),
            },
        }
    }
    faults
}

/// Parses an error of the form `name:line:column: problem`.
fn fault(text: &str) -> Option<Fault> {
    let (place, problem) = text.split_once(": ")?;
    let mut parts = place.rsplitn(3, ':');
    let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let (message, cure) = split_cure(problem);
    Some(Fault { line, column, message, cure })
}

fn fault_at_start(text: &str) -> Fault {
    let (message, cure) = split_cure(text.split_once(": ").map_or(text, |(_, problem)| problem));
    Fault { line: 1, column: 1, message, cure }
}

/// Splits a message into problem and fix.
fn split_cure(problem: &str) -> (String, String) {
    let (message, cure) = problem.split_once("; ").unwrap_or((problem, ""));
    (message.to_owned(), cure.to_owned())
}
