//! Marks instead of losses (RFC 3168), in the model and in Linux.

use std::path::Path;

use crate::program::ok;

/// Returns how many packets arrive at the server with a mark, and when the last data arrives, in the model and in the kernel.
fn bulk(transport: &str, rate: &str, delay: &str, discipline: &str) -> [(usize, f64); 2] {
    ["model", "kernel:uml"].map(|world| {
        let discipline = format!("network.discipline={discipline}");
        let load = ["--workload=bulk", "--size=1400B", "--count=6000", "--repetitions=1", "--loss=0%"];
        let path = ["--bandwidth", rate, "--delay", delay, "--set", &discipline, "--at", "server"];
        let text = ok(Path::new("."), &[&["trace", transport, "--world", world][..], &load, &path].concat());
        let received = |line: &&str| line.split_whitespace().nth(2) == Some("received");
        let arrivals: Vec<&str> = text.lines().filter(received).collect();
        let marked = arrivals.iter().filter(|line| line.ends_with("(CE)")).count();
        let last = arrivals.iter().rfind(|line| line.contains("length 14"));
        let end = last.and_then(|line| line.split_whitespace().next()?.trim_end_matches('s').parse().ok());
        (marked, end.expect("data arrive"))
    })
}

/// Returns the difference of model and Linux, if the numbers of marks differ by more than 10 % (or one, if there are
/// few), or the times by more than 2 %.
fn apart(case: &str, runs: [(usize, f64); 2]) -> Option<String> {
    let [(model, model_end), (kernel, kernel_end)] = runs;
    let said = format!("{case}: marks and s in the model and in Linux {runs:?}");
    println!("{said}");
    let as_many = 10 * model.abs_diff(kernel) <= kernel.max(10);
    let as_fast = (model_end / kernel_end - 1.0).abs() < 0.02;
    (!as_many || !as_fast).then_some(said)
}

/// RFC 3168 section 6.1, RFC 8289 and 8290; RFC 4960 appendix A.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn as_many_packets_are_marked_as_in_linux() {
    for rate in ["2Mbit", "10Mbit"] {
        for (transport, discipline) in [
            ("tcp:ecn=true", "{ codel = { ecn = true } }"),
            ("tcp:ecn=true,cc=reno", "fq_codel"),
            ("sctp", "{ codel = { ecn = true } }"),
        ] {
            let (case, runs) = (format!("{transport} at {rate}"), bulk(transport, rate, "5ms", discipline));
            assert!(runs[1].0 > 0, "{case}: nothing is marked");
            assert_eq!(apart(&case, runs), None);
        }
    }
}

/// RFC 8257: a low threshold marks often (RFC 3168 marks 3 packets here at 50 Mbit/s), and each mark reduces the window
/// only slightly. The numbers of marks differ, because Linux acknowledges single segments while its receive window
/// grows, which spreads the bursts; the model's receiver does not.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn dctcp_behind_marks_loses_no_packets_as_in_linux() {
    for rate in ["10Mbit", "50Mbit"] {
        let runs = bulk("tcp:cc=dctcp", rate, "5ms", "{ codel = { ce_threshold = '2ms' } }");
        let [(model, model_end), (kernel, kernel_end)] = runs;
        assert!(model > 100 && kernel > 100, "{rate}: {model} marks, and {kernel} in Linux");
        assert!((model_end / kernel_end - 1.0).abs() < 0.02, "{rate}: {runs:?}");
    }
}

/// A flow without ECN loses packets in the same queue, and so does one whose ECN is switched off.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn flows_without_ecn_are_not_marked() {
    let runs = bulk("tcp", "10Mbit", "5ms", "fq_codel");
    assert_eq!(runs.map(|(marked, _)| marked), [0, 0]);
}

mod nightly {
    use super::*;

    /// Prints the figures of docs/paths.md: `cargo test -p headofline --test hol -- --ignored --nocapture
    /// ecn::nightly`. One point is known to differ.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn as_many_packets_are_marked_on_the_whole_grid() {
        let mut all = Vec::new();
        for transport in ["tcp:ecn=true", "tcp:ecn=true,cc=reno", "sctp"] {
            for rate in ["2Mbit", "10Mbit", "50Mbit"] {
                for delay in ["5ms", "25ms"] {
                    let runs = bulk(transport, rate, delay, "{ codel = { ecn = true } }");
                    all.extend(apart(&format!("{transport} at {rate}, {delay}"), runs));
                }
            }
        }
        assert!(all.iter().all(|said| said.starts_with("tcp:ecn=true at 10Mbit, 25ms")), "{all:#?}");
    }
}
