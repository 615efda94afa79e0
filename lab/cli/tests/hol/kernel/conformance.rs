//! The conformance cases of all worlds, in both engines: a sample of them, and all of them nightly.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hol_kernel::Kernel;
use hol_scenario::conformance::{CaseResult, ConformanceCase, cases};

use super::engine::{qemu, qemu_of, user_mode};

/// Runs one in `every` cases in `kernel`.
fn check(kernel: &Kernel, every: usize) {
    let cases: Vec<ConformanceCase> = cases().into_iter().step_by(every).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match case.verdict(kernel) {
                        CaseResult::Passed => {}
                        // The kernel world supports every workload and every transport.
                        CaseResult::Refused(what) | CaseResult::Differs(what) => {
                            wrong.lock().unwrap().push(format!("{case}: {what}"));
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() * every > 300, "{}", cases.len());
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn qemu_passes_a_few_conformance_cases() {
    check(&qemu(), 120);
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn user_mode_linux_passes_a_quarter_of_the_conformance_cases() {
    check(&user_mode(), 4);
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch 7.3)"]
fn linux_7_3_passes_a_few_conformance_cases() {
    check(&qemu_of("7.3"), 120);
}

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn linux_7_3_passes_every_conformance_case() {
        check(&qemu_of("7.3"), 1);
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn qemu_passes_every_conformance_case() {
        check(&qemu(), 1);
    }

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn user_mode_linux_passes_every_conformance_case() {
        check(&user_mode(), 1);
    }
}
