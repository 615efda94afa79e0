//! Schedules the beginnings and ends of loss bursts that are defined in time.

use hol_base::{Duration, Rng, Seed, Time};

use crate::identifier::LinkId;
use crate::link_change::LinkChange;
use crate::loss::{LossSpec, TimedBursts};
use crate::topology::{ScheduledChange, Topology};

/// Bursts are scheduled before the run starts, for this time, or for the time in which `MAX_BURSTS` occur on average,
/// if that is shorter.
const SCHEDULED_TIME: Duration = Duration::from_secs(24 * 3600);
const MAX_BURSTS: u64 = 36_000;

/// The minimum mean time from one burst to the next, at which `MAX_BURSTS` bursts cover an hour.
const SHORTEST_CYCLE: Duration = Duration::from_millis(100);

impl TimedBursts {
    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        (self.good_for + self.bad_for < SHORTEST_CYCLE)
            .then_some("the sum of `good_for` and `bad_for` is below 100ms; raise one, or use good_to_bad and bad_to_good")
    }

    /// Returns the starts and ends of the loss bursts of a link, in order of time.
    fn changes(self, link: LinkId, mut rng: Rng) -> Vec<ScheduledChange> {
        let last = SCHEDULED_TIME.min((self.good_for + self.bad_for).saturating_mul(MAX_BURSTS));
        let (mut changes, mut at, mut is_bad) = (Vec::new(), Time::ZERO, false);
        loop {
            let mean = if is_bad { self.bad_for } else { self.good_for };
            at += Duration::from_secs_f64(rng.exponential(mean.as_secs_f64()));
            if !is_bad && at > Time::ZERO + last {
                return changes;
            }
            is_bad = !is_bad;
            let loss = LossSpec::Independent(if is_bad { self.loss_bad } else { self.loss_good });
            changes.push(ScheduledChange { at, link, change: LinkChange::Loss(loss) });
        }
    }
}

impl Topology {
    /// Returns the changes of a run with `seed`, by time. They are the changes of the experiment, and the
    /// starts and ends of bursts.
    pub fn changes_of_run(&self, seed: Seed) -> Vec<ScheduledChange> {
        let mut changes = self.link_changes.clone();
        for (id, link) in (0..).zip(&self.links) {
            if let LossSpec::TimedBursts(bursts) = link.settings.loss {
                changes.extend(bursts.changes(LinkId(id), seed.derive(&link.name).derive("bursts").rng()));
            }
        }
        changes.sort_by_key(|change| change.at);
        changes
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Ratio;

    use super::*;

    fn topology(text: &str) -> Result<Topology, crate::NetworkError> {
        Topology::new(&toml::from_str(text).unwrap())
    }

    #[test]
    fn bursts_have_their_mean_durations_and_differ_between_links() {
        let topology =
            topology("loss = { good_for = '900ms', bad_for = '100ms', loss_bad = '40%' }").unwrap();
        let changes = topology.changes_of_run(Seed(3));
        let of =
            |link: u16| changes.iter().filter(move |change| change.link == LinkId(link)).collect::<Vec<_>>();
        let up = of(0);
        assert!(up.iter().zip(of(1)).all(|(up, down)| up.at != down.at));
        let is_bad = |change: &ScheduledChange| {
            change.change == LinkChange::Loss(LossSpec::Independent("40%".parse().unwrap()))
        };
        let is_good =
            |change: &ScheduledChange| change.change == LinkChange::Loss(LossSpec::Independent(Ratio::ZERO));
        assert!(up.chunks(2).all(|burst| is_bad(burst[0]) && is_good(burst[1])));
        // 36,000 bursts: the standard error of both means is 0.5 %.
        let bad: f64 =
            up.chunks(2).map(|burst| burst[1].at.saturating_since(burst[0].at).as_secs_f64()).sum();
        let count = up.len() as f64 / 2.0;
        assert!((bad / count / 0.1 - 1.0).abs() < 0.02, "{}", bad / count);
        assert!((count / 36_000.0 - 1.0).abs() < 0.02, "{count}");
        let last = up.last().expect("there are some").at;
        assert!((35_990.0..36_010.0).contains(&last.since(Time::ZERO).as_secs_f64()), "{last}");
        assert_eq!(format!("{changes:?}"), format!("{:?}", topology.changes_of_run(Seed(3))));
        assert_ne!(format!("{changes:?}"), format!("{:?}", topology.changes_of_run(Seed(4))));
    }

    #[test]
    fn too_frequent_bursts_and_conflicting_loss_events_are_refused() {
        for (text, cure) in [
            ("loss = { good_for = '50ms', bad_for = '40ms' }", "use good_to_bad"),
            ("loss = { good_for = '0s', bad_for = '0s' }", "raise one"),
            (
                "up.loss = { good_for = '5s', bad_for = '1s' }\nevents = [{ at = '1s', loss = '1%' }]",
                "remove the event or these keys",
            ),
            (
                "events = [{ at = '1s', loss = { good_for = '5s', bad_for = '1s' } }]",
                "move this loss to the link",
            ),
        ] {
            let error = topology(text).expect_err(text).to_string();
            assert!(error.contains(cure), "{text}: {error}");
        }
        topology("up.loss = { good_for = '5s', bad_for = '1s' }\nevents = [{ at = '1s', direction = 'down', loss = '1%' }]").unwrap();
    }
}
