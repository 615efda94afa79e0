//! One job done twice at the same time, so that each machine is in the other's way: exact stepping gives one answer.

use std::thread;

use hol_base::Seed;
use hol_scenario::Scenario;
use serde_json::{from_value, json};

use crate::KernelError;
use crate::job::Job;
use crate::mailbox::Mail;

/// Enough that the guest halts some thousand times.
const MESSAGES: u64 = 200;
const SEED: Seed = Seed(1);

/// Whether two runs of one job by `run` differ.
pub(super) fn differs(run: impl Fn(&[u8]) -> Result<Mail, KernelError> + Sync) -> Result<bool, KernelError> {
    let job = job();
    let [first, second] = thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| run(&job)));
        runs.map(|run| run.join().expect("a run of the self-test does not panic"))
    });
    Ok(first? != second?)
}

/// A conversation over a line that loses; TCP, which every kernel has.
fn job() -> Vec<u8> {
    let scenario = Scenario {
        network: from_value(json!({ "loss": "5%" })).expect("a network"),
        hosts: Default::default(),
        transport: "tcp".parse().expect("a transport"),
        workload: from_value(json!({ "kind": "simco" })).expect("a workload"),
        messages: MESSAGES,
        background: Vec::new(),
    };
    serde_json::to_vec(&Job { scenario, seed: SEED.0, capture: false }).expect("a job is plain data")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    #[test]
    fn the_same_answer_twice_passes_and_two_answers_do_not() {
        let answer = |octet| Ok(Mail { records: vec![octet], ..Mail::default() });
        assert!(!differs(|_| answer(1)).unwrap());
        let count = AtomicU8::new(0);
        assert!(differs(|_| answer(count.fetch_add(1, Ordering::Relaxed))).unwrap());
    }

    #[test]
    fn its_job_is_one_that_the_guest_understands() {
        let job: Job = serde_json::from_slice(&job()).unwrap();
        assert_eq!(job.scenario.messages, MESSAGES);
    }
}
