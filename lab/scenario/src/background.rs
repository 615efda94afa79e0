//! What competes with the workload that is measured.

use hol_base::{Duration, Seed};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::transport_text;

/// Traffic that is not what the run is about, though it is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// How its messages travel.
    #[serde(with = "transport_text")]
    pub transport: TransportSpec,
    /// What each of the applications does.
    pub workload: WorkloadSpec,
    /// How many messages each sends before it closes; `None`: it goes on until the measured workload has ended.
    pub messages: Option<u64>,
    /// How many there are.
    pub count: u16,
    /// Each starts at random up to this long after the workload's `start`: flows that start together stay in step
    /// (Floyd and Jacobson 1992, on phase effects), and every repetition would be the same.
    pub spread: Duration,
}

/// A flow of the background, with what is its own.
#[derive(Debug, Clone)]
pub struct BackgroundFlow<'s> {
    /// How its messages travel.
    pub transport: &'s TransportSpec,
    /// What the application does; its start is drawn.
    pub workload: WorkloadSpec,
    /// How many messages it sends before it closes, or [`ENDLESS`].
    pub messages: u64,
    /// Where its randomness comes from: no other flow's numbers depend on it.
    pub seed: Seed,
}

impl Background {
    pub(crate) fn flow(&self, seed: Seed) -> BackgroundFlow<'_> {
        let spread = self.spread + self.workload.spread;
        let workload = WorkloadSpec { spread, ..self.workload.clone() }.started(seed);
        let messages = self.messages.unwrap_or(ENDLESS);
        BackgroundFlow { transport: &self.transport, workload, messages, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both spreads count: that of the entry and that of its workload.
    #[test]
    fn each_flow_starts_at_a_time_of_its_own() {
        let workload = toml::from_str("kind = 'echo'\nstart = '5s'\nspread = '1s'").unwrap();
        let transport: TransportSpec = "tcp".parse().unwrap();
        let entry =
            Background { transport, workload, messages: None, count: 3, spread: Duration::from_secs(2) };
        let starts: Vec<Duration> = (0..200).map(|seed| entry.flow(Seed(seed)).workload.start).collect();
        let (least, most) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
        assert!(*least >= Duration::from_secs(5) && *least < Duration::from_millis(5100), "{least}");
        assert!(*most <= Duration::from_secs(8) && *most > Duration::from_millis(7900), "{most}");
    }
}
