//! The output of a shell: text for a terminal, or JSON lines for a program.

use std::borrow::Cow;
use std::io::{self, Write};

use hol_base::Duration;
use serde::Serialize;

use crate::terminal::{note, print};

/// How the output of the shell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Output is text, on standard output and standard error.
    Text,
    /// Output is JSON on standard output, one object per line.
    JsonLines,
}

/// An event as a line of JSON.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OutputEvent<'s> {
    Out(Cow<'s, str>),
    Err(Cow<'s, str>),
    Note(&'s str),
    Prompt(Prompt<'s>),
}

/// The state of the shell before the next line.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Prompt<'s> {
    /// The node on which the next line runs.
    pub node: &'s str,
    /// The virtual time since all services were ready; serialised in seconds.
    #[serde(serialize_with = "seconds")]
    pub now: Duration,
    /// Exit code of the previous line.
    pub code: i32,
    /// All nodes on which lines can run.
    pub nodes: &'s [String],
}

impl Prompt<'_> {
    /// Returns the prompt as text.
    pub fn text(&self) -> String {
        let code = if self.code == 0 { String::new() } else { format!(" [{}]", self.code) };
        format!("{} {:.3} s{code}> ", self.node, self.now.as_secs_f64())
    }
}

impl OutputFormat {
    /// Writes the standard output of a node's program.
    pub fn write_stdout(self, octets: &[u8]) {
        match self {
            Self::Text => write_raw(io::stdout(), octets),
            Self::JsonLines => write_event(&OutputEvent::Out(String::from_utf8_lossy(octets))),
        }
    }

    /// Writes the standard error of a node's program.
    pub fn write_stderr(self, octets: &[u8]) {
        match self {
            Self::Text => write_raw(io::stderr(), octets),
            Self::JsonLines => write_event(&OutputEvent::Err(String::from_utf8_lossy(octets))),
        }
    }

    /// Writes a note of the shell itself.
    pub fn write_note(self, text: &str) {
        match self {
            Self::Text => note!("{text}"),
            Self::JsonLines => write_event(&OutputEvent::Note(text)),
        }
    }

    /// Writes that the shell waits for a line. In text format the line editor shows the prompt.
    pub fn show_prompt(self, prompt: Prompt<'_>) {
        if self == Self::JsonLines {
            write_event(&OutputEvent::Prompt(prompt));
        }
    }
}

fn write_event(event: &OutputEvent<'_>) {
    let line = serde_json::to_string(event).expect("an event can be serialised");
    print(&format!("{line}\n"));
}

/// Writes octets unchanged; ends this program if the reader has closed the pipe.
fn write_raw(mut to: impl Write, octets: &[u8]) {
    if to.write_all(octets).and_then(|()| to.flush()).is_err() {
        std::process::exit(0);
    }
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
