//! Background traffic: flows that compete with the measured workload.

use hol_base::{Duration, Seed};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::transport_text;

/// Traffic that competes with the measured flow. Its messages are recorded, but reports do not summarise them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// The transport of its messages.
    #[serde(with = "transport_text")]
    pub transport: TransportSpec,
    /// The workload of each of its flows.
    pub workload: WorkloadSpec,
    /// Messages that each flow sends before it closes; `None`: the flow sends until the measured workload has ended.
    pub messages: Option<u64>,
    /// The number of flows.
    pub count: u16,
    /// Each flow starts at a random time within this duration after the workload's `start`. Flows that start
    /// together would stay in phase (Floyd and Jacobson 1992, on phase effects), and every repetition would
    /// be the same.
    pub spread: Duration,
}

/// One flow of the background in one run.
#[derive(Debug, Clone)]
pub struct BackgroundFlow<'s> {
    /// The transport of its messages.
    pub transport: &'s TransportSpec,
    /// The workload of the flow, with the start that the seed of the run has drawn.
    pub workload: WorkloadSpec,
    /// Messages that the flow sends before it closes, or [`ENDLESS`].
    pub messages: u64,
    /// The seed of the flow's random numbers, so that no other flow's numbers depend on it.
    pub seed: Seed,
}

impl Background {
    /// Returns the flow with this index in a run with this seed.
    pub(crate) fn flow(&self, seed: Seed) -> BackgroundFlow<'_> {
        let spread = self.spread + self.workload.spread;
        let workload = WorkloadSpec { spread, ..self.workload.clone() }.with_drawn_start(seed);
        let messages = self.messages.unwrap_or(ENDLESS);
        BackgroundFlow { transport: &self.transport, workload, messages, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `spread` of the entry and that of its workload both have an effect.
    #[test]
    fn background_flows_start_at_different_times() {
        let workload = toml::from_str("kind = 'echo'\nstart = '5s'\nspread = '1s'").unwrap();
        let transport: TransportSpec = "tcp".parse().unwrap();
        let entry =
            Background { transport, workload, messages: None, count: 3, spread: Duration::from_secs(2) };
        let starts: Vec<Duration> = (0..200).map(|seed| entry.flow(Seed(seed)).workload.start).collect();
        let (min, max) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
        assert!(*min >= Duration::from_secs(5) && *min < Duration::from_millis(5100), "{min}");
        assert!(*max <= Duration::from_secs(8) && *max > Duration::from_millis(7900), "{max}");
    }
}
