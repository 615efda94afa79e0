//! The cells of a line of a table (CSV), as spreadsheets of different languages write it. RFC 4180.

use std::borrow::Cow;

/// The character between the cells of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    Comma,
    Semicolon,
    Tab,
    /// Any number of spaces or tabs.
    Space,
}

impl Separator {
    /// Returns the separator of a file with this first line.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let begins_with_number = line.starts_with(|c: char| c.is_ascii_digit());
        let last = words.next_back();
        // With a comma at the end of each word, the comma separates.
        let has_spaces_only =
            last.is_some() && words.clone().next().is_some() && !words.any(|word| word.ends_with(','));
        if line.contains(';') {
            Self::Semicolon
        } else if line.contains('\t') && !line.contains(",\t") {
            Self::Tab
        } else if begins_with_number && has_spaces_only || !line.contains(',') {
            Self::Space
        } else {
            Self::Comma
        }
    }

    /// Returns the cells of a line, without the quotes around them.
    pub(crate) fn cells(self, line: &str) -> Vec<Cow<'_, str>> {
        let separator = match self {
            Self::Comma => ',',
            Self::Semicolon => ';',
            Self::Tab => '\t',
            Self::Space => return line.split_whitespace().map(unquote).collect(),
        };
        let mut is_quoted = false;
        line.split(|c| {
            is_quoted ^= c == '"';
            c == separator && !is_quoted
        })
        .map(unquote)
        .collect()
    }
}

/// Returns a cell without its quotes; within them two quotes stand for one.
fn unquote(cell: &str) -> Cow<'_, str> {
    let cell = cell.trim();
    let inner = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if inner.contains("\"\"") => inner.replace("\"\"", "\"").into(),
        Some(inner) => inner.trim().into(),
        None => cell.into(),
    }
}

/// Returns what is wrong with a number that people read but this program does not, and how to write it.
pub(crate) fn unread_number(cell: &str) -> Option<String> {
    let number = cell.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%' || c == '/').trim_end();
    let unit = &cell[number.len()..];
    let digits = |separators: &[char]| number.replace(separators, "");
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    if number.contains(['e', 'E']) && is_number(number) {
        let plain: f64 = number.parse().ok()?;
        return Some(format!("{cell:?} has an exponent; write {plain}{unit}"));
    }
    if number.contains(',') && is_number(&digits(&[',', '.'])) {
        let thousands = digits(&[',']);
        let cure = match number.replacen(',', ".", 1) {
            decimal if !is_number(&decimal) => format!("{thousands}{unit}"),
            decimal if is_thousands(number) => {
                format!("{decimal}{unit}, or {thousands}{unit} if it separates thousands")
            }
            decimal => format!("{decimal}{unit}"),
        };
        return Some(format!("{cell:?} has a comma; write {cure}"));
    }
    if number.matches('.').count() > 1 && is_number(&digits(&['.'])) {
        return Some(format!("{cell:?} has several points; write {}{unit}", digits(&['.'])));
    }
    let separators = [' ', '\'', '_', '\u{a0}', '\u{202f}', '’'];
    let is_divided = number.contains(separators) && is_number(&digits(&separators));
    is_divided.then(|| format!("{cell:?} has a separator of thousands; write {}{unit}", digits(&separators)))
}

/// Returns whether the only comma of a number is before three digits, as between thousands.
fn is_thousands(number: &str) -> bool {
    number.split_once(',').is_some_and(|(_, after)| after.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_follows_from_the_first_line() {
        for (line, separator) in [
            ("time_s,rate_Mbit", Separator::Comma),
            ("time_s, rate_Mbit", Separator::Comma),
            ("0, 1.25", Separator::Comma),
            ("0,\t1.25", Separator::Comma),
            ("time;rate", Separator::Semicolon),
            ("0,5;1,25", Separator::Semicolon),
            ("0,5\t1,25", Separator::Tab),
            ("0,5 1,25", Separator::Space),
            ("0 1", Separator::Space),
            ("5", Separator::Space),
        ] {
            assert_eq!(Separator::of_line(line), separator, "{line}");
        }
    }

    #[test]
    fn quotes_enclose_separators_and_quotes() {
        assert_eq!(Separator::Comma.cells(r#""1,200", x ,"a ""b""",,"#), ["1,200", "x", r#"a "b""#, "", ""]);
    }

    #[test]
    fn number_that_is_read_has_no_problem() {
        for cell in ["12", "1.5", "1.5Mbit", "10 ms", "0.5%", "", "-", "x", "NaN"] {
            assert_eq!(unread_number(cell), None, "{cell}");
        }
    }
}
