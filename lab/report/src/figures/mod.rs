//! The figures of a study.

mod curves;
mod draw;
mod redraw;
pub(crate) mod series;
mod spec;
mod table;

use crate::data::Dataset;
use crate::plot::{Axis, Ccdf, Course, Look, Series, Svg, escape};
use hol_lab::Metric;

pub use spec::{FigureSpec, Kind, StackView, StudyFigures};

/// A figure with its data, ready to be drawn, shown and stored.
#[derive(Debug, Clone)]
pub struct Figure {
    /// `fig04`: file name and anchor.
    pub id: String,
    /// `Figure 4`.
    pub name: String,
    /// Its caption in the paper.
    pub caption: String,
    /// The numbers behind it: repetitions and messages.
    pub basis: String,
    /// Where it differs from the paper.
    pub note: Option<String>,
    /// The experiment that it belongs to.
    pub experiment: String,
    /// Whether it shows a distribution rather than a mean.
    pub is_ccdf: bool,
    /// Its name among several figures of which the reader chooses one; empty for a figure of its own.
    pub choice: String,
    /// The metric.
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
    /// The title above it.
    pub title: String,
    /// Its curves.
    pub curves: Curves,
}

/// What a panel shows.
#[derive(Debug, Clone)]
pub enum Curves {
    /// Means with intervals.
    Means(Vec<Series>),
    /// Distributions.
    Ccdfs(Vec<Ccdf>),
    /// Messages around an event.
    Courses {
        /// A run of each transport.
        courses: Vec<Course>,
        /// When something happens, in s since the first event, and what.
        events: Vec<(f64, String)>,
    },
}

/// Creates every figure of a study; those without a point are omitted.
pub fn gather(study: &StudyFigures, data: &Dataset) -> Vec<Figure> {
    study.figures.iter().filter_map(|spec| curves::figure(spec, study, data)).collect()
}

impl Figure {
    /// Returns the drawing.
    pub fn draw(&self) -> Svg {
        draw::figure(self)
    }

    /// Returns the names of its curves as an HTML list, for screens that show a part of the drawing at a time.
    pub fn names(&self) -> String {
        let names = draw::entries(self);
        if names.len() < 2 {
            return String::new();
        }
        let item =
            |(label, look): &(String, Look)| format!("<li class=\"{}\">{}</li>", look.class, escape(label));
        format!("<ul class=\"names\">{}</ul>", names.iter().map(item).collect::<String>())
    }

    /// Returns the meaning of its dashed lines, if it has any.
    pub fn theory(&self) -> Option<&'static str> {
        let drawn = |panel: &PanelData| match &panel.curves {
            Curves::Means(series) => series.iter().any(|one| !one.theory.is_empty()),
            Curves::Ccdfs(curves) => curves.iter().any(|one| !one.theory.is_empty()),
            Curves::Courses { .. } => false,
        };
        self.metric.info().theory.map(|[_, about]| about).filter(|_| self.panels.iter().any(drawn))
    }

    /// Returns the points as CSV, one row for each x and series.
    pub fn csv(&self) -> String {
        table::csv(self)
    }

    /// Returns a Python script that draws it again from its CSV file.
    pub fn python(&self) -> String {
        redraw::python(self)
    }

    /// Returns the means as an HTML table; empty for distributions.
    pub fn html_table(&self) -> String {
        table::html(self)
    }
}

impl Curves {
    /// Returns whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Means(series) => series.iter().all(|s| s.points.is_empty()),
            Self::Ccdfs(curves) => curves.iter().all(|c| c.points.is_empty()),
            Self::Courses { courses, .. } => courses.iter().all(|c| c.points.is_empty()),
        }
    }
}
