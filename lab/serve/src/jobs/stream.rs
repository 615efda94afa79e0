//! The standard error of an experiment's process: JSON messages and lines of text.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::experiment::Progress;

/// What a line of an experiment's output says.
#[derive(Debug, PartialEq)]
pub enum OutputLine {
    /// The progress of the experiment.
    Progress(Progress),
    /// A point with its results so far.
    Point(Map<String, Value>),
    /// The process was interrupted, and has saved its results.
    Interrupted,
    /// A line for the log.
    Text(String),
}

/// A JSON line that `hol run` writes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StreamMessage {
    Progress(Progress),
    Point(Map<String, Value>),
    Interrupted(IgnoredAny),
}

/// Parses a line; a line that is not a known JSON message is text.
pub fn read(line: &str) -> OutputLine {
    match serde_json::from_str(line) {
        Ok(StreamMessage::Progress(progress)) => OutputLine::Progress(progress),
        Ok(StreamMessage::Point(row)) => OutputLine::Point(row),
        Ok(StreamMessage::Interrupted(_)) => OutputLine::Interrupted,
        Err(_) => OutputLine::Text(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lines_are_messages_and_other_lines_are_text() {
        let progress = r#"{"progress":{"runs":1,"runs_wanted":2,"failed":0,"messages":3,"messages_wanted":6,"share":0.5,"left":null}}"#;
        assert!(matches!(
            read(progress),
            OutputLine::Progress(Progress { runs: 1, remaining_seconds: None, .. })
        ));
        assert!(matches!(read(r#"{"point":{"mean_ms":20.5}}"#), OutputLine::Point(_)));
        assert_eq!(read(r#"{"interrupted":true}"#), OutputLine::Interrupted);
        for text in ["warning: slow", "{\"progress\":", "{\"other\":1}", "", "{}"] {
            assert_eq!(read(text), OutputLine::Text(text.to_owned()));
        }
    }
}
