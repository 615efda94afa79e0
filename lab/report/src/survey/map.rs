//! Maps of the best transport over two numeric axes.

use hol_measure::{CONFIDENCE, benjamini_hochberg};

use super::transport_comparison::{NEGLIGIBLE, Outcome, TransportComparison};
use super::{Axis, Survey};
use crate::plot::{Anchor, SeriesStyle, Svg, number};

/// The left margin, in px.
const LEFT_MARGIN: f64 = 78.0;
/// The top margin, in px.
const TOP_MARGIN: f64 = 34.0;
/// The position of the first entry of the key, in px.
const KEY_POSITION: (f64, f64) = (16.0, 8.0);
/// The height of a line of the key, in px.
const LINE_HEIGHT: f64 = 18.0;
/// The bottom margin, in px.
const BOTTOM_MARGIN: f64 = 46.0;
/// The width of a drawing, in px.
const WIDTH: f64 = 880.0;
/// The largest width of a cell of the map, in px.
const MAX_CELL_WIDTH: f64 = 96.0;
/// The height of a cell, in px.
const CELL_HEIGHT: f64 = 34.0;

/// How certain it is that the best transport is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// The transport is significantly better than every other one.
    Sure,
    /// The transport is equivalent to the second best: they differ by less than [`NEGLIGIBLE`].
    Tie,
    /// The repetitions do not decide which transport is best.
    Unsure,
}

/// The best transport of a cell of the map.
#[derive(Debug, Clone, PartialEq)]
struct Best {
    transport: usize,
    certainty: Certainty,
    /// How much better the transport is than the second best, in percent of the second best.
    lead_percent: Option<f64>,
}

/// A transport with its look.
type LabelledTransport = (String, SeriesStyle);

/// A map of the best transports.
#[derive(Debug, Clone)]
pub struct Map {
    /// Label of the map in a list for choosing a map: the steps of the other axes.
    pub choice_label: String,
    /// Description of the axes and of the comparison.
    pub caption: String,
    transports: Vec<LabelledTransport>,
    x_labels: Vec<String>,
    y_labels: Vec<String>,
    /// Labels of the horizontal and the vertical axis.
    axis_labels: [String; 2],
    /// The cells row by row from the lowest y; `None` if no transport carried the load.
    cells: Vec<Vec<Option<Best>>>,
}

/// Returns a map for each combination of the other axes; none without two numeric axes or with one transport.
pub fn maps(survey: &Survey<'_>) -> Vec<Map> {
    let second = survey.axes.iter().skip(1).position(|axis| axis.numbers.is_some());
    let (Some(second), true) = (second.map(|index| index + 1), survey.transports.len() > 1) else {
        return Vec::new();
    };
    let (across, up) = (&survey.axes[0], &survey.axes[second]);
    let others: Vec<usize> = (1..survey.axes.len()).filter(|axis| *axis != second).collect();
    let mut maps: Vec<(Vec<usize>, Vec<Vec<CellLead>>)> = Vec::new();
    for combination in
        survey.combinations(1).into_iter().filter(|steps| steps[second - 1] == up.ascending()[0])
    {
        let field = |x: usize, y: usize| {
            let mut steps = [vec![x], combination.clone()].concat();
            steps[second] = y;
            lead(survey, &steps)
        };
        let row = |y: usize| across.ascending().into_iter().map(|x| field(x, y)).collect();
        maps.push((combination.clone(), up.ascending().into_iter().map(row).collect()));
    }
    let tests: Vec<f64> = maps
        .iter()
        .flat_map(|(_, rows)| rows.iter().flatten())
        .filter_map(|field| field.as_ref().map(|f| f.p))
        .collect();
    let mut adjusted = benjamini_hochberg(&tests).into_iter();
    let mut judge = |field: CellLead| {
        field.map(|Lead { transport, is_tie, lead_percent, .. }| {
            let sure = adjusted.next().is_some_and(|p| p < 1.0 - CONFIDENCE);
            let certainty = match (is_tie, sure) {
                (true, _) => Certainty::Tie,
                (false, true) => Certainty::Sure,
                (false, false) => Certainty::Unsure,
            };
            Best { transport, certainty, lead_percent }
        })
    };
    let styles = survey.styles();
    let transports: Vec<LabelledTransport> =
        survey.transports.iter().map(|label| (*label).to_owned()).zip(styles).collect();
    let mut map = |(combination, rows): (Vec<usize>, Vec<Vec<CellLead>>)| Map {
        choice_label: others
            .iter()
            .map(|axis| survey.axes[*axis].describe_step(combination[axis - 1]))
            .collect::<Vec<_>>()
            .join(", "),
        caption: caption(survey, across, up),
        transports: transports.clone(),
        x_labels: step_labels(across),
        y_labels: step_labels(up),
        axis_labels: [across.label(), up.label()],
        cells: rows.into_iter().map(|row| row.into_iter().map(&mut judge).collect()).collect(),
    };
    maps.into_iter().map(&mut map).collect()
}

fn caption(survey: &Survey<'_>, across: &Axis, up: &Axis) -> String {
    let metric = survey.main_metric();
    let ([better, _], name) = (metric.info().comparatives, metric.info().title);
    let best = if better.ends_with(name) { better.to_owned() } else { format!("{better}: {name}") };
    let lost = survey.cells().any(|cell| cell.lost_messages() > 0);
    let lost =
        if lost { ". Only messages that arrived count; another figure shows how many arrived" } else { "" };
    format!(
        "Which transport is best ({best}) over {} and {}. Full colour: significantly better than every other transport (at most \
         one such cell in twenty by chance); pale: the best mean, but not significantly better; grey: as good as the second best (within {} %). Numbers: difference from the second best, in percent{lost}",
        across.name(),
        up.name(),
        number(100.0 * NEGLIGIBLE)
    )
}

fn step_labels(axis: &Axis) -> Vec<String> {
    axis.ascending().into_iter().map(|step| number(axis.position(step))).collect()
}

/// The transport with the best mean, and the p-value of the claim that it is better than every other transport.
struct Lead {
    transport: usize,
    p: f64,
    /// Whether the transport is equivalent to the second best.
    is_tie: bool,
    /// How much better the transport is than the second best, in percent of the second best.
    lead_percent: Option<f64>,
}

/// The lead at one cell; `None` if no transport has a mean.
type CellLead = Option<Lead>;

fn lead(survey: &Survey<'_>, steps: &[usize]) -> CellLead {
    let metric = survey.main_metric();
    let value = |transport: usize| Some((transport, survey.at(transport, steps)?.mean_of(metric)?.mean));
    let mut means: Vec<(usize, f64)> = (0..survey.transports.len()).filter_map(value).collect();
    means.sort_by(|a, b| metric.gain(b.1).total_cmp(&metric.gain(a.1)));
    let &(transport, mean) = means.first()?;
    let best = survey.at(transport, steps)?;
    // The p-value is that of the weakest test against another transport, including those that do not carry the load.
    let others = (0..survey.transports.len()).filter(|other| *other != transport);
    let others = others.filter_map(|other| survey.at(other, steps));
    let tests: Vec<f64> = others
        .map(|other| TransportComparison::with_margin(metric, best, other).p_value().unwrap_or(1.0))
        .collect();
    let p = tests.iter().copied().fold(0.0, f64::max);
    let p = if tests.is_empty() { 1.0 } else { p };
    let next = means.get(1).and_then(|(next, _)| survey.at(*next, steps));
    let is_tie = next
        .is_some_and(|next| TransportComparison::with_margin(metric, best, next).outcome() == Outcome::Same);
    let lead_percent =
        means.get(1).map(|(_, next)| 100.0 * (mean - next).abs() / next.abs()).filter(|a| a.is_finite());
    Some(Lead { transport, p, is_tie, lead_percent })
}

/// Returns the width of a label below the map.
fn text_width(label: &str) -> f64 {
    6.4 * label.chars().count() as f64
}

/// Returns the width of a transport's entry in the legend.
fn entry_width(label: &str) -> f64 {
    40.0 + text_width(label)
}

impl Map {
    /// Returns the drawing, called `id`.
    pub fn draw(&self, id: &str) -> Svg {
        let (columns, rows) = (self.x_labels.len(), self.y_labels.len());
        let width = ((WIDTH - LEFT_MARGIN - 20.0) / columns as f64).min(MAX_CELL_WIDTH);
        let needed = (LEFT_MARGIN + width * columns as f64 + 20.0).max(self.key_width());
        let key = self.key(needed);
        let top = TOP_MARGIN + key.last().map_or(0.0, |(_, (_, y))| y - KEY_POSITION.1);
        let height = top + CELL_HEIGHT * rows as f64 + BOTTOM_MARGIN;
        let mut svg = Svg::new(id, needed, height, &self.caption);
        for ((label, style), (x, y)) in key {
            svg.group(style.class, "", |svg| svg.rect("field sure", (x, y), 12.0, 12.0));
            svg.text("tick", (x + 17.0, y + 10.0), Anchor::Start, label);
        }
        for (row, cells) in self.cells.iter().enumerate() {
            let y = top + CELL_HEIGHT * (rows - 1 - row) as f64;
            svg.text(
                "tick",
                (LEFT_MARGIN - 8.0, y + CELL_HEIGHT / 2.0 + 3.5),
                Anchor::End,
                &self.y_labels[row],
            );
            for (column, cell) in cells.iter().enumerate() {
                let corner = (LEFT_MARGIN + width * column as f64, y);
                self.draw_cell(
                    &mut svg,
                    cell.as_ref(),
                    corner,
                    width,
                    &format!(
                        "{} {}, {} {}",
                        self.axis_labels[0], self.x_labels[column], self.axis_labels[1], self.y_labels[row]
                    ),
                );
            }
        }
        let bottom = top + CELL_HEIGHT * rows as f64;
        // If columns are narrower than their labels, only as many columns are labelled as there is room for.
        let widest = self.x_labels.iter().map(|label| text_width(label)).fold(0.0, f64::max) + 8.0;
        let every = (widest / width).ceil().max(1.0) as usize;
        for (column, label) in self.x_labels.iter().enumerate().step_by(every) {
            svg.text(
                "tick",
                (LEFT_MARGIN + width * (column as f64 + 0.5), bottom + 16.0),
                Anchor::Middle,
                label,
            );
        }
        svg.text(
            "axis",
            (LEFT_MARGIN + width * columns as f64 / 2.0, bottom + 33.0),
            Anchor::Middle,
            &self.axis_labels[0],
        );
        svg.text_upwards("axis", (16.0, top + CELL_HEIGHT * rows as f64 / 2.0), &self.axis_labels[1]);
        svg
    }

    /// Returns the transports with their positions in a key of this width.
    fn key(&self, width: f64) -> Vec<(&LabelledTransport, (f64, f64))> {
        let (mut x, mut y) = KEY_POSITION;
        let position = |entry| {
            let (label, _): &LabelledTransport = entry;
            if x > KEY_POSITION.0 && x + entry_width(label) > width {
                (x, y) = (KEY_POSITION.0, y + LINE_HEIGHT);
            }
            let at = (x, y);
            x += entry_width(label);
            (entry, at)
        };
        self.transports.iter().map(position).collect()
    }

    /// Returns the width of the longest entry of the key.
    fn key_width(&self) -> f64 {
        self.transports.iter().map(|(label, _)| KEY_POSITION.0 + entry_width(label)).fold(0.0, f64::max)
    }

    fn draw_cell(&self, svg: &mut Svg, best: Option<&Best>, (x, y): (f64, f64), width: f64, step: &str) {
        let Some(Best { transport, certainty, lead_percent }) = best else {
            svg.group(
                "",
                &format!("{step}: no transport carried the load, or the point was not measured"),
                |svg| {
                    svg.rect("field nobody", (x + 1.0, y + 1.0), width - 2.0, CELL_HEIGHT - 2.0);
                    svg.text("note", (x + width / 2.0, y + CELL_HEIGHT / 2.0 + 3.5), Anchor::Middle, "none");
                },
            );
            return;
        };
        let (label, style) = &self.transports[*transport];
        let (class, what) = match certainty {
            Certainty::Sure => ("sure", "is best"),
            Certainty::Unsure => ("unsure", "has the best mean, but is not significantly better"),
            Certainty::Tie => ("tie", "is as good as the second best"),
        };
        let by = lead_percent.map_or("alone".to_owned(), |percent| format!("{percent:.0} %"));
        let what = match (certainty, lead_percent) {
            (_, None) => "is the only one that carries the load".to_owned(),
            (Certainty::Tie, Some(_)) => format!("{what} (difference {by})"),
            (_, Some(_)) => format!("{what} (by {by})"),
        };
        svg.group(style.class, &format!("{step}: {label} {what}"), |svg| {
            svg.rect(&format!("field {class}"), (x + 1.0, y + 1.0), width - 2.0, CELL_HEIGHT - 2.0);
            if width > 30.0 {
                let by = if *certainty == Certainty::Tie { "=" } else { by.as_str() };
                let centre = (x + width / 2.0, y + CELL_HEIGHT / 2.0 + 4.0);
                svg.text(&format!("on-{class}"), centre, Anchor::Middle, by);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, swept};

    fn map(means: impl Fn(&str, usize, usize) -> Vec<f64>) -> Map {
        let mut cells = Vec::new();
        for transport in ["TCP", "SCTP-8"] {
            for (x, loss) in ["1%", "2%"].into_iter().enumerate() {
                for (y, delay) in ["9ms", "5ms"].into_iter().enumerate() {
                    let mut point = cell(transport, 1.0, 100.0, &means(transport, x, y));
                    point.conditions.axes = [("network.loss", loss), ("network.delay", delay)]
                        .map(|(k, v)| (k.to_owned(), v.to_owned()))
                        .into();
                    cells.push(point);
                }
            }
        }
        let data = dataset(cells);
        maps(&swept(&data)).remove(0)
    }

    #[test]
    fn labels_of_narrow_columns_do_not_touch() {
        let mut map = map(|_, _, _| vec![25.0, 25.01, 25.02, 25.0]);
        map.x_labels = (0..40).map(|column| format!("{:.4}", 0.0125 * f64::from(column))).collect();
        map.cells = vec![vec![None; 40]; 2];
        let svg = map.draw("map").inline();
        let shown: Vec<usize> =
            (0..40).filter(|column| svg.contains(&format!(">{}</text>", map.x_labels[*column]))).collect();
        assert!(shown.windows(2).all(|pair| pair[1] - pair[0] >= 2) && shown.len() > 8, "{shown:?}");
    }

    #[test]
    fn a_cell_shows_the_best_transport_and_its_certainty() {
        let map = map(|transport, x, y| match (transport, x, y) {
            ("TCP", 0, 0) => vec![20.0, 20.1, 20.0, 20.1],
            ("SCTP-8", 0, 0) => vec![30.0, 30.1, 30.1, 30.0],
            ("TCP", 1, 0) => vec![20.0, 45.0, 30.0, 22.0],
            ("SCTP-8", 1, 0) => vec![21.0, 30.0, 41.0, 19.0],
            _ => vec![25.0, 25.01, 25.02, 25.0],
        });
        // 5 ms comes before 9 ms although it is after it in the file.
        assert_eq!(
            (map.y_labels.clone(), map.x_labels.clone()),
            (vec!["5".to_owned(), "9".to_owned()], vec!["1".to_owned(), "2".to_owned()])
        );
        let certainty = |row: usize, column: usize| {
            map.cells[row][column].as_ref().map(|best| (best.transport, best.certainty))
        };
        assert_eq!(certainty(1, 0), Some((0, Certainty::Sure)));
        assert_eq!(certainty(1, 1).unwrap().1, Certainty::Unsure);
        assert_eq!(certainty(0, 0).unwrap().1, Certainty::Tie);
        let svg = map.draw("map").inline();
        assert_eq!(svg.matches("field tie").count(), 2);
        assert!(svg.contains("loss (%) 1, delay (ms) 9: TCP is best (by 33 %)"), "{svg}");
    }
}
