//! Runs the conformance cases of all worlds in the model world.

use hol_model::Model;
use hol_scenario::conformance::{CaseResult, cases};

#[test]
fn model_passes_or_refuses_every_conformance_case() {
    let mut kept = 0;
    let mut wrong = Vec::new();
    for case in cases() {
        match case.verdict(&Model) {
            CaseResult::Passed => kept += 1,
            CaseResult::Refused(why) => {
                let of = |absent| case.name.starts_with(absent) && why.contains(absent);
                assert!(of("mptcp") || of("unix"), "{case}: {why}");
            }
            CaseResult::Differs(what) => wrong.push(format!("{case}: {what}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), kept + wrong.len(), wrong.join("\n"));
    assert!(kept > 300, "{kept}");
}
