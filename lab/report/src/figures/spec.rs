//! The contents of a study's `figures.toml`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::data::Filter;
use crate::region::RegionSpec;
use hol_lab::Metric;

/// The contents of a study's `figures.toml`: the stacks that are shown side by side, and the figures by their numbers in the paper.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyFigures {
    /// The stacks, the current one first; the verdicts of claims depend on this order.
    #[serde(rename = "view")]
    pub views: Vec<StackView>,
    /// Transports whose distributions are drawn with the closed form.
    #[serde(default)]
    pub closed_form: Vec<String>,
    /// The figures.
    #[serde(rename = "figure", default)]
    pub figures: Vec<FigureSpec>,
    /// Charts over two axes that show where a transport meets a requirement.
    #[serde(rename = "region", default)]
    pub regions: Vec<RegionSpec>,
    /// Experiments whose means are compared with the closed form in a table.
    #[serde(default)]
    pub closed_form_experiments: Vec<String>,
    /// Points whose delay is shown by component.
    #[serde(rename = "split", default)]
    pub splits: Vec<Filter>,
    /// Points of which one page is drawn as a waterfall.
    #[serde(rename = "waterfall", default)]
    pub waterfalls: Vec<Filter>,
    /// Experiments that are shown as a table of means.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Sets of transports that differ in one property that the paper does not specify.
    #[serde(rename = "variant", default)]
    pub variants: Vec<StackView>,
    /// A sentence that describes the variants; `claims.toml` has the checks that discriminate between them.
    #[serde(default)]
    pub variants_about: String,
}

/// A stack as the report shows it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackView {
    /// Title above the stack's panels: `Linux 6.12`.
    pub title: String,
    /// Suffix of the labels of the stack's transports: `" (2006)"`, or empty.
    #[serde(default)]
    pub suffix: String,
}

/// A figure of a study.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Number of the figure in the paper.
    pub number: FigureNumber,
    /// Caption of the figure in the paper.
    pub caption: String,
    /// Experiment whose points the figure shows.
    pub experiment: String,
    /// The quantities of both axes.
    pub kind: FigureKind,
    /// Labels of the transports, without the stack's suffix; empty: all.
    #[serde(default)]
    pub transports: Vec<String>,
    /// Loss in percent, to select one point (CCDF) or one curve (over streams).
    #[serde(default)]
    pub loss: Vec<f64>,
    /// Rate in 1/s, to select one point.
    pub rate: Option<f64>,
    /// The swept key of the horizontal axis, such as `workload.interval`, if `kind` is `axis`.
    #[serde(default)]
    pub over: String,
    /// The metric that the figure shows.
    #[serde(default)]
    pub metric: Metric,
    /// Values of other swept keys, to select points.
    #[serde(default)]
    pub axes: BTreeMap<String, Vec<String>>,
    /// A reference line of the paper: positions and values.
    #[serde(default)]
    pub reference: Vec<(f64, f64)>,
    /// The ends of the paper's horizontal axis.
    pub x: [f64; 2],
    /// The ends of the paper's vertical axis.
    pub y: [f64; 2],
    /// Whether all stacks are in one panel.
    #[serde(default)]
    pub overlay: bool,
    /// Where the figure differs from the paper.
    pub note: Option<String>,
}

/// A figure's number in the paper: `4`, or by chapter `5.1`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FigureNumber {
    /// The paper numbers its figures throughout: `4`.
    Whole(u32),
    /// The paper numbers its figures by chapter or appendix: `5.1`.
    Dotted(String),
}

/// The quantities of a figure's axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// The metric over packet loss.
    Loss,
    /// The metric over the number of streams, one curve for each loss.
    Streams,
    /// The metric over the rate of messages.
    Rate,
    /// The metric over the round-trip time of the path without queues.
    RoundTrip,
    /// The metric over the time since the start of a run, at one point.
    Time,
    /// The complementary distribution (CCDF) of the metric, which is a time.
    Ccdf,
    /// The metric over any swept key.
    Axis,
}

impl FigureNumber {
    /// Returns the file name and anchor of the figure: `fig04`, `fig5-1`.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Whole(number) => format!("fig{number:02}"),
            Self::Dotted(number) => format!("fig{}", number.replace('.', "-")),
        }
    }
}

impl fmt::Display for FigureNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Dotted(number) => f.write_str(number),
        }
    }
}

impl StudyFigures {
    /// Removes and returns the stacks without any transport in `labels`. Also removes the variants without
    /// any.
    pub fn take_absent_stacks(&mut self, labels: &[&str]) -> Vec<StackView> {
        let has = |view: &StackView| labels.iter().any(|label| label.ends_with(&view.suffix));
        self.variants.retain(has);
        let (present, absent) = self.views.drain(..).partition(has);
        self.views = present;
        absent
    }
}

impl FigureSpec {
    /// Returns the filter that selects the points of the figure.
    pub(super) fn filter(&self) -> Filter {
        let loss = match (self.kind, self.loss.as_slice()) {
            (FigureKind::Streams, _) | (_, []) => None,
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
