//! The points that two result directories have in common.

use std::collections::BTreeMap;

use hol_lab::{Manifest, Point, PointResult, Results};

/// Why two result directories cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The directories belong to different experiments.
    #[error(
        "one directory has results of {0}, the other of {1}; give two directories with results of the same study or experiment"
    )]
    Question(String, String),
    /// Both directories belong to the same world.
    #[error(
        "both directories have results of the {0} world; run the experiment with `--world {1}`, with another directory for its results"
    )]
    World(String, &'static str),
}

/// The points of a model's and a kernel's results.
#[derive(Debug)]
pub struct Pairs<'r> {
    /// The points measured in both: in the model, in the kernel.
    pub shared: Vec<(&'r PointResult, &'r PointResult)>,
    /// The points that only the model measured.
    pub only_model: Vec<&'r Point>,
    /// The points that only the kernel measured.
    pub only_kernel: Vec<&'r Point>,
}

/// The properties by which a point is recognised in both worlds.
type Name<'p> = (&'p str, &'p str, &'p [(String, String)]);

fn name(point: &Point) -> Name<'_> {
    (point.experiment.as_str(), point.label.as_str(), point.axes.as_slice())
}

/// Returns the two directories, the model's first.
pub fn model_first<'r>(one: &'r Results, other: &'r Results) -> Result<(&'r Results, &'r Results), Mismatch> {
    let [asked, asked_too] = [one, other].map(|results| question(&results.manifest));
    if asked != asked_too {
        return Err(Mismatch::Question(asked, asked_too));
    }
    match [one, other].map(|results| is_model(&results.manifest)) {
        [true, false] => Ok((one, other)),
        [false, true] => Ok((other, one)),
        [true, true] => Err(Mismatch::World("model".to_owned(), "kernel")),
        [false, false] => Err(Mismatch::World("kernel".to_owned(), "model")),
    }
}

fn is_model(manifest: &Manifest) -> bool {
    manifest.points.iter().all(|point| point.world.is_default())
}

/// Describes the contents of a directory: a study, or other experiments.
fn question(manifest: &Manifest) -> String {
    let names = || manifest.experiments.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    manifest
        .study
        .as_ref()
        .map_or_else(|| format!("the experiment {}", names()), |study| format!("the study {study}"))
}

impl<'r> Pairs<'r> {
    /// Pairs the points that have runs.
    pub fn of(model: &'r Results, kernel: &'r Results) -> Self {
        let measured = |result: &&PointResult| !result.runs.is_empty();
        let by_name = |results: &'r Results| -> BTreeMap<Name<'r>, &'r PointResult> {
            results.points.iter().filter(measured).map(|result| (name(&result.point), result)).collect()
        };
        let [of_model, of_kernel] = [model, kernel].map(by_name);
        let only = |results: &'r Results, others: &BTreeMap<Name<'r>, &'r PointResult>| {
            let points = results.points.iter().filter(measured).map(|result| &result.point);
            points.filter(|point| !others.contains_key(&name(point))).collect()
        };
        let pair = |result: &'r PointResult| Some((result, *of_kernel.get(&name(&result.point))?));
        Self {
            shared: model.points.iter().filter(measured).filter_map(pair).collect(),
            only_model: only(model, &of_kernel),
            only_kernel: only(kernel, &of_model),
        }
    }
}

/// Returns whether the repetitions of a point have the same length in both worlds. Otherwise their
/// distributions differ in any case.
pub fn have_equal_lengths(model: &Point, kernel: &Point) -> bool {
    model.messages_in(0) == kernel.messages_in(0)
}

/// Describes points by experiment: `exp1: 14 points of TCP (2006), SCTP-1 (2006)`.
pub fn describe_points(points: &[&Point]) -> Vec<String> {
    let mut by_experiment: BTreeMap<&str, (Vec<&str>, usize)> = BTreeMap::new();
    for point in points {
        let (labels, count) = by_experiment.entry(&point.experiment).or_default();
        if !labels.contains(&point.label.as_str()) {
            labels.push(&point.label);
        }
        *count += 1;
    }
    let line = |(experiment, (labels, count)): (&str, (Vec<&str>, usize))| {
        format!("{experiment}: {count} points of {}", labels.join(", "))
    };
    by_experiment.into_iter().map(line).collect()
}
