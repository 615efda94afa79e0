//! What happens, a line an event: `time=… level=info event=listening transport=tcp address=127.0.0.1:7626`.

use std::fmt::{self, Display, Write as _};
use std::io::Write;

use hol_base::Time;

/// How much an event matters. At `info` and above there is nothing that an agent could make the daemon write for each
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something was refused or given up.
    Warn,
    /// The daemon's own life.
    Info,
    /// Every connection and every rule.
    Debug,
}

/// Where events are written, in the format logfmt.
pub struct Log {
    most: Level,
    out: Box<dyn Write + Send>,
}

/// What is said about an event.
pub(crate) type Field<'a> = (&'static str, &'a dyn Display);

impl Log {
    /// Writes events of `most` and those that matter more.
    pub fn new(most: Level, out: Box<dyn Write + Send>) -> Self {
        Self { most, out }
    }

    pub(crate) fn writes(&self, level: Level) -> bool {
        level <= self.most
    }

    /// Writes an event. Nobody is left to be told if that fails.
    pub(crate) fn write(&mut self, now: Time, level: Level, event: &str, fields: &[Field<'_>]) {
        if self.writes(level) {
            let _ = self.out.write_all(line(now, level, event, fields).as_bytes());
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("most", &self.most).finish_non_exhaustive()
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

fn line(now: Time, level: Level, event: &str, fields: &[Field<'_>]) -> String {
    let (seconds, millis) = (now.as_millis() / 1000, now.as_millis() % 1000);
    let mut line = format!("time={seconds}.{millis:03} level={level} event={event}");
    for (name, value) in fields {
        let value = value.to_string();
        let is_plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '=';
        if !value.is_empty() && value.chars().all(is_plain) {
            let _ = write!(line, " {name}={value}");
        } else {
            // Names come from outside: quoted, so that none can fake a line.
            let _ = write!(line, " {name}={value:?}");
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_whatever_its_fields_say() {
        let line = line(
            Time::from_millis(1_700_000_000_042),
            Level::Warn,
            "refused",
            &[("pid", &7), ("reason", &"no\nlevel=error")],
        );
        let expected = "time=1700000000.042 level=warn event=refused pid=7 reason=\"no\\nlevel=error\"\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn what_matters_less_than_asked_for_is_not_written() {
        let log = Log::new(Level::Info, Box::new(std::io::sink()));
        assert!(log.writes(Level::Error) && log.writes(Level::Info) && !log.writes(Level::Debug));
    }
}
