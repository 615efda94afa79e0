//! What a study's `figures.toml` says.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::data::{Cell, Dataset, Filter};
use crate::metric::Metric;

/// The file: the stacks that stand side by side, and the figures by their numbers in the paper.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyFigures {
    /// The stacks, the one that claims are judged on first.
    #[serde(rename = "view")]
    pub views: Vec<StackView>,
    /// Transports whose distributions are drawn with the closed form; it stands beside every mean.
    #[serde(default)]
    pub closed_form: Vec<String>,
    /// The figures.
    #[serde(rename = "figure", default)]
    pub figures: Vec<FigureSpec>,
    /// Experiments whose means are held against the closed form in a table.
    #[serde(default)]
    pub closed_form_experiments: Vec<String>,
    /// Points whose time is shown by cause.
    #[serde(rename = "split", default)]
    pub splits: Vec<Filter>,
    /// Experiments that are shown as a table of means.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Sets of transports that differ in one behaviour that the paper does not state …
    #[serde(rename = "variant", default)]
    pub variants: Vec<StackView>,
    /// … in a sentence …
    #[serde(default)]
    pub variants_about: String,
    /// … and the axes that they are held against.
    #[serde(rename = "fit", default)]
    pub fits: Vec<Fit>,
}

/// The axis of a figure that tells between variants.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The figure's number.
    pub figure: u32,
    /// The points that are held against it.
    pub at: Filter,
    /// The ends of its axis in ms.
    pub axis: [f64; 2],
}

/// A stack as a reader of the report sees it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackView {
    /// What stands above its panels: `Linux 6.12`.
    pub title: String,
    /// What its transports' labels end in: `" (2006)"`, or nothing.
    #[serde(default)]
    pub suffix: String,
}

/// One figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Its number in the paper.
    pub number: Number,
    /// Its caption in the paper.
    pub caption: String,
    /// The experiment whose points it shows.
    pub experiment: String,
    /// What is drawn over what.
    pub kind: Kind,
    /// Labels without the stack's suffix; empty: all there are.
    #[serde(default)]
    pub transports: Vec<String>,
    /// Loss in percent, where one point (CCDF) or one curve (over streams) has to be chosen.
    #[serde(default)]
    pub loss: Vec<f64>,
    /// Rate in 1/s, where one point has to be chosen.
    pub rate: Option<f64>,
    /// The swept key that is drawn over, such as `workload.interval`, where `kind` is `axis`.
    #[serde(default)]
    pub over: String,
    /// What is drawn.
    #[serde(default)]
    pub metric: Metric,
    /// Values of other swept keys, where points have to be chosen.
    #[serde(default)]
    pub axes: BTreeMap<String, Vec<String>>,
    /// A line that the paper draws beside its measurements: places and values.
    #[serde(default)]
    pub reference: Vec<(f64, f64)>,
    /// The paper's horizontal axis.
    pub x: [f64; 2],
    /// The paper's vertical axis.
    pub y: [f64; 2],
    /// All stacks in one panel, to compare them.
    #[serde(default)]
    pub overlay: bool,
    /// Where it differs from the paper.
    pub note: Option<String>,
}

/// As the paper counts: `4`, or by chapter `5.1`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// Counted through.
    Whole(u32),
    /// Of a chapter or an appendix.
    Dotted(String),
}

/// What is drawn over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Mean response time over packet loss.
    Loss,
    /// Mean response time over the number of streams, one curve for each loss.
    Streams,
    /// Mean response time over the rate.
    Rate,
    /// The complementary distribution of the response time.
    Ccdf,
    /// The metric over any swept key.
    Axis,
}

impl Number {
    /// A file name and an anchor: `fig04`, `fig5-1`.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Whole(number) => format!("fig{number:02}"),
            Self::Dotted(number) => format!("fig{}", number.replace('.', "-")),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Dotted(number) => f.write_str(number),
        }
    }
}

impl StudyFigures {
    /// Takes out what none of the `labels` belongs to: gives the stacks, and forgets the variants.
    pub fn without_absent(&mut self, labels: &[&str]) -> Vec<StackView> {
        let has = |view: &StackView| labels.iter().any(|label| label.ends_with(&view.suffix));
        self.variants.retain(has);
        let (present, absent) = self.views.drain(..).partition(has);
        self.views = present;
        absent
    }
}

impl FigureSpec {
    /// The filter that finds its points.
    pub(super) fn filter(&self) -> Filter {
        let loss = match (self.kind, self.loss.as_slice()) {
            (Kind::Streams, _) | (_, []) => None,
            (_, [first, ..]) => Some([*first, *first]),
        };
        Filter {
            experiments: vec![self.experiment.clone()],
            loss,
            rate: self.rate.map(|rate| [rate, rate]),
            axes: self.axes.clone(),
            ..Filter::default()
        }
    }
}

/// Figures for an experiment that belongs to no paper: the mean over whatever is swept, and the
/// distributions at the ends of the sweep.
pub fn automatic(data: &Dataset) -> StudyFigures {
    let mut figures = Vec::new();
    let mut experiments: Vec<&str> = Vec::new();
    for cell in &data.cells {
        if !experiments.contains(&cell.experiment.as_str()) {
            experiments.push(&cell.experiment);
        }
    }
    for experiment in experiments {
        let cells: Vec<&Cell> = data.cells.iter().filter(|cell| cell.experiment == experiment).collect();
        let loss = range(cells.iter().map(|cell| cell.conditions.loss));
        let rate = range(cells.iter().map(|cell| cell.conditions.rate));
        let next = |figures: &[FigureSpec]| Number::Whole(figures.len() as u32 + 1);
        let number = next(&figures);
        let mean = |kind, x: [f64; 2], caption: &str| FigureSpec {
            number: number.clone(),
            caption: caption.to_owned(),
            kind,
            x,
            y: mean_axis(&cells),
            ..blank(experiment)
        };
        if loss[1] > loss[0] {
            figures.push(mean(Kind::Loss, log_axis(loss), "Mean response time over loss"));
        } else if rate[1] > rate[0] {
            figures.push(mean(Kind::Rate, log_axis(rate), "Mean response time over rate"));
        }
        figures.push(FigureSpec {
            number: next(&figures),
            caption: format!("CCDF at {} % loss, {}/s", loss[1], rate[1]),
            kind: Kind::Ccdf,
            loss: vec![loss[1]],
            rate: Some(rate[1]),
            x: time_axis(&cells),
            y: [0.001, 1.0],
            ..blank(experiment)
        });
    }
    let view = StackView { title: "Mean and 95 % interval".into(), suffix: String::new() };
    StudyFigures { views: vec![view], figures, ..StudyFigures::default() }
}

fn blank(experiment: &str) -> FigureSpec {
    FigureSpec {
        number: Number::Whole(0),
        caption: String::new(),
        experiment: experiment.to_owned(),
        kind: Kind::Loss,
        transports: Vec::new(),
        loss: Vec::new(),
        rate: None,
        over: String::new(),
        metric: Metric::default(),
        axes: BTreeMap::new(),
        reference: Vec::new(),
        x: [0.0, 1.0],
        y: [0.0, 1.0],
        overlay: false,
        note: None,
    }
}

fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[min, max], v| [min.min(v), max.max(v)])
}

/// Powers of ten around `range`; a start of zero (no loss) is drawn two decades below the end.
fn log_axis([min, max]: [f64; 2]) -> [f64; 2] {
    let min = if min > 0.0 { min } else { max / 100.0 };
    [10f64.powf(min.log10().floor()), 10f64.powf(max.log10().ceil())]
}

fn mean_axis(cells: &[&Cell]) -> [f64; 2] {
    let [min, max] = range(cells.iter().filter_map(|cell| cell.mean()).map(|mean| mean.mean));
    if min.is_finite() { [0.0, (max * 1.1).max(1.0)] } else { [0.0, 1.0] }
}

fn time_axis(cells: &[&Cell]) -> [f64; 2] {
    let [min, max] = range(cells.iter().flat_map(|cell| {
        [cell.quantile_ms(0.0), cell.latency.max().map(|most| most.as_millis_f64())].into_iter().flatten()
    }));
    if min.is_finite() { log_axis([min.max(0.001), max.max(min * 1.001)]) } else { [1.0, 1000.0] }
}
