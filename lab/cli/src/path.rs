//! `hol path`: derives the network of an experiment from a packet capture.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hol_passive::{CapturedIp, PathEstimator};

use crate::capture_file::{self, CaptureResult};
use crate::failure::Failure;
use crate::tc;
use crate::terminal::{note, print};

/// Derive the network of an experiment from a capture or from tc.
#[derive(Debug, Args)]
pub struct Path {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Derive the [network] of an experiment from a capture: rate, delay, jitter, loss and its bursts,
    /// reordering, MTU
    Learn(Learn),
    /// Convert lines of tc to the [network] of an experiment: netem, tbf, htb, pfifo, codel, fq_codel, pie,
    /// dualpi2, red
    Tc(Tc),
}

/// Arguments of `hol path tc`: tc commands for the client's interface and, with --down, for the server's.
#[derive(Debug, Args)]
struct Tc {
    /// Arguments of tc, such as "qdisc add dev eth0 root netem delay 50ms loss 1% rate 10mbit"
    #[arg(value_name = "LINE", required = true)]
    lines: Vec<String>,
    /// Arguments of tc for the reverse direction
    #[arg(long, value_name = "LINE")]
    down: Vec<String>,
}

/// One capture is enough, at either end of the path or in between. Comments in the output state the uncertainty of
/// each value, and what the capture does not show.
#[derive(Debug, Args)]
struct Learn {
    /// Capture of TCP or SCTP packets (pcap or pcapng, which may be compressed by gzip, zstd or xz); - is standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Use the packets of this interface [default: the one with the most packets]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Estimate the path to or from this host [default: between the two hosts that exchanged the most packets]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
}

impl Path {
    /// Reads the capture, and prints the `[network]` table of the path.
    pub fn run(&self) -> Result<(), Failure> {
        let Learn { capture, interface, host } = match &self.command {
            Command::Learn(learn) => learn,
            Command::Tc(lines) => return lines.run(),
        };
        let take = |learner: &mut PathEstimator, at, ip: CapturedIp<'_>| learner.handle_packet(at, ip);
        let CaptureResult { computed: learner, notes } =
            capture_file::read(capture, interface.as_deref(), take)?;
        let place = capture.display();
        let learned = learner.finish(*host).map_err(|problem| match host {
            Some(host) => Failure::Usage(format!(
                "--host {host}: {place} contains no packets from or to this host; use the address of a \
                host in the capture"
            )),
            None => Failure::failed(format!("{place}: {problem}")),
        })?;
        let mut text = format!(
            "# Estimated by `hol path learn` from {}.\n",
            capture_file::escape_control_characters(&place.to_string())
        );
        for words in notes {
            note!("note: {words}");
            text += &format!("# Note: {words}.\n");
        }
        print(&format!("{text}{learned}"));
        Ok(())
    }
}

impl Path {
    /// Converts the lines of `hol path tc` without printing the `[network]` table.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.command {
            Command::Tc(lines) => lines.network().map(drop),
            Command::Learn(_) => Ok(()),
        }
    }
}

impl Tc {
    /// Parses the lines, and prints the `[network]` table.
    fn run(&self) -> Result<(), Failure> {
        print(&format!("# Converted by `hol path tc`.\n{}", self.network()?));
        Ok(())
    }

    /// Returns the `[network]` table.
    fn network(&self) -> Result<String, Failure> {
        fn all(lines: &[String]) -> Result<Vec<tc::ShapedDirection>, Failure> {
            let lines: Vec<&str> = lines.iter().flat_map(|text| tc::split_lines(text)).collect();
            tc::parse_lines(&lines).map_err(Failure::Usage)
        }
        tc::network(&all(&self.lines)?, &all(&self.down)?).map_err(Failure::Usage)
    }
}
