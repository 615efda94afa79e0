//! Decides which experiments start, wait, or are rejected, and why.
//!
//! The queue is ordered by priority, then by age. No experiment overtakes another one, because small experiments
//! could otherwise keep a large one waiting forever.

use std::cmp::Reverse;

/// Up to this number, a reason for waiting says how many experiments are ahead. With larger numbers, each start of an
/// experiment would change the reasons of a long queue.
const MAX_COUNTED: u32 = 9;

/// An experiment that waits in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedExperiment {
    /// Number of the experiment.
    pub id: i64,
    /// Priority; experiments with a higher priority come first.
    pub priority: i64,
    /// Time of the submission, in seconds of any clock; older experiments come first.
    pub submitted_at: i64,
    /// Whether the experiment waits for cores; if not, it starts now or is rejected.
    pub batch: bool,
    /// Number of cores that the experiment needs.
    pub cores: u32,
    /// An obstacle other than missing cores, such as an earlier process that has not ended.
    pub obstacle: Option<String>,
}

/// What happens to a queued experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueDecision {
    /// The experiment starts, and gets its cores.
    Start,
    /// The experiment waits, for this reason.
    Wait(String),
    /// The experiment is rejected, for this reason, which includes a remedy.
    Reject(String),
}

/// Decides about all queued experiments on a machine with `cores` cores, `taken` of which are in use.
pub fn decide(mut waiting: Vec<QueuedExperiment>, cores: u32, taken: u32) -> Vec<(i64, QueueDecision)> {
    waiting.sort_by_key(|one| (Reverse(one.priority), one.submitted_at, one.id));
    let mut free = cores.saturating_sub(taken);
    let mut ahead = 0_u32;
    let mut verdicts = Vec::with_capacity(waiting.len());
    for one in waiting {
        let verdict = one.verdict(cores, free, ahead);
        match verdict {
            QueueDecision::Start => free -= one.cores,
            // An experiment with another obstacle does not block others.
            QueueDecision::Wait(_) if one.obstacle.is_none() => ahead += 1,
            QueueDecision::Wait(_) | QueueDecision::Reject(_) => (),
        }
        verdicts.push((one.id, verdict));
    }
    verdicts
}

impl QueuedExperiment {
    fn verdict(&self, cores: u32, free: u32, ahead: u32) -> QueueDecision {
        let wanted = self.cores;
        if wanted > cores {
            return QueueDecision::Reject(format!(
                "the experiment requests {}, and this machine has {cores}; request fewer",
                count_of_cores(wanted)
            ));
        }
        if let Some(obstacle) = &self.obstacle {
            return QueueDecision::Wait(obstacle.clone());
        }
        let why = match (ahead, wanted > free) {
            (0, false) => return QueueDecision::Start,
            (0, true) => {
                format!(
                    "the experiment requests {}, but only {free} of {cores} are free",
                    count_of_cores(wanted)
                )
            }
            (1, _) => "1 experiment is ahead in the queue".to_owned(),
            (2..=MAX_COUNTED, _) => format!("{ahead} experiments are ahead in the queue"),
            (_, _) => format!("more than {MAX_COUNTED} experiments are ahead in the queue"),
        };
        if self.batch {
            QueueDecision::Wait(why)
        } else {
            QueueDecision::Reject(format!(
                "{why}, and the experiment does not wait for cores (batch mode is off); swap it in later, or turn batch mode on"
            ))
        }
    }
}

fn count_of_cores(cores: u32) -> String {
    if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(id: i64, priority: i64, cores: u32) -> QueuedExperiment {
        QueuedExperiment { id, priority, submitted_at: id, batch: true, cores, obstacle: None }
    }

    fn starts(verdicts: &[(i64, QueueDecision)]) -> Vec<i64> {
        verdicts.iter().filter(|(_, v)| *v == QueueDecision::Start).map(|(id, _)| *id).collect()
    }

    #[test]
    fn priority_comes_before_age() {
        let waiting = vec![one(1, 0, 2), one(2, 5, 2), one(3, 5, 2)];
        assert_eq!(starts(&decide(waiting, 4, 0)), [2, 3]);
    }

    #[test]
    fn small_experiments_do_not_overtake_a_large_one() {
        let verdicts = decide(vec![one(1, 0, 4), one(2, 0, 1)], 4, 1);
        assert_eq!(starts(&verdicts), [0_i64; 0]);
        assert_eq!(
            verdicts[0].1,
            QueueDecision::Wait("the experiment requests 4 cores, but only 3 of 4 are free".to_owned())
        );
        assert_eq!(verdicts[1].1, QueueDecision::Wait("1 experiment is ahead in the queue".to_owned()));
    }

    #[test]
    fn reason_counts_at_most_nine_experiments_ahead() {
        let waiting: Vec<QueuedExperiment> = (1..=12).map(|id| one(id, 0, 2)).collect();
        let whys: Vec<QueueDecision> =
            decide(waiting, 2, 1).into_iter().map(|(_, verdict)| verdict).collect();
        assert_eq!(whys[9], QueueDecision::Wait("9 experiments are ahead in the queue".to_owned()));
        assert_eq!(
            whys[10],
            QueueDecision::Wait("more than 9 experiments are ahead in the queue".to_owned())
        );
        assert_eq!(whys[10], whys[11]);
    }

    #[test]
    fn experiment_that_needs_too_many_cores_is_rejected_and_blocks_none() {
        let verdicts = decide(vec![one(1, 9, 5), one(2, 0, 4)], 4, 0);
        assert!(matches!(&verdicts[0].1, QueueDecision::Reject(why) if why.contains("this machine has 4")));
        assert_eq!(starts(&verdicts), [2]);
    }

    #[test]
    fn experiment_without_batch_mode_starts_or_is_rejected() {
        let now = |cores| QueuedExperiment { batch: false, ..one(1, 0, cores) };
        assert_eq!(decide(vec![now(2)], 2, 0)[0].1, QueueDecision::Start);
        assert!(
            matches!(&decide(vec![now(2)], 2, 1)[0].1, QueueDecision::Reject(why) if why.contains("swap it in later"))
        );
    }

    #[test]
    fn obstacle_blocks_only_its_own_experiment() {
        let kept = QueuedExperiment { obstacle: Some("busy".to_owned()), ..one(1, 9, 1) };
        let verdicts = decide(vec![kept, one(2, 0, 1)], 1, 0);
        assert_eq!(verdicts, [(1, QueueDecision::Wait("busy".to_owned())), (2, QueueDecision::Start)]);
    }

    proptest! {
        /// Started experiments fit on the machine, and an experiment that requests no more cores than the machine has
        /// can start when all are free.
        #[test]
        fn started_experiments_fit_and_each_experiment_can_start(
            asks in prop::collection::vec((1_u32..6, -2_i64..3), 1..20), cores in 1_u32..6, taken in 0_u32..6,
        ) {
            let waiting: Vec<QueuedExperiment> = asks.iter().zip(1..).map(|((cores, p), id)| one(id, *p, *cores)).collect();
            let of = |id: i64| waiting[id as usize - 1].cores;
            let verdicts = decide(waiting.clone(), cores, taken);
            prop_assert_eq!(verdicts.len(), waiting.len());
            let given: u32 = starts(&verdicts).into_iter().map(of).sum();
            prop_assert!(given + taken <= cores.max(taken));
            let able = waiting.iter().filter(|one| one.cores <= cores).count();
            prop_assert_eq!(starts(&decide(waiting, cores, 0)).is_empty(), able == 0);
        }
    }
}
