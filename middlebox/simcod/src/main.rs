//! `simcod`: a SIMCO middlebox (RFC 4540), and its agent for the command line and scripts.
#![warn(clippy::print_stdout, clippy::print_stderr)] // They panic if the pipe is closed; `print` and `note!` do not.

mod advice;
mod answer;
mod batch;
mod clear;
mod client;
mod disable;
mod disallow;
mod enable;
mod failure;
mod lifetime;
mod lifetime_text;
mod list;
mod manual;
mod protocol;
mod reserve;
mod rule;
mod rules;
mod serve;
mod standby;
mod status;
mod table;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hol_simco::Request;

use client::{Client, RemoteCommand};
use failure::Failure;

const EXAMPLES: &str = "\
Examples:
  simcod enable 10.0.0.5:5004 198.51.100.7:6000 --udp --both-ways --lifetime 5m
  simcod enable 10.0.0.5:5004+2 any --udp             two ports, from any host
  simcod enable [2001:db8::5]:80 [2001:db8:9::/48] --tcp --server fw1 --secret ./secret --name web
  simcod list
  simcod rules /var/lib/simcod                        all rules recorded by a middlebox of this host
  simcod disallow 7
  simcod watch --json
  simcod serve --filter none

A host is an address, a prefix, or any; IPv6 addresses are in brackets. Ports are 5004, 5004-5007, 5004+4, or any.

Exit codes: 0 success, 1 the middlebox refused, 2 wrong usage, 3 no session: no connection, no authentication or no answer.";

/// A SIMCO middlebox (RFC 4540) and its agent: let flows pass a firewall or NAT, and list the rules.
#[derive(Debug, Parser)]
#[command(name = "simcod", version, subcommand_required = true, arg_required_else_help = true)]
#[command(max_term_width = 100, after_help = EXAMPLES)]
struct Simcod {
    #[command(subcommand)]
    command: SimcodCommand,
}

#[derive(Debug, Subcommand)]
enum SimcodCommand {
    /// Let a flow pass (PER, PEA)
    Enable(RemoteCommand<enable::Enable>),
    /// Reserve addresses and ports of a NAT for a later rule (PRR)
    Reserve(RemoteCommand<reserve::Reserve>),
    /// Block a flow, and end the rules that allow it (PDR)
    Disable(RemoteCommand<disable::Disable>),
    /// Set the remaining lifetime of a rule (PLC)
    Lifetime(RemoteCommand<lifetime::Lifetime>),
    /// End rules now (PLC)
    Disallow(RemoteCommand<disallow::Disallow>),
    /// Show rules (PRS)
    Status(RemoteCommand<status::Status>),
    /// Show all rules that this agent may access (PRL, PRS)
    List(list::List),
    /// Show all rules recorded by a middlebox of this host
    Rules(rules::Rules),
    /// Show changes of rules as they happen (ARE)
    Watch(watch::Watch),
    /// Run the commands in a file, in one session
    Batch(batch::Batch),
    /// Run the middlebox: agents open and close the packet filter of this host
    Serve(serve::Serve),
    /// Keep a copy of another middlebox's rules on this host, so that this host can take over
    Standby(standby::Standby),
    /// Remove the rules that a middlebox left in the packet filter of this host
    Clear(clear::Clear),
    /// Write the manual: one page for each command
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    match Simcod::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

impl Simcod {
    fn run(&self) -> Result<(), Failure> {
        if let Some((command, client)) = self.command.request_command() {
            return client.request_and_show(command.requests()?.into_iter().map(Into::into).collect());
        }
        match &self.command {
            SimcodCommand::List(list) => list.run(),
            SimcodCommand::Rules(rules) => rules.run(),
            SimcodCommand::Watch(watch) => watch.run(),
            SimcodCommand::Batch(batch) => batch.run(),
            SimcodCommand::Serve(serve) => serve.run(),
            SimcodCommand::Standby(standby) => standby.run(),
            SimcodCommand::Clear(clear) => clear.run(),
            SimcodCommand::Manual(manual) => manual.run(),
            command => unreachable!("{command:?} consists of requests"),
        }
    }
}

/// A command that consists of requests that do not depend on each other.
trait RequestCommand {
    /// Returns the requests of the command; fails if its options contradict each other.
    fn requests(&self) -> Result<Vec<Request>, Failure>;
}

impl SimcodCommand {
    /// Returns the command and its connection options; `None` if the command does not consist of
    /// requests.
    fn request_command(&self) -> Option<(&dyn RequestCommand, &Client)> {
        match self {
            Self::Enable(command) => Some(command.parts()),
            Self::Reserve(command) => Some(command.parts()),
            Self::Disable(command) => Some(command.parts()),
            Self::Lifetime(command) => Some(command.parts()),
            Self::Disallow(command) => Some(command.parts()),
            Self::Status(command) => Some(command.parts()),
            Self::List(_)
            | Self::Rules(_)
            | Self::Watch(_)
            | Self::Batch(_)
            | Self::Serve(_)
            | Self::Standby(_)
            | Self::Clear(_)
            | Self::Manual(_) => None,
        }
    }
}
