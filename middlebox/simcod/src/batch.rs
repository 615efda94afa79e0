//! `simcod batch`: many requests in one session, pipelined.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser};

use crate::SimcodCommand;
use crate::answer::LabelledRequest;
use crate::client::Client;
use crate::failure::Failure;

/// Run the commands in a file, one per line, as on the command line: `enable 10.0.0.5:5004 any --udp`.
///
/// All requests are sent before the first answer arrives, so none may depend on another's answer. Empty lines
/// and lines that start with # are ignored. If any line is invalid, nothing is sent.
#[derive(Debug, Args)]
pub struct Batch {
    /// File with the commands; - for standard input
    file: PathBuf,
    #[command(flatten)]
    client: Client,
}

/// A command line in the batch file.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    command: SimcodCommand,
}

impl Batch {
    /// Parses all lines, then sends all their requests.
    pub fn run(&self) -> Result<(), Failure> {
        let text =
            read(&self.file).map_err(|error| Failure::failed(format!("{}: {error}", self.file.display())))?;
        let (mut grammar, mut asked) = (Line::command(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let location = format!("{}:{}", self.file.display(), index + 1);
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let requests = parse(&mut grammar, line)
                    .map_err(|problem| Failure::Usage(format!("{location}: {problem}")))?;
                asked.extend(requests.into_iter().map(|asked| asked.with_location(&location)));
            }
        }
        self.client.request_and_show(asked)
    }
}

fn read(file: &Path) -> io::Result<String> {
    if file == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) }
}

/// Parses a line with the grammar of [`Line`]. The caller passes the grammar because building it takes longer
/// than using it.
fn parse(grammar: &mut Command, line: &str) -> Result<Vec<LabelledRequest>, String> {
    let parsed = grammar.try_get_matches_from_mut(line.split_whitespace());
    let Line { command } =
        parsed.and_then(|words| Line::from_arg_matches(&words)).map_err(|error| problem(&error))?;
    let Some((command, client)) = command.request_command() else {
        return Err(
            "a batch file may contain only enable, reserve, disable, lifetime, disallow and status; run other commands separately"
                .to_owned(),
        );
    };
    if *client != Client::default() {
        return Err("options that select the middlebox, and --json, must follow `batch FILE`, not a command in the file".to_owned());
    }
    let requests = command.requests().map_err(|failure| failure.to_string())?;
    Ok(requests.into_iter().map(LabelledRequest::from).collect())
}

/// Returns clap's message without the usage of the whole program.
fn problem(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let words: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}
