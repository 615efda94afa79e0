//! The source of lines: a terminal, with editing and history, or a file or pipe.

use std::io::{self, IsTerminal, Stdin};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::output::OutputFormat;
use crate::failure::Failure;

/// The source of the lines that the shell executes.
pub enum LineSource {
    /// A person types the lines at a terminal, with editing and history.
    Terminal(Box<DefaultEditor>),
    /// The lines come from a file or a pipe.
    Script(Stdin),
}

/// What the source of lines returns next.
pub enum InputEvent {
    /// The next line.
    Line(String),
    /// The user discarded the line with Ctrl-C.
    Cancelled,
    /// There are no more lines.
    End,
}

impl LineSource {
    /// Opens standard input, with editing and history if it is a terminal.
    pub fn open(output: OutputFormat) -> Result<Self, Failure> {
        let stdin = io::stdin();
        if output == OutputFormat::JsonLines || !stdin.is_terminal() || !io::stdout().is_terminal() {
            return Ok(Self::Script(stdin));
        }
        DefaultEditor::new().map(|editor| Self::Terminal(Box::new(editor))).map_err(Failure::failed)
    }

    /// Returns whether the source is a terminal.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Returns the next line, or the event that came instead of a line.
    pub fn next(&mut self, prompt: &str) -> Result<InputEvent, Failure> {
        let unreadable =
            |problem: &dyn std::fmt::Display| Failure::failed(format!("standard input: {problem}"));
        match self {
            Self::Terminal(editor) => match editor.readline(prompt) {
                Ok(line) => {
                    editor.add_history_entry(&line).map_err(|problem| unreadable(&problem))?;
                    Ok(InputEvent::Line(line))
                }
                Err(ReadlineError::Interrupted) => Ok(InputEvent::Cancelled),
                Err(ReadlineError::Eof) => Ok(InputEvent::End),
                Err(problem) => Err(unreadable(&problem)),
            },
            Self::Script(stdin) => {
                let mut line = String::new();
                match stdin.read_line(&mut line) {
                    Ok(0) => Ok(InputEvent::End),
                    Ok(_) => Ok(InputEvent::Line(line)),
                    Err(problem) => Err(unreadable(&problem)),
                }
            }
        }
    }
}
