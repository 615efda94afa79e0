//! Everything that a result directory has to say, gathered once, then shown and stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hol_lab::{LabError, Point, Results, Study};

use crate::claims::{Judged, Kind, StudyClaims, Verdict, judge};
use crate::data::Dataset;
use crate::figures::{Figure, StackView, StudyFigures, gather};
use crate::over_time::{self, OverTime};
use crate::page;
use crate::provenance::Provenance;
use crate::region::{self, Region};
use crate::sequence::{Diagram, diagrams};
use crate::survey::{Survey, Surveyed};
use crate::two_worlds::{Kernel, Mismatch};

/// The report of one result directory.
#[derive(Debug, Clone)]
pub struct Report {
    /// One line for people.
    pub title: String,
    /// The points.
    pub data: Dataset,
    /// Which figures, stacks, variants and tables there are.
    pub layout: StudyFigures,
    /// Stacks of the study that no point was to be measured on.
    pub absent: Vec<StackView>,
    /// The figures with their data.
    pub figures: Vec<Figure>,
    /// How runs stood over time, where that was kept.
    pub over_time: Vec<OverTime>,
    /// Where transports are good enough.
    pub regions: Vec<Region>,
    /// What an experiment of one's own answers; empty for a study.
    pub surveys: Vec<Surveyed>,
    /// What the study asks and answers; empty for an experiment of one's own.
    pub claims: StudyClaims,
    /// Its claims with verdicts.
    pub judged: Vec<Judged>,
    /// What the kernel says beside the model, where there are results of both.
    pub kernel: Option<Kernel>,
    /// The share of the study's messages that its points have here: a twentieth of a quick look; 1 of all else.
    pub share: f64,
    /// One lost message, packet by packet; for studies.
    pub diagrams: Vec<Diagram>,
    /// Where the numbers come from.
    pub provenance: Provenance,
}

/// What a study asks of results: its own files, as far as the results have its stacks.
pub(crate) struct Asked {
    layout: StudyFigures,
    absent: Vec<StackView>,
    claims: StudyClaims,
    share: f64,
}

impl Asked {
    /// Nothing of an experiment of one's own.
    pub(crate) fn of(results: &Results) -> Result<Self, ReportError> {
        let (mut layout, claims, share) = match &results.manifest.study {
            Some(name) => {
                let study = Study::load(name, false)?;
                (
                    part::<StudyFigures>(&study, "figures.toml")?,
                    part::<StudyClaims>(&study, "claims.toml")?,
                    share(&study, results),
                )
            }
            None => (StudyFigures::default(), StudyClaims::default(), 1.0),
        };
        let labels: Vec<&str> = results.points.iter().map(|result| result.point.label.as_str()).collect();
        let absent = layout.without_absent(&labels);
        Ok(Self { layout, absent, claims, share })
    }

    /// Its claims with verdicts.
    pub(crate) fn judge(&self, data: &Dataset) -> Vec<Judged> {
        judge(&self.claims, &self.layout.views, &self.absent, data)
    }
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A study's files, or its experiments.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Two result directories are not of one question in two worlds.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A study's figures or claims are not what they should be.
    #[error("studies/{study}/{file}: {problem}")]
    Study {
        /// The study.
        study: String,
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be written.
    #[error("{}: cannot write: {source}; free some space or choose another directory", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

/// Draws the report of `results` into `dir`: `report.html`, and `figures/` with an SVG and a CSV file each.
pub fn write(results: &Results, dir: &Path) -> Result<Report, ReportError> {
    let mut report = Report::gather(results)?;
    let conditions = report.surveys.iter().flat_map(|survey| &survey.conditions);
    report.over_time =
        over_time::gather(results, dir, conditions.map(|(place, filter)| (place.as_str(), filter)))?;
    report.write(dir)?;
    Ok(report)
}

impl Report {
    /// Gathers everything from a result directory, and nothing from elsewhere.
    pub fn gather(results: &Results) -> Result<Self, ReportError> {
        Ok(Self::from_data(results, Dataset::from(results), Asked::of(results)?))
    }

    /// What the points of `results` say of what was asked.
    pub(crate) fn from_data(results: &Results, data: Dataset, asked: Asked) -> Self {
        let mut figures = gather(&asked.layout, &data);
        let mut surveys = Vec::new();
        if results.manifest.study.is_none() {
            for survey in surveys_of(results, &data) {
                let wishes = results.manifest.figures.get(&survey.experiment).map_or(&[][..], Vec::as_slice);
                figures.extend(survey.figures(wishes, &data, figures.len() + 1));
                surveys.push(survey.surveyed());
            }
        }
        let judged = asked.judge(&data);
        let regions = region::gather(&asked.layout.regions, &data);
        let Asked { layout, absent, claims, share } = asked;
        Self {
            title: results.manifest.title.clone(),
            figures,
            over_time: Vec::new(),
            regions,
            surveys,
            judged,
            kernel: None,
            share,
            diagrams: if results.manifest.study.is_some() {
                diagrams().unwrap_or_default()
            } else {
                Vec::new()
            },
            provenance: Provenance::of(results),
            data,
            layout,
            absent,
            claims,
        }
    }

    /// The claims of one kind, in the paper's order.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(move |judged| judged.claim.kind == kind)
    }

    /// How many findings of the paper have each verdict, in the order of [`Verdict::ALL`].
    pub fn counts(&self) -> [(Verdict, usize); 6] {
        let of = |verdict| self.of_kind(Kind::Finding).filter(|judged| judged.verdict == verdict).count();
        Verdict::ALL.map(|verdict| (verdict, of(verdict)))
    }

    /// The page, one file.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// Writes the page and the figures.
    pub fn write(&self, dir: &Path) -> Result<(), ReportError> {
        self.write_as(dir, &dir.join("report.html"))
    }

    /// Writes the figures into `dir` and the page, which leads to them, beside them as `page`.
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
        file(page.to_owned(), self.html())
    }
}

/// The share of a study's messages that the points of `results` were to have.
fn share(study: &Study, results: &Results) -> f64 {
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

/// The experiments, with the axes of all points that were planned.
fn surveys_of<'d>(results: &Results, data: &'d Dataset) -> Vec<Survey<'d>> {
    let survey = |(name, _): &(String, String)| {
        let points = results.points.iter().filter(|result| result.point.experiment == *name);
        let axes: Vec<&[(String, String)]> = points.map(|result| result.point.axes.as_slice()).collect();
        Survey::new(name, &axes, data)
    };
    results.manifest.experiments.iter().map(survey).collect()
}

/// One of a study's files that are the report's.
fn part<T: for<'de> serde::Deserialize<'de> + Default>(
    study: &Study,
    file: &'static str,
) -> Result<T, ReportError> {
    let Some(text) = study.file(file) else { return Ok(T::default()) };
    toml::from_str(text).map_err(|e| ReportError::Study {
        study: study.name.to_owned(),
        file,
        problem: e.to_string(),
    })
}
