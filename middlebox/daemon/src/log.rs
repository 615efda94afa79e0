//! The log, one line per event: `time=… level=info event=listening at="tcp 127.0.0.1:7626"`, or the same as a
//! JSON object.

mod date;
mod writer;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use hol_base::{Duration, Time};
use hol_simco::AgentId;

use self::date::Date;
use self::writer::Writer;

/// The level of an event in the log. At `info` and more severe levels, agents cannot cause a line per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// An operation of the daemon failed.
    Error,
    /// A request was refused, or a connection was closed.
    Warn,
    /// The daemon started, stopped or reloaded its settings.
    Info,
    /// A connection or a rule began or ended.
    Debug,
}

/// The format of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A list of `name=value`; a value is in quotes unless it is a single word.
    #[default]
    Logfmt,
    /// A JSON object whose values are strings.
    Json,
}

/// The log, which writes events of a level and of more severe levels.
pub struct Log {
    max_level: Level,
    format: Format,
    repeated: RepeatedEvents,
    out: Outlet,
}

/// What writes the lines of the log.
enum Outlet {
    Direct(Box<dyn Write + Send>),
    Background(Writer),
}

/// A field of an event: its name and its value.
pub(crate) type Field<'a> = (&'static str, &'a dyn Display);

impl Log {
    /// Creates a log of events at the level `max_level` and at more severe levels.
    pub fn new(max_level: Level, out: Box<dyn Write + Send>) -> Self {
        Self {
            max_level,
            format: Format::default(),
            repeated: RepeatedEvents::default(),
            out: Outlet::Direct(out),
        }
    }

    /// Returns the log with another format.
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Changes the level and the format for all further events.
    pub(crate) fn reconfigure(&mut self, max_level: Level, format: Format) {
        (self.max_level, self.format) = (max_level, format);
    }

    /// Lets a thread write the log from a bounded queue, so that the daemon does not wait for the reader. Lines for
    /// which the queue has no room are dropped.
    pub(crate) fn write_in_background(&mut self) -> io::Result<()> {
        if let Outlet::Direct(out) = &mut self.out {
            self.out = Outlet::Background(Writer::start(std::mem::replace(out, Box::new(io::sink())))?);
        }
        Ok(())
    }

    /// Returns the number of dropped lines since the start.
    pub(crate) fn dropped_lines(&self) -> u64 {
        if let Outlet::Background(writer) = &self.out { writer.dropped_lines() } else { 0 }
    }

    pub(crate) fn is_enabled(&self, level: Level) -> bool {
        level <= self.max_level
    }

    /// Writes an event. Failures are ignored, because they could be reported only in the log itself.
    pub(crate) fn write(&mut self, now: Time, level: Level, event: &str, fields: &[Field<'_>]) {
        if !self.is_enabled(level) {
            return;
        }
        self.write_line(now, None, level, event, fields);
    }

    /// Writes a line of the audit log, whatever the level. The line counts for the agent that caused it, and is dropped
    /// if the agent's lines would leave no room for those of others.
    pub(crate) fn write_record(
        &mut self,
        now: Time,
        agent: Option<AgentId>,
        event: &str,
        fields: &[Field<'_>],
    ) {
        self.write_line(now, agent, Level::Info, event, fields);
    }

    fn write_line(
        &mut self,
        now: Time,
        agent: Option<AgentId>,
        level: Level,
        event: &str,
        fields: &[Field<'_>],
    ) {
        let line = |level, event, fields: &[Field<'_>]| self.format.line(now, level, event, fields);
        let text = line(level, event, fields);
        match &mut self.out {
            Outlet::Direct(out) => drop(out.write_all(text.as_bytes())),
            Outlet::Background(writer) => {
                writer.push(agent, &text, |lines| line(Level::Warn, "log-incomplete", &[("lines", &lines)]));
            }
        }
    }
}

impl Log {
    /// Writes an event that clients can cause at will. Events with equal fields are written at most once a minute, with
    /// the number of occurrences.
    pub(crate) fn write_limited(
        &mut self,
        now: Time,
        level: Level,
        event: &'static str,
        fields: &[Field<'_>],
    ) {
        if let Some(times) =
            self.repeated.count_occurrence(now, event, fields).filter(|_| self.is_enabled(level))
        {
            let times: Field<'_> = ("times", &times);
            self.write(now, level, event, &[fields, &[times]].concat());
        }
    }
}

/// The time at which each event was last written, and the number of its occurrences since then, by the event's name and
/// fields.
#[derive(Debug, Default)]
struct RepeatedEvents(BTreeMap<(&'static str, String), (Time, u64)>);

impl RepeatedEvents {
    const REPEAT_PERIOD: Duration = Duration::from_secs(60);
    /// Maximum number of distinct events; further events count as equal if they have the same name.
    const MAX_EVENTS: usize = 256;

    /// Counts an occurrence of an event. Returns the number of occurrences since it was last written if it must be
    /// written now; otherwise `None`.
    fn count_occurrence(&mut self, now: Time, event: &'static str, fields: &[Field<'_>]) -> Option<u64> {
        let mut key = (event, fields.iter().map(|(_, value)| format!("{value} ")).collect());
        if self.0.len() >= Self::MAX_EVENTS && !self.0.contains_key(&key) {
            self.0.retain(|_, (written, _)| *written + Self::REPEAT_PERIOD > now);
            if self.0.len() >= Self::MAX_EVENTS {
                key.1 = String::new();
            }
        }
        let (written, times) = self.0.entry(key).or_insert((Time::ZERO, 0));
        *times += 1;
        let is_due = *written == Time::ZERO || *written + Self::REPEAT_PERIOD <= now;
        is_due.then(|| {
            *written = now;
            std::mem::take(times)
        })
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("max_level", &self.max_level).finish_non_exhaustive()
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        })
    }
}

impl Format {
    fn line(self, now: Time, level: Level, event: &str, fields: &[Field<'_>]) -> String {
        let time = Date(now);
        let head: [Field<'_>; 3] = [("time", &time), ("level", &level), ("event", &event)];
        let all = head.iter().chain(fields);
        match self {
            Self::Logfmt => logfmt(all),
            Self::Json => json(all),
        }
    }
}

fn logfmt<'a>(fields: impl Iterator<Item = &'a Field<'a>>) -> String {
    let mut line = String::new();
    for (name, value) in fields {
        let (value, space) = (value.to_string(), if line.is_empty() { "" } else { " " });
        let is_plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '=';
        if !value.is_empty() && value.chars().all(is_plain) {
            let _ = write!(line, "{space}{name}={value}");
        } else {
            // Names come from clients; quotes prevent them from forging a line.
            let _ = write!(line, "{space}{name}={value:?}");
        }
    }
    line.push('\n');
    line
}

fn json<'a>(fields: impl Iterator<Item = &'a Field<'a>>) -> String {
    let mut line = String::from("{");
    for (name, value) in fields {
        if line.len() > 1 {
            line.push(',');
        }
        push_json(&mut line, name, value);
    }
    line.push_str("}\n");
    line
}

/// Appends a member of a JSON object. RFC 8259 section 7.
fn push_json(line: &mut String, name: &str, value: &dyn Display) {
    let _ = write!(line, "\"{name}\":\"");
    for c in value.to_string().chars() {
        let _ = match c {
            '"' | '\\' => write!(line, "\\{c}"),
            '\n' => write!(line, "\\n"),
            '\t' => write!(line, "\\t"),
            '\0'..='\u{1f}' => write!(line, "\\u{:04x}", u32::from(c)),
            c => write!(line, "{c}"),
        };
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_its_fields_contain() {
        let fields: [Field<'_>; 2] = [("pid", &7), ("reason", &"no\nlevel=error")];
        let now = Time::from_millis(1_700_000_000_042);
        let line = |format: Format| format.line(now, Level::Warn, "refused", &fields);
        let expected =
            "time=2023-11-14T22:13:20.042Z level=warn event=refused pid=7 reason=\"no\\nlevel=error\"\n";
        assert_eq!(line(Format::Logfmt), expected);
        let expected = "{\"time\":\"2023-11-14T22:13:20.042Z\",\"level\":\"warn\",\"event\":\"refused\",\"pid\":\"7\",\
                        \"reason\":\"no\\nlevel=error\"}\n";
        assert_eq!(line(Format::Json), expected);
    }

    /// Quotes, backslashes and control characters are escaped, and nothing else. RFC 8259 section 7.
    #[test]
    fn a_string_of_json_is_escaped() {
        let mut line = String::new();
        push_json(&mut line, "name", &"\"\\\u{1}\t\u{7f}é");
        assert_eq!(line, "\"name\":\"\\\"\\\\\\u0001\\t\u{7f}é\"");
    }

    #[test]
    fn repeated_events_are_logged_once_a_minute() {
        let (mut repeated, start) = (RepeatedEvents::default(), Time::from_millis(1_700_000_000_000));
        let mut note = |second, peer: u32| {
            repeated.count_occurrence(
                start + Duration::from_secs(second),
                "session-refused",
                &[("peer", &peer)],
            )
        };
        assert_eq!(
            [note(0, 1), note(1, 1), note(2, 2), note(59, 1), note(60, 1)],
            [Some(1), None, Some(1), None, Some(3)]
        );
        for peer in 0..10_000 {
            note(61, peer);
        }
        assert!(repeated.0.len() <= RepeatedEvents::MAX_EVENTS + 1, "{}", repeated.0.len());
    }

    #[test]
    fn events_below_the_log_level_are_not_written() {
        let log = Log::new(Level::Info, Box::new(std::io::sink()));
        assert!(log.is_enabled(Level::Error) && log.is_enabled(Level::Info) && !log.is_enabled(Level::Debug));
    }
}
