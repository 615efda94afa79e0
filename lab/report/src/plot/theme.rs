//! The colour, marker and dash pattern of each transport, and the style sheet.
//!
//! A transport has the same look in every figure. The colours are those of Okabe and Ito, which colour-blind people can distinguish;
//! markers and dash patterns carry the same information on paper.

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    Disc,
    /// An open circle.
    Ring,
    /// A filled square.
    Square,
    /// A filled diamond.
    Diamond,
    /// A triangle, point up.
    Up,
    /// A triangle, point down.
    Down,
    /// A diagonal cross.
    Cross,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesStyle {
    /// CSS class of the colour.
    pub class: &'static str,
    /// Shape of the points.
    pub marker: Marker,
    /// Dash pattern of the line; empty for a solid line.
    pub dash: &'static str,
}

const fn style(class: &'static str, marker: Marker, dash: &'static str) -> SeriesStyle {
    SeriesStyle { class, marker, dash }
}

/// The looks of the transports of the papers, by label without its stack.
const TRANSPORT_STYLES: [(&str, SeriesStyle); 16] = [
    ("TCP", style("c-vermilion", Marker::Cross, "")),
    ("TCP-8", style("c-vermilion", Marker::Down, "5 2")),
    ("SCTP-1", style("c-ink", Marker::Disc, "")),
    ("SCTP-2", style("c-purple", Marker::Square, "7 2")),
    ("SCTP-4", style("c-orange", Marker::Diamond, "5 2")),
    ("SCTP-8", style("c-green", Marker::Up, "")),
    ("SCTP-16", style("c-sky", Marker::Down, "4 2")),
    ("SCTP-1024", style("c-blue", Marker::Ring, "")),
    ("SCTP-ordered", style("c-blue", Marker::Disc, "")),
    ("SCTP-unordered", style("c-green", Marker::Up, "")),
    ("2×SCTP-1", style("c-orange", Marker::Diamond, "")),
    ("2×TCP", style("c-sky", Marker::Down, "4 2")),
    ("SCTP", style("c-blue", Marker::Disc, "")),
    ("UDP", style("c-orange", Marker::Diamond, "5 2")),
    ("SIP-request", style("c-purple", Marker::Square, "7 2")),
    ("SIP-invite", style("c-sky", Marker::Down, "4 2")),
];

/// The looks of other transports, in order.
const OTHER_STYLES: [SeriesStyle; 7] = [
    style("c-vermilion", Marker::Cross, ""),
    style("c-blue", Marker::Disc, ""),
    style("c-green", Marker::Up, ""),
    style("c-orange", Marker::Diamond, "5 2"),
    style("c-purple", Marker::Square, "7 2"),
    style("c-sky", Marker::Down, "4 2"),
    style("c-ink", Marker::Ring, "2 2"),
];

/// The looks of several levels, from weak to strong.
const LEVEL_STYLES: [SeriesStyle; 6] = [
    style("c-level-0", Marker::Disc, ""),
    style("c-level-1", Marker::Square, ""),
    style("c-level-2", Marker::Diamond, ""),
    style("c-level-3", Marker::Up, ""),
    style("c-level-4", Marker::Down, ""),
    style("c-level-5", Marker::Ring, ""),
];

impl SeriesStyle {
    /// Returns the look of a transport by its label. The part after a blank names a stack and the part after a plus sign an option, which
    /// do not change the look.
    pub fn of_transport(label: &str) -> Self {
        let base = label.split([' ', '+']).next().unwrap_or(label);
        let known = TRANSPORT_STYLES.iter().find(|(name, _)| *name == base);
        let style = known.map_or(style("c-grey", Marker::Disc, ""), |(_, style)| *style);
        if label.contains('+') { style.on_other_stack() } else { style }
    }

    /// Returns different looks for the transports of one drawing. If each has a look of the papers, these are
    /// used.
    pub fn of_transports(labels: &[&str]) -> Vec<Self> {
        let known: Vec<Self> = labels.iter().map(|label| Self::of_transport(label)).collect();
        let are_different = (1..known.len()).all(|index| !known[..index].contains(&known[index]));
        if are_different && known.iter().all(|style| style.class != "c-grey") {
            return known;
        }
        let round = |index: usize| ["", "1 2", "9 2", "9 2 2 2"][index / OTHER_STYLES.len() % 4];
        let other = |index: usize| match index / OTHER_STYLES.len() {
            0 => OTHER_STYLES[index],
            _ => Self { dash: round(index), ..OTHER_STYLES[index % OTHER_STYLES.len()] },
        };
        (0..labels.len()).map(other).collect()
    }

    /// Returns the look of the same transport on another stack, for panels with both.
    pub fn on_other_stack(self) -> Self {
        Self { marker: Marker::Ring, dash: "6 3", ..self }
    }

    /// Returns the look of the `index`-th of several levels, such as loss rates.
    pub fn of_level(index: usize) -> Self {
        LEVEL_STYLES[index.min(LEVEL_STYLES.len() - 1)]
    }
}

/// The style sheet: colours and line widths for light screens, dark screens and paper.
pub const CSS: &str = include_str!("theme.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_keeps_its_look_on_every_stack() {
        assert_eq!(SeriesStyle::of_transport("SCTP-8"), SeriesStyle::of_transport("SCTP-8 (2006)"));
        assert_ne!(SeriesStyle::of_transport("SCTP-8").class, SeriesStyle::of_transport("TCP").class);
    }

    #[test]
    fn transports_in_one_drawing_differ() {
        let labels: Vec<String> = (0..20).map(|k| format!("sctp:streams={k}")).collect();
        let styles = SeriesStyle::of_transports(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        for (index, style) in styles.iter().enumerate() {
            assert!(!styles[..index].contains(style), "{index}");
        }
        assert_eq!(SeriesStyle::of_transports(&["TCP", "SCTP-8"])[1], SeriesStyle::of_transport("SCTP-8"));
        assert_ne!(
            SeriesStyle::of_transports(&["SCTP-8", "SCTP-8 (2006)"])[0],
            SeriesStyle::of_transports(&["SCTP-8", "SCTP-8 (2006)"])[1]
        );
    }

    #[test]
    fn every_colour_is_in_the_style_sheet() {
        let styles = TRANSPORT_STYLES
            .iter()
            .map(|(_, style)| style.class)
            .chain(LEVEL_STYLES.map(|style| style.class));
        for class in styles.chain(OTHER_STYLES.map(|style| style.class)).chain(["c-grey"]) {
            assert!(CSS.contains(&format!(".{class}")), "{class}");
        }
    }
}
