//! `simcod`: a SIMCO middlebox and its agent, without the lab.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use simcod::{EXAMPLES, NAME, Simco};

/// A SIMCO middlebox (RFC 4540), and its agent: let flows pass, and see what passes.
#[derive(Debug, Parser)]
#[command(name = "simcod", version, subcommand_required = true, arg_required_else_help = true)]
#[command(max_term_width = 100)]
struct Simcod {
    #[command(flatten)]
    simco: Simco,
}

fn main() -> ExitCode {
    simcod::call("simcod");
    let command = Simcod::command().after_help(EXAMPLES.replace(NAME, "simcod"));
    let simcod = Simcod::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit());
    match simcod.simco.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
