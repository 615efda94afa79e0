//! `hol submit`: sends an experiment to the queue of a cluster or of a server.

mod cluster;
mod cluster_job;
mod executor;
mod hyperqueue;
mod kubernetes;
mod server;
mod slurm;

use clap::Args;

use crate::client::Credentials;
use crate::failure::Failure;
use crate::run::ExperimentArgs;
use cluster::ClusterOptions;
use executor::Executor;
use server::{ServerQueueOptions, Submission};

const AFTER_HELP: &str = "\
A cluster runs the experiment in parts, and a last job joins them as `hol merge` does, with the same result as on one machine.
Its nodes need access to this directory and to this program, as on a shared file system (Kubernetes: --volume, --image).
When repeated, the command runs only the missing parts.

  hol submit sweep.toml --to slurm --shards 40
  hol submit sweep.toml --to slurm --jobs 8 -- --partition=long --time=4:00:00
  hol submit sweep.toml --to hyperqueue --wait
  hol submit sweep.toml --to kubernetes --image registry.example.org/hol --volume results --dry-run
  hol submit sweep.toml --to https://lab.example.org --token TOKENFILE";

/// Send an experiment to the queue of a server or a cluster.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Submit {
    #[command(flatten)]
    experiment_args: ExperimentArgs,
    /// Destination: slurm, hyperqueue, kubernetes, or the address of a `hol serve`
    #[arg(long, value_name = "EXECUTOR", default_value = "http://127.0.0.1:4540")]
    to: Executor,
    /// Name of the experiment at its destination [default: the file's name without the extension]
    #[arg(long)]
    name: Option<String>,
    /// Wait until the experiment has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten, next_help_heading = "A cluster")]
    cluster: ClusterOptions,
    #[command(flatten, next_help_heading = "A server")]
    queue_options: ServerQueueOptions,
    #[command(flatten, next_help_heading = "A server")]
    credentials: Credentials,
}

impl Submit {
    /// Sends the experiment to the cluster or to the server.
    pub fn run(&self) -> Result<(), Failure> {
        self.experiment_args.set_secret()?;
        match &self.to {
            Executor::Server(url) => self.send(url),
            cluster => {
                let is_understood = self.queue_options == ServerQueueOptions::default()
                    && self.credentials == Credentials::default();
                self.reject_ignored_options(is_understood, "a server")?;
                self.cluster.submit(cluster, &self.experiment_args, self.name.as_deref(), self.wait)
            }
        }
    }

    fn send(&self, url: &str) -> Result<(), Failure> {
        self.reject_ignored_options(self.cluster == ClusterOptions::default(), "a cluster")?;
        let (file, text) = self.experiment_args.path_and_text()?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let submission = Submission {
            name: self.name.as_deref().unwrap_or(&stem),
            text: &text,
            is_script: file.extension().is_some_and(|ending| ending == "ns"),
        };
        self.queue_options.send(&self.credentials.server(url)?, &submission, self.wait)
    }

    /// Returns an error if the user gave options that the destination ignores. `is_understood`: no such option was
    /// given; `whose` names the destinations to which such options apply.
    fn reject_ignored_options(&self, is_understood: bool, whose: &str) -> Result<(), Failure> {
        if is_understood {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--to {}: the command has an option that applies only to {whose}; omit it (see `hol submit --help`)",
            self.to
        )))
    }
}
