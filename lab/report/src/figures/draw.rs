//! Draws a figure: its panels side by side, in a grid, or below each other for a phone. All lengths are in px.

use super::{Curves, Figure, PanelData};
use crate::plot::{
    self, Frame, Mark, Panel, Scale, Series, SeriesStyle, Svg, draw_key, draw_mark_key, side_labels,
};

/// The width of a figure, in px.
const WIDTH: f64 = 880.0;
/// The height of a figure without a grid, in px.
const HEIGHT: f64 = 340.0;
/// The minimum margin left of the first panel, for tick labels and the name of the axis, in px.
const LEFT_MARGIN: f64 = 56.0;
/// The top margin, in px.
const TOP_MARGIN: f64 = 34.0;
/// The margin below the panels, for tick labels and the name of the axis, in px.
const BOTTOM_MARGIN: f64 = 46.0;
/// The minimum margin right of a panel, for the names of its curves, in px.
const NAMES_WIDTH: f64 = 110.0;
/// The width of the line that leads from a curve to its name, in px.
const LEADER_WIDTH: f64 = 18.0;
/// The width of a letter of a name, in px.
const LETTER_WIDTH: f64 = 7.0;
/// The gap between two panels with a common key, in px.
const PANEL_GAP: f64 = 58.0;

/// The largest number of columns in a grid of panels.
const GRID_COLUMNS: usize = 3;
/// The height of a panel in a grid, in px.
const GRID_PANEL_HEIGHT: f64 = 170.0;
/// The margin below each panel of a grid, in px.
const GRID_PANEL_MARGIN: f64 = 62.0;
/// The height of a line that explains a mark, in px.
const MARK_LINE_HEIGHT: f64 = 16.0;
/// The height of a line of names above a grid, in px.
const LEGEND_LINE_HEIGHT: f64 = 24.0;

/// Draws a figure. Few panels are drawn in a row, with the names beside the curves; many panels, or long
/// names, are drawn in a grid with a common legend.
pub fn figure(figure: &Figure) -> Svg {
    let title = format!("{}: {}", figure.name, figure.caption);
    let right_margins = right_margins(figure);
    let count = figure.panels.len();
    let is_wide = count > 1 && right_margins.iter().sum::<f64>() > WIDTH * 0.4;
    if count > GRID_COLUMNS || is_wide {
        draw_grid(figure, &title)
    } else {
        draw_row(figure, &title, &right_margins)
    }
}

/// Draws a figure for a phone: its panels below each other. The names of the curves are not in the drawing; the page
/// lists them above it. `None` if the horizontal axis has names, which need more width.
pub fn figure_for_phone(figure: &Figure) -> Option<Svg> {
    /// The width of a drawing on a screen of 390 px, in px.
    const PHONE_WIDTH: f64 = 358.0;
    /// The height of a panel on a phone, in px.
    const PANEL_HEIGHT: f64 = 200.0;
    /// The margin right of a panel, for half of the last tick label, in px.
    const RIGHT_MARGIN: f64 = 14.0;
    if matches!(figure.x.scale, Scale::Names(_)) {
        return None;
    }
    let marks = marks(figure);
    let row_height = TOP_MARGIN + PANEL_HEIGHT + BOTTOM_MARGIN;
    let bottom = row_height * figure.panels.len() as f64;
    let title = format!("{}: {}", figure.name, figure.caption);
    let height = bottom + MARK_LINE_HEIGHT * marks.len() as f64;
    let mut svg = Svg::new(&format!("{}-phone", figure.id), PHONE_WIDTH, height, &title);
    let left = LEFT_MARGIN + extra_tick_width(figure);
    let mut top = TOP_MARGIN;
    for data in &figure.panels {
        let frame = Frame { left, top, width: PHONE_WIDTH - left - RIGHT_MARGIN, height: PANEL_HEIGHT };
        let panel = panel(figure, frame, [true, true]);
        panel.draw(&mut svg, &data.title);
        draw_curves(&mut svg, &panel, data);
        top += row_height;
    }
    for (line, mark) in marks.iter().enumerate() {
        let y = bottom + 2.0 + MARK_LINE_HEIGHT * line as f64;
        draw_mark_key(&mut svg, (8.0, y), std::slice::from_ref(mark));
    }
    Some(svg)
}

/// Returns the margin to the right of each panel. Panels with means have the names of their curves there; panels with
/// distributions share one key at the right.
fn right_margins(figure: &Figure) -> Vec<f64> {
    let count = figure.panels.len();
    let one = |(index, panel): (usize, &PanelData)| match index + 1 == count {
        _ if axis_names_curves(figure, panel) => PANEL_GAP / 2.0,
        true => names_width(panel),
        false if figure.is_ccdf => PANEL_GAP,
        false => names_width(panel) + PANEL_GAP / 2.0,
    };
    figure.panels.iter().enumerate().map(one).collect()
}

/// Returns the largest width of a panel. A panel whose horizontal axis has few names is narrow, so that a telephone
/// shows all of them.
fn max_panel_width(figure: &Figure) -> f64 {
    /// The maximum width of a panel, in px.
    const MAX_WIDTH: f64 = 560.0;
    let Scale::Names(names) = &figure.x.scale else { return MAX_WIDTH };
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    ((LETTER_WIDTH * longest as f64 + 14.0).max(76.0) * names.len() as f64).min(MAX_WIDTH)
}

/// Returns whether the horizontal axis has the names of the curves, which then need no other labels.
fn axis_names_curves(figure: &Figure, panel: &PanelData) -> bool {
    match (&figure.x.scale, &panel.curves) {
        (Scale::Names(names), Curves::Means(series)) => series.iter().all(|one| names.contains(&one.label)),
        _ => false,
    }
}

/// Returns by how much the longest tick label of the vertical axis is wider than a label of four letters.
fn extra_tick_width(figure: &Figure) -> f64 {
    let longest = figure.y.ticks().iter().map(|tick| tick.label.len()).max().unwrap_or(0);
    (5.8 * longest as f64 - 24.0).max(0.0)
}

fn draw_row(figure: &Figure, title: &str, right_margins: &[f64]) -> Svg {
    let marks = marks(figure);
    let count = figure.panels.len();
    let height = HEIGHT - TOP_MARGIN - BOTTOM_MARGIN;
    let more = extra_tick_width(figure);
    let room = (WIDTH - LEFT_MARGIN - more * count as f64 - right_margins.iter().sum::<f64>()) / count as f64;
    let width = room.min(max_panel_width(figure));
    let used = LEFT_MARGIN + (more + width) * count as f64 + right_margins.iter().sum::<f64>();
    let words = marks.iter().map(|(_, words)| words.chars().count() + 6).sum::<usize>();
    let whole = used.max(LEFT_MARGIN + LETTER_WIDTH * words as f64).min(WIDTH);
    let mut svg = Svg::new(&figure.id, whole, HEIGHT + marks_line_height(&marks), title);
    draw_mark_key(&mut svg, (LEFT_MARGIN, HEIGHT + 2.0), &marks);
    let mut left = LEFT_MARGIN + more;
    for (index, data) in figure.panels.iter().enumerate() {
        let panel = panel(figure, Frame { left, top: TOP_MARGIN, width, height }, [true, index == 0]);
        panel.draw(&mut svg, &data.title);
        draw_curves(&mut svg, &panel, data);
        if !axis_names_curves(figure, data) {
            label_curve_ends(&mut svg, &panel, data);
        }
        if figure.is_ccdf && index + 1 == count {
            draw_shared_key(&mut svg, figure, left + width + 16.0);
        }
        left += width + right_margins[index] + more;
    }
    svg
}

fn draw_grid(figure: &Figure, title: &str) -> Svg {
    let columns = figure.panels.len().min(GRID_COLUMNS);
    let rows = figure.panels.len().div_ceil(columns);
    let entries = legend_entries(figure);
    let lines = key_line_count(&entries);
    let top = TOP_MARGIN + LEGEND_LINE_HEIGHT * lines as f64;
    let (marks, bottom) = (marks(figure), top + (GRID_PANEL_HEIGHT + GRID_PANEL_MARGIN) * rows as f64 - 14.0);
    let mut svg = Svg::new(&figure.id, WIDTH, bottom + marks_line_height(&marks), title);
    draw_mark_key(&mut svg, (LEFT_MARGIN, bottom + 2.0), &marks);
    draw_key_in_lines(&mut svg, (LEFT_MARGIN, 14.0), &entries);
    let more = extra_tick_width(figure);
    let width = (WIDTH - LEFT_MARGIN - 16.0) / columns as f64 - PANEL_GAP / 2.0 - more;
    for (index, data) in figure.panels.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let left = LEFT_MARGIN + more + (width + PANEL_GAP / 2.0 + 8.0 + more) * column as f64;
        let frame = Frame {
            left,
            top: top + (GRID_PANEL_HEIGHT + GRID_PANEL_MARGIN) * row as f64,
            width,
            height: GRID_PANEL_HEIGHT,
        };
        let is_last = index + columns >= figure.panels.len();
        let panel = panel(figure, frame, [is_last, column == 0]);
        panel.draw(&mut svg, &data.title);
        draw_curves(&mut svg, &panel, data);
    }
    svg
}

/// Returns the marks that need an explanation, each with all its meanings in this figure.
fn marks(figure: &Figure) -> Vec<(Mark, String)> {
    let mut marks: Vec<(Mark, Vec<&str>)> = Vec::new();
    for panel in &figure.panels {
        let Curves::Means(series) = &panel.curves else { continue };
        let of =
            |one: &Series| one.marks(&figure.x.scale, &figure.y.scale, figure.metric.collapse_description());
        for (mark, words) in series.iter().flat_map(of) {
            match marks.iter_mut().find(|(known, _)| *known == mark) {
                Some((_, all)) if all.contains(&words) => {}
                Some((_, all)) => all.push(words),
                None => marks.push((mark, vec![words])),
            }
        }
    }
    marks.into_iter().map(|(mark, words)| (mark, words.join(", or "))).collect()
}

/// Returns the height of the line below the panels that explains marks.
fn marks_line_height(marks: &[(Mark, String)]) -> f64 {
    if marks.is_empty() { 0.0 } else { MARK_LINE_HEIGHT }
}

/// Returns the width of a name in the key above a grid.
fn key_width(label: &str) -> f64 {
    50.0 + LETTER_WIDTH * label.chars().count() as f64
}

fn key_line_count(entries: &[(String, SeriesStyle)]) -> usize {
    let mut x = 0.0;
    let mut lines = 1;
    for (label, _) in entries {
        if x > 0.0 && x + key_width(label) > WIDTH - LEFT_MARGIN {
            (x, lines) = (0.0, lines + 1);
        }
        x += key_width(label);
    }
    lines
}

fn draw_key_in_lines(svg: &mut Svg, at: (f64, f64), entries: &[(String, SeriesStyle)]) {
    let (mut x, mut y) = at;
    for entry in entries {
        if x > at.0 && x + key_width(&entry.0) > WIDTH {
            (x, y) = (at.0, y + LEGEND_LINE_HEIGHT);
        }
        draw_key(svg, (x, y), std::slice::from_ref(entry), false);
        x += key_width(&entry.0);
    }
}

/// Returns the width of the names beside a panel.
fn names_width(panel: &PanelData) -> f64 {
    let letters = match &panel.curves {
        Curves::Means(series) => series.iter().map(|one| one.label.len()).max(),
        Curves::Ccdfs(curves) => curves.iter().map(|one| one.label.len() + 5).max(),
        Curves::OverTime { curves, .. } => curves.iter().map(|one| one.label.len()).max(),
    };
    letters.map_or(NAMES_WIDTH, |letters| (LEADER_WIDTH + LETTER_WIDTH * letters as f64).max(NAMES_WIDTH))
}

/// Draws a panel in its frame; `named` says which of its axes, horizontal and vertical, have a name.
fn panel(figure: &Figure, frame: Frame, named: [bool; 2]) -> Panel {
    let mut panel = Panel { frame, x: figure.x.clone(), y: figure.y.clone() };
    for (axis, _) in [&mut panel.x, &mut panel.y].into_iter().zip(named).filter(|(_, named)| !named) {
        axis.label.clear();
    }
    panel
}

fn draw_curves(svg: &mut Svg, panel: &Panel, data: &PanelData) {
    match &data.curves {
        // Names have no order, so they are not joined by a line.
        Curves::Means(series) if matches!(panel.x.scale, Scale::Names(_)) => {
            plot::draw_marks(svg, panel, series);
        }
        Curves::Means(series) => plot::draw_curves(svg, panel, series),
        Curves::Ccdfs(curves) => curves.iter().for_each(|one| one.draw(svg, panel)),
        Curves::OverTime { curves, events, recoveries } => {
            plot::draw_event_lines(svg, panel, events);
            plot::draw_recoveries(svg, panel, recoveries);
            curves.iter().for_each(|one| one.draw(svg, panel));
        }
    }
}

fn label_curve_ends(svg: &mut Svg, panel: &Panel, data: &PanelData) {
    let ends: Vec<_> = match &data.curves {
        Curves::Means(series) => series.iter().filter_map(|one| curve_end(panel, one)).collect(),
        Curves::OverTime { curves, .. } => {
            curves.iter().filter_map(|one| Some((one.label.clone(), one.style, one.end(panel)?))).collect()
        }
        Curves::Ccdfs(_) => return,
    };
    side_labels(svg, panel, &ends);
}

/// Returns the name of a curve and where it leaves the panel; `None` if no point of the curve is in the panel.
fn curve_end(panel: &Panel, series: &Series) -> Option<(String, SeriesStyle, (f64, f64))> {
    let measured = series.points.iter().map(|point| (point.x, point.value.value));
    // A reference line has no points.
    let all: Vec<(f64, f64)> =
        if series.points.is_empty() { series.theory.clone() } else { measured.collect() };
    let &(x, y) = all.iter().rfind(|(x, _)| panel.x.scale.contains(*x))?;
    Some((series.label.clone(), series.style, panel.pixel_of(x, y)))
}

fn draw_shared_key(svg: &mut Svg, figure: &Figure, left: f64) {
    let dashed = |panel: &PanelData| match &panel.curves {
        Curves::Ccdfs(curves) => curves.iter().any(|one| !one.theory.is_empty()),
        Curves::Means(_) | Curves::OverTime { .. } => false,
    };
    draw_key(svg, (left, TOP_MARGIN + 10.0), &legend_entries(figure), figure.panels.iter().any(dashed));
}

/// Returns every curve of all panels once, by name.
pub(super) fn legend_entries(figure: &Figure) -> Vec<(String, SeriesStyle)> {
    let mut entries: Vec<(String, SeriesStyle)> = Vec::new();
    for panel in &figure.panels {
        let named: Vec<(&String, SeriesStyle)> = match &panel.curves {
            Curves::Means(series) => series.iter().map(|one| (&one.label, one.style)).collect(),
            Curves::Ccdfs(curves) => curves.iter().map(|one| (&one.label, one.style)).collect(),
            Curves::OverTime { curves, .. } => curves.iter().map(|one| (&one.label, one.style)).collect(),
        };
        for (label, style) in named {
            if !entries.iter().any(|(known, _)| known == label) {
                entries.push((label.clone(), style));
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use crate::data::Dataset;
    use crate::figures::{StudyFigures, gather};
    use crate::testing::{cell, dataset};
    use hol_lab::Metric;

    const STUDY: &str = r#"
        [[view]]
        title = "today"
        [[view]]
        title = "then"
        suffix = " (2006)"
        [[figure]]
        number = 4
        caption = "Delay over loss"
        experiment = "exp1"
        kind = "loss"
        x = [0.1, 10]
        y = [20, 120]
        [[figure]]
        number = 8
        caption = "CCDF"
        experiment = "exp1"
        kind = "ccdf"
        loss = [1]
        x = [10, 10000]
        y = [0.001, 1]
    "#;

    fn figures() -> Vec<crate::figures::Figure> {
        let study: StudyFigures = toml::from_str(STUDY).unwrap();
        let data = dataset(vec![
            cell("TCP", 1.0, 100.0, &[23.0, 25.0]),
            cell("TCP", 5.0, 100.0, &[180.0, 190.0]),
            cell("SCTP-8", 1.0, 100.0, &[21.0, 21.5]),
            cell("SCTP-8 (2006)", 1.0, 100.0, &[21.0, 21.5]),
        ]);
        gather(&study, &data)
    }

    #[test]
    fn a_figure_of_means_has_a_panel_for_each_stack_and_names_its_curves() {
        let svg = figures()[0].draw().inline();
        assert!(svg.contains("<title id=\"fig04-title\">Figure 4: Delay over loss</title>"), "{svg}");
        assert_eq!(svg.matches("class=\"frame\"").count(), 2);
        assert_eq!(svg.matches("class=\"curve\"").count(), 3, "TCP and SCTP-8 today, SCTP-8 then");
        assert_eq!(svg.matches(">SCTP-8</text>").count(), 2);
        assert_eq!(svg.matches(">TCP</text>").count(), 1);
        assert_eq!(
            svg.matches("class=\"off-axis\"").count(),
            2,
            "185 ms is off the axis, and the key says so"
        );
        assert!(svg.contains("<title>TCP at 1: 24 ± 13</title>"), "{svg}");
    }

    #[test]
    fn a_distribution_has_one_key_for_all_panels() {
        let svg = figures()[1].draw().inline();
        assert_eq!(svg.matches("class=\"frame\"").count(), 2);
        assert_eq!(svg.matches(">SCTP-8</text>").count(), 1);
    }

    /// Tables and figures have the same interval: BCa if repetitions are skewed.
    #[test]
    fn figure_and_table_have_the_same_intervals() {
        let study: StudyFigures = toml::from_str(STUDY).unwrap();
        let skewed = [21.0, 21.05, 21.1, 21.12, 21.15, 21.2, 21.22, 21.25, 21.3, 35.9];
        let mut unsteady = cell("TCP", 2.0, 100.0, &[30.0; 10]);
        unsteady.is_steady = false;
        let data = dataset(vec![cell("TCP", 1.0, 100.0, &skewed), unsteady]);
        let figure = &gather(&study, &data)[0];
        let mean = data.cells[0].mean_with_bounds(Metric::ResponseTime).unwrap();
        assert!(mean.is_asymmetric() && figure.html_table().contains(&format!("<td>{mean}<small>")));
        assert!(figure.html_table().contains("<td>no steady state</td>"));
        assert!(figure.csv().contains(&format!("{:.4},{:.4},{:.4}", mean.value, mean.low, mean.high)));
        let svg = figure.draw().inline();
        assert!(svg.contains(&format!("<title>TCP at 1: {mean}</title>")), "{svg}");
        assert!(svg.contains(">no steady state</text>"), "the mark has its word: {svg}");
    }

    /// A failed point breaks the line, because the values around it are unknown.
    #[test]
    fn line_is_broken_at_a_point_without_runs() {
        let study: StudyFigures = toml::from_str(STUDY).unwrap();
        let mut data = dataset([1.0, 2.0, 5.0].map(|loss| cell("TCP", loss, 100.0, &[23.0, 25.0])).to_vec());
        let lines =
            |data: &Dataset| gather(&study, data)[0].draw().inline().matches("class=\"curve\"").count();
        assert_eq!(lines(&data), 1);
        data.unmeasured.push(data.cells.remove(1));
        assert_eq!(lines(&data), 2);
    }

    #[test]
    fn the_same_points_give_the_same_drawing() {
        assert_eq!(figures()[0].draw().standalone(), figures()[0].draw().standalone());
    }

    #[test]
    fn the_csv_has_a_row_for_each_x_and_series() {
        let csv = figures()[0].csv();
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(rows.len(), 5, "{csv}");
        assert_eq!(rows[0], "panel,series,x,mean_ms,low95_ms,high95_ms,closed_form_ms,n,missing,collapsed");
        assert!(rows[1].starts_with("today,TCP,1,24.0000,") && rows[1].ends_with(",2,0,0"), "{csv}");
    }

    /// RFC 4180 section 2, rule 6.
    #[test]
    fn a_name_with_a_comma_is_one_cell_of_the_csv() {
        let study: StudyFigures = toml::from_str(&STUDY.replace("\"then\"", "'2006, \"then\"'")).unwrap();
        let data = dataset(vec![cell("SCTP-8 (2006)", 1.0, 100.0, &[21.0, 21.5])]);
        for figure in gather(&study, &data) {
            let text = figure.csv();
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
            assert!(!rows.is_empty() && rows.iter().all(|row| &row[0] == "2006, \"then\""), "{text}");
        }
    }
}
