//! The report of a result directory: gathers its contents, renders and writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hol_lab::toml_reader::from_text;
use hol_lab::{LabError, Point, Results, Study};
use serde::Serialize;

use crate::claims::{ClaimKind, JudgedClaim, StudyClaims, Verdict, judge};
use crate::data::Dataset;
use crate::figures::{Figure, StackView, StudyFigures, gather};
use crate::other_measurement::OtherMeasurement;
use crate::over_time::{self, RunsOverTime};
use crate::page;
use crate::provenance::Provenance;
use crate::region::{self, Region};
use crate::sequence::{Diagram, diagrams};
use crate::survey::{Survey, SurveyResults};
use crate::two_worlds::{KernelResults, Mismatch};

/// Name of the file with the answer of a report.
const ANSWER_FILE: &str = "answer.json";

/// The report of one result directory.
#[derive(Debug, Clone)]
pub struct Report {
    /// The title, one line.
    pub title: String,
    /// The points.
    pub data: Dataset,
    /// The figures, stacks, variants and tables that the study specifies.
    pub study_figures: StudyFigures,
    /// Stacks of the study for which no point was planned.
    pub absent_stacks: Vec<StackView>,
    /// The figures with their data.
    pub figures: Vec<Figure>,
    /// The time series of runs, if they were recorded.
    pub over_time: Vec<RunsOverTime>,
    /// The regions in which transports meet a requirement.
    pub regions: Vec<Region>,
    /// The answers of an experiment that is not a study; empty for a study.
    pub surveys: Vec<SurveyResults>,
    /// The questions and claims of the study; empty for other experiments.
    pub claims: StudyClaims,
    /// The claims of the study with their verdicts.
    pub judged_claims: Vec<JudgedClaim>,
    /// The kernel's results, if there are results of both worlds.
    pub kernel: Option<KernelResults>,
    /// Messages of the planned points as a share of the study's messages: 0.05 for a quick run, otherwise 1.
    pub planned_share: f64,
    /// Sequence diagrams of one lost message, for studies.
    pub diagrams: Vec<Diagram>,
    /// The measurements of other tools, to be compared with the points.
    pub other_measurements: Vec<OtherMeasurement>,
    /// The origin of the results.
    pub provenance: Provenance,
}

/// The files of a study, restricted to the stacks that the results have.
pub(crate) struct StudyFiles {
    figures: StudyFigures,
    absent_stacks: Vec<StackView>,
    claims: StudyClaims,
    planned_share: f64,
}

impl StudyFiles {
    /// Reads the files of the study; empty if the results are not of a study.
    pub(crate) fn of(results: &Results) -> Result<Self, ReportError> {
        let (mut figures, claims, planned_share) = match &results.manifest.study {
            Some(name) => {
                let study = Study::load(name, false)?;
                (
                    read_study_file::<StudyFigures>(&study, "figures.toml")?,
                    read_study_file::<StudyClaims>(&study, "claims.toml")?,
                    planned_share(&study, results),
                )
            }
            None => (StudyFigures::default(), StudyClaims::default(), 1.0),
        };
        let labels: Vec<&str> = results.points.iter().map(|result| result.point.label.as_str()).collect();
        let absent_stacks = figures.take_absent_stacks(&labels);
        Ok(Self { figures, absent_stacks, claims, planned_share })
    }

    /// Judges the claims of the study.
    pub(crate) fn judge(&self, data: &Dataset) -> Vec<JudgedClaim> {
        judge(&self.claims, &self.figures.views, &self.absent_stacks, data)
    }
}

/// Why a report could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The files of a study, or its experiments, are invalid.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Two result directories do not belong to the same experiments in two worlds.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The figures or claims of a study are invalid.
    #[error("studies/{study}/{file}: {problem}")]
    Study {
        /// Name of the study.
        study: String,
        /// Name of the file: `figures.toml` or `claims.toml`.
        file: &'static str,
        /// The problem.
        problem: String,
    },
    /// A file could not be written.
    #[error("{}: cannot write: {source}; free some space or choose another directory", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Writes the report of `results` into `dir`: `report.html`, `answer.json` with its sentences, and `figures/`
/// with the drawings, their numbers as CSV, and scripts that draw them again. `other_measurements` are those
/// of other tools.
pub fn write(
    results: &Results,
    other_measurements: Vec<OtherMeasurement>,
    dir: &Path,
) -> Result<Report, ReportError> {
    let mut report = Report { other_measurements, ..Report::gather(results)? };
    let conditions = report.surveys.iter().flat_map(|survey| &survey.conditions);
    report.over_time = over_time::gather(
        results,
        dir,
        conditions.map(|(description, filter)| (description.as_str(), filter)),
    )?;
    report.write(dir)?;
    Ok(report)
}

impl Report {
    /// Gathers the contents of a result directory.
    pub fn gather(results: &Results) -> Result<Self, ReportError> {
        Ok(Self::from_data(results, Dataset::from(results), StudyFiles::of(results)?))
    }

    /// Creates a report from points and the files of a study.
    pub(crate) fn from_data(results: &Results, data: Dataset, study_files: StudyFiles) -> Self {
        let mut figures = gather(&study_files.figures, &data);
        let mut surveys = Vec::new();
        if results.manifest.study.is_none() {
            for survey in surveys_of(results, &data) {
                let requests =
                    results.manifest.figures.get(&survey.experiment).map_or(&[][..], Vec::as_slice);
                figures.extend(survey.figures(requests, &data, figures.len() + 1));
                surveys.push(survey.results());
            }
        }
        let judged_claims = study_files.judge(&data);
        let regions = region::gather(&study_files.figures.regions, &data);
        let StudyFiles { figures: study_figures, absent_stacks, claims, planned_share } = study_files;
        Self {
            title: results.manifest.title.clone(),
            figures,
            over_time: Vec::new(),
            regions,
            surveys,
            judged_claims,
            kernel: None,
            planned_share,
            diagrams: if results.manifest.study.is_some() {
                diagrams().unwrap_or_default()
            } else {
                Vec::new()
            },
            other_measurements: Vec::new(),
            provenance: Provenance::of(results),
            data,
            study_figures,
            absent_stacks,
            claims,
        }
    }

    /// Returns the claims of one kind, in the paper's order.
    pub fn claims_of_kind(&self, kind: ClaimKind) -> impl Iterator<Item = &JudgedClaim> {
        self.judged_claims.iter().filter(move |judged| judged.claim.kind == kind)
    }

    /// Returns the number of findings with each verdict, in the order of [`Verdict::ALL`].
    pub fn verdict_counts(&self) -> [(Verdict, usize); 6] {
        let of = |verdict| {
            self.claims_of_kind(ClaimKind::Finding).filter(|judged| judged.verdict == verdict).count()
        };
        Verdict::ALL.map(|verdict| (verdict, of(verdict)))
    }

    /// Returns the page, a single file.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// Writes the page and the figures.
    pub fn write(&self, dir: &Path) -> Result<(), ReportError> {
        self.write_as(dir, &dir.join("report.html"))
    }

    /// Writes the figures into `dir`, and the page, which links to them, as `page`.
    pub fn write_as(&self, dir: &Path, page: &Path) -> Result<(), ReportError> {
        let figures = dir.join("figures");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ReportError::Write { path, source }
        };
        fs::create_dir_all(&figures).map_err(failed(&figures))?;
        let file = |path: PathBuf, text: String| fs::write(&path, text).map_err(failed(&path));
        for figure in &self.figures {
            file(figures.join(format!("{}.svg", figure.id)), figure.draw().standalone())?;
            file(figures.join(format!("{}.csv", figure.id)), figure.csv())?;
            file(figures.join(format!("{}.py", figure.id)), figure.python())?;
        }
        for region in &self.regions {
            file(figures.join(format!("{}.svg", region.id)), region.draw().standalone())?;
            file(figures.join(format!("{}.csv", region.id)), region.csv())?;
        }
        for drawn in &self.over_time {
            for svg in drawn.draw() {
                file(figures.join(format!("{}.svg", svg.id())), svg.standalone())?;
            }
        }
        for survey in &self.surveys {
            for (index, map) in survey.maps.iter().enumerate() {
                let id = page::map_id(&survey.experiment, index);
                file(figures.join(format!("{id}.svg")), map.draw(&id).standalone())?;
            }
        }
        for diagram in &self.diagrams {
            file(figures.join(format!("{}.svg", diagram.id)), diagram.svg.standalone())?;
        }
        let answer = serde_json::to_string_pretty(&self.answer()).expect("sentences are JSON");
        file(dir.join(ANSWER_FILE), answer + "\n")?;
        file(page.to_owned(), self.html())
    }

    /// Returns the answer without the page around it.
    fn answer(&self) -> Answer<'_> {
        let headlines = || self.surveys.iter().map(|survey| &survey.headline);
        Answer {
            complete: self.provenance.complete,
            question: &self.claims.question,
            sentences: headlines().flat_map(|own| own.outages.iter().chain(&own.main_sentences)).collect(),
            lines: headlines().flat_map(|own| &own.lines).collect(),
        }
    }
}

/// The answer as sentences, for programs that show it elsewhere. Commands are between backticks.
#[derive(Serialize)]
struct Answer<'r> {
    /// Whether the answer covers all planned runs.
    complete: bool,
    /// The question of a study; otherwise empty.
    question: &'r str,
    /// A sentence for each transport, compared with the first one, and sentences about the effect of a disruption of
    /// the path.
    sentences: Vec<&'r String>,
    /// A sentence for each combination of values of the axes other than the horizontal one, if there are several.
    lines: Vec<&'r String>,
}

/// Returns the fraction of a study's messages that were planned for the points of `results`.
fn planned_share(study: &Study, results: &Results) -> f64 {
    let name = |point: &Point| (point.experiment.clone(), point.label.clone(), point.axes.clone());
    let planned = study.experiments.iter().flat_map(|(_, experiment)| &experiment.points);
    let planned: BTreeMap<_, u64> = planned.map(|point| (name(point), point.messages)).collect();
    let both = results
        .points
        .iter()
        .filter_map(|result| Some((result.point.messages, *planned.get(&name(&result.point))?)));
    let (here, whole) = both.fold((0, 0), |(here, whole), (a, b)| (here + a, whole + b));
    if whole == 0 { 1.0 } else { here as f64 / whole as f64 }
}

/// Returns the surveys of the experiments, with the axes of all planned points.
fn surveys_of<'d>(results: &Results, data: &'d Dataset) -> Vec<Survey<'d>> {
    let survey = |(name, _): &(String, String)| {
        let points = results.points.iter().filter(|result| result.point.experiment == *name);
        let axes: Vec<&[(String, String)]> = points.map(|result| result.point.axes.as_slice()).collect();
        Survey::new(name, &axes, data)
    };
    results.manifest.experiments.iter().map(survey).collect()
}

/// Reads one of a study's files for the report.
fn read_study_file<T: for<'de> serde::Deserialize<'de> + Default>(
    study: &Study,
    file: &'static str,
) -> Result<T, ReportError> {
    let Some(text) = study.file(file) else { return Ok(T::default()) };
    from_text(text).map_err(|e| ReportError::Study {
        study: study.name.to_owned(),
        file,
        problem: e.to_string(),
    })
}
