//! The cases that every world keeps, in the kernel world: all of them where that is required, else a sample. Without QEMU or a
//! kernel the test says so and passes.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hol_kernel::{Image, Kernel};
use hol_scenario::conformance::{Case, Verdict, cases};

/// Of so many cases one is in the sample.
const SAMPLE: usize = 12;

/// The kernel world, if there is one here.
fn kernel(is_required: bool) -> Option<Kernel> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output().is_ok_and(|o| o.status.success());
    let image = Image::find(None).ok().filter(|_| qemu);
    assert!(image.is_some() || !is_required, "no QEMU, or no `hol kernel fetch`");
    if image.is_none() {
        eprintln!("SKIPPED, for there is no QEMU, or no kernel (`hol kernel fetch`)");
    }
    Some(Kernel::new(image?, Some(PathBuf::from(env!("CARGO_BIN_EXE_hol")))))
}

#[test]
fn the_kernel_keeps_every_case_that_the_model_keeps() {
    let is_required = std::env::var_os("HOL_REQUIRE_KERNEL").is_some();
    let Some(kernel) = kernel(is_required) else { return };
    let every = if is_required { 1 } else { SAMPLE };
    let cases: Vec<Case> = cases().into_iter().step_by(every).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // This world has every transport and workload, so it refuses nothing.
                    if let Verdict::Refused(what) | Verdict::Differs(what) = case.verdict(&kernel) {
                        wrong.lock().unwrap().push(format!("{case}: {what}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() * every > 300, "{}", cases.len());
}
