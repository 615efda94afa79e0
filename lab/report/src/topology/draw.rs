//! Draws a network: nodes and LANs as boxes, links and memberships as lines between them. All lengths are in px.

use hol_network::{Medium, NodeId, Segment, Topology};

use super::layout::layout;
use super::{describe_settings, member};
use crate::plot::{Anchor, Svg};

/// The margin on all sides, in px.
const MARGIN: f64 = 30.0;
/// The height of the heading, in px.
const HEADING_HEIGHT: f64 = 40.0;
/// Half the minimum width of a box, in px.
const MIN_BOX_HALF_WIDTH: f64 = 34.0;
/// Half the width of a letter, in px.
const LETTER_HALF_WIDTH: f64 = 3.4;
/// Height of a line of text, in px.
const LINE_HEIGHT: f64 = 14.0;
/// The distance of parallel links at their midpoints, in px.
const LINK_DISTANCE: f64 = 70.0;

/// Draws the network; `id` is unique on its page.
pub fn draw(id: &str, heading: &str, topology: &Topology) -> Svg {
    let boxes = boxes(topology);
    let edges = edges(topology);
    let ends: Vec<(usize, usize)> = edges.iter().map(|edge| edge.ends).collect();
    let mut at = layout(boxes.len(), &ends);
    let left = at.iter().zip(&boxes).map(|(at, own)| at.0 - own.half_width).fold(f64::MAX, f64::min);
    let top = at.iter().zip(&boxes).map(|(at, own)| at.1 - own.half_height()).fold(f64::MAX, f64::min);
    for (x, y) in &mut at {
        *x += MARGIN - left;
        *y += HEADING_HEIGHT + MARGIN - top;
    }
    let right = at.iter().zip(&boxes).map(|(at, own)| at.0 + own.half_width).fold(0.0, f64::max);
    let bottom = at.iter().zip(&boxes).map(|(at, own)| at.1 + own.half_height()).fold(0.0, f64::max);
    let width = (right + MARGIN)
        .max(14.0 * LETTER_HALF_WIDTH + 2.0 * LETTER_HALF_WIDTH * heading.chars().count() as f64);
    let mut svg = Svg::new(id, width, bottom + MARGIN, heading);
    svg.text("panel", (MARGIN, 24.0), Anchor::Start, heading);
    for edge in &edges {
        edge.draw_line(&mut svg, &at);
    }
    for (own, at) in boxes.iter().zip(&at) {
        own.draw(&mut svg, *at);
    }
    for edge in &edges {
        edge.draw_label(&mut svg, &at);
    }
    svg
}

/// A node or a LAN.
struct NodeBox {
    colour: &'static str,
    name: String,
    notes: Vec<String>,
    half_width: f64,
}

impl NodeBox {
    fn new(colour: &'static str, name: &str, notes: Vec<String>) -> Self {
        let texts = notes.iter().map(String::as_str).chain([name]);
        let longest = texts.map(|text| text.chars().count()).max().unwrap_or(0);
        Self {
            colour,
            name: name.to_owned(),
            notes,
            half_width: MIN_BOX_HALF_WIDTH.max(LETTER_HALF_WIDTH * longest as f64),
        }
    }

    fn half_height(&self) -> f64 {
        0.5 * LINE_HEIGHT * (1.6 + self.notes.len() as f64)
    }

    fn draw(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        let top = y - self.half_height();
        svg.group(self.colour, "", |svg| {
            svg.rect("open", (x - self.half_width, top), 2.0 * self.half_width, 2.0 * self.half_height());
        });
        svg.text("panel", (x, top + 1.2 * LINE_HEIGHT), Anchor::Middle, &self.name);
        for (line, note) in (2..).zip(&self.notes) {
            svg.text("note", (x, top + LINE_HEIGHT * (f64::from(line) + 0.1)), Anchor::Middle, note);
        }
    }
}

/// Returns the nodes, each with its addresses, then the LANs.
fn boxes(topology: &Topology) -> Vec<NodeBox> {
    let nodes = (0..).zip(topology.node_names()).map(|(node, name)| {
        let addresses = topology.addresses(NodeId(node));
        NodeBox::new("c-blue", name, addresses.iter().map(ToString::to_string).collect())
    });
    let lans =
        lans(topology).map(|lan| NodeBox::new("c-green", &lan.label, describe_settings(topology, lan)));
    nodes.chain(lans).collect()
}

fn lans(topology: &Topology) -> impl Iterator<Item = &Segment> {
    topology.segments().iter().filter(|segment| matches!(segment.medium, Medium::Lan(_)))
}

/// A link, or a node's membership of a LAN.
struct Edge {
    ends: (usize, usize),
    /// Pixels by which the middle of the line is moved sideways, to separate parallel links.
    curvature: f64,
    /// The lines of the label: the link's name and settings; empty for a node's membership of a LAN.
    label_lines: Vec<String>,
}

fn edges(topology: &Topology) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut lan = topology.node_names().len();
    for segment in topology.segments() {
        let node = |place| usize::from(member(topology, segment, place).0);
        match segment.medium {
            Medium::Link { .. } => {
                let label_lines =
                    [vec![segment.label.clone()], describe_settings(topology, segment)].concat();
                edges.push(Edge { ends: (node(0), node(1)), curvature: 0.0, label_lines });
            }
            Medium::Lan(_) => {
                edges.extend((0..segment.interfaces.len()).map(|place| Edge {
                    ends: (node(place), lan),
                    curvature: 0.0,
                    label_lines: Vec::new(),
                }));
                lan += 1;
            }
        }
    }
    spread(&mut edges);
    edges
}

/// Separates parallel links by their curvature.
fn spread(edges: &mut [Edge]) {
    let pair = |edge: &Edge| (edge.ends.0.min(edge.ends.1), edge.ends.0.max(edge.ends.1));
    let pairs: Vec<_> = edges.iter().map(pair).collect();
    for (index, edge) in edges.iter_mut().enumerate() {
        let same = |other: &&(usize, usize)| **other == pairs[index];
        let before = pairs[..index].iter().filter(same).count();
        let all = pairs.iter().filter(same).count();
        let side = if edge.ends.0 < edge.ends.1 { 1.0 } else { -1.0 };
        edge.curvature = side * LINK_DISTANCE * (before as f64 - 0.5 * (all - 1) as f64);
    }
}

impl Edge {
    fn middle(&self, at: &[(f64, f64)]) -> (f64, f64) {
        let ((x1, y1), (x2, y2)) = (at[self.ends.0], at[self.ends.1]);
        let length = (x2 - x1).hypot(y2 - y1).max(1.0);
        let (across, along) = ((y1 - y2) / length, (x2 - x1) / length);
        (0.5 * (x1 + x2) + self.curvature * across, 0.5 * (y1 + y2) + self.curvature * along)
    }

    fn draw_line(&self, svg: &mut Svg, at: &[(f64, f64)]) {
        let colour = if self.label_lines.is_empty() { "c-green" } else { "c-blue" };
        let points = [at[self.ends.0], self.middle(at), at[self.ends.1]];
        svg.group(colour, "", |svg| svg.polyline("curve", "", points));
    }

    fn draw_label(&self, svg: &mut Svg, at: &[(f64, f64)]) {
        let (x, y) = self.middle(at);
        // The last line of text stands on the drawn line.
        let top = y - LINE_HEIGHT * self.label_lines.len() as f64;
        for (index, line) in self.label_lines.iter().enumerate() {
            let below = top + LINE_HEIGHT * (index as f64 + 0.7);
            svg.group("c-ink", "", |svg| svg.text("message", (x, below), Anchor::Middle, line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(spec: &str) -> String {
        let topology = Topology::new(&toml::from_str(spec).unwrap()).unwrap();
        draw("t", "A network", &topology).inline()
    }

    #[test]
    fn nodes_and_lans_are_boxes_and_links_have_labels() {
        let svg = drawn(
            "nodes = ['client', 'server', 'admin']
             links = [{ from = 'client', to = 'server', name = 'testlink', rate = '400kbit' }]
             lans = [{ nodes = ['client', 'server', 'admin'], name = 'lan0' }]",
        );
        assert_eq!(svg.matches("class=\"open\"").count(), 4);
        assert_eq!(svg.matches("class=\"curve\"").count(), 4);
        for words in ["testlink", "400kbit · 10ms · 1000p", "lan0", "10.0.2.3"] {
            assert!(svg.contains(words), "{words}");
        }
    }

    #[test]
    fn parallel_paths_are_bent_apart() {
        let topology = Topology::new(&toml::from_str("paths = [{}, {}, {}]").unwrap()).unwrap();
        let curvature: Vec<f64> = edges(&topology).iter().map(|edge| edge.curvature).collect();
        assert_eq!(curvature, [-LINK_DISTANCE, 0.0, LINK_DISTANCE]);
    }
}
