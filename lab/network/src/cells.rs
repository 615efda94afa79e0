//! The cells of a line of a table (CSV), as spreadsheets of different languages write it. RFC 4180.

use std::borrow::Cow;
use std::fmt;

/// The character between the cells of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    Comma,
    Semicolon,
    Tab,
    /// The separator is one or more spaces or tabs.
    Space,
}

impl Separator {
    /// Returns the separator in a file whose first line is `line`.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let is_number = words.clone().next().is_some_and(begins_with_number);
        let last = words.next_back();
        // With a comma at the end of each word, the comma separates.
        let has_spaces_only =
            last.is_some() && words.clone().next().is_some() && !words.any(|word| word.ends_with(','));
        if line.contains(';') {
            Self::Semicolon
        } else if line.contains('\t') && !line.contains(",\t") {
            Self::Tab
        } else if is_number && has_spaces_only || !line.contains(',') {
            Self::Space
        } else {
            Self::Comma
        }
    }

    /// Splits a row into the cells of a table with `columns` columns. A separator at the end of the row is
    /// ignored.
    pub(crate) fn split_row(self, line: &str, columns: usize) -> Vec<Cow<'_, str>> {
        let mut cells = self.split_cells(line);
        if cells.len() == columns + 1 {
            cells.pop_if(|cell| cell.is_empty());
        }
        cells
    }

    /// Splits a line into its cells. Quotes around a cell are removed.
    pub(crate) fn split_cells(self, line: &str) -> Vec<Cow<'_, str>> {
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

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Comma => "a comma",
            Self::Semicolon => "a semicolon",
            Self::Tab => "a tab",
            Self::Space => "spaces",
        })
    }
}

/// Returns whether a cell is a number, or begins like a number, as `1,25` and `5ms` do.
pub(crate) fn begins_with_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit()) || cell.parse::<f64>().is_ok()
}

/// Returns a cell without its quotes. Between the quotes, two quotes represent one.
fn unquote(cell: &str) -> Cow<'_, str> {
    let cell = cell.trim();
    let inner = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if inner.contains("\"\"") => inner.replace("\"\"", "\"").into(),
        Some(inner) => inner.trim().into(),
        None => cell.into(),
    }
}

/// Explains why a number that people understand cannot be parsed, and how to write it instead; `None` if the cell
/// is not such a number.
pub(crate) fn describe_unsupported_number(cell: &str) -> Option<String> {
    let number = cell.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%' || c == '/').trim_end();
    let unit = &cell[number.len()..];
    let digits = |separators: &[char]| number.replace(separators, "");
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    if number.contains(['e', 'E']) && is_number(number) {
        let plain: f64 = number.parse().ok()?;
        return Some(format!("{cell:?} has an exponent; write {plain}{unit}"));
    }
    if number.contains(',') && is_number(&digits(&[',', '.'])) {
        let cure = match (has_thousands(number, '.', ','), has_thousands(number, ',', '.')) {
            (true, true) => {
                let (decimal, whole) = (number.replace(',', "."), digits(&[',']));
                format!("{decimal}{unit}, or {whole}{unit} if it separates thousands")
            }
            (true, false) => format!("{}{unit}", digits(&['.']).replace(',', ".")),
            (false, true) => format!("{}{unit}", digits(&[','])),
            (false, false) => "it with a decimal point and without separators of thousands".to_owned(),
        };
        return Some(format!("{cell:?} has a comma; write {cure}"));
    }
    if number.matches('.').count() > 1 && is_number(&digits(&['.'])) {
        let cure = match has_thousands(number, '.', ',') {
            true => format!("{}{unit}", digits(&['.'])),
            false => "it with one decimal point".to_owned(),
        };
        return Some(format!("{cell:?} has several points; write {cure}"));
    }
    let separators = [' ', '\'', '_', '\u{a0}', '\u{202f}', '’'];
    let is_divided = number.contains(separators) && is_number(&digits(&separators));
    is_divided.then(|| format!("{cell:?} has a separator of thousands; write {}{unit}", digits(&separators)))
}

/// Returns whether a number has `separator` between its groups of three digits, and at most one decimal `point` after
/// them.
fn has_thousands(number: &str, separator: char, point: char) -> bool {
    let (whole, fraction) = number.split_once(point).unwrap_or((number, ""));
    let (first, groups) =
        whole.split_once(separator).map_or((whole, None), |(first, rest)| (first, Some(rest)));
    let are_groups = groups.is_none_or(|groups| groups.split(separator).all(|group| group.len() == 3));
    let is_head = groups.is_none() || (1..=3).contains(&first.len()) && !first.starts_with('0');
    is_head && are_groups && !fraction.contains([separator, point])
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
            (".5 1,25", Separator::Space),
            ("-1 1,25", Separator::Space),
            ("5", Separator::Space),
        ] {
            assert_eq!(Separator::of_line(line), separator, "{line}");
        }
    }

    #[test]
    fn quotes_enclose_separators_and_quotes() {
        assert_eq!(
            Separator::Comma.split_cells(r#""1,200", x ,"a ""b""",,"#),
            ["1,200", "x", r#"a "b""#, "", ""]
        );
    }

    /// A point or comma that separates thousands is followed by three digits, and the other one, if any, is the decimal one.
    #[test]
    fn cure_has_the_value_that_was_meant() {
        for (cell, cure) in [
            ("12,5", "write 12.5"),
            ("1.200,5", "write 1200.5"),
            ("1.200.000,25Mbit", "write 1200000.25Mbit"),
            ("1,200.5", "write 1200.5"),
            ("1,200,000.25", "write 1200000.25"),
            ("1,200,000", "write 1200000"),
            ("1,200ms", "write 1.200ms, or 1200ms if it separates thousands"),
            ("0,200", "write 0.200"),
            ("1200,500", "write 1200.500"),
            ("1.200.000", "write 1200000"),
            ("1.234.5", "write it with one decimal point"),
            ("1.2.3", "write it with one decimal point"),
            ("1,2,3", "write it with a decimal point and without separators of thousands"),
            ("1.2,5", "write it with a decimal point and without separators of thousands"),
            ("1,20.5", "write it with a decimal point and without separators of thousands"),
            ("1,200.5,5", "write it with a decimal point and without separators of thousands"),
        ] {
            let problem = describe_unsupported_number(cell).unwrap();
            assert!(problem.ends_with(&format!("; {cure}")), "{problem}");
        }
    }

    #[test]
    fn number_that_is_read_has_no_problem() {
        for cell in ["12", "1.5", "1.5Mbit", "10 ms", "0.5%", "", "-", "x", "NaN"] {
            assert_eq!(describe_unsupported_number(cell), None, "{cell}");
        }
    }
}
