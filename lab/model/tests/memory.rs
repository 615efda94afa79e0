//! The memory of a run is bounded by what is under way, not by how many messages there are. The allocator counts the whole process', so this
//! test has one to itself.

use hol_base::Seed;
use hol_measure::Summarizer;
use hol_model::follow;
use hol_scenario::Scenario;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Megabytes that a run takes at its peak.
fn megabytes(transport: &str, workload: &str, network: &str, messages: u64) -> f32 {
    let scenario = Scenario::alone(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(workload).unwrap(),
        messages,
    );
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let mut summarizer = Summarizer::default();
    follow(&scenario, Seed(1), None, &mut summarizer).unwrap();
    assert_eq!(summarizer.finish().offered, messages);
    MEMORY.peak_usage_as_mb() - before
}

/// One test alone, for it counts the allocations of the whole process. docs/scaling.md has the figures.
#[test]
fn memory_does_not_grow_with_messages() {
    for (transport, workload, network, messages, most) in [
        ("tcp", "kind = 'simco'", "loss = '1%'", 400_000, 4.0),
        ("sctp:streams=8", "kind = 'simco'", "loss = '1%'", 200_000, 4.0),
        // The send buffer grows to 4 MiB, and the window as far.
        ("tcp", "kind = 'bulk'", "", 150_000, 5.0),
        // What is lost without a word is waited for until a quarter of a million others have come.
        ("udp", "kind = 'echo'", "loss = '0.001%'", 400_000, 100.0),
        // Most of the schedule never comes due: a message was too late.
        ("tcp", "kind = 'oneway'\nrate = '2000/s'\nlate_limit = '1s'", "rate = '100kbit'", 500_000, 10.0),
    ] {
        let took = megabytes(transport, workload, network, messages);
        println!("{messages} messages, {transport}, {workload:?}, {network:?}: {took:.2} MB");
        assert!(took < most, "{took} MB, {transport}, {workload}");
    }
}
