//! The executor to which an experiment is submitted.

use std::fmt;
use std::str::FromStr;

/// The value of `--to`: what runs the experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executor {
    Slurm,
    HyperQueue,
    Kubernetes,
    /// The address of a `hol serve`.
    Server(String),
}

impl FromStr for Executor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "slurm" => Ok(Self::Slurm),
            "hyperqueue" => Ok(Self::HyperQueue),
            "kubernetes" => Ok(Self::Kubernetes),
            url if url.starts_with("http://") || url.starts_with("https://") => Ok(Self::Server(url.into())),
            _ => {
                Err("use slurm, hyperqueue, kubernetes, or an address such as https://lab.example.org".into())
            }
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slurm => "slurm",
            Self::HyperQueue => "hyperqueue",
            Self::Kubernetes => "kubernetes",
            Self::Server(url) => url,
        })
    }
}
