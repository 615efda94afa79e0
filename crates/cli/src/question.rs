//! The flags that describe one comparison; each stands for a key of an experiment file.

use clap::Args;
use hol_lab::{Experiment, InputError, Source};
use hol_stack::TransportSpec;

use crate::number::{positive, whole};

/// What is sent over what.
#[derive(Debug, Args)]
pub struct Question {
    /// What the application does
    #[arg(long, value_name = "KIND", default_value = "simco")]
    #[arg(value_parser = ["simco", "echo", "pingpong", "oneway", "bulk"])]
    workload: String,
    /// Messages a second [default: 100/s]
    #[arg(long, value_name = "100/s", allow_hyphen_values = true)]
    rate: Option<String>,
    /// How messages are spaced [default: periodic]
    #[arg(long, value_parser = ["periodic", "poisson"])]
    arrivals: Option<String>,
    /// Octets of a message, not for simco [default: 128B]
    #[arg(long, value_name = "128B", allow_hyphen_values = true)]
    size: Option<String>,
    /// Messages over all repetitions together
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = whole, allow_negative_numbers = true)]
    count: u64,
    /// One-way delay, in both directions [default: 10ms]
    #[arg(long, value_name = "10ms", allow_hyphen_values = true)]
    delay: Option<String>,
    /// Packet loss in each direction [default: 0%]
    #[arg(long, value_name = "1%", allow_hyphen_values = true)]
    loss: Option<String>,
    /// Bit rate in each direction [default: 100Mbit]
    #[arg(long, value_name = "100Mbit", allow_hyphen_values = true)]
    bandwidth: Option<String>,
    /// What the queue before the link holds [default: 1000p]
    #[arg(long, value_name = "1000p", allow_hyphen_values = true)]
    queue: Option<String>,
    /// Independent repetitions, each with its own losses; all transports meet the same ones
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = positive, allow_negative_numbers = true)]
    repetitions: usize,
    /// Where all randomness comes from
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    pub seed: u64,
    /// Where it runs: model (our endpoints, simulated links), kernel (Linux in a virtual machine), or kernel:6.1
    #[arg(long, default_value = "model")]
    pub world: String,
    /// Any other key of an experiment file, as in network.jitter=2ms
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl Question {
    /// The experiment that these flags describe.
    pub fn experiment(&self, transports: &[String]) -> Result<Experiment, InputError> {
        for (transport, number) in transports.iter().zip(1..) {
            let place = format!("transport {number}");
            transport.parse::<TransportSpec>().map_err(|e| wrong(&place, e.to_string()))?;
        }
        let mut source = Source::new("command line", "");
        source.set("TRANSPORT", "transports", &format!("{transports:?}"))?;
        let numbers = [
            ("--count", "messages", self.count),
            ("--repetitions", "repetitions", self.repetitions as u64),
            ("--seed", "seed", self.seed),
        ];
        for (flag, key, value) in numbers {
            source.set(&format!("{flag} {value}"), key, &value.to_string())?;
        }
        let texts = [
            ("--workload", "workload.kind", Some(&self.workload)),
            ("--rate", "workload.rate", self.rate.as_ref()),
            ("--arrivals", "workload.arrivals", self.arrivals.as_ref()),
            ("--size", "workload.size", self.size.as_ref()),
            ("--delay", "network.delay", self.delay.as_ref()),
            ("--loss", "network.loss", self.loss.as_ref()),
            ("--bandwidth", "network.rate", self.bandwidth.as_ref()),
            ("--queue", "network.queue", self.queue.as_ref()),
            ("--world", "world", Some(&self.world)),
        ];
        for (flag, key, value) in texts {
            if let Some(value) = value {
                source.set(&format!("{flag} {value}"), key, &format!("{value:?}"))?;
            }
        }
        set_all(&mut source, &self.settings)?;
        Experiment::parse("compare", &source)
    }

    /// The `--set` options.
    pub fn settings(&self) -> &[String] {
        &self.settings
    }
}

/// Applies `--set key=value` options.
pub fn set_all(source: &mut Source, settings: &[String]) -> Result<(), InputError> {
    for setting in settings {
        let origin = format!("--set {setting}");
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| wrong(&origin, "write key=value, as in --set network.loss=1%".to_owned()))?;
        source.set(&origin, key.trim(), value.trim())?;
    }
    Ok(())
}

fn wrong(place: &str, problem: String) -> InputError {
    InputError { place: place.to_owned(), problem }
}
