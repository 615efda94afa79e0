//! Legends: names beside the ends of curves if that is legible, otherwise in a key.

use hol_measure::DelayComponent;

use super::mark::draw_marker;
use super::{Anchor, Panel, SeriesStyle, Svg};

/// The minimum distance between two labels, in pixels.
const LABEL_SPACING: f64 = 13.0;

/// Draws each label at the height where its curve ends (`end` in pixels), moved so that labels do not overlap.
pub fn side_labels(svg: &mut Svg, panel: &Panel, labels: &[(String, SeriesStyle, (f64, f64))]) {
    let frame = panel.frame;
    let x = frame.left + frame.width + 16.0;
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by(|&a, &b| labels[a].2.1.total_cmp(&labels[b].2.1));
    let wanted: Vec<f64> =
        order.iter().map(|&i| labels[i].2.1.clamp(frame.top, frame.top + frame.height)).collect();
    let places = spread(&wanted, frame.top + 4.0, frame.top + frame.height);
    for ((&index, place), from) in order.iter().zip(places).zip(wanted) {
        let (label, style, _) = &labels[index];
        svg.group(style.class, "", |svg| {
            svg.line("leader", (frame.left + frame.width + 2.0, from), (x - 2.0, place));
            svg.text("label", (x, place + 3.5), Anchor::Start, label);
        });
    }
}

/// Draws a key of lines, markers and names, from `at` downwards; `theory` adds an entry for the closed form.
pub fn draw_key(svg: &mut Svg, at: (f64, f64), entries: &[(String, SeriesStyle)], theory: bool) {
    let mut y = at.1;
    for (label, style) in entries {
        svg.group(style.class, "", |svg| {
            svg.polyline("curve", style.dash, [(at.0, y), (at.0 + 22.0, y)]);
            draw_marker(svg, style.marker, (at.0 + 11.0, y));
            svg.text("label", (at.0 + 28.0, y + 3.5), Anchor::Start, label);
        });
        y += 17.0;
    }
    if theory {
        svg.group("c-grey", "", |svg| {
            svg.polyline("theory", "2 3", [(at.0, y), (at.0 + 22.0, y)]);
            svg.text("note", (at.0 + 28.0, y + 3.5), Anchor::Start, "closed form");
        });
    }
}

/// The height of a line of the key of delay components, in px.
const KEY_LINE_HEIGHT: f64 = 17.0;

/// Returns the height, in pixels, of the key of delay components in a drawing of this width.
pub fn component_key_height(width: f64, meaning: fn(DelayComponent) -> &'static str) -> f64 {
    let lines = component_key_positions(width, meaning).last().map_or(0.0, |(_, (_, y))| y / KEY_LINE_HEIGHT);
    KEY_LINE_HEIGHT * (lines.floor() + 1.0)
}

/// Draws the colours of the delay components with their meanings, in as many lines as a drawing of this
/// width needs.
pub fn draw_component_key(svg: &mut Svg, width: f64, meaning: fn(DelayComponent) -> &'static str) {
    for (component, (x, y)) in component_key_positions(width, meaning) {
        svg.rect(&format!("split-{}", component.name()), (x, y), 11.0, 11.0);
        svg.text("note", (x + 16.0, y + 9.5), Anchor::Start, meaning(component));
    }
}

/// Returns the position of each component. A letter of the widest of the theme's fonts is 6.6 pixels wide.
fn component_key_positions(
    width: f64,
    meaning: fn(DelayComponent) -> &'static str,
) -> Vec<(DelayComponent, (f64, f64))> {
    let (mut x, mut y) = (10.0, 6.0);
    let place = |component| {
        let needed = 16.0 + 6.6 * meaning(component).chars().count() as f64;
        if x > 10.0 && x + needed > width {
            (x, y) = (10.0, y + KEY_LINE_HEIGHT);
        }
        let at = (x, y);
        x += needed + 18.0;
        (component, at)
    };
    DelayComponent::ALL.into_iter().map(place).collect()
}

/// Returns the positions nearest to `wanted` (ascending) that are between `top` and `bottom` and at least
/// [`LABEL_SPACING`] apart, if there is room.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let step = LABEL_SPACING.min((bottom - top) / (wanted.len().max(2) - 1) as f64);
    // Labels that overlap become a block, centred at the mean of their wanted positions but within the frame.
    let inside = |(centre, count): (f64, usize)| {
        let half = step * (count - 1) as f64 / 2.0;
        (centre.clamp(top + half, (bottom - half).max(top + half)), count)
    };
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &place in wanted {
        let mut block = inside((place, 1));
        let touches = |block: (f64, usize), last: &mut (f64, usize)| {
            block.0 - last.0 < step * (last.1 + block.1) as f64 / 2.0
        };
        while let Some((centre, count)) = blocks.pop_if(|last| touches(block, last)) {
            let total = count + block.1;
            block = inside(((centre * count as f64 + block.0 * block.1 as f64) / total as f64, total));
        }
        blocks.push(block);
    }
    let mut index = 0;
    for (centre, count) in blocks {
        for member in 0..count {
            places[index] = centre + step * (member as f64 - (count - 1) as f64 / 2.0);
            index += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_touch_are_pushed_apart_around_their_centre() {
        let places = spread(&[50.0, 50.0, 51.0, 100.0], 0.0, 200.0);
        for pair in places.windows(2) {
            assert!(pair[1] - pair[0] >= LABEL_SPACING - 1e-9, "{places:?}");
        }
        assert_eq!(places[3], 100.0);
        assert!((places[1] - 50.3).abs() < 0.1, "{places:?}");
    }

    #[test]
    fn component_key_fits_into_its_drawing() {
        let meaning = |_| "network delay beyond propagation";
        for width in [880.0, 420.0, 300.0] {
            let places = component_key_positions(width, meaning);
            let end = |(_, (x, _)): &(DelayComponent, (f64, f64))| x + 16.0 + 6.6 * 29.0;
            assert!(places.iter().all(|place| end(place) <= width), "{width}: {places:?}");
            let bottom = places.iter().map(|(_, (_, y))| y + 11.0).fold(0.0, f64::max);
            assert!(bottom <= component_key_height(width, meaning), "{width}");
        }
    }

    #[test]
    fn labels_stay_inside_the_frame() {
        let places = spread(&[199.0, 200.0, 200.0], 0.0, 200.0);
        assert!(places[2] <= 200.0 + 1e-9 && places[0] >= 200.0 - 2.0 * LABEL_SPACING - 1e-9, "{places:?}");
        let places = spread(&[180.0, 199.0, 200.0], 0.0, 200.0);
        assert!(
            places[1] - places[0] >= LABEL_SPACING - 1e-9,
            "a block that is pushed up meets its neighbour: {places:?}"
        );
    }
}
