//! Output shared by the command-line programs: tables, grouped numbers and colours for people, lines of JSON
//! for programs, and the search for companion programs.
#![warn(clippy::print_stdout, clippy::print_stderr)] // They panic if the pipe is closed; `print` and `note!` do not.

mod companion;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

pub use companion::{CompanionError, find_companion};

/// The colours of the series in a chart, as ANSI codes.
const COLOURS: [&str; 6] = ["36", "33", "35", "32", "34", "31"];

/// Writes a line to standard error like `eprintln!`, but ignores a closed pipe (`2>&1 | head`).
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Writes to standard output. If that fails, ends the program; a closed pipe (`| head`) is not an error.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => (),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            note!("error: standard output: cannot write: {error}; redirect the output to another file");
            std::process::exit(1);
        }
    }
}

/// Formats a value as one line of JSON.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("every printed value can be serialised") + "\n"
}

/// Returns whether output to standard output is coloured. <https://no-color.org>
pub fn shows_colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns `text` in the colour of the `index`-th series.
pub fn colour(text: &str, index: usize) -> String {
    if shows_colours() {
        format!("\x1b[{}m{text}\x1b[0m", COLOURS[index % COLOURS.len()])
    } else {
        text.to_owned()
    }
}

/// Formats a table, with the first column left-aligned and all others right-aligned.
pub fn table(rows: &[Vec<String>]) -> String {
    aligned_table(rows, |column| column > 0)
}

/// Formats a table. Columns are left-aligned, except those for whose index `to_the_right` returns true.
pub fn aligned_table(rows: &[Vec<String>], to_the_right: impl Fn(usize) -> bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if to_the_right(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Formats a number with separators: `80000` as `80,000`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(group_digits), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".into(), "10".into()], vec!["bcd".into(), "5 ± 1".into()]];
        assert_eq!(table(&rows), "a       10\nbcd  5 ± 1\n");
    }
}
