//! Checks that the memory of a run depends on the messages in progress, not on their total number. The
//! allocator counts the whole process, so this test has its own.

use hol_base::Seed;
use hol_measure::Summarizer;
use hol_model::run_with_observer;
use hol_scenario::Scenario;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Returns the peak memory of a run in megabytes.
fn megabytes(transport: &str, workload: &str, network: &str, messages: u64) -> f32 {
    let scenario = Scenario::with_single_flow(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(workload).unwrap(),
        messages,
    );
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let mut summarizer = Summarizer::default();
    run_with_observer(&scenario, Seed(1), None, &mut summarizer).unwrap();
    assert_eq!(summarizer.finish().offered, messages);
    MEMORY.peak_usage_as_mb() - before
}

/// A single test, because it counts the allocations of the whole process. The figures are in docs/measured.md.
#[test]
fn memory_does_not_grow_with_messages() {
    for (transport, workload, network, messages, max) in [
        ("tcp", "kind = 'simco'", "loss = '1%'", 100_000, 4.0),
        ("sctp:streams=8", "kind = 'simco'", "loss = '1%'", 100_000, 4.0),
        // The send buffer grows to 4 MiB, and so does the window.
        ("tcp", "kind = 'bulk'", "", 75_000, 5.0),
        // A run waits for silently lost messages until a quarter of a million later ones have arrived.
        ("udp", "kind = 'echo'", "loss = '0.001%'", 400_000, 100.0),
        // Most of the schedule never comes due, because a message was too late.
        ("tcp", "kind = 'oneway'\nrate = '2000/s'\nlate_limit = '1s'", "rate = '100kbit'", 250_000, 10.0),
    ] {
        let took = megabytes(transport, workload, network, messages);
        println!("{messages} messages, {transport}, {workload:?}, {network:?}: {took:.2} MB");
        assert!(took < max, "{took} MB, {transport}, {workload}");
    }
}
