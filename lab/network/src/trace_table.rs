//! Traces that are tables: times, and the values that hold from then on.
//!
//! A table (CSV) has a header of `time` and some of `rate`, `delay` and `loss`; each cell has a unit, or the
//! header has one for its column (`rate_Mbit`). Without a header, two columns are seconds and Mbit/s, as in
//! Pensieve's traces; the CSVs of G-NetTrack and of the FCC have their own. Dates and Unix times are relative
//! to the first one.

use std::borrow::Cow;
use std::cmp::Ordering;

use hol_base::Duration;

use crate::cells::{self, Separator};
use crate::event::LinkDirection;
use crate::trace::{ChangeLimit, MAX_LINES, TraceError, TraceStep, first_line, lines, trace_error};

/// Reads a table whose columns have no header.
pub(crate) fn read_without_header(
    text: &str,
    line: usize,
    columns: usize,
) -> Result<Vec<TraceStep>, TraceError> {
    match columns {
        1 => Err(trace_error(
            line,
            &format!(
                "{:?} is not a whole number of milliseconds, as each line of a trace with one column must be (mahimahi); round it, or \
                 write a header such as time_s,rate_Mbit and its columns",
                first_line(text)?.1.trim()
            ),
        )),
        2 => read_two_columns(text),
        _ => Err(trace_error(
            line,
            &format!(
                "the line has {columns} numbers, but a file without a header has two columns, times in s and rates in Mbit/s; name the \
                 columns in a header, such as time_s,rate_Mbit,delay_ms"
            ),
        )),
    }
}

/// Reads a table of two columns, time in seconds and rate in Mbit/s, as in the traces of Pensieve (Mao, Netravali and
/// Alizadeh 2017).
fn read_two_columns(text: &str) -> Result<Vec<TraceStep>, TraceError> {
    let first = first_line(text)?.1;
    let separator = Separator::of_line(first);
    let unit = separator.split_cells(first).first().and_then(|time| unit_of_unix_time(time));
    let columns = [Heading::of(Column::Time, unit.unwrap_or("s")), Heading::of(Column::Rate, "Mbit")];
    parse_rows(lines(text), |line, words| {
        let cells = separator.split_row(words, columns.len());
        let are_numbers = cells.iter().all(|cell| cells::begins_with_number(cell));
        if cells.len() != columns.len() || !are_numbers {
            let problem = format!(
                "{words:?} is not a time in s and a rate in Mbit/s, as the first line is; write both on every line, separated by \
                 {separator}"
            );
            return Err(trace_error(line, &problem));
        }
        let step = parse_row(line, &cells, &columns)?;
        if step.rate.is_some_and(|rate| rate.bits_per_second() > MAX_RATE_WITHOUT_UNIT) {
            let problem = format!(
                "{} Mbit/s is more than 100 Gbit/s, and a file without a header has rates in Mbit/s; put a \
                 header with the right unit before the first line, such as time_s,rate_bit, or time_s,rate_B for MP-Traces",
                cells[1]
            );
            return Err(trace_error(line, &problem));
        }
        Ok(step)
    })
}

/// Maximum rate in bit/s that a file without a header may have. A higher number is more likely a rate in bit/s than in
/// Mbit/s.
const MAX_RATE_WITHOUT_UNIT: u64 = 100_000_000_000;

/// Reads a table that begins with the names of its columns.
pub(crate) fn read_with_header(text: &str, direction: LinkDirection) -> Result<Vec<TraceStep>, TraceError> {
    let first = first_line(text)?.1;
    let separator = Separator::of_line(first);
    let names = separator.split_cells(first);
    let has = |name: &str| names.iter().any(|column| column == name);
    if has(GNETTRACK_DOWN) {
        read_gnettrack(text, separator, direction)
    } else if has(FCC_TIME) && has(FCC_RATE) {
        read_fcc(text, separator)
    } else {
        read_table(text, separator)
    }
}

/// The columns of G-NetTrack's CSV that are read: date and time, and rates in kbit/s. Irish 5G and 4G data
/// sets use this format (Raca, Leahy, Sreenan and Quinlan 2020).
const GNETTRACK_TIME: &str = "Timestamp";
const GNETTRACK_DOWN: &str = "DL_bitrate";
const GNETTRACK_UP: &str = "UL_bitrate";

/// Reads G-NetTrack's CSV. A single direction gets its own rate; with both directions, each gets the rate of
/// the download.
fn read_gnettrack(
    text: &str,
    separator: Separator,
    direction: LinkDirection,
) -> Result<Vec<TraceStep>, TraceError> {
    let (line, words) = first_line(text)?;
    let rate = if direction == LinkDirection::Up { GNETTRACK_UP } else { GNETTRACK_DOWN };
    let names = separator.split_cells(words);
    let place = |name: &str| names.iter().position(|column| column == name);
    let places = place(GNETTRACK_TIME).zip(place(rate));
    let (time, rate) = places.ok_or_else(|| {
        trace_error(line, &format!("the column {GNETTRACK_TIME} or {rate} is missing; add it"))
    })?;
    let columns = [Heading::of(Column::Time, "s"), Heading::of(Column::Rate, "kbit")];
    parse_rows(lines(text).skip(1), |line, words| {
        let cells = separator.split_row(words, names.len());
        let seconds = cells.get(time).and_then(|cell| seconds_of(cell));
        let problem = "the time is not of the form 2019.12.14_10.16.30";
        let seconds = seconds.ok_or_else(|| trace_error(line, problem))?;
        check_cells(line, cells.len(), names.len())?;
        // A dash or an empty cell means no change.
        let rate = if cells[rate] == "-" { "".into() } else { cells[rate].clone() };
        parse_row(line, &[seconds.to_string().into(), rate], &columns)
    })
}

/// The columns that are read from the raw data of the FCC's Measuring Broadband America: the time of a test, the rate
/// in octets per second, and the columns that identify a series of tests.
const FCC_TIME: &str = "dtime";
const FCC_RATE: &str = "bytes_sec";
const FCC_SERIES: [&str; 2] = ["unit_id", "target"];

/// Reads the FCC's CSV, which must contain only tests of one measurement unit with one target.
fn read_fcc(text: &str, separator: Separator) -> Result<Vec<TraceStep>, TraceError> {
    let (line, words) = first_line(text)?;
    let names = separator.split_cells(words);
    let place = |name: &str| names.iter().position(|column| column == name);
    let (time, rate) = place(FCC_TIME).zip(place(FCC_RATE)).expect("the header has both columns");
    let series: Vec<usize> = FCC_SERIES.iter().filter_map(|name| place(name)).collect();
    let first = lines(text).nth(1).map(|(_, words)| separator.split_row(words, names.len()));
    let first = first.ok_or_else(|| trace_error(line, "no line follows the header; add at least one"))?;
    let columns = [Heading::of(Column::Time, "s"), Heading::of(Column::Rate, "bit")];
    parse_rows(lines(text).skip(1), |line, words| {
        let cells = separator.split_row(words, names.len());
        check_cells(line, cells.len(), names.len())?;
        if let Some(column) = series.iter().find(|column| first.get(**column) != cells.get(**column)) {
            let (name, own) = (&names[*column], &cells[*column]);
            let problem = format!(
                "the {name} is {own}, unlike in the first line; a trace may have only one unit_id and one target: remove the other lines"
            );
            return Err(trace_error(line, &problem));
        }
        let problem = "the time is not of the form 2016-09-01 00:12:30";
        let seconds = seconds_of(&cells[time]).ok_or_else(|| trace_error(line, problem))?;
        let octets: u64 = cells[rate].parse().map_err(|_| {
            trace_error(line, &format!("{:?} is not a whole number of octets per second", cells[rate]))
        })?;
        // A test that failed has no rate.
        let bits = if octets == 0 { String::new() } else { octets.saturating_mul(8).to_string() };
        parse_row(line, &[seconds.to_string().into(), bits.into()], &columns)
    })
}

/// Converts a time such as `2019.12.14_10.16.30` or `2019-12-14T10:16:30Z` to seconds since 1970.
fn seconds_of(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let parts: Vec<i64> =
        text.split(['.', '_', '-', ':', ' ', 'T']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day, hour, minute, second] = parts[..] else { return None };
    let is_date = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    if !(is_date && is_time) {
        return None;
    }
    // Days from March on, so that a leap day is the last of its year.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Returns the unit of a number that has none, if the number is a Unix time of the years 2001 to 2106 in that unit.
fn unit_of_unix_time(cell: &str) -> Option<&'static str> {
    let number: f64 = cell.parse().ok()?;
    let is_in = |factor: f64| (1e9 * factor..4.3e9 * factor).contains(&number);
    [("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)]
        .into_iter()
        .find(|(_, factor)| is_in(*factor))
        .map(|(unit, _)| unit)
}

/// A table whose first time is later than this has calendar times (since 1970), not times since the start of the trace.
const MIN_CALENDAR_TIME: Duration = Duration::from_secs(100_000_000);

/// The columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    Rate,
    Delay,
    Loss,
}

/// The head of a column.
#[derive(Debug, Clone, Copy)]
struct Heading<'w> {
    column: Column,
    /// The name without the unit.
    name: &'w str,
    /// The unit of bare numbers; empty if the head has none.
    unit: &'w str,
}

impl<'w> Heading<'w> {
    /// Creates the head of a column in a file whose format defines the unit.
    const fn of(column: Column, unit: &'w str) -> Self {
        Self { column, name: "", unit }
    }

    /// Returns the head with a unit, as an example.
    fn with_unit(&self) -> String {
        let unit = match self.column {
            Column::Time => "s",
            Column::Rate => "Mbit",
            Column::Delay => "ms",
            Column::Loss => "%",
        };
        format!("{}_{unit}", self.name)
    }
}

/// Parses a table's header.
fn parse_header<'w>(line: usize, cells: &'w [Cow<'_, str>]) -> Result<Vec<Heading<'w>>, TraceError> {
    let column = |name: &str, cell: &str| -> Result<Column, TraceError> {
        match name.to_ascii_lowercase().as_str() {
            "time" | "timestamp" => Ok(Column::Time),
            "rate" | "bandwidth" | "throughput" => Ok(Column::Rate),
            "delay" => Ok(Column::Delay),
            "loss" => Ok(Column::Loss),
            _ => {
                let cure = "the header of a table is time,rate,delay,loss or some of these; a file of two columns without a header has \
                    times in s and rates in Mbit/s";
                Err(trace_error(line, &format!("{cell:?} is not the name of a column; {cure}")))
            }
        }
    };
    let heading = |cell: &'w Cow<'_, str>| {
        let (name, unit) = cell.split_once('_').unwrap_or((cell, ""));
        let unit = if unit == "percent" { "%" } else { unit };
        Ok(Heading { column: column(name, cell)?, name, unit })
    };
    let columns: Vec<Heading<'_>> = cells.iter().map(heading).collect::<Result<_, TraceError>>()?;
    let count = |wanted| columns.iter().filter(|heading| heading.column == wanted).count();
    if count(Column::Time) != 1 || columns.len() < 2 {
        return Err(trace_error(
            line,
            "a table has one column `time` and at least one of rate, delay and loss",
        ));
    }
    if [Column::Rate, Column::Delay, Column::Loss].into_iter().any(|column| count(column) > 1) {
        return Err(trace_error(line, "a column occurs twice; remove one"));
    }
    Ok(columns)
}

fn read_table(text: &str, separator: Separator) -> Result<Vec<TraceStep>, TraceError> {
    let (line, words) = first_line(text)?;
    let names = separator.split_cells(words);
    let columns = parse_header(line, &names)?;
    let steps = parse_rows(lines(text).skip(1), |line, words| {
        parse_row(line, &separator.split_row(words, columns.len()), &columns)
    })?;
    if steps.is_empty() {
        return Err(trace_error(line, "no line follows the header; add at least one"));
    }
    Ok(steps)
}

/// Reads lines as rows, in order of time. Times of a calendar count from the first; otherwise the values of the first
/// line apply from time 0.
fn parse_rows<'t>(
    lines: impl Iterator<Item = (usize, &'t str)>,
    read: impl Fn(usize, &str) -> Result<TraceStep, TraceError>,
) -> Result<Vec<TraceStep>, TraceError> {
    let mut steps: Vec<TraceStep> = Vec::new();
    let (mut origin, mut limit) = (None, ChangeLimit::default());
    for (line, words) in lines {
        if steps.len() == MAX_LINES {
            return Err(trace_error(line, &format!("the table has more than {MAX_LINES} lines; shorten it")));
        }
        let mut step = read(line, words)?;
        let origin =
            *origin.get_or_insert(if step.at > MIN_CALENDAR_TIME { step.at } else { Duration::ZERO });
        if step.at < origin {
            return Err(trace_error(line, "the time is before that of the first line; sort the lines"));
        }
        step.at -= origin;
        if let Some(last) = steps.last().filter(|last| last.at > step.at) {
            let (own, before) = (step.at, last.at);
            return Err(trace_error(
                line,
                &format!("{own} is before {before} in line {}; sort the lines", last.line),
            ));
        }
        let gap = step.at.saturating_sub(steps.last().map_or(Duration::ZERO, |last| last.at));
        if is_gap(&steps, gap) {
            let problem = "after the previous line, more than a hundred times the usual interval; add a line for this gap";
            return Err(trace_error(line, &format!("the line is {gap} {problem}")));
        }
        limit.check(&step)?;
        steps.push(step);
    }
    if let Some(first) = steps.first_mut() {
        first.at = Duration::ZERO;
    }
    Ok(steps)
}

/// Returns whether one of otherwise equidistant rows is missing.
fn is_gap(steps: &[TraceStep], gap: Duration) -> bool {
    const MIN_ROWS: usize = 20;
    let [first, .., last] = steps else { return false };
    let mean = last.at.saturating_sub(first.at).as_nanos() / (steps.len() as u64 - 1);
    steps.len() >= MIN_ROWS && gap.as_nanos() > mean.saturating_mul(100)
}

/// Returns a rate with its unit as text; a rate in octets is converted to bits.
fn bits_per_second(number: &str, unit: &str) -> String {
    let Some(bits) = unit.strip_suffix('B').map(|prefix| format!("{prefix}bit")) else {
        return format!("{number}{unit}");
    };
    match number.parse::<u64>() {
        Ok(whole) => format!("{}{bits}", u128::from(whole) * 8),
        Err(_) => {
            number.parse().map_or(format!("{number}{unit}"), |octets: f64| format!("{}{bits}", octets * 8.0))
        }
    }
}

/// Refuses a row with more or fewer cells than the header.
fn check_cells(line: usize, found: usize, expected: usize) -> Result<(), TraceError> {
    let cure = match found.cmp(&expected) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => "a comma within a number separates cells; write a decimal point",
        Ordering::Less => "give each column one",
    };
    Err(trace_error(line, &format!("the line has {found} cells, but the header has {expected}; {cure}")))
}

/// Parses the cells of a row.
fn parse_row(line: usize, cells: &[Cow<'_, str>], columns: &[Heading<'_>]) -> Result<TraceStep, TraceError> {
    check_cells(line, cells.len(), columns.len())?;
    let mut step = TraceStep { line, ..TraceStep::default() };
    for (cell, heading) in cells.iter().zip(columns) {
        let is_time = heading.column == Column::Time;
        if cell.is_empty() && !is_time {
            continue;
        }
        let is_bare = cell.parse::<f64>().is_ok();
        let unit = match heading.unit {
            "" if is_time => unit_of_unix_time(cell).unwrap_or_default(),
            unit => unit,
        };
        let quantity = match seconds_of(cell).filter(|_| is_time) {
            Some(seconds) => format!("{seconds}s"),
            None if is_bare && heading.column == Column::Rate => bits_per_second(cell, unit),
            None if is_bare => format!("{cell}{unit}"),
            None => cell.to_string(),
        };
        let cure = match is_bare && unit.is_empty() {
            true => format!(", or name the unit in the header, as in {}", heading.with_unit()),
            false => String::new(),
        };
        let wrong = |problem: &dyn std::fmt::Display| match cells::describe_unsupported_number(cell) {
            Some(problem) => trace_error(line, &problem),
            None => trace_error(line, &format!("{problem}{cure}")),
        };
        match heading.column {
            Column::Time => step.at = quantity.parse().map_err(|e| wrong(&e))?,
            Column::Delay => step.delay = Some(quantity.parse().map_err(|e| wrong(&e))?),
            Column::Loss => step.loss = Some(quantity.parse().map_err(|e| wrong(&e))?),
            Column::Rate => step.rate = Some(quantity.parse().map_err(|e| wrong(&e))?),
        }
    }
    Ok(step)
}
