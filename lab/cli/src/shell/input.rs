//! Where lines come from: a terminal, with editing and history, or a file or pipe.

use std::io::{self, IsTerminal, Stdin};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::voice::Voice;
use crate::failure::Failure;

/// Lines, one after the other.
pub enum Input {
    /// Of a person.
    Terminal(Box<DefaultEditor>),
    /// Of a file or a pipe.
    Script(Stdin),
}

/// What comes next.
pub enum Next {
    /// This line.
    Line(String),
    /// Nothing: what had been typed was dropped.
    Dropped,
    /// The end.
    End,
}

impl Input {
    /// Standard input.
    pub fn open(voice: Voice) -> Result<Self, Failure> {
        let stdin = io::stdin();
        if voice == Voice::Program || !stdin.is_terminal() || !io::stdout().is_terminal() {
            return Ok(Self::Script(stdin));
        }
        DefaultEditor::new().map(|editor| Self::Terminal(Box::new(editor))).map_err(Failure::failed)
    }

    /// Whether somebody sits there.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line.
    pub fn next(&mut self, prompt: &str) -> Result<Next, Failure> {
        let unreadable =
            |problem: &dyn std::fmt::Display| Failure::failed(format!("standard input: {problem}"));
        match self {
            Self::Terminal(editor) => match editor.readline(prompt) {
                Ok(line) => {
                    editor.add_history_entry(&line).map_err(|problem| unreadable(&problem))?;
                    Ok(Next::Line(line))
                }
                Err(ReadlineError::Interrupted) => Ok(Next::Dropped),
                Err(ReadlineError::Eof) => Ok(Next::End),
                Err(problem) => Err(unreadable(&problem)),
            },
            Self::Script(stdin) => {
                let mut line = String::new();
                match stdin.read_line(&mut line) {
                    Ok(0) => Ok(Next::End),
                    Ok(_) => Ok(Next::Line(line)),
                    Err(problem) => Err(unreadable(&problem)),
                }
            }
        }
    }
}
