//! Draws the curves of a panel together, so that coinciding ones stay visible.

use super::edge::EdgeMarks;
use super::{Panel, Series, Svg};

/// The distance in pixels below which curves coincide: about the width of a line.
const COINCIDENCE_DISTANCE: f64 = 1.5;
/// The fraction of the points at which coinciding curves may be further apart than `COINCIDENCE_DISTANCE`.
const MAX_FAR_SHARE: f64 = 0.1;
/// The length of a dash in pixels where several curves coincide: the curves take turns, each with one dash.
const DASH_LENGTH: usize = 7;

/// Draws lines, then all marks above them.
pub fn draw_curves(svg: &mut Svg, panel: &Panel, series: &[Series]) {
    let groups = coinciding_groups(panel, series);
    for (index, one) in series.iter().enumerate() {
        let together: Vec<usize> =
            (0..series.len()).filter(|other| groups[*other] == groups[index]).collect();
        match together.iter().position(|member| *member == index) {
            Some(turn) if together.len() > 1 => {
                one.draw_dashed(svg, panel, &dash_pattern(turn, together.len()));
            }
            _ => one.draw_line(svg, panel),
        }
    }
    draw_marks(svg, panel, series);
}

/// Draws the marks of all series without the lines.
pub fn draw_marks(svg: &mut Svg, panel: &Panel, series: &[Series]) {
    let mut edge = EdgeMarks::default();
    series.iter().for_each(|one| one.draw_marks(svg, panel, &mut edge));
}

/// Returns for each curve the index of the first curve with which it coincides, or its own index if it coincides with no earlier curve.
fn coinciding_groups(panel: &Panel, series: &[Series]) -> Vec<usize> {
    let first = |index: usize| (0..index).find(|before| coincide(panel, &series[*before], &series[index]));
    (0..series.len()).map(|index| first(index).unwrap_or(index)).collect()
}

/// Returns whether two curves look like one.
fn coincide(panel: &Panel, a: &Series, b: &Series) -> bool {
    let height = |of: &Series, x: f64| {
        let point = of.points.iter().find(|point| point.x == x)?;
        Some(panel.pixel_of(x, point.value.value).1)
    };
    let is_seen = |x: &f64| panel.x.scale.contains(*x);
    let xs: Vec<f64> = a.points.iter().map(|point| point.x).filter(is_seen).collect();
    let near = |x: &&f64| {
        height(a, **x).zip(height(b, **x)).is_some_and(|(a, b)| (a - b).abs() <= COINCIDENCE_DISTANCE)
    };
    let max = xs.len().max(b.points.iter().filter(|point| is_seen(&point.x)).count());
    max > 1 && xs.iter().filter(near).count() as f64 >= (1.0 - MAX_FAR_SHARE) * max as f64
}

/// Returns the dash pattern of the curve with index `turn` among `count` coinciding ones, with gaps for the others.
fn dash_pattern(turn: usize, count: usize) -> String {
    format!("0 {} {DASH_LENGTH} {}", DASH_LENGTH * turn, DASH_LENGTH * (count - 1 - turn))
}

#[cfg(test)]
mod tests {
    use hol_measure::ConfidenceInterval;

    use super::*;
    use crate::plot::{Axis, Frame, Gap, Mark, Point, Scale, SeriesStyle};

    fn panel() -> Panel {
        let frame = Frame { left: 0.0, top: 0.0, width: 400.0, height: 100.0 };
        let axis = |max| Axis::new(Scale::Linear { min: 0.0, max }, "");
        Panel { frame, x: axis(4.0), y: axis(100.0) }
    }

    fn through(values: &[f64]) -> Series {
        let point = |(x, &value): (f64, &f64)| {
            let value = ConfidenceInterval { value, low: value - 1.0, high: value + 30.0 };
            Point { x, value, n: 10, missing: 0, collapsed: 0 }
        };
        let xs = (0..values.len()).map(|x| x as f64);
        Series::new("one", SeriesStyle::of_transport("TCP"), xs.zip(values).map(point).collect())
    }

    fn drawn(series: &[Series]) -> String {
        let mut svg = Svg::new("a", 400.0, 100.0, "");
        draw_curves(&mut svg, &panel(), series);
        svg.inline()
    }

    #[test]
    fn coinciding_curves_are_dashed_in_turn() {
        let series =
            [through(&[10.0, 20.0, 30.0]), through(&[80.0, 20.0, 30.0]), through(&[10.4, 20.4, 30.4])];
        assert_eq!(coinciding_groups(&panel(), &series), [0, 1, 0]);
        let svg = drawn(&series);
        assert!(svg.contains(r#"stroke-dasharray="0 0 7 7""#), "{svg}");
        assert!(svg.contains(r#"stroke-dasharray="0 7 7 0""#), "{svg}");
        assert_eq!(svg.matches(r#"class="curve" points"#).count(), 1, "the other is drawn through: {svg}");
    }

    #[test]
    fn a_line_is_broken_where_there_is_no_value() {
        let mut broken = through(&[10.0, 20.0, 30.0, 40.0]);
        broken.points.remove(2);
        assert_eq!(
            drawn(&[broken.clone()]).matches("class=\"curve\"").count(),
            1,
            "nothing was planned there"
        );
        broken.gaps.push(Gap { x: 2.0, why: Some("no steady state") });
        let svg = drawn(&[broken.clone(), broken.clone()]);
        assert_eq!(svg.matches("class=\"curve\"").count(), 4, "{svg}");
        assert!(svg.contains("<title>one at 2: no steady state</title>"), "{svg}");
        let has_mark = |depth: &str| svg.contains(&format!("cx=\"200\" cy=\"{depth}\" r=\"3.5\""));
        assert!(has_mark("5.5") && has_mark("14.5"), "one below the other: {svg}");
        let Panel { x, y, .. } = panel();
        assert_eq!(broken.marks(&x.scale, &y.scale, "collapsed"), [(Mark::NoValue, "no steady state")]);
    }

    #[test]
    fn bars_are_as_long_as_the_intervals_on_each_side() {
        let svg = drawn(&[through(&[50.0])]);
        assert!(svg.contains(r#"<line class="bar" x1="0" y1="51" x2="0" y2="20"/>"#), "{svg}");
    }

    #[test]
    fn values_off_the_axis_and_collapsed_runs_are_marked() {
        let mut series = through(&[120.0, -20.0, 50.0]);
        series.points[2].collapsed = 1;
        let Panel { x, y, .. } = panel();
        let marks = [
            (Mark::Above, "above the axis"),
            (Mark::Below, "below the axis"),
            (Mark::Collapsed, "collapsed"),
        ];
        assert_eq!(series.marks(&x.scale, &y.scale, "collapsed"), marks);
        let svg = drawn(&[series]);
        assert!(svg.contains(r#"<polygon class="off-axis" points="-4,8.8 0,2.2 4,8.8"/>"#), "{svg}");
        assert!(svg.contains(r#"<polygon class="off-axis" points="96,91.2 100,97.8 104,91.2"/>"#), "{svg}");
        assert!(svg.contains(r#"<circle class="ring" cx="200" cy="50""#), "{svg}");
        assert!(svg.contains("1 of 10 runs collapsed (did not carry the load)"), "{svg}");
    }
}
