//! Disruptions of a path during a run: its link goes down, or the client moves away from it.

use hol_base::Duration;

use crate::event::EventSpec;
use crate::handover::HandoverSpec;
use crate::loss::LossSpec;
use crate::spec::NetworkSpec;

/// Maximum number of disruptions. Further ones are ignored, for example if a link goes up and down all the time.
const MAX_DISRUPTIONS: usize = 64;

/// An event that may interrupt the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    /// Time since the start of the run.
    pub at: Duration,
    /// A description of the event without a full stop, such as `path 1 goes down`.
    pub description: String,
}

impl NetworkSpec {
    /// Returns the disruptions of a run in order of time: a link goes down or loses every packet, or the client
    /// moves.
    pub fn disruptions(&self) -> Vec<Disruption> {
        let failures = self.events.iter().filter(|event| event.is_failure()).map(Disruption::from_event);
        let moves = self.handover.iter().flat_map(HandoverSpec::disruptions);
        let mut all: Vec<Disruption> = failures.chain(moves).collect();
        all.sort_by_key(|disruption| disruption.at);
        all.dedup_by(|next, first| {
            let is_same = next.at == first.at;
            if is_same && !first.description.contains(&next.description) {
                first.description += &format!(" and {}", next.description);
            }
            is_same
        });
        all.truncate(MAX_DISRUPTIONS);
        all
    }

    /// Returns whether a run may have a disruption, at whatever position of its trace it starts.
    pub fn is_disrupted(&self) -> bool {
        !self.disruptions().is_empty() || self.changes_of_trace().any(EventSpec::is_failure)
    }
}

impl EventSpec {
    fn is_failure(&self) -> bool {
        self.down == Some(true) || self.loss.as_ref().is_some_and(LossSpec::loses_everything)
    }
}

impl Disruption {
    fn from_event(event: &EventSpec) -> Self {
        let which = match (event.path, &event.link) {
            (Some(path), _) => format!("path {path}"),
            (None, Some(link)) => format!("link {link}"),
            (None, None) => "the network".to_owned(),
        };
        let how = if event.down == Some(true) { "goes down" } else { "loses every packet" };
        Self { at: event.at, description: format!("{which} {how}") }
    }
}

impl HandoverSpec {
    /// Returns the time at which the client leaves the first path. If the client attaches to the second path before
    /// that, also returns that time, first.
    fn disruptions(&self) -> Vec<Disruption> {
        let leaves = Disruption { at: self.leaves_at(), description: "the client leaves path 1".to_owned() };
        let attached =
            Disruption { at: self.attached_at(), description: "the client attaches to path 2".to_owned() };
        // A client that attaches after it has left only ends the disruption that began when it left.
        if attached.at < leaves.at { vec![attached, leaves] } else { vec![leaves] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disruptions(text: &str) -> Vec<(u64, String)> {
        let spec: NetworkSpec = toml::from_str(text).unwrap();
        spec.disruptions().into_iter().map(|one| (one.at.as_millis(), one.description)).collect()
    }

    #[test]
    fn link_that_goes_down_or_loses_everything_is_a_disruption() {
        let events = "paths = [{}, {}]
            [[events]]\nat = '9s'\nloss = '100%'
            [[events]]\nat = '5s'\npath = 1\ndown = true
            [[events]]\nat = '7s'\npath = 1\ndown = false
            [[events]]\nat = '8s'\nrate = '1Mbit'
            [[events]]\nat = '5s'\npath = 2\ndown = true";
        let expected =
            [(5000, "path 1 goes down and path 2 goes down"), (9000, "the network loses every packet")];
        assert_eq!(disruptions(events), expected.map(|(at, what)| (at, what.to_owned())));
        assert_eq!(disruptions(""), []);
    }

    #[test]
    fn client_that_moves_is_a_disruption() {
        let handover =
            |more: &str| disruptions(&format!("paths = [{{}}, {{}}]\n[handover]\nat = '1s'\n{more}"));
        let seen = handover("overlap = 5");
        assert_eq!(seen.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1000, 1500]);
        assert_eq!(handover("overlap = 5\nattach = '2s'"), [(1500, "the client leaves path 1".to_owned())]);
    }
}
