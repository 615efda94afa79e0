//! `simcod standby`: keeps a copy of another middlebox's rules, so that this host can take over.

use std::path::PathBuf;

use clap::Args;
use hol_agent::{Server, Tls};
use hol_daemon::{Level, Log, follow};

use crate::failure::Failure;

const AFTER_HELP: &str = "\
The program reconnects whenever a connection ends, and logs event=synchronized when it has every rule. To take over, end it and start
`simcod serve` with the same directory: docs/simco-failover.md.";

/// Keep an up-to-date copy of another middlebox's rules on this host.
///
/// The settings of that middlebox must have a table `[standby]`. This host only records the rules and does not
/// enforce them.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Standby {
    /// The middlebox to copy: HOST:PORT of `[standby]` in its settings
    #[arg(long, value_name = "SERVER")]
    server: Server,
    /// Authorities that certify the middlebox (PEM)
    #[arg(long, value_name = "FILE")]
    tls: PathBuf,
    /// Certificate of this host (PEM), with the name that the middlebox expects
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// Private key of the certificate, accessible only to its owner
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Directory in which rules are recorded
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
}

impl Standby {
    /// Copies rules until the process is terminated; returns only on failure.
    pub fn run(&self) -> Result<(), Failure> {
        let tls = Tls::read(&self.tls, Some((&self.certificate, &self.key))).map_err(Failure::failed)?;
        let server = Server { tls: Some(tls), ..self.server.clone() };
        let log = Log::new(Level::Info, Box::new(std::io::stderr()));
        Err(Failure::failed(follow(&server, &self.state, log)))
    }
}
