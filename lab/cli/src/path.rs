//! `hol path`: the network of an experiment from packets of a real one.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hol_passive::PathLearner;

use crate::captured::{self, Captured};
use crate::failure::Failure;
use crate::terminal::{note, say};

/// Learn what a path is like.
#[derive(Debug, Args)]
pub struct Path {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the [network] of an experiment from a capture: rate, delay, jitter, loss and its bursts, reordering, MTU
    Learn(Learn),
}

/// A capture at one place of the path is enough, at either end or between. Comments say how sure each value is, and what the
/// capture does not show.
#[derive(Debug, Args)]
struct Learn {
    /// A capture (pcap or pcapng) of TCP or SCTP; - is standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Use the packets of this interface [default: the one with the most packets]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The path to or from this host [default: between the two that exchanged the most packets]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
}

impl Path {
    /// Reads the capture, and says the table.
    pub fn run(&self) -> Result<(), Failure> {
        let Command::Learn(Learn { capture, interface, host }) = &self.command;
        let take = |learner: &mut PathLearner, at, ip: &[u8]| learner.see(at, ip);
        let Captured { of: learner, notes } = captured::read(capture, interface.as_deref(), take)?;
        let place = capture.display();
        let learned = learner.finish(*host).map_err(|problem| match host {
            Some(host) => Failure::Usage(format!("--host {host}: {place} has no packets of it")),
            None => Failure::failed(format!("{place}: {problem}")),
        })?;
        let mut text = format!("# Learnt by `hol path learn` from {place}.\n");
        for words in notes {
            note!("note: {words}");
            text += &format!("# Note: {words}.\n");
        }
        say(&format!("{text}{learned}"));
        Ok(())
    }
}
