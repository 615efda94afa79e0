//! The self-test of exact stepping: one job run twice, undisturbed and disturbed, has to give the same
//! result.

use hol_base::Seed;
use hol_scenario::Scenario;
use serde_json::{from_value, json};

use crate::KernelError;
use crate::job::Job;
use crate::mailbox::Mail;

/// Enough messages for a thousand halts of the guest, at each of which the host could interfere.
const MESSAGES: u64 = 200;
const SEED: Seed = Seed(1);

/// Whether the host is disturbed. Random disturbances alone are too rare for a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// Undisturbed.
    AsItIs,
    /// Disturbs the machine wherever that might have an effect.
    Disturbing,
}

/// Returns whether two runs of one job by `run` differ. They run one after the other, because there may be memory for one only.
pub(super) fn differs(run: impl Fn(&[u8], Host) -> Result<Mail, KernelError>) -> Result<bool, KernelError> {
    let job = job();
    Ok(run(&job, Host::AsItIs)? != run(&job, Host::Disturbing)?)
}

/// Returns a job with transactions over a lossy link and TCP, which every kernel has.
fn job() -> Vec<u8> {
    let scenario = Scenario::alone(
        from_value(json!({ "loss": "5%" })).expect("a network"),
        "tcp".parse().expect("a transport"),
        from_value(json!({ "kind": "simco" })).expect("a workload"),
        MESSAGES,
    );
    serde_json::to_vec(&Job { scenario, seed: SEED.0, capture: false, series_ns: None, shell: false })
        .expect("a job is plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_answer_twice_passes_and_two_answers_do_not() {
        let answer = |octet| Ok(Mail { records: vec![octet], ..Mail::default() });
        assert!(!differs(|_, _| answer(1)).unwrap());
        assert!(differs(|_, host| answer(u8::from(host == Host::Disturbing))).unwrap());
    }

    #[test]
    fn its_job_is_one_that_the_guest_understands() {
        let job: Job = serde_json::from_slice(&job()).unwrap();
        assert_eq!(job.scenario.messages, MESSAGES);
    }
}
