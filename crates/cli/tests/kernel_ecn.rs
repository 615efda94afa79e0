//! Marks instead of losses (RFC 3168), in the model and in Linux: in User-Mode Linux, for that is quickest; without it these tests
//! say so and pass, unless `HOL_REQUIRE_UML` is set.

mod hol;
#[path = "hol/kernel.rs"]
mod kernel;

use std::path::Path;

use hol::ok;
use kernel::has_user_mode;

/// How many packets came to the server with a mark, and how long the run took, in the model and in the kernel.
fn bulk(transport: &str, rate: &str, discipline: &str) -> [(usize, f64); 2] {
    ["model", "kernel:uml"].map(|world| {
        let discipline = format!("network.discipline={discipline}");
        let load = ["--workload=bulk", "--size=1400B", "--count=6000", "--repetitions=1", "--loss=0%"];
        let path = ["--bandwidth", rate, "--delay=5ms", "--set", &discipline];
        let text = ok(Path::new("."), &[&["trace", transport, "--world", world][..], &load, &path].concat());
        let passes = |interface, what| {
            let lines = text.lines().filter(move |line| {
                let mut words = line.split_whitespace().skip(1);
                words.next() == Some(interface) && words.next() == Some(what)
            });
            lines.collect::<Vec<_>>()
        };
        let marked = passes("server:1", "received").into_iter().filter(|line| line.ends_with("(CE)"));
        let last = passes("client:1", "sent").pop();
        let end = last.and_then(|line| line.split_whitespace().next()?.trim_end_matches('s').parse().ok());
        (marked.count(), end.expect("the client sends"))
    })
}

/// The same marks within 10 %, or one where there are few, and the same time within 2 %.
fn agree(transport: &str, rate: &str, discipline: &str) {
    let [(model, model_end), (kernel, kernel_end)] = bulk(transport, rate, discipline);
    let case = format!("{transport} at {rate} before {discipline}");
    assert!(kernel > 0, "{case}: nothing is marked");
    assert!(10 * model.abs_diff(kernel) <= kernel.max(10), "{case}: {model} marks, and {kernel} in Linux");
    assert!(
        (model_end / kernel_end - 1.0).abs() < 0.02,
        "{case}: {model_end} s, and {kernel_end} s in Linux"
    );
}

/// RFC 3168 section 6.1, RFC 8289 and 8290; RFC 4960 appendix A.
#[test]
fn as_many_packets_are_marked_as_in_linux() {
    if !has_user_mode("as_many_packets_are_marked_as_in_linux") {
        return;
    }
    for rate in ["2Mbit", "10Mbit"] {
        agree("tcp:ecn=true", rate, "{ codel = { ecn = true } }");
        agree("tcp:ecn=true,cc=reno", rate, "fq_codel");
        agree("sctp", rate, "{ codel = { ecn = true } }");
    }
}

/// RFC 8257: a threshold of half the target marks often, and takes little each time.
#[test]
fn dctcp_keeps_a_queue_short_as_in_linux() {
    if !has_user_mode("dctcp_keeps_a_queue_short_as_in_linux") {
        return;
    }
    for rate in ["10Mbit", "50Mbit"] {
        agree("tcp:cc=dctcp", rate, "{ codel = { ce_threshold = '2ms' } }");
    }
}

/// Who does not speak ECN is dropped by the same queue; so is who was told not to.
#[test]
fn without_ecn_nothing_is_marked() {
    if !has_user_mode("without_ecn_nothing_is_marked") {
        return;
    }
    let runs = bulk("tcp", "10Mbit", "fq_codel");
    assert_eq!(runs.map(|(marked, _)| marked), [0, 0]);
}
