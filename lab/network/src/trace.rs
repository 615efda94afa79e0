//! Events from a file: a table of times and values, or the times at which a packet may leave.
//!
//! A table (CSV) has a header of `time` and some of `rate`, `delay` and `loss`; each cell has a unit, or the
//! header has one for its column (`rate_Mbit`). Without a header, two columns are seconds and Mbit/s, as in
//! Pensieve's traces; G-NetTrack's CSV has its own. Dates and Unix times count from the first. In mahimahi's format
//! each line is the millisecond at which a packet of MTU size may leave. All become events, so every world
//! treats them alike; `trace_playback` computes the events of a run from any start position.

use std::fmt;

use hol_base::{BitRate, Duration, Ratio};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::event::{EventSpec, LinkDirection};
use crate::loss::LossSpec;
use crate::trace_playback::{LinkValues, TracePlayback};

/// The trace files of a network, or the traces that were read from them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct TraceSpec(Traces);

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
enum Traces {
    /// One file for both directions: `"lte.csv"`.
    SharedFile(String),
    /// One file per direction: `{ up = "lte.up", down = "lte.down" }`.
    FilePerDirection(Pair),
    /// The traces that were read from the files; only in results, because experiment files only name files.
    #[schemars(skip)]
    Playbacks(Vec<TracePlayback>),
}

/// The files of the two directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// From client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    up: Option<String>,
    /// From server to client.
    #[serde(skip_serializing_if = "Option::is_none")]
    down: Option<String>,
}

impl TraceSpec {
    /// Returns the files and their directions.
    pub fn files(&self) -> Vec<(&str, LinkDirection)> {
        match &self.0 {
            Traces::SharedFile(name) => vec![(name, LinkDirection::Both)],
            Traces::FilePerDirection(Pair { up, down }) => {
                let named = [(up, LinkDirection::Up), (down, LinkDirection::Down)].into_iter();
                named.filter_map(|(name, direction)| Some((name.as_deref()?, direction))).collect()
            }
            Traces::Playbacks(_) => Vec::new(),
        }
    }

    /// Creates the traces that were read from files.
    pub const fn from_playbacks(playbacks: Vec<TracePlayback>) -> Self {
        Self(Traces::Playbacks(playbacks))
    }

    /// Returns the traces that were read from the files; `None` if the files have not been read.
    pub fn playbacks(&self) -> Option<&[TracePlayback]> {
        match &self.0 {
            Traces::Playbacks(playbacks) => Some(playbacks),
            Traces::SharedFile(_) | Traces::FilePerDirection(_) => None,
        }
    }
}

impl JsonSchema for TraceSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TraceSpec".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Traces::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for TraceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = TraceSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or { up = \"a.csv\", down = \"b.csv\" }")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<TraceSpec, E> {
                Ok(TraceSpec(Traces::SharedFile(name.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TraceSpec, A::Error> {
                Pair::deserialize(MapAccessDeserializer::new(map))
                    .map(|pair| TraceSpec(Traces::FilePerDirection(pair)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TraceSpec, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(TraceSpec::from_playbacks)
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

/// An error in a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// Line number, counted from 1.
    pub line: usize,
    /// The problem and its fix.
    pub problem: String,
}

/// Maximum number of events; more would dominate the time of a run.
const MAX_EVENTS: usize = 100_000;
/// Maximum number of lines read.
const MAX_LINES: usize = 2_000_000;

/// Returns the events of a trace from its beginning on, in one direction or both.
pub fn events(text: &str, direction: LinkDirection) -> Result<Vec<EventSpec>, TraceError> {
    read(text, direction).map(|trace| trace.events_from(Duration::ZERO))
}

/// Reads a trace, in one direction or both. The last line of a table holds to the end of the run.
pub fn read(text: &str, direction: LinkDirection) -> Result<TracePlayback, TraceError> {
    read_with(text, direction, Round::once)
}

/// Reads a trace, in any format, that is repeated: after its end it continues with its beginning, so that it lasts
/// equally long from every start. The last line of a table holds as long as the line before it.
pub fn read_repeating(text: &str, direction: LinkDirection) -> Result<TracePlayback, TraceError> {
    read_with(text, direction, |steps| {
        let end = Round::end_of_table(&steps);
        repeat(steps, end)
    })
}

/// Reads a trace; `of_table` converts the steps of a table to a round.
fn read_with(
    text: &str,
    direction: LinkDirection,
    of_table: impl Fn(Vec<Step>) -> Round,
) -> Result<TracePlayback, TraceError> {
    let first = lines(text).next().ok_or_else(|| trace_error(1, "the trace is empty; add lines"))?;
    let Round { steps, end, repetitions: rounds } = if first.1.parse::<u64>().is_ok() {
        parse_mahimahi(text)?
    } else if is_two_numbers(first.1) {
        of_table(parse_two_columns(text)?)
    } else if first.1.split(',').any(|column| column.trim() == GNETTRACK_DOWN) {
        of_table(parse_gnettrack(text, direction)?)
    } else {
        of_table(parse_table(text)?)
    };
    let mut values = LinkValues::default();
    let mut changes = Vec::new();
    for step in steps {
        let Some(change) = values.replace(step.event(direction)) else { continue };
        if changes.len() == MAX_EVENTS {
            let problem = format!("the trace has more than {MAX_EVENTS} changes; make its steps longer");
            return Err(trace_error(step.line, &problem));
        }
        changes.push(change);
    }
    Ok(TracePlayback { direction, end, rounds, changes })
}

/// The steps of one pass through a trace.
struct Round {
    steps: Vec<Step>,
    /// Time of the last line, or of the beginning of the next round.
    end: Duration,
    /// How often a trace that repeats is played.
    repetitions: Option<u64>,
}

impl Round {
    /// Creates a round after which the last values hold.
    fn once(steps: Vec<Step>) -> Self {
        Self { end: steps.last().map_or(Duration::ZERO, |step| step.at), steps, repetitions: None }
    }

    /// Returns the time at which the last line of a table has held as long as the one before it. In a table with equidistant lines
    /// all lines then hold equally long.
    fn end_of_table(steps: &[Step]) -> Duration {
        let last = steps.last().map_or(Duration::ZERO, |step| step.at);
        let before = steps.iter().rev().map(|step| step.at).find(|at| *at < last);
        last + last.saturating_sub(before.unwrap_or_default())
    }
}

/// The values of a row; `None` where a value is missing.
#[derive(Debug, Clone, PartialEq, Default)]
struct Step {
    line: usize,
    at: Duration,
    rate: Option<BitRate>,
    delay: Option<Duration>,
    loss: Option<Ratio>,
}

impl Step {
    fn event(&self, direction: LinkDirection) -> EventSpec {
        let Self { at, rate, delay, loss, .. } = *self;
        EventSpec { rate, delay, loss: loss.map(LossSpec::Independent), ..EventSpec::empty(at, direction) }
    }
}

fn trace_error(line: usize, problem: &str) -> TraceError {
    TraceError { line, problem: problem.to_owned() }
}

/// Returns the lines with content, and their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = (1..).zip(text.lines()).map(|(line, words)| (line, words.trim()));
    numbered.filter(|(_, words)| !words.is_empty() && !words.starts_with('#'))
}

/// Octets of the packet that an opportunity lets pass, including the link-layer header.
const OPPORTUNITY_OCTETS: u64 = 1500 + 14;
/// The opportunities within this time determine a rate.
const BIN_WIDTH: Duration = Duration::from_millis(100);
/// The latest time in a trace of opportunities, in ms: 100 years, the maximum of other times.
const MAX_MS: u64 = 36_500 * 86_400_000;
/// A trace is repeated until it has lasted this long.
const MIN_REPEATED_TIME: Duration = Duration::from_secs(600);

/// Parses mahimahi's format. The packets within a tenth of a second give a rate; in a gap one packet passes before the
/// next opportunity.
fn parse_mahimahi(text: &str) -> Result<Round, TraceError> {
    let mut counts: Vec<(u64, usize)> = Vec::new();
    let bin = BIN_WIDTH.as_millis_f64() as u64;
    let (mut last, mut end) = (0, 0);
    for (count, (line, words)) in lines(text).enumerate() {
        let ms: u64 = words.parse().map_err(|_| {
            trace_error(
                line,
                &format!("{words:?} is not a whole number of milliseconds, as the first line is; each line of a mahimahi trace must be \
                    one"),
            )
        })?;
        if count == MAX_LINES {
            return Err(trace_error(line, &format!("the trace has more than {MAX_LINES} lines; shorten it")));
        }
        if ms < last {
            return Err(trace_error(
                line,
                &format!("{ms} ms is before {last} ms in the line before; sort the lines"),
            ));
        }
        if ms > MAX_MS {
            return Err(trace_error(
                line,
                &format!("{ms} ms is more than 100 years; count from the start of the trace"),
            ));
        }
        (last, end) = (ms, end.max(ms));
        match counts.last_mut() {
            Some((slot, count)) if *slot == ms / bin => *count += 1,
            _ => counts.push((ms / bin, 1)),
        }
    }
    if end == 0 {
        return Err(trace_error(1, "the trace ends at 0 ms; add later times"));
    }
    // The last slot ends with the trace, which begins again there.
    let slots = end.div_ceil(bin);
    // The last opportunity may be at the end, after the last slot.
    if let Some((_, late)) = counts.pop_if(|(slot, _)| *slot == slots) {
        match counts.last_mut() {
            Some((slot, count)) if *slot == slots - 1 => *count += late,
            _ => counts.push((slots - 1, late)),
        }
    }
    Ok(repeat(rates(&counts, end), Duration::from_millis(end)))
}

/// Returns the rate of each slot of a tenth of a second until `end`, in ms, and of gaps between opportunities.
fn rates(counts: &[(u64, usize)], end: u64) -> Vec<Step> {
    let bin = BIN_WIDTH.as_millis_f64() as u64;
    let bits = |packets: u64, ms: u64| {
        BitRate::from_bits_per_second((packets * OPPORTUNITY_OCTETS * 8 * 1000 / ms).max(1))
    };
    let step = |slot: u64, rate| Step { at: BIN_WIDTH.saturating_mul(slot), rate, ..Step::default() };
    let mut steps = Vec::new();
    let mut next = 0;
    for &(slot, count) in counts {
        if slot > next {
            steps.push(step(next, bits(1, (slot - next) * bin)));
        }
        steps.push(step(slot, bits(count as u64, bin.min(end - slot * bin))));
        next = slot + 1;
    }
    steps
}

/// Repeats the steps until the trace is long enough, as mahimahi restarts at the end.
fn repeat(steps: Vec<Step>, end: Duration) -> Round {
    if steps.len() < 2 || end.is_zero() {
        return Round { steps, end, repetitions: None };
    }
    let rounds = (MIN_REPEATED_TIME.as_nanos().div_ceil(end.as_nanos())).max(1);
    let is_change = |pair: &&[Step]| {
        let [before, after] = pair else { return false };
        (before.rate, before.delay, before.loss) != (after.rate, after.delay, after.loss)
    };
    let changes = 1 + steps.windows(2).filter(is_change).count();
    let rounds = rounds.min((MAX_EVENTS / changes).max(1) as u64);
    Round { steps, end, repetitions: Some(rounds) }
}

/// Returns the two numbers of a line.
fn two_numbers(words: &str) -> Option<(&str, &str)> {
    let mut cells = words.split(|c: char| c.is_whitespace() || c == ',').filter(|cell| !cell.is_empty());
    let pair = (cells.next()?, cells.next()?);
    let are_numbers = [pair.0, pair.1].iter().all(|cell| cell.parse::<f64>().is_ok());
    (are_numbers && cells.next().is_none()).then_some(pair)
}

fn is_two_numbers(words: &str) -> bool {
    two_numbers(words).is_some()
}

/// Parses two columns without a header: seconds and Mbit/s, as in the traces of Pensieve (Mao, Netravali and Alizadeh 2017).
fn parse_two_columns(text: &str) -> Result<Vec<Step>, TraceError> {
    let columns = [(Column::Time, "s"), (Column::Rate, "Mbit")];
    parse_rows(lines(text), |line, words| {
        let problem = format!(
            "{words:?} is not a time in s and a rate in Mbit/s, as the first line is; write both on every line"
        );
        let (time, rate) = two_numbers(words).ok_or_else(|| trace_error(line, &problem))?;
        parse_row(line, &format!("{time},{rate}"), &columns)
    })
}

/// The columns of G-NetTrack's CSV that are read: date and time, and rates in kbit/s. Irish 5G and 4G data
/// sets use this format (Raca, Leahy, Sreenan and Quinlan 2020).
const GNETTRACK_TIME: &str = "Timestamp";
const GNETTRACK_DOWN: &str = "DL_bitrate";
const GNETTRACK_UP: &str = "UL_bitrate";

/// Parses G-NetTrack's CSV. A single direction gets its own rate; with both directions, each gets the rate of
/// the download.
fn parse_gnettrack(text: &str, direction: LinkDirection) -> Result<Vec<Step>, TraceError> {
    let mut lines = lines(text);
    let (line, words) = lines.next().ok_or_else(|| trace_error(1, "the trace is empty; add lines"))?;
    let rate = if direction == LinkDirection::Up { GNETTRACK_UP } else { GNETTRACK_DOWN };
    let place = |name: &str| words.split(',').position(|column| column.trim() == name);
    let places = place(GNETTRACK_TIME).zip(place(rate));
    let (time, rate) = places.ok_or_else(|| {
        trace_error(line, &format!("the column {GNETTRACK_TIME} or {rate} is missing; add it"))
    })?;
    let columns = [(Column::Time, "s"), (Column::Rate, "kbit")];
    parse_rows(lines, |line, words| {
        let cells: Vec<&str> = words.split(',').map(str::trim).collect();
        let seconds = cells.get(time).and_then(|cell| seconds_of(cell));
        let problem = "the time is not of the form 2019.12.14_10.16.30";
        let seconds = seconds.ok_or_else(|| trace_error(line, problem))?;
        // A dash or an empty cell means no change.
        let rate = cells.get(rate).filter(|cell| cell.parse::<f64>().is_ok()).unwrap_or(&"");
        parse_row(line, &format!("{seconds},{rate}"), &columns)
    })
}

/// Returns the seconds of a time such as `2019.12.14_10.16.30`, since 1970.
fn seconds_of(text: &str) -> Option<i64> {
    let parts: Vec<i64> =
        text.split(['.', '_', '-', ':', ' ']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day, hour, minute, second] = parts[..] else { return None };
    let is_date = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    // Days from March on, so that a leap day is the last of its year.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    (is_date && is_time).then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// If the first time is later than this, times are those of a calendar.
const MIN_CALENDAR_TIME: Duration = Duration::from_secs(100_000_000);

/// The columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    Rate,
    Delay,
    Loss,
}

/// Parses a table's header: the kind of each column and the unit of its numbers.
fn parse_header(line: usize, words: &str) -> Result<Vec<(Column, &str)>, TraceError> {
    let column = |cell: &'_ str| -> Result<Column, TraceError> {
        match cell {
            "time" => Ok(Column::Time),
            "rate" => Ok(Column::Rate),
            "delay" => Ok(Column::Delay),
            "loss" => Ok(Column::Loss),
            _ => {
                let cure = "the header of a table is time,rate,delay,loss or some of these; a file of two columns without a header has \
                    times in s and rates in Mbit/s";
                Err(trace_error(line, &format!("{cell:?} is not the name of a column; {cure}")))
            }
        }
    };
    let columns: Vec<(Column, &str)> = words
        .split(',')
        .map(|cell| cell.trim().split_once('_').unwrap_or((cell.trim(), "")))
        .map(|(cell, unit)| Ok((column(cell)?, if unit == "percent" { "%" } else { unit })))
        .collect::<Result<_, TraceError>>()?;
    let count = |wanted| columns.iter().filter(|(column, _)| *column == wanted).count();
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

fn parse_table(text: &str) -> Result<Vec<Step>, TraceError> {
    let mut lines = lines(text);
    let (line, words) = lines.next().ok_or_else(|| trace_error(1, "the trace is empty; add lines"))?;
    let columns = parse_header(line, words)?;
    let steps = parse_rows(lines, |line, words| parse_row(line, words, &columns))?;
    if steps.is_empty() {
        return Err(trace_error(line, "no line follows the header; add at least one"));
    }
    Ok(steps)
}

/// Reads lines as rows, in order of time. Times of a calendar count from the first.
fn parse_rows<'t>(
    lines: impl Iterator<Item = (usize, &'t str)>,
    read: impl Fn(usize, &str) -> Result<(Step, bool), TraceError>,
) -> Result<Vec<Step>, TraceError> {
    let mut steps: Vec<Step> = Vec::new();
    let mut origin = None;
    // The index of the first step of the current period with a rate of 0.
    let mut still: Option<usize> = None;
    for (line, words) in lines {
        if steps.len() == MAX_LINES {
            return Err(trace_error(line, &format!("the table has more than {MAX_LINES} lines; shorten it")));
        }
        let (mut step, is_stopped) = read(line, words)?;
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
            let problem = "after the previous line, a hundred times as long as between the others; add a line for the gap";
            return Err(trace_error(line, &format!("the line is {gap} {problem}")));
        }
        if let Some(stopped) = still.filter(|_| step.rate.is_some()) {
            let_one_packet_pass(&mut steps[stopped..], step.at);
            still = None;
        }
        still = still.or(is_stopped.then_some(steps.len()));
        steps.push(step);
    }
    if let Some(stopped) = still {
        return Err(trace_error(
            steps[stopped].line,
            "the rate is 0 from here to the end of the trace; add a later line with another rate",
        ));
    }
    Ok(steps)
}

/// Lets one packet pass at a rate of 0 until there is a rate again.
fn let_one_packet_pass(steps: &mut [Step], until: Duration) {
    if let Some(stopped) = steps.first_mut() {
        let nanos = until.saturating_sub(stopped.at).as_nanos().max(1);
        let rate = u128::from(OPPORTUNITY_OCTETS) * 8_000_000_000 / u128::from(nanos);
        stopped.rate = BitRate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX).max(1));
    }
}

/// Returns whether one of otherwise equidistant rows is missing.
fn is_gap(steps: &[Step], gap: Duration) -> bool {
    const MIN_ROWS: usize = 20;
    let [first, .., last] = steps else { return false };
    let mean = last.at.saturating_sub(first.at).as_nanos() / (steps.len() as u64 - 1);
    steps.len() >= MIN_ROWS && gap.as_nanos() > mean.saturating_mul(100)
}

/// Parses a row; also returns whether its rate is 0.
fn parse_row(line: usize, words: &str, columns: &[(Column, &str)]) -> Result<(Step, bool), TraceError> {
    let cells: Vec<&str> = words.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        let problem = format!(
            "the line has {} cells, but the header has {}; give each column one",
            cells.len(),
            columns.len()
        );
        return Err(trace_error(line, &problem));
    }
    let mut step = Step { line, ..Step::default() };
    let mut is_stopped = false;
    for (cell, (column, unit)) in cells.into_iter().zip(columns) {
        if cell.is_empty() && *column != Column::Time {
            continue;
        }
        let is_bare = cell.parse::<f64>().is_ok();
        let cell = if is_bare { format!("{cell}{unit}") } else { cell.to_owned() };
        let cure = if is_bare && unit.is_empty() {
            ", or name the unit in the header, as in time_s,rate_Mbit,delay_ms,loss_%"
        } else {
            ""
        };
        let wrong = |problem: &dyn std::fmt::Display| trace_error(line, &format!("{problem}{cure}"));
        match column {
            Column::Time => step.at = cell.parse().map_err(|e| wrong(&e))?,
            Column::Delay => step.delay = Some(cell.parse().map_err(|e| wrong(&e))?),
            Column::Loss => step.loss = Some(cell.parse().map_err(|e| wrong(&e))?),
            Column::Rate if is_zero(&cell) => is_stopped = true,
            Column::Rate => step.rate = Some(cell.parse().map_err(|e| wrong(&e))?),
        }
    }
    Ok((step, is_stopped))
}

fn is_zero(cell: &str) -> bool {
    let digits = cell.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '/');
    digits.trim().parse::<f64>() == Ok(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time in ms, the rate, and the delay in ms.
    type Event = (u64, Option<String>, Option<u64>);

    fn read(text: &str) -> Result<Vec<Event>, String> {
        let events = events(text, LinkDirection::Both).map_err(|problem| problem.to_string())?;
        let event = |event: EventSpec| {
            (
                event.at.as_nanos() / 1_000_000,
                event.rate.map(|rate| rate.to_string()),
                event.delay.map(|d| d.as_nanos() / 1_000_000),
            )
        };
        Ok(events.into_iter().map(event).collect())
    }

    fn bits(rate: &str) -> Option<String> {
        Some(rate.to_owned())
    }

    #[test]
    fn a_table_is_read_with_units_in_its_cells_or_its_header() {
        let cells = "time,rate,delay\n0s,10Mbit,20ms\n# a comment\n1s,10Mbit,\n2500ms,1Mbit,40ms\n";
        let head = "time_s, delay_ms, rate_Mbit\n0,20,10\n1,20,10\n2.5,40,1\n";
        let expected = vec![(0, bits("10Mbit"), Some(20)), (2500, bits("1Mbit"), Some(40))];
        assert_eq!(read(cells), Ok(expected.clone()));
        assert_eq!(read(head), Ok(expected));
    }

    /// Each line is a packet of 1500 octets and a header of 14: ten in a tenth of a second are 1.2112 Mbit/s,
    /// and in a gap of 200 ms one packet passes. <https://github.com/ravinet/mahimahi>: the trace begins
    /// again at its end.
    #[test]
    fn mahimahi_opportunities_become_rates() {
        let even: String = (1..=250).map(|k| format!("{}\n", 4 * k)).collect();
        let rates: Vec<_> =
            read(&even).unwrap().into_iter().take(3).map(|(at, rate, _)| (at, rate.unwrap())).collect();
        // 24 packets in the first tenth, then 25, and in the last one also the packet at its end.
        let expected = [(0, "2906880bit"), (100, "3028kbit"), (900, "3149120bit")];
        assert_eq!(rates, expected.map(|(at, rate)| (at, rate.to_owned())));
        let lines: String = (1..=10)
            .map(|k| format!("{}\n", k * 10 - 1))
            .chain((30..40).map(|k| format!("{k}5\n")))
            .collect();
        let events = read(&lines).unwrap();
        // The last slot has 95 ms, and the next round begins after it.
        let expected = [
            (0, bits("1211200bit"), None),
            (100, bits("60560bit"), None),
            (300, bits("1274947bit"), None),
            (395, bits("1211200bit"), None),
            (495, bits("60560bit"), None),
        ];
        assert_eq!(events[..5], expected);
        assert!(events.last().unwrap().0 > 599_000);
    }

    /// Mahimahi's own example of a link that lets a packet pass each millisecond.
    #[test]
    fn trace_shorter_than_a_bin_has_its_full_rate() {
        assert_eq!(read("1\n"), Ok(vec![(0, bits("12112kbit"), None)]));
        assert_eq!(read("1\n1\n2\n"), Ok(vec![(0, bits("18168kbit"), None)]));
        let rates: Vec<_> = read("50\n100\n105\n").unwrap().into_iter().take(4).map(|(at, ..)| at).collect();
        assert_eq!(rates, [0, 100, 105, 205]);
    }

    /// Traces of Pensieve, among them those of the FCC: seconds and Mbit/s.
    #[test]
    fn two_columns_without_a_header_are_seconds_and_megabits() {
        let expected = Ok(vec![
            (0, bits("1250kbit"), None),
            (1000, bits("800kbit"), None),
            (2100, bits("3500kbit"), None),
        ]);
        assert_eq!(read("0.0\t1.25\n1.0\t0.8\n2.1\t3.5\n"), expected);
        assert_eq!(read("0, 1.25\n1, 0.8\n2.1, 3.5\n"), expected);
        assert!(read("0.0 1.25\n1.0 x\n").unwrap_err().starts_with("line 2: \"1.0 x\" is not a time in s"));
    }

    #[test]
    fn calendar_times_count_from_the_first_line() {
        let expected = Ok(vec![(0, bits("1Mbit"), None), (1500, bits("2Mbit"), None)]);
        assert_eq!(read("1331317200 1\n1331317201.5 2\n"), expected);
        assert_eq!(read("time_s,rate_Mbit\n1331317200,1\n1331317201.5,2\n"), expected);
        assert!(read("1331317200 1\n7 2\n").unwrap_err().contains("before that of the first line"));
    }

    /// The head of a file of the Irish 5G data set.
    #[test]
    fn gnettrack_file_has_a_rate_for_each_direction() {
        let text = "Timestamp,Longitude,NetworkMode,DL_bitrate,UL_bitrate,State\n\
                    2019.12.31_23.59.59,-8.4,5G,4000,80,D\n2020.01.01_00.00.01,-8.4,5G,-,90,D\n2020.01.01_00.00.03,-8.4,5G,5000,95,D\n";
        let down = vec![(0, bits("4Mbit"), None), (4000, bits("5Mbit"), None)];
        assert_eq!(read(text), Ok(down));
        let up = events(text, LinkDirection::Up).unwrap();
        assert_eq!(
            up.iter().map(|event| event.rate.unwrap().to_string()).collect::<Vec<_>>(),
            ["80kbit", "90kbit", "95kbit"]
        );
    }

    #[test]
    fn zero_rate_lets_one_packet_pass_until_the_rate_rises() {
        let events = read("time,rate\n0s,10Mbit\n1s,0Mbit\n2s,10Mbit\n").unwrap();
        assert_eq!(events[1], (1000, bits("12112bit"), None));
    }

    #[test]
    fn errors_name_their_line() {
        let many: String = (0..=100_000).map(|k| format!("{k}ms,{}Mbit\n", 1 + k % 2)).collect();
        let even: String = (0..30).map(|k| format!("{k}s,1Mbit\n")).collect();
        for (text, words) in [
            ("", "line 1: the trace is empty; add lines"),
            ("time,rate\n", "line 1: no line follows"),
            ("time,speed\n0s,1\n", "line 1: \"speed\" is not the name of a column"),
            ("rate,delay\n", "line 1: a table has one column `time`"),
            ("time,rate\n0s,1Mbit\n2s,2Mbit\n1s,1Mbit\n", "line 4: 1s is before 2s in line 3; sort"),
            ("time,rate\n0s,1Mbit\n1s,0\n2s,\n", "line 3: the rate is 0 from here to the end"),
            ("time,rate\n0,1\n", "or name the unit in the header"),
            ("time,rate\n0s,1Mbit,3\n", "line 2: the line has 3 cells, but the header has 2"),
            ("time,rate\n0s,-1Mbit\n", "line 2: "),
            ("5\n3\n", "line 2: 3 ms is before 5 ms"),
            ("5\nx\n", "line 2: \"x\" is not a whole number of milliseconds"),
            ("0\n0\n", "add later times"),
            ("1\n18446744073709551615\n", "line 2: 18446744073709551615 ms is more than 100 years"),
            (&format!("time,rate\n{many}"), "line 100002: the trace has more than 100000 changes"),
            (
                &format!("time,rate\n{even}9000s,2Mbit\n"),
                "line 32: the line is 8971s after the previous line",
            ),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(words), "{words}: {problem}");
        }
    }
}
