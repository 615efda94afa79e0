//! Parses server-sent events. HTML standard, section 9.2.6

use std::io::{self, BufRead};

/// A server-sent event with its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Type of the event; `message` by default.
    pub name: String,
    /// All data lines of the event.
    pub data: String,
}

/// Returns the next event; `None` at the end, where an incomplete event is dropped.
pub fn read_event(stream: &mut impl BufRead) -> io::Result<Option<Event>> {
    let (mut name, mut data) = (String::new(), Vec::new());
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let text = line.trim_end_matches(['\n', '\r']);
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if text.is_empty() && !data.is_empty() => {
                let name = if name.is_empty() { "message".to_owned() } else { name };
                return Ok(Some(Event { name, data: data.join("\n") }));
            }
            "" if text.is_empty() => name.clear(),
            "event" => value.clone_into(&mut name),
            "data" => data.push(value.to_owned()),
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_stream_is_parsed_as_in_the_standard() {
        let mut stream = &b": a comment\n\nretry: 2000\nevent: state\ndata: {\"a\":1}\n\ndata: one\r\ndata:two\nid: 7\n\nevent: lost\ndata: x\n"[..];
        let event = |name: &str, data: &str| Some(Event { name: name.to_owned(), data: data.to_owned() });
        assert_eq!(read_event(&mut stream).unwrap(), event("state", "{\"a\":1}"));
        assert_eq!(read_event(&mut stream).unwrap(), event("message", "one\ntwo"));
        assert_eq!(read_event(&mut stream).unwrap(), None);
    }
}
