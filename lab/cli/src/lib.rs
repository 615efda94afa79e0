//! The `hol` command; also parses command lines without running them.
// `println!` and `eprintln!` panic if the reader has closed the pipe; `print` and `note!` do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod advise;
mod bench;
mod capture_file;
mod ccdf;
mod client;
mod compare;
mod comparison_flags;
mod comparison_steps;
mod decompressor;
mod doctor;
mod exec;
mod executable;
mod external;
mod failure;
mod glossary;
mod help;
mod init;
mod kernel;
mod list;
mod live;
mod manual;
mod merge;
mod named_path;
mod ns2;
mod number;
mod overview;
mod packetdrill;
mod path;
mod peer;
mod plan;
mod point_reporter;
mod point_row;
mod progress;
mod progress_args;
mod qlog;
mod replay;
mod report;
mod reproduce;
mod run;
mod run_plan;
mod service;
mod share;
mod shell;
mod statistics;
mod submit;
mod tc;
mod topology;
mod trace;
mod transport_option;
mod unknown_option;
mod unmarked_path;
mod validate;
mod verify;
mod waterfall;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use hol_lab::{Experiment, Plan, RunResults};
use hol_terminal as terminal;

/// Shows what a transport protocol does to your application.
#[derive(Debug, Parser)]
#[command(name = "hol", version, override_help = overview::OVERVIEW)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare transports under one set of conditions
    Compare(compare::Compare),
    /// Run your own programs over each transport, unmodified
    Exec(exec::Exec),
    /// Open a shell on a node; virtual time stops while you type
    Shell(shell::Shell),
    /// Write an experiment file with the options of `hol compare`
    Init(init::Init),
    /// Run an experiment file
    Run(run::Run),
    /// Show the points of an experiment file and the time that they need
    Plan(plan::Plan),
    /// Join the parts of an experiment from several machines
    Merge(merge::Merge),
    /// Find the point at which the better transport changes
    Advise(advise::Advise),
    /// Run a study: a published evaluation with its figures and claims
    Reproduce(reproduce::Reproduce),
    /// Write the report of a result directory again
    Report(report::Report),
    /// Write a report as one HTML file for sharing
    Share(share::Share),
    /// Repeat runs of a result directory and compare their digests
    Verify(verify::Verify),
    /// Compare the model with the Linux kernel, at chosen points or at random
    Validate(validate::Validate),
    /// Show or capture the packets of one run
    Trace(trace::Trace),
    /// Play packetdrill scripts against the model's endpoints, or on Linux in virtual time
    Packetdrill(packetdrill::Packetdrill),
    /// Draw the network of an ns script or an experiment
    Topology(topology::Topology),
    /// Derive the network of an experiment from a capture
    Path(path::Path),
    /// Derive a workload from a capture: the sizes and times of its messages
    Replay(replay::Replay),
    /// Measure the speed of hol itself
    Bench(bench::Bench),
    /// Count how often `hol compare` draws a wrong conclusion in cases whose true result is known
    #[command(hide = true)]
    Statistics(statistics::Statistics),
    /// List studies, stacks, transports with their options, and workloads
    List(list::List),
    /// Fetch, build, select and list kernels for the kernel world
    Kernel(kernel::Kernel),
    /// Run endpoints of another host's live experiments, or emulate the path between two hosts
    Live(live::Live),
    /// Send requests to a SIMCO middlebox (RFC 4540), or run one (starts `simcod`)
    Simco(external::External),
    /// Serve the lab to browsers (starts `hol-serve`)
    Serve(external::External),
    /// Send an experiment to a server or a cluster
    Submit(submit::Submit),
    /// Print the events of an experiment on a server
    Watch(client::Watch),
    /// Fetch the results of an experiment from a server
    Get(client::Get),
    /// Check what works on this machine
    Doctor(doctor::Doctor),
    /// Explain a command, or the keys of experiment files: `hol help run`, `hol help network`
    Help(help::Help),
    /// Print the shell completions: `hol completions bash`, zsh, fish
    Completions(manual::Completions),
    /// Write the manual pages to a directory
    Manual(manual::Manual),
}

/// Executes the command line, and returns the exit code.
pub fn main() -> ExitCode {
    // The kernel world runs this program inside its virtual machine.
    if hol_kernel::guest::is_guest() {
        return hol_kernel::guest::main();
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| unknown_option::explain(error, Cli::command()).exit());
    let done = match cli.command {
        Command::Compare(command) => command.run(),
        Command::Exec(command) => command.run(),
        Command::Shell(command) => {
            return command.run().unwrap_or_else(Failure::report);
        }
        Command::Init(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Plan(command) => command.run(),
        Command::Merge(command) => command.run(),
        Command::Advise(command) => command.run(),
        Command::Reproduce(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Share(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Validate(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Packetdrill(command) => command.run(),
        Command::Topology(command) => command.run(),
        Command::Path(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Statistics(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Kernel(command) => command.run(),
        Command::Live(command) => command.run(),
        Command::Simco(command) => command.simco(),
        Command::Serve(command) => command.serve(),
        Command::Submit(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Get(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Help(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Manual(command) => command.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Parses a command line. For `compare`, `exec`, `run`, `advise`, `trace`, `shell` and `init`, also reads the files
/// that it names and checks the experiment, without starting a run; for `path tc`, also converts its lines. Errors are those of `hol`.
pub fn parse_and_plan(line: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let planned = match Cli::try_parse_from(line)
        .map_err(|error| unknown_option::explain(error, Cli::command()).to_string())?
        .command
    {
        Command::Compare(command) => command.experiment().map(|experiment| check_plan(&experiment)),
        Command::Exec(command) => command.experiment().map(|experiment| check_plan(&experiment)),
        Command::Run(command) => command.experiment().map(|experiment| check_plan(&experiment)),
        Command::Advise(command) => command.check(),
        Command::Trace(command) => command.chosen_point().map(drop),
        Command::Shell(command) => command.point().map(drop),
        Command::Path(command) => command.check(),
        Command::Init(command) => command.path_and_text().map(|_| ()),
        _ => Ok(()),
    };
    planned.map_err(|failure| failure.to_string())
}

/// Panics if the plan of an experiment is empty or cannot be shown.
fn check_plan(experiment: &Experiment) {
    let plan = Plan::new([experiment]);
    assert!(!plan.next_runs(&RunResults::default()).is_empty() && !plan.to_string().is_empty());
}
