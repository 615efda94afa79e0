//! The cases that every world keeps, in the kernel world, by either engine: where they are required, every other one in User-Mode Linux and every
//! seventh in QEMU (all with `HOL_REQUIRE_UML=all` and `HOL_REQUIRE_KERNEL=all`, which takes minutes), else a sample.
//! Without the engine or a kernel for it a test says so and passes.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hol_kernel::{Image, Kernel};
use hol_scenario::conformance::{Case, Verdict, cases};

/// Of so many cases one is in the sample.
const SAMPLE: usize = 12;

/// The kernel that `wanted` names as a world, if there is one here.
fn kernel(wanted: Option<&str>) -> Option<Kernel> {
    Some(Kernel::new(Image::find(wanted).ok()?, Some(PathBuf::from(env!("CARGO_BIN_EXE_hol")))))
}

/// `kernel` keeps the cases, one in `some` of them where it is required. If there is none then, that is a failure, which says what it `lacks`.
fn check(kernel: Option<Kernel>, required: &str, some: usize, lacks: &str) {
    let wanted = std::env::var(required).ok();
    let is_required = wanted.is_some();
    assert!(kernel.is_some() || !is_required, "{lacks}");
    let Some(kernel) = kernel else { return eprintln!("SKIPPED: {lacks}") };
    let every = match wanted.as_deref() {
        Some("all") => 1,
        Some(_) => some,
        None => SAMPLE,
    };
    let cases: Vec<Case> = cases().into_iter().step_by(every).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match case.verdict(&kernel) {
                        Verdict::Kept => {}
                        // This world has every workload and every transport.
                        Verdict::Refused(what) | Verdict::Differs(what) => {
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
fn the_kernel_keeps_every_case_that_the_model_keeps() {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output().is_ok_and(|o| o.status.success());
    let lacks = "there is no QEMU, or no kernel (`hol kernel fetch`)";
    check(kernel(None).filter(|_| qemu), "HOL_REQUIRE_KERNEL", 7, lacks);
}

#[test]
fn user_mode_linux_keeps_every_case_that_the_model_keeps() {
    let lacks = "there is no kernel for User-Mode Linux (`hol kernel build`)";
    check(kernel(Some("uml")), "HOL_REQUIRE_UML", 2, lacks);
}
