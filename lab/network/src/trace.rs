//! Events from a file: a table of times and values, or the times at which a packet may leave.
//!
//! `trace_table` reads tables, `opportunities` mahimahi's format. Both become events, so every world treats them
//! alike; `trace_playback` computes the events of a run from any start position.

use std::fmt;

use hol_base::{Duration, Ratio};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::cells::{Separator, begins_with_number};
use crate::event::{EventSpec, LinkDirection};
use crate::event_rate::EventRate;
use crate::loss::LossSpec;
use crate::opportunities;
use crate::trace_playback::{LinkValues, TracePlayback};
use crate::trace_table;

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
    /// The trace file of the direction from client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    up: Option<String>,
    /// The trace file of the direction from server to client.
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

/// Why a trace is invalid, and in which line.
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
/// A trace is repeated until it has lasted this long.
const MIN_REPEATED_TIME: Duration = Duration::from_secs(600);
/// Maximum number of lines read.
pub(crate) const MAX_LINES: usize = 2_000_000;

/// Returns the events of a trace from its beginning on, in one direction or both.
pub fn events(text: &str, direction: LinkDirection) -> Result<Vec<EventSpec>, TraceError> {
    read(text, direction).map(|trace| trace.events_from(Duration::ZERO))
}

/// Reads a trace, in one direction or both. The last line of a table applies until the end of the run.
pub fn read(text: &str, direction: LinkDirection) -> Result<TracePlayback, TraceError> {
    read_with(text, direction, TracePass::once)
}

/// Reads a trace, in any format, for repeated playback. After its end it continues with its beginning, so it lasts
/// equally long from every start. The last line of a table applies for as long as the line before it.
pub fn read_repeating(text: &str, direction: LinkDirection) -> Result<TracePlayback, TraceError> {
    read_with(text, direction, |steps| {
        let end = TracePass::end_of_table(&steps);
        repeat(steps, end)
    })
}

/// Reads a trace; `of_table` converts the steps of a table to one pass through the trace.
fn read_with(
    text: &str,
    direction: LinkDirection,
    of_table: impl Fn(Vec<TraceStep>) -> TracePass,
) -> Result<TracePlayback, TraceError> {
    let (line, first) = first_line(text)?;
    let cells = Separator::of_line(first).split_cells(first);
    let round = match &cells[..] {
        [only] if only.parse::<u64>().is_ok() => opportunities::read(text)?,
        numbers if numbers.iter().all(|cell| begins_with_number(cell)) => {
            of_table(trace_table::read_without_header(text, line, numbers.len())?)
        }
        _ => of_table(trace_table::read_with_header(text, direction)?),
    };
    if let Some(line) = round.find_final_zero() {
        let problem = "the rate is 0 from here to the end of the trace; add a later line with another rate";
        return Err(trace_error(line, problem));
    }
    let TracePass { steps, end, repetitions: rounds } = round;
    let mut values = LinkValues::default();
    let changes = steps.iter().filter_map(|step| values.replace(step.event(direction))).collect();
    Ok(TracePlayback { direction, end, rounds, changes })
}

/// The steps of one pass through a trace.
pub(crate) struct TracePass {
    steps: Vec<TraceStep>,
    /// Time of the trace's last line or, if the trace repeats, the time at which its next pass begins.
    end: Duration,
    /// How often a trace that repeats is played; `None` for a trace that is played once.
    repetitions: Option<u64>,
}

impl TracePass {
    /// Creates a pass through a trace that is played once; its last values then remain in force.
    fn once(steps: Vec<TraceStep>) -> Self {
        Self { end: steps.last().map_or(Duration::ZERO, |step| step.at), steps, repetitions: None }
    }

    /// Returns the end of one pass through a table that repeats: its last line applies for as long as the line before
    /// it. In a table with equidistant lines all lines then apply equally long.
    fn end_of_table(steps: &[TraceStep]) -> Duration {
        let last = steps.last().map_or(Duration::ZERO, |step| step.at);
        let before = steps.iter().rev().map(|step| step.at).find(|at| *at < last);
        last + last.saturating_sub(before.unwrap_or_default())
    }

    /// Returns the line from which on the rate remains 0.
    fn find_final_zero(&self) -> Option<usize> {
        let steps: Vec<&TraceStep> = self.steps.iter().filter(|step| step.rate.is_some()).collect();
        let is_zero = |step: &&TraceStep| step.rate == Some(EventRate::Zero);
        let lasts = |at: usize| steps.get(at + 1).is_none_or(|next| next.at > steps[at].at);
        // The next round of a trace that repeats ends the rate of 0, unless no other rate lasts.
        let remains =
            self.repetitions.is_none() || (0..steps.len()).all(|at| !lasts(at) || is_zero(&steps[at]));
        steps.iter().rev().copied().take_while(is_zero).last().map(|step| step.line).filter(|_| remains)
    }
}

/// The values of a row; `None` where a value is missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TraceStep {
    pub(crate) line: usize,
    pub(crate) at: Duration,
    pub(crate) rate: Option<EventRate>,
    pub(crate) delay: Option<Duration>,
    pub(crate) loss: Option<Ratio>,
}

impl TraceStep {
    fn event(&self, direction: LinkDirection) -> EventSpec {
        let Self { at, rate, delay, loss, .. } = *self;
        EventSpec { rate, delay, loss: loss.map(LossSpec::Independent), ..EventSpec::empty(at, direction) }
    }
}

/// Counts the changes of a trace while it is read, so that reading a trace with too many changes stops before it fills
/// the memory.
#[derive(Debug, Default)]
pub(crate) struct ChangeLimit {
    values: LinkValues,
    changes: usize,
}

impl ChangeLimit {
    /// Counts a step; returns an error if it is one change too many.
    pub(crate) fn check(&mut self, step: &TraceStep) -> Result<(), TraceError> {
        let is_change = self.values.replace(step.event(LinkDirection::Both)).is_some();
        self.changes += usize::from(is_change);
        if self.changes <= MAX_EVENTS {
            return Ok(());
        }
        let problem = format!("the trace has more than {MAX_EVENTS} changes; shorten the trace");
        Err(trace_error(step.line, &problem))
    }
}

pub(crate) fn trace_error(line: usize, problem: &str) -> TraceError {
    TraceError { line, problem: problem.to_owned() }
}

/// Returns the first line with content, without tabs at its end, and its number.
pub(crate) fn first_line(text: &str) -> Result<(usize, &str), TraceError> {
    let first = lines(text).next().map(|(line, words)| (line, words.trim_end()));
    first.ok_or_else(|| trace_error(1, "the trace is empty; add lines"))
}

/// Returns the lines with content, and their numbers.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // A tab at the end is an empty cell.
    let numbered = (1..).zip(text.lines()).map(|(line, words)| (line, words.trim_matches([' ', '\r'])));
    numbered.filter(|(_, words)| !words.trim().is_empty() && !words.starts_with('#'))
}

/// Repeats the steps until the trace is long enough, as mahimahi restarts at the end.
pub(crate) fn repeat(steps: Vec<TraceStep>, end: Duration) -> TracePass {
    if steps.len() < 2 || end.is_zero() {
        return TracePass { steps, end, repetitions: None };
    }
    let rounds = (MIN_REPEATED_TIME.as_nanos().div_ceil(end.as_nanos())).max(1);
    let is_change = |pair: &&[TraceStep]| {
        let [before, after] = pair else { return false };
        (before.rate, before.delay, before.loss) != (after.rate, after.delay, after.loss)
    };
    let changes = 1 + steps.windows(2).filter(is_change).count();
    let rounds = rounds.min((MAX_EVENTS / changes).max(1) as u64);
    TracePass { steps, end, repetitions: Some(rounds) }
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

    /// MP-Traces (Aydin, Fund and Panwar 2023) have seconds and octets per second, and no header.
    #[test]
    fn octets_per_second_need_a_header() {
        let rows = "1,1516808\n2,0\n3,3667470\n";
        let problem = read(rows).unwrap_err();
        assert!(problem.contains("time_s,rate_B for MP-Traces"), "{problem}");
        let expected = vec![
            (0, bits("12134464bit"), None),
            (2000, bits("0bit"), None),
            (3000, bits("29339760bit"), None),
        ];
        assert_eq!(read(&format!("time_s,rate_B\n{rows}")), Ok(expected));
        assert_eq!(read("time_s,rate_kB\n0,1.5\n"), Ok(vec![(0, bits("12kbit"), None)]));
    }

    /// Each line is a packet of 1500 octets and a header of 14: ten in a tenth of a second are 1.2112 Mbit/s,
    /// and in a gap nothing passes. <https://github.com/ravinet/mahimahi>: the trace begins
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
            (100, bits("0bit"), None),
            (300, bits("1274948bit"), None),
            (395, bits("1211200bit"), None),
            (495, bits("0bit"), None),
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

    #[test]
    fn unix_times_have_the_unit_of_their_size() {
        let expected = Ok(vec![(0, bits("1Mbit"), None), (1500, bits("2Mbit"), None)]);
        for zeros in ["", "000", "000000", "000000000"] {
            let later = format!("{}{}", 13_313_172_015_u64, zeros);
            let (first, later) = (
                format!("1331317200{zeros}"),
                format!("{}.{}", &later[..later.len() - 1], &later[later.len() - 1..]),
            );
            assert_eq!(read(&format!("{first} 1\n{later} 2\n")), expected, "{first}");
            assert_eq!(
                read(&format!("Timestamp,bandwidth_Mbit\n{first},1\n{later},2\n")),
                expected,
                "{first}"
            );
        }
        let dates = "timestamp,throughput_Mbit\n2019-12-31T23:59:59Z,1\n2020-01-01 00:00:01,2\n";
        assert_eq!(read(dates), Ok(vec![(0, bits("1Mbit"), None), (2000, bits("2Mbit"), None)]));
    }

    /// Some columns of the FCC's curr_webget.csv.
    #[test]
    fn fcc_file_has_the_tests_of_one_unit() {
        let head = "unit_id,dtime,target,fetch_time,bytes_sec\n";
        let rows = "7,2016-09-01 00:12:30,a.com,9,125000\n7,2016-09-01 01:12:30,a.com,9,0\n7,2016-09-01 02:12:31,a.com,9,250000\n";
        let expected = vec![(0, bits("1Mbit"), None), (7_201_000, bits("2Mbit"), None)];
        assert_eq!(read(&format!("{head}{rows}")), Ok(expected));
        for (row, words) in [
            ("8,2016-09-01 03:12:31,a.com,9,250000", "line 5: the unit_id is 8, unlike in the first line"),
            ("7,2016-09-01 03:12:31,b.com,9,250000", "line 5: the target is b.com"),
            ("7,yesterday,a.com,9,250000", "line 5: the time is not of the form"),
            ("7,2016-09-01 03:12:31,a.com,9,fast", "line 5: \"fast\" is not a whole number of octets"),
            ("7,2016-09-01 03:12:31", "line 5: the line has 2 cells"),
        ] {
            let problem = read(&format!("{head}{rows}{row}\n")).unwrap_err();
            assert!(problem.starts_with(words), "{problem}");
        }
        assert!(read(head).unwrap_err().contains("no line follows"));
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

    /// Only a dash and an empty cell mean that nothing changes.
    #[test]
    fn gnettrack_rate_that_is_not_a_number_is_refused() {
        for (cell, words) in [
            ("\"4000,5\"", "line 3: \"4000,5\" has a comma; write 4000.5"),
            ("4000,5", "line 3: the line has 5 cells, but the header has 4; a comma within a number"),
            ("n/a", "line 3: \"n/a\" is not a bit rate"),
            ("-80", "line 3: "),
            ("NaN", "line 3: "),
        ] {
            let text = format!(
                "Timestamp,DL_bitrate,UL_bitrate,State\n2020.01.01_00.00.01,80,90,D\n2020.01.01_00.00.02,{cell},90,D\n"
            );
            let problem = read(&text).unwrap_err();
            assert!(problem.starts_with(words), "{cell}: {problem}");
        }
        // Six numbers, but no date.
        for time in
            ["0 0.1 0.5862591700787501 0", "2020.01.32_00.00.01", "9223372036854775807.01.01_00.00.00"]
        {
            let problem = read(&format!("Timestamp,DL_bitrate\n{time},80\n")).unwrap_err();
            assert!(problem.starts_with("line 2: the time is not of the form"), "{time}: {problem}");
        }
        for cell in ["-", "", " - ", "\"-\""] {
            let text = format!("Timestamp,DL_bitrate\n2020.01.01_00.00.01,80\n2020.01.01_00.00.02,{cell}\n");
            assert_eq!(read(&text).unwrap().len(), 1, "{cell:?}");
        }
    }

    /// The octets that a link carries in a round are those of the opportunities, however rare they are.
    #[test]
    fn mahimahi_trace_carries_one_packet_for_each_opportunity() {
        for times in [
            &[500, 1000, 1500, 2000][..],
            &[1000],
            &[90, 110, 350, 730, 731, 1000],
            &[5, 6, 7, 8, 9, 1000],
            &[700, 700, 700],
            &[1, 2],
            &[395],
            &[7, 307],
        ] {
            let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
            let trace = super::read(&text, LinkDirection::Up).unwrap();
            let end = trace.end();
            let ends = trace.changes().iter().skip(1).map(|event| event.at).chain([end]);
            let carried =
                trace.changes().iter().zip(ends).map(|(event, until)| {
                    event.rate.unwrap().bits_per_second() * (until - event.at).as_millis()
                });
            let (carried, expected) = (carried.sum::<u64>(), times.len() as u64 * 1514 * 8 * 1000);
            let excess = carried.checked_sub(expected);
            assert!(excess.is_some_and(|excess| excess < 1000 * times.len() as u64), "{times:?}: {carried}");
        }
    }

    #[test]
    fn zero_rate_is_kept() {
        for zero in ["0Mbit", "0", "0.0 kbit"] {
            let events = read(&format!("time,rate\n0s,10Mbit\n1s,{zero}\n2s,10Mbit\n")).unwrap();
            assert_eq!(events[1], (1000, bits("0bit"), None), "{zero}");
        }
        assert_eq!(read("0 5\n1 0\n2 5\n").unwrap()[1], (1000, bits("0bit"), None));
    }

    #[test]
    fn values_of_the_first_line_hold_from_the_start() {
        for text in ["time,rate,delay\n3s,1Mbit,9ms\n5s,2Mbit,\n", "3 1\n5 2\n"] {
            let events = read(text).unwrap();
            let rates: Vec<_> = events.iter().map(|(at, rate, _)| (*at, rate.clone())).collect();
            assert_eq!(rates, [(0, bits("1Mbit")), (5000, bits("2Mbit"))], "{text}");
        }
    }

    /// As spreadsheets of different languages write it.
    #[test]
    fn cells_may_be_separated_and_quoted_in_several_ways() {
        let expected = read("time_s,rate_Mbit,delay_ms\n0,12.5,\n1,6,20\n").unwrap();
        for text in [
            "time_s;rate_Mbit;delay_ms\n0;12.5;\n1;6;20\n",
            "time_s\trate_Mbit\tdelay_ms\n0\t12.5\t\n1\t6\t20\n",
            "\"time_s\",\"rate_Mbit\",\"delay_ms\"\n\"0\",\"12.5\",\"\"\n\"1\",\"6\",\"20\"\n",
            "\"time_s\"; rate_Mbit; \"delay_ms\"\r\n0; \"12.5\"; \r\n1; 6; 20\r\n",
        ] {
            assert_eq!(read(text), Ok(expected.clone()), "{text}");
        }
        let expected = read("0 1.25\n1 0.8\n").unwrap();
        for text in
            ["0;1.25\n1;0.8\n", "0,\t1.25\n1,\t0.8\n", "\"0\",\"1.25\"\n\"1\",\"0.8\"\n", "0  1.25\n1  0.8\n"]
        {
            assert_eq!(read(text), Ok(expected.clone()), "{text}");
        }
        let quoted = "\"Timestamp\";\"DL_bitrate\"\n\"2019.12.31_23.59.59\";\"4000\"\n\"2020.01.01_00.00.01\";\"5000\"\n";
        assert_eq!(read(quoted).unwrap().len(), 2);
    }

    #[test]
    fn number_without_a_leading_zero_is_a_number() {
        let expected = read("0 0.8\n0.5 1.2\n").unwrap();
        for text in
            ["0 .8\n.5 1.2\n", "0, .8\n.5, 1.2\n", "0\t.8\n.5\t1.2\n", ".0 .8\n.5 1.2\n", "0;.8\n.5;1.2\n"]
        {
            assert_eq!(read(text), Ok(expected.clone()), "{text:?}");
        }
        for text in ["-1 5\n", "0 -5\n", "0 NaN\n"] {
            let problem = read(text).unwrap_err();
            assert!(problem.starts_with("line 1: \"") && !problem.contains("column"), "{problem}");
        }
    }

    #[test]
    fn tabs_at_the_end_of_lines_are_ignored() {
        for (text, plain) in [
            ("0\t5\t\n1\t6\t\n", "0\t5\n1\t6\n"),
            ("0 5\t\n1 6\t\n", "0 5\n1 6\n"),
            ("0,5\t\n1,6\n", "0,5\n1,6\n"),
            ("0\t5\n1\t6\t\n", "0\t5\n1\t6\n"),
            ("50\t\n100\t\n", "50\n100\n"),
            ("time_s\trate_Mbit\t\n0\t5\t\n1\t6\n", "time_s\trate_Mbit\n0\t5\n1\t6\n"),
            (
                "time_s\trate_Mbit\tdelay_ms\n0\t5\t\n1\t6\t\t\n",
                "time_s\trate_Mbit\tdelay_ms\n0\t5\t\n1\t6\t\n",
            ),
            (
                "Timestamp\tDL_bitrate\t\n2020.01.01_00.00.01\t80\t\n",
                "Timestamp\tDL_bitrate\n2020.01.01_00.00.01\t80\n",
            ),
        ] {
            assert_eq!(read(text), Ok(read(plain).unwrap()), "{text:?}");
        }
    }

    #[test]
    fn error_names_the_separator_of_the_first_line() {
        for (text, separator) in [
            ("0 5\n1,6\n", "spaces"),
            ("0,5\n1 6\n", "a comma"),
            ("0;5\n1\t6\n", "a semicolon"),
            ("0\t5\n1 6\n", "a tab"),
        ] {
            let problem = read(text).unwrap_err();
            let words = format!("is; write both on every line, separated by {separator}");
            assert!(problem.starts_with("line 2: ") && problem.ends_with(&words), "{problem}");
        }
    }

    #[test]
    fn error_names_the_form_of_a_number_that_is_not_read() {
        for (text, words) in [
            ("time_s;rate_Mbit\n0;12,5\n", "line 2: \"12,5\" has a comma; write 12.5"),
            ("0,0\t1,25\n1,0\t0,8\n", "line 1: \"0,0\" has a comma; write 0.0"),
            ("0,0 1,25\n1,0 0,8\n", "line 1: \"0,0\" has a comma; write 0.0"),
            ("time_s,rate_Mbit\n0,12,5\n", "a comma within a number separates cells; write a decimal point"),
            (
                "time_s,rate_kbit\n0,\"1,200\"\n",
                "\"1,200\" has a comma; write 1.200, or 1200 if it separates thousands",
            ),
            ("time_s;rate_kbit\n0;1.200.000\n", "\"1.200.000\" has several points; write 1200000"),
            ("time_s;rate_kbit\n0;1'200\n", "\"1'200\" has a separator of thousands; write 1200"),
            ("time_s;rate_kbit\n0;1 200\n", "\"1 200\" has a separator of thousands; write 1200"),
            ("time_s,rate_Mbit\n0,1.2e1\n", "\"1.2e1\" has an exponent; write 12"),
            ("0 1.2e7\n", "\"1.2e7\" has an exponent; write 12000000"),
            ("time,rate\n0s,1.2e1Mbit\n", "\"1.2e1Mbit\" has an exponent; write 12Mbit"),
            ("1.5\n2.5\n", "line 1: \"1.5\" is not a whole number of milliseconds"),
            ("0.0 1.25 10\n", "line 1: the line has 3 numbers"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(words), "{words}: {problem}");
        }
    }

    /// Traces in bit/s, whose rates would be a million times too high.
    #[test]
    fn two_columns_beyond_100_gigabits_ask_for_a_unit() {
        let problem = read("0 1250000\n1 800000\n").unwrap_err();
        let words = "line 1: 1250000 Mbit/s is more than 100 Gbit/s, and a file without a header has rates in Mbit/s; put a \
            header with the right unit before the first line, such as time_s,rate_bit, or time_s,rate_B for MP-Traces";
        assert!(problem.starts_with(words), "{problem}");
        assert!(read("0 5\n1 100001\n").unwrap_err().starts_with("line 2: 100001 Mbit/s"));
        assert!(read("0 100000\n1 5\n").is_ok());
        assert_eq!(read("time_s,rate_bit\n0,1250000\n"), Ok(vec![(0, bits("1250kbit"), None)]));
    }

    #[test]
    fn errors_name_their_line() {
        let many: String = (0..=100_000).map(|k| format!("{k}ms,{}Mbit\n", 1 + k % 2)).collect();
        // One and two packets in a tenth of a second by turns, and a packet each second tenth.
        let slots: String = (0..=100_010).map(|k| format!("{k}00\n").repeat(1 + k % 2)).collect();
        let gaps: String = (0..=50_010).map(|k| format!("{}00\n", 2 * k)).collect();
        let even: String = (0..30).map(|k| format!("{k}s,1Mbit\n")).collect();
        for (text, words) in [
            ("", "line 1: the trace is empty; add lines"),
            ("time,rate\n", "line 1: no line follows"),
            ("time,speed\n0s,1\n", "line 1: \"speed\" is not the name of a column"),
            ("time,unit_id\n0s,1\n", "line 1: \"unit_id\" is not the name of a column"),
            ("timestamp,bandwidth\n0,1\n", "or name the unit in the header, as in timestamp_s"),
            ("timestamp_s,bandwidth\n0,1\n", "or name the unit in the header, as in bandwidth_Mbit"),
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
            (
                &format!("time,rate\n{many}wrong,1\n"),
                "line 100002: the trace has more than 100000 changes; shorten the trace",
            ),
            (&slots, "line 150001: the trace has more than 100000 changes; shorten the trace"),
            (&gaps, "line 50001: the trace has more than 100000 changes; shorten the trace"),
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
