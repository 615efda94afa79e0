//! The style of a drawing in a separate file: literal attributes instead of classes.
//!
//! Few programs besides browsers resolve custom properties, and some ignore style sheets. In such a program a
//! class without its rule is black on black. All programs read attributes.

use std::fmt::Write;

use super::theme;

/// A property and its value.
type Declaration = (&'static str, String);

/// Replaces the classes of a drawing, which [`super::Svg`] has written, with the attributes that the style sheet
/// defines for them. A style sheet after the title has the colours for dark screens, also as literals.
pub fn inline_styles(drawing: &str) -> String {
    let [light, dark] = Palette::both();
    let mut differing: Vec<String> = Vec::new();
    // The light and the dark colour of each open group.
    let mut open = vec![["var(--ink)"; 2].map(str::to_owned)];
    let mut text = String::with_capacity(2 * drawing.len());
    for (index, piece) in drawing.split('<').enumerate() {
        if index == 0 {
            text.push_str(piece);
            continue;
        }
        text.push('<');
        if piece.starts_with("/g>") {
            open.pop();
        }
        let (tag, rest) = piece.split_once('>').unwrap_or((piece, ""));
        let (before, classes, after) = class_of(tag);
        let outer = open.last().cloned().unwrap_or_default();
        let [(here, light), (in_dark, dark)] = [(&light, &outer[0]), (&dark, &outer[1])]
            .map(|(palette, colour)| palette.style(&classes, colour));
        text.push_str(before);
        for (property, value) in &light {
            let _ = write!(text, " {property}=\"{value}\"");
        }
        let differs: String = dark
            .iter()
            .filter(|declaration| !light.contains(declaration))
            .map(|(property, value)| format!("{property}:{value};"))
            .collect();
        if !differs.is_empty() {
            let known = differing.iter().position(|known| *known == differs);
            let class = known.unwrap_or_else(|| {
                differing.push(differs);
                differing.len() - 1
            });
            let _ = write!(text, " class=\"d{class}\"");
        }
        let _ = write!(text, "{after}>{rest}");
        if tag == "g" || tag.starts_with("g ") {
            open.push([here, in_dark]);
        }
    }
    let rules: String = differing
        .iter()
        .enumerate()
        .map(|(class, rule)| format!(".d{class}{{{}}}", rule.trim_end_matches(';')))
        .collect();
    let style = format!("<style>@media screen and (prefers-color-scheme:dark){{{rules}}}</style>");
    let title = text.find("</title>").map_or(0, |at| at + "</title>".len());
    text.insert_str(title, &style);
    text
}

/// Returns the colour of a class such as `c-blue` in the light palette.
pub fn literal_colour(class: &str) -> String {
    let [light, _] = Palette::both();
    light.style(&[class], "var(--ink)").0
}

/// Returns the classes of a tag, and the text of the tag before and after its class attribute.
fn class_of(tag: &str) -> (&str, Vec<&str>, &str) {
    let parts = tag.split_once(" class=\"").and_then(|(before, rest)| {
        let (classes, after) = rest.split_once('"')?;
        Some((before, classes.split(' ').collect(), after))
    });
    parts.unwrap_or_else(|| match tag.strip_suffix('/') {
        Some(open) => (open, Vec::new(), "/"),
        None => (tag, Vec::new(), ""),
    })
}

/// The colours of the light or the dark palette, by name.
struct Palette(Vec<(&'static str, &'static str)>);

impl Palette {
    /// Returns the light and the dark palette.
    fn both() -> [Self; 2] {
        let block = |from: &str| {
            let start = theme::CSS.find(from).map_or(0, |at| at + from.len());
            let text = &theme::CSS[start..];
            let text = text.split_once('}').map_or(text, |(block, _)| block);
            text.split(';').filter_map(|one| one.trim().split_once(':')).collect()
        };
        [Self(block(":root{")), Self(block("prefers-color-scheme:dark){:root{"))]
    }

    /// Returns `value` with variables and `currentColor` resolved; `colour` is the current colour.
    fn resolve(&self, value: &str, colour: &str) -> String {
        let value = if value == "currentColor" { colour } else { value };
        let name = value.strip_prefix("var(").and_then(|rest| rest.strip_suffix(')'));
        let known = name.and_then(|name| self.0.iter().find(|(known, _)| *known == name));
        known.map_or(value, |(_, value)| value).replace('"', "'")
    }

    /// Returns the colour that the children of an element with these classes inherit, and the element's style. The
    /// element itself inherits the colour `outer`.
    fn style(&self, classes: &[&str], outer: &str) -> (String, Vec<Declaration>) {
        let rules = rules().filter(|(class, _)| classes.contains(class));
        let all: Vec<_> = rules.flat_map(|(_, declarations)| declarations).collect();
        let own = all.iter().rfind(|(property, _)| *property == "color").map(|(_, value)| *value);
        let colour = self.resolve(own.unwrap_or(outer), outer);
        let mut style: Vec<Declaration> = Vec::new();
        for (property, value) in all.into_iter().filter(|(property, _)| *property != "color") {
            style.retain(|(known, _)| *known != property);
            style.push((property, self.resolve(value, &colour)));
        }
        (colour, style)
    }
}

/// Returns each class of the style sheet with its declarations.
fn rules() -> impl Iterator<Item = (&'static str, Vec<(&'static str, &'static str)>)> {
    let start = theme::CSS.find("\n.plot{").unwrap_or(0);
    theme::CSS[start..].split('}').filter_map(|rule| {
        let (selector, declarations) = rule.trim().split_once('{')?;
        let class = selector.rsplit('.').next()?;
        Some((class, declarations.split(';').filter_map(|one| one.split_once(':')).collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: &str) -> f64 {
        let digits = colour.strip_prefix('#').unwrap_or_else(|| panic!("{colour} is no literal colour"));
        let digits = match digits.len() {
            3 => digits.chars().flat_map(|digit| [digit; 2]).collect(),
            _ => digits.to_owned(),
        };
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
    }

    /// Returns the contrast ratio as WCAG 2.2 defines it.
    fn contrast(a: &str, b: &str) -> f64 {
        let [a, b] = [luminance(a), luminance(b)];
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn classes(is_colour: bool) -> Vec<&'static str> {
        rules().map(|(class, _)| class).filter(|class| class.starts_with("c-") == is_colour).collect()
    }

    #[test]
    fn literal_style_has_no_variables_and_no_inherited_colours() {
        assert!(classes(false).len() > 30 && classes(true).len() > 10);
        for colour in classes(true) {
            for class in classes(false) {
                let whole = inline_styles(&format!(
                    "<svg class=\"plot\"><g class=\"{colour}\"><rect class=\"{class}\" x=\"1\"/></g></svg>"
                ));
                for unknown in ["var(", "currentColor", " color=", "class=\"c-"] {
                    assert!(!whole.contains(unknown), "{unknown} in {whole}");
                }
                assert!(!whole.contains(&format!("class=\"{class}\"")), "{whole}");
            }
        }
    }

    /// WCAG 2.2 requires a contrast of 3 for graphics, which include the names of curves, and of 4.5 for text.
    #[test]
    fn text_is_legible_on_light_and_on_dark() {
        for palette in Palette::both() {
            let paper = palette.resolve("var(--paper)", "");
            let fill = |classes: &[&str], outer: &str| {
                let style = palette.style(classes, outer).1;
                style.into_iter().find(|(property, _)| *property == "fill").unwrap().1
            };
            for class in ["tick", "axis", "note", "wait-label", "plot"] {
                let found = contrast(&fill(&[class], ""), &paper);
                assert!(found >= 4.5, "{class}: {found}");
            }
            for colour in classes(true).into_iter().filter(|class| !class.contains("level")) {
                let outer = palette.style(&[colour], "").0;
                let found = contrast(&fill(&["label"], &outer), &paper);
                assert!(found >= 3.0, "{colour}: {found}");
            }
        }
    }

    #[test]
    fn inner_group_overrides_the_colour_of_the_outer_one() {
        let text = inline_styles(
            "<title>t</title>\n<g class=\"c-blue\"><g class=\"c-green\"><line class=\"curve\" x1=\"0\"/></g>\n<line class=\"curve\" x1=\"1\"/></g>\n<text x=\"2\">a</text>",
        );
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("stroke:#2fc698") && lines[0].contains("stroke:#4ba3e3"), "{text}");
        assert!(lines[1].contains("stroke=\"#009e73\"") && lines[2].contains("stroke=\"#0072b2\""), "{text}");
        assert_eq!(lines[3], "<text x=\"2\">a</text>");
    }

    /// These drawings are also opened in programs other than browsers.
    #[test]
    fn drawings_of_the_documentation_are_standalone() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let files = std::fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path());
        let drawings: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|end| end == "svg")).collect();
        assert!(!drawings.is_empty());
        for path in drawings {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("var(") && !text.contains("currentColor"), "{}", path.display());
        }
    }
}
