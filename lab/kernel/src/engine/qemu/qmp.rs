//! The QEMU Machine Protocol: one JSON object a line, over the machine's standard input and output.

use serde_json::{Value, json};

/// A message from QEMU's monitor (QMP): one line.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    /// QEMU executed a command; contains the result.
    Return(Value),
    /// QEMU refused a command; contains the reason.
    Error(String),
    /// QEMU reports an event; contains its name and its data.
    Event(String, Value),
    /// The greeting of QEMU, or a message of an unknown kind.
    Other,
}

/// Returns the line that makes QEMU's monitor (QMP) execute `command`.
pub(super) fn command(command: &str, arguments: &Value) -> String {
    let mut line = json!({ "execute": command });
    if !arguments.is_null() {
        line["arguments"] = arguments.clone();
    }
    format!("{line}\n")
}

/// Parses a line from QEMU's monitor (QMP).
pub(super) fn parse(line: &str) -> Reply {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return Reply::Other };
    if let Some(result) = value.get_mut("return") {
        Reply::Return(result.take())
    } else if let Some(error) = value.get("error") {
        Reply::Error(error["desc"].as_str().unwrap_or("no reason given").to_owned())
    } else if let Some(event) = value.get("event").and_then(Value::as_str) {
        Reply::Event(event.to_owned(), value["data"].clone())
    } else {
        Reply::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_replies_are_distinguished() {
        assert_eq!(parse(r#"{"QMP":{"version":{}}}"#), Reply::Other);
        assert_eq!(parse("garbage"), Reply::Other);
        assert_eq!(parse(r#"{"return":{}}"#), Reply::Return(json!({})));
        assert_eq!(parse(r#"{"error":{"class":"GenericError","desc":"no"}}"#), Reply::Error("no".to_owned()));
        assert_eq!(parse(r#"{"event":"STOP","timestamp":{}}"#), Reply::Event("STOP".to_owned(), Value::Null));
    }

    #[test]
    fn a_command_is_one_line() {
        assert_eq!(command("cont", &Value::Null), "{\"execute\":\"cont\"}\n");
        assert!(command("pmemsave", &json!({"val": 1})).contains("\"arguments\":{\"val\":1}"));
    }
}
