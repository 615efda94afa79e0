//! Writes SVG, element by element.

use std::fmt::Write;

use super::inline_styles::inline_styles;

/// A drawing under construction. Coordinates are CSS pixels, y downwards.
#[derive(Debug, Clone)]
pub struct Svg {
    id: String,
    width: f64,
    height: f64,
    title: String,
    body: String,
}

/// The largest width of a drawing that stays legible on the screen of a telephone.
const MAX_NARROW_WIDTH: f64 = 520.0;

/// The alignment of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text starts at its position.
    Start,
    /// The text is centred at its position.
    Middle,
    /// The text ends at its position.
    End,
}

impl Svg {
    /// Creates an empty drawing. `id` is unique on its page; screen readers read `title`.
    pub fn new(id: &str, width: f64, height: f64, title: &str) -> Self {
        Self { id: id.to_owned(), width, height, title: title.to_owned(), body: String::new() }
    }

    /// Returns the name of the drawing, which is unique on its page. With `.svg`, it is also the name of the file.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the drawing stays legible when it is scaled to the screen of a phone.
    pub fn is_narrow(&self) -> bool {
        self.width <= MAX_NARROW_WIDTH
    }

    /// Draws a straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(round_to_tenth);
        self.write(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    /// Adds a line through `points` with the dash pattern `dash` (`""`: solid).
    pub fn polyline(&mut self, class: &str, dash: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let separator = if path.is_empty() { "" } else { " " };
            let _ = write!(path, "{separator}{},{}", round_to_tenth(x), round_to_tenth(y));
        }
        if path.is_empty() {
            return;
        }
        let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        self.write(format_args!(r#"<polyline class="{class}"{dash} points="{path}"/>"#));
    }

    /// Draws a closed area.
    pub fn polygon(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let path: Vec<_> =
            points.into_iter().map(|(x, y)| format!("{},{}", round_to_tenth(x), round_to_tenth(y))).collect();
        self.write(format_args!(r#"<polygon class="{class}" points="{}"/>"#, path.join(" ")));
    }

    /// Adds a rectangle by its upper left corner.
    pub fn rect(&mut self, class: &str, corner: (f64, f64), width: f64, height: f64) {
        let [x, y, width, height] = [corner.0, corner.1, width.max(0.0), height.max(0.0)].map(round_to_tenth);
        self.write(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    /// Draws a circle.
    pub fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        let [x, y, r] = [centre.0, centre.1, radius].map(round_to_tenth);
        self.write(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#));
    }

    /// Adds a line of text.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        if text.is_empty() {
            return;
        }
        let (x, y) = (round_to_tenth(at.0), round_to_tenth(at.1));
        let text = escape(text);
        let anchor = anchor.attribute();
        self.write(format_args!(r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#));
    }

    /// Adds a line of text that runs upwards, centred at its position.
    pub fn text_upwards(&mut self, class: &str, at: (f64, f64), text: &str) {
        if text.is_empty() {
            return;
        }
        let (x, y) = (round_to_tenth(at.0), round_to_tenth(at.1));
        let text = escape(text);
        self.write(format_args!(
            r#"<text class="{class}" transform="translate({x} {y}) rotate(-90)" text-anchor="middle">{text}</text>"#
        ));
    }

    /// Adds a line of text with a slope of `degrees`, centred at its position.
    pub fn text_sloped(&mut self, class: &str, at: (f64, f64), degrees: f64, text: &str) {
        let (x, y, degrees) = (round_to_tenth(at.0), round_to_tenth(at.1), round_to_tenth(degrees));
        let text = escape(text);
        self.write(format_args!(
            r#"<text class="{class}" transform="translate({x} {y}) rotate({degrees})" text-anchor="middle">{text}</text>"#
        ));
    }

    /// Draws `inside` as a group with a class and, if not empty, a tooltip.
    pub fn group(&mut self, class: &str, tooltip: &str, inside: impl FnOnce(&mut Self)) {
        self.write(format_args!(r#"<g class="{class}">"#));
        if !tooltip.is_empty() {
            self.write(format_args!("<title>{}</title>", escape(tooltip)));
        }
        inside(self);
        self.body.push_str("</g>\n");
    }

    /// Draws `inside`, clipped to a rectangle.
    pub fn clipped(&mut self, corner: (f64, f64), width: f64, height: f64, inside: impl FnOnce(&mut Self)) {
        let clip = format!("{}-clip-{}-{}", self.id, corner.0.round(), corner.1.round());
        let [x, y, width, height] = [corner.0, corner.1, width, height].map(round_to_tenth);
        self.write(format_args!(
            r#"<clipPath id="{clip}"><rect x="{x}" y="{y}" width="{width}" height="{height}"/></clipPath><g clip-path="url(#{clip})">"#
        ));
        inside(self);
        self.body.push_str("</g>\n");
    }

    /// Returns the drawing as part of an HTML page, whose style sheet contains [`super::theme::CSS`].
    pub fn inline(&self) -> String {
        let Self { id, width, height, title, body } = self;
        let title = escape(title);
        let class = if self.is_narrow() { "plot narrow" } else { "plot" };
        format!(
            r#"<svg class="{class}" role="img" aria-labelledby="{id}-title" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title id="{id}-title">{title}</title>
{body}</svg>"#
        )
    }

    /// Returns the drawing as a separate file, whose colours are literal.
    pub fn standalone(&self) -> String {
        let Self { id, width, height, title, body } = self;
        let title = escape(title);
        inline_styles(&format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-labelledby="{id}-title" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title id="{id}-title">{title}</title>
<rect class="paper" width="{width}" height="{height}"/>
{body}</svg>
"#
        ))
    }

    fn write(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }
}

impl Anchor {
    const fn attribute(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => r#" text-anchor="middle""#,
            Self::End => r#" text-anchor="end""#,
        }
    }
}

/// Rounds a coordinate to a tenth of a pixel, which shortens the text to a third.
fn round_to_tenth(value: f64) -> f64 {
    assert!(value.is_finite(), "the coordinate {value} is not finite");
    // Adding zero turns -0 into 0.
    (value * 10.0).round() / 10.0 + 0.0
}

/// Escapes the characters that have a meaning in SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_coordinates_are_short() {
        let mut svg = Svg::new("a", 10.0, 10.0, "x < y");
        svg.text("tick", (1.0 / 3.0, -0.01), Anchor::End, "a & b");
        let text = svg.inline();
        assert!(text.contains("<title id=\"a-title\">x &lt; y</title>"), "{text}");
        assert!(text.contains("<text class=\"tick\" x=\"0.3\" y=\"0\" text-anchor=\"end\">a &amp; b</text>"));
    }

    #[test]
    fn a_standalone_drawing_brings_its_style() {
        let text = Svg::new("a", 10.0, 10.0, "t").standalone();
        assert!(text.contains("xmlns") && text.contains("prefers-color-scheme"));
        assert!(text.contains("<rect fill=\"#fff\""), "the paper is white: {text}");
    }
}
