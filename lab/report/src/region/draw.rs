//! Draws regions side by side over the same plane, and returns their numbers.

use super::{Region, RegionPoint, TransportRegion};
use crate::plot::{Anchor, Svg, number};

/// The width of a drawing, in px.
const WIDTH: f64 = 880.0;
/// The left margin, in px.
const LEFT_MARGIN: f64 = 62.0;
/// The top margin, in px.
const TOP_MARGIN: f64 = 26.0;
/// The bottom margin, in px.
const BOTTOM_MARGIN: f64 = 46.0;
/// The gap between two panels, in px.
const PANEL_GAP: f64 = 22.0;
/// Maximum number of regions in a row.
const MAX_IN_ROW: usize = 3;
/// The height of a cell, in px.
const CELL_HEIGHT: f64 = 18.0;

impl Region {
    /// Draws the region of every transport.
    pub fn draw(&self) -> Svg {
        let rows = self.transports.len().div_ceil(MAX_IN_ROW);
        let mut svg = Svg::new(&self.id, WIDTH, self.height() * rows as f64, &self.caption);
        for (index, transport) in self.transports.iter().enumerate() {
            let (column, row) = (index % MAX_IN_ROW, index / MAX_IN_ROW);
            let corner = (self.width() * column as f64, self.height() * row as f64);
            self.draw_transport(&mut svg, transport, corner);
        }
        svg
    }

    /// Returns the points as CSV, one row each.
    pub fn csv(&self) -> String {
        let metric = self.requirement.metric;
        let names = self.axes.each_ref().map(|axis| axis.name());
        let mut text = format!("transport,{},{},{},worse95,enough\n", names[0], names[1], metric.info().unit);
        for transport in &self.transports {
            for (row, points) in transport.points.iter().enumerate() {
                for (column, point) in points.iter().enumerate() {
                    let Some(RegionPoint { mean, worse_end }) = point else { continue };
                    let [x, y] = [self.value(0, column), self.value(1, row)];
                    let enough = if self.requirement.is_met_by(*mean) { "yes" } else { "no" };
                    text += &format!("{},{x},{y},{mean:.4},{worse_end:.4},{enough}\n", transport.label);
                }
            }
        }
        text
    }

    fn width(&self) -> f64 {
        WIDTH / MAX_IN_ROW as f64
    }

    fn height(&self) -> f64 {
        TOP_MARGIN + CELL_HEIGHT * self.axes[1].steps.len() as f64 + BOTTOM_MARGIN
    }

    /// Returns the value of an axis (0: horizontal, 1: vertical) at a step, counted from the lowest value.
    fn value(&self, axis: usize, step: usize) -> String {
        let axis = &self.axes[axis];
        number(axis.position(axis.ascending()[step]))
    }

    fn draw_transport(&self, svg: &mut Svg, transport: &TransportRegion, (x, y): (f64, f64)) {
        let (columns, rows) = (self.axes[0].steps.len(), self.axes[1].steps.len());
        let (wide, left, top) =
            ((self.width() - LEFT_MARGIN - PANEL_GAP) / columns as f64, x + LEFT_MARGIN, y + TOP_MARGIN);
        let area = transport.area.map_or("not measured".to_owned(), |area| format!("{area} %"));
        let title = format!("{}: {area}", transport.label);
        svg.text("panel", (left, top - 9.0), Anchor::Start, &title);
        for (row, points) in transport.points.iter().enumerate() {
            let at = top + CELL_HEIGHT * (rows - 1 - row) as f64;
            svg.text("tick", (left - 6.0, at + CELL_HEIGHT / 2.0 + 3.5), Anchor::End, &self.value(1, row));
            for (column, point) in points.iter().enumerate() {
                let corner = (left + wide * column as f64, at);
                let step = format!(
                    "{} {}, {} {}",
                    self.axes[0].label(),
                    self.value(0, column),
                    self.axes[1].label(),
                    self.value(1, row)
                );
                self.draw_point(svg, transport, point.as_ref(), corner, wide, &step);
            }
        }
        let bottom = top + CELL_HEIGHT * rows as f64;
        for column in 0..columns {
            let at = (left + wide * (column as f64 + 0.5), bottom + 14.0);
            svg.text("tick", at, Anchor::Middle, &self.value(0, column));
        }
        let middle = (left + wide * columns as f64 / 2.0, bottom + 30.0);
        svg.text("axis", middle, Anchor::Middle, &self.axes[0].label());
        svg.text_upwards("axis", (x + 14.0, top + CELL_HEIGHT * rows as f64 / 2.0), &self.axes[1].label());
    }

    /// Draws a point as a rectangle; its tooltip has the values of both axes (`step`).
    fn draw_point(
        &self,
        svg: &mut Svg,
        transport: &TransportRegion,
        point: Option<&RegionPoint>,
        corner: (f64, f64),
        wide: f64,
        step: &str,
    ) {
        let unit = self.requirement.metric.info().unit;
        let (class, what) = match point {
            None => ("nobody", "not measured".to_owned()),
            Some(RegionPoint { mean, worse_end }) if self.requirement.is_met_by(*worse_end) => {
                ("sure", format!("{mean:.2} {unit}"))
            }
            Some(RegionPoint { mean, .. }) if self.requirement.is_met_by(*mean) => {
                ("unsure", format!("{mean:.2} {unit}, which meets the requirement, but its 95 % CI does not"))
            }
            Some(RegionPoint { mean, .. }) => {
                ("tie", format!("{mean:.2} {unit}, which does not meet the requirement"))
            }
        };
        svg.group(transport.style.class, &format!("{step}: {what}"), |svg| {
            svg.rect(&format!("field {class}"), corner, wide, CELL_HEIGHT);
        });
    }
}
