//! The self-test of exact stepping: one job is run twice, undisturbed and disturbed, and both runs have to give the same result.

use hol_base::Seed;
use hol_scenario::Scenario;
use serde_json::{from_value, json};

use crate::KernelError;
use crate::job::Job;
use crate::mailbox::MailboxContent;

/// Number of messages in a self-test. The guest halts about a thousand times, and the host could interfere each
/// time.
const MESSAGES: u64 = 200;
const SEED: Seed = Seed(1);

/// Whether the host disturbs the guest on purpose, because random disturbances are too rare for a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostDisturbance {
    /// The host runs the machine as usual.
    None,
    /// The host pauses the machine's threads wherever this might have an effect.
    Forced,
}

/// Returns whether two runs of the same job differ; `run` performs the job. The runs are made one after the other,
/// because memory may suffice for only one.
pub(super) fn runs_differ(
    run: impl Fn(&[u8], HostDisturbance) -> Result<MailboxContent, KernelError>,
) -> Result<bool, KernelError> {
    let job = job();
    Ok(run(&job, HostDisturbance::None)? != run(&job, HostDisturbance::Forced)?)
}

/// Returns the job of the self-test: transactions over a lossy link with TCP, which every kernel has.
fn job() -> Vec<u8> {
    let scenario = Scenario::with_single_flow(
        from_value(json!({ "loss": "5%" })).expect("the network of the self-test is valid"),
        "tcp".parse().expect("the transport of the self-test is valid"),
        from_value(json!({ "kind": "simco" })).expect("the workload of the self-test is valid"),
        MESSAGES,
    );
    serde_json::to_vec(&Job { scenario, seed: SEED.0, capture: false, series_ns: None, shell: false })
        .expect("a job can be serialised")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_results_pass_and_different_results_do_not() {
        let answer = |octet| Ok(MailboxContent { records: vec![octet], ..MailboxContent::default() });
        assert!(!runs_differ(|_, _| answer(1)).unwrap());
        assert!(runs_differ(|_, host| answer(u8::from(host == HostDisturbance::Forced))).unwrap());
    }

    #[test]
    fn the_guest_can_parse_the_job() {
        let job: Job = serde_json::from_slice(&job()).unwrap();
        assert_eq!(job.scenario.messages, MESSAGES);
    }
}
