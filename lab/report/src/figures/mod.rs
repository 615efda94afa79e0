//! The figures of a report.

mod curves;
mod draw;
mod redraw;
pub(crate) mod series;
mod spec;
mod table;

use crate::data::Dataset;
use crate::plot::{Axis, Ccdf, Recovery, Series, SeriesStyle, Svg, TimeCurve, escape};
use hol_lab::Metric;

pub use spec::{FigureKind, FigureSpec, StackView, StudyFigures};

/// A figure with its data, ready to be drawn, shown and stored.
#[derive(Debug, Clone)]
pub struct Figure {
    /// File name and anchor of the figure: `fig04`.
    pub id: String,
    /// Name of the figure: `Figure 4`.
    pub name: String,
    /// Caption of the figure in the paper.
    pub caption: String,
    /// How many repetitions and messages the figure is based on, as text.
    pub basis: String,
    /// Where the figure differs from the paper.
    pub note: Option<String>,
    /// Experiment to which the figure belongs.
    pub experiment: String,
    /// Whether the figure shows a distribution rather than a mean.
    pub is_ccdf: bool,
    /// Label of the figure in a list for choosing a figure; empty if the figure is always shown.
    pub choice_label: String,
    /// The metric that the figure shows.
    pub metric: Metric,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// One panel for each stack, or for each value of a swept key.
    pub panels: Vec<PanelData>,
}

/// One panel with its curves.
#[derive(Debug, Clone)]
pub struct PanelData {
    /// Title above the panel.
    pub title: String,
    /// Curves of the panel.
    pub curves: Curves,
}

/// The curves of a panel.
#[derive(Debug, Clone)]
pub enum Curves {
    /// The panel shows means with confidence intervals.
    Means(Vec<Series>),
    /// The panel shows distributions.
    Ccdfs(Vec<Ccdf>),
    /// The panel shows values over time, around an event if there is one.
    OverTime {
        /// The curve of each transport.
        curves: Vec<TimeCurve>,
        /// The times of events in s since the first event, with descriptions.
        events: Vec<(f64, String)>,
        /// The recovery of each transport from the first event.
        recoveries: Vec<Recovery>,
    },
}

/// Creates every figure of a study; figures without a point are omitted.
pub fn gather(study: &StudyFigures, data: &Dataset) -> Vec<Figure> {
    study.figures.iter().filter_map(|spec| curves::figure(spec, study, data)).collect()
}

impl Figure {
    /// Draws the figure as SVG.
    pub fn draw(&self) -> Svg {
        draw::figure(self)
    }

    /// Returns the figure as HTML: its drawing, and for screens of a phone a second one below the names of the curves.
    pub fn html(&self) -> String {
        let (wide, names) = (self.draw(), self.names());
        let phone = if wide.is_narrow() { None } else { draw::figure_for_phone(self) };
        match phone {
            Some(phone) => format!(
                "{names}<div class=\"wide\">{}</div><div class=\"phone\">{}</div>",
                wide.inline(),
                phone.inline()
            ),
            None => names + &wide.inline(),
        }
    }

    /// Returns the names of the curves as an HTML list, for screens that show only a part of the drawing.
    fn names(&self) -> String {
        let names = draw::legend_entries(self);
        if names.len() < 2 {
            return String::new();
        }
        let item = |(label, style): &(String, SeriesStyle)| {
            format!("<li class=\"{}\">{}</li>", style.class, escape(label))
        };
        format!("<ul class=\"names\">{}</ul>", names.iter().map(item).collect::<String>())
    }

    /// Returns the meaning of the dashed lines, if the figure has any.
    pub fn theory(&self) -> Option<&'static str> {
        let drawn = |panel: &PanelData| match &panel.curves {
            Curves::Means(series) => series.iter().any(|one| !one.theory.is_empty()),
            Curves::Ccdfs(curves) => curves.iter().any(|one| !one.theory.is_empty()),
            Curves::OverTime { .. } => false,
        };
        self.metric.info().theory.map(|[_, about]| about).filter(|_| self.panels.iter().any(drawn))
    }

    /// Returns the points as CSV, one row for each x and series.
    pub fn csv(&self) -> String {
        table::csv(self)
    }

    /// Returns a Python script that draws the figure again from its CSV file.
    pub fn python(&self) -> String {
        redraw::python(self)
    }

    /// Returns the means as an HTML table; empty for distributions.
    pub fn html_table(&self) -> String {
        table::html(self)
    }
}

impl Curves {
    /// Returns whether the figure has nothing to draw.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Means(series) => series.iter().all(|s| s.points.is_empty()),
            Self::Ccdfs(curves) => curves.iter().all(|c| c.points.is_empty()),
            Self::OverTime { curves, .. } => curves.iter().all(|c| c.points.is_empty()),
        }
    }
}
