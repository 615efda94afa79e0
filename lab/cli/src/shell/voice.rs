//! Who is told what comes of lines: a person at a terminal, or a program that shows it to one.

use std::borrow::Cow;
use std::io::{self, Write};

use hol_base::Duration;
use serde::Serialize;

use crate::terminal::{note, say};

/// Where words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// To standard output and standard error as they are.
    Person,
    /// To standard output, a JSON object a line.
    Program,
}

/// What a program is told.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Said<'s> {
    Out(Cow<'s, str>),
    Err(Cow<'s, str>),
    Note(&'s str),
    Prompt(Prompt<'s>),
}

/// Where the next line runs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Prompt<'s> {
    /// Where.
    pub node: &'s str,
    /// The time in the network, in s.
    #[serde(serialize_with = "seconds")]
    pub now: Duration,
    /// The exit code of the line before.
    pub code: i32,
    /// Where lines can run.
    pub nodes: &'s [String],
}

impl Prompt<'_> {
    /// For a person.
    pub fn words(&self) -> String {
        let code = if self.code == 0 { String::new() } else { format!(" [{}]", self.code) };
        format!("{} {:.3} s{code}> ", self.node, self.now.as_secs_f64())
    }
}

impl Voice {
    /// What a program of a node wrote to its standard output.
    pub fn out(self, octets: &[u8]) {
        match self {
            Self::Person => pass_on(io::stdout(), octets),
            Self::Program => tell(&Said::Out(String::from_utf8_lossy(octets))),
        }
    }

    /// What one wrote to its standard error.
    pub fn err(self, octets: &[u8]) {
        match self {
            Self::Person => pass_on(io::stderr(), octets),
            Self::Program => tell(&Said::Err(String::from_utf8_lossy(octets))),
        }
    }

    /// Something about the line itself.
    pub fn note(self, text: &str) {
        match self {
            Self::Person => note!("{text}"),
            Self::Program => tell(&Said::Note(text)),
        }
    }

    /// A line is waited for. A person's terminal shows that itself.
    pub fn prompt(self, prompt: Prompt<'_>) {
        if self == Self::Program {
            tell(&Said::Prompt(prompt));
        }
    }
}

fn tell(said: &Said<'_>) {
    let line = serde_json::to_string(said).expect("what is said is plain data");
    say(&format!("{line}\n"));
}

/// As it is; a reader that went away has had enough.
fn pass_on(mut to: impl Write, octets: &[u8]) {
    if to.write_all(octets).and_then(|()| to.flush()).is_err() {
        std::process::exit(0);
    }
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
