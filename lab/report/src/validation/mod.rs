//! Validates the model: compares its results with the kernel's, point by point.

mod check;
mod check_text;
mod collapse;
mod compared_point;
mod figures;
mod html;
mod point_measurements;
mod points;
mod rank;
mod runs;
mod table;
mod tally;
#[cfg(test)]
pub(crate) mod test_points;
mod traces;

use std::fs;
use std::path::Path;

use hol_lab::{PointResult, Results};

use crate::report::ReportError;
use hol_lab::Metric;

pub use check::{
    COMPETING_FLOWS_TOLERANCE, MEAN_TOLERANCE, MedianComparison, P99_TOLERANCE, SINGLE_FLOW_TOLERANCE,
    Tolerance,
};
pub use check_text::format_median;
pub use collapse::CollapseCounts;
pub use compared_point::ComparedPoint;
pub use point_measurements::PointMeasurements;
pub use runs::RunValues;
pub use tally::Tally;

/// The comparison of the model with a kernel.
#[derive(Debug, Clone)]
pub struct Validation {
    /// The title, one line.
    pub title: String,
    /// The metric of the verdicts.
    pub metric: Metric,
    /// Every point with runs in both worlds. The points that disagree come first, by descending difference.
    pub points: Vec<ComparedPoint>,
    /// The number of points without a run in both worlds.
    pub missing: usize,
    /// Name of the kernel's world, such as `kernel:6.12.1-amd64`.
    pub kernel: String,
    /// The version of the program whose model was compared.
    pub model_version: String,
}

impl Validation {
    /// Compares two result directories with the same points in the same order.
    pub fn of_results(title: &str, kernel: &Results, model: &Results, metric: Metric) -> Self {
        let pairs = kernel.points.iter().zip(&model.points);
        let there = |(kernel, model): &(&PointResult, &PointResult)| {
            !kernel.runs.is_empty() && !model.runs.is_empty()
        };
        let points =
            pairs.filter(there).map(|(kernel, model)| ComparedPoint::of(kernel, model, metric)).collect();
        let all = kernel.points.len();
        let (kernel, model_version) = (kernel.manifest.world.clone(), model.manifest.version.clone());
        let mut validation = Self::of_points(title, metric, points, [kernel, model_version]);
        validation.missing = all - validation.points.len();
        validation
    }

    /// Creates a validation from compared points and the name of the kernel's world and the version of the model.
    pub(crate) fn of_points(
        title: &str,
        metric: Metric,
        mut points: Vec<ComparedPoint>,
        [kernel, model_version]: [String; 2],
    ) -> Self {
        points.sort_by(|a, b| a.agrees().cmp(&b.agrees()).then(b.excess().total_cmp(&a.excess())));
        Self { title: title.to_owned(), metric, points, missing: 0, kernel, model_version }
    }

    /// Writes the page, its figures, and the table as CSV and JSON into `dir`.
    pub fn write(&self, dir: &Path) -> Result<(), ReportError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ReportError::Write { path, source }
        };
        let figures = dir.join("figures");
        fs::create_dir_all(&figures).map_err(failed(&figures))?;
        let drawings = self.experiments().into_iter().filter_map(|name| self.figure(name));
        let drawings = drawings.chain(self.overview());
        let drawings = drawings.map(|svg| (figures.join(format!("{}.svg", svg.id())), svg.standalone()));
        let texts = [
            (dir.join("validation.csv"), self.csv()),
            (dir.join("validation.json"), self.json()),
            (dir.join("validation.html"), self.html()),
        ];
        drawings.chain(texts).try_for_each(|(path, text)| fs::write(&path, text).map_err(failed(&path)))
    }

    /// Returns how many points agree.
    pub fn tally(&self) -> Tally {
        self.points.iter().collect()
    }
}
