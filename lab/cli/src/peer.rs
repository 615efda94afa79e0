//! The other hosts of a live world, and the shared secret.

use std::path::PathBuf;

use clap::Args;
use hol_lab::InputError;
use hol_live::{Secret, VIA_SEPARATOR};

use crate::failure::Failure;

/// The other hosts of a live world.
#[derive(Debug, Args)]
pub struct PeerArgs {
    /// Run between this host and another one on which `hol live serve` runs; with several hosts, name the node of each,
    /// as in server=HOST
    #[arg(long, value_name = "[NODE=]HOST[:PORT]")]
    peer: Vec<String>,
    /// Host that emulates the path (--delay, --loss and others), on which `hol live route` runs
    #[arg(long, value_name = "HOST[:PORT]", requires = "peer")]
    router: Option<String>,
    /// File with the secret that both hosts share [default: $HOL_LIVE_SECRET]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl PeerArgs {
    /// Makes the secret in the file of --secret-file available to live runs. Must be called before the first run.
    pub fn set_secret(&self) -> Result<(), Failure> {
        let Some(file) = &self.secret_file else { return Ok(()) };
        Secret::read(file)
            .map_err(|problem| Failure::Usage(format!("--secret-file {problem}")))?
            .set_for_process();
        Ok(())
    }

    /// Returns the name of the world, including the other hosts; `None` if neither `world` nor a peer is given.
    pub fn world(&self, world: Option<&String>) -> Result<Option<String>, InputError> {
        let peers = self.peer.join(",");
        match world.map(String::as_str) {
            _ if !self.is_given() => Ok(world.cloned()),
            None | Some("live") => {
                let via =
                    self.router.as_ref().map_or(String::new(), |router| format!("{VIA_SEPARATOR}{router}"));
                Ok(Some(format!("live:{peers}{via}")))
            }
            Some(other) => Err(InputError {
                place: format!("--peer {peers}"),
                problem: format!("--peer needs --world live, but --world is {other:?}; omit one of the two"),
            }),
        }
    }

    /// Returns whether the user named another host.
    pub fn is_given(&self) -> bool {
        !self.peer.is_empty()
    }
}
