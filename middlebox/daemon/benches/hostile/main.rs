//! The effect of a malicious agent on another one: its round trips, counted from the due time, and the
//! daemon's memory and turns, during each attack. `cargo bench -p hol-daemon --bench hostile`; it fails beyond the
//! bounds below. Other load on the machine can spoil an attempt, so an attack has three; the output says which
//! one passed.
//!
//! The daemon is its own process with nftables in its own namespace. Both agents authenticate, and the policy
//! has the default quotas.

mod attacks;
#[path = "../../tests/certificates/mod.rs"]
mod certificates;
#[path = "../serve/network.rs"]
mod network;
mod peer;
mod server;
mod victim;

use attacks::Attack;
use hol_base::Duration;
use server::Server;
use victim::Victim;

/// Maximum of the 99th percentile of another agent's response times during an attack, without the time for which the
/// daemon waits for a processor.
const MAX_P99: Duration = Duration::from_millis(50);
/// Maximum memory that the daemon may use, in octets.
const MAX_MEMORY: u64 = 256 << 20;
/// Maximum work of a turn of the daemon's event loop, in seconds; one of the bounds of its histogram.
const MAX_WORK: &str = "0.01";
/// Number of attempts per attack, because other load on the machine may also cause delays.
const ATTEMPTS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == server::ROLE) {
        return server::run(&arguments);
    }
    // `--test` only checks function, not speed.
    let is_test = arguments.iter().any(|argument| argument == "--test");
    if let Err(error) = network::enter_new_namespace() {
        return println!("skipped: no network namespace: {error}");
    }
    let wanted = |attack: &&Attack| {
        let mut names = arguments[1..].iter().filter(|argument| !argument.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|name| name == attack.name)
    };
    let attempts = if is_test { 1 } else { ATTEMPTS };
    let are_harmless = attacks::ALL.iter().filter(wanted);
    let are_harmless = are_harmless.map(|attack| {
        let failed = (0..attempts).take_while(|_| !measure(attack, is_test)).count();
        match failed {
            0 => {}
            _ if failed == attempts => println!("  FAILED in {failed} of {failed} attempts"),
            _ => println!("  PASSED ONLY IN ATTEMPT {}: see the {failed} before", failed + 1),
        }
        failed < attempts
    });
    // All attacks run, regardless of the first result.
    let are_harmless: Vec<bool> = are_harmless.collect();
    assert!(
        is_test || are_harmless.into_iter().all(|is_harmless| is_harmless),
        "an attack delays other agents, exceeds the memory, or makes a turn too long"
    );
}

/// Measures one attack; returns true if the daemon stays below the maxima.
fn measure(attack: &Attack, is_test: bool) -> bool {
    let server = Server::start(attack.setup);
    let victim = Victim::start(&server.address_for_agents(attack.transport), server.clocks());
    let start = peer::now();
    let outcome = (attack.run)(&server, if is_test { 50 } else { 1 });
    let passed = peer::now().since(start);
    let (times, memory) = (victim.stop(), server.peak_memory());
    let (heavy, turns) = server.count_beyond("simco_turn_work_seconds", MAX_WORK);
    let (slow, _) = server.count_beyond("simco_turn_seconds", MAX_WORK);
    println!("{}: {outcome}, {passed} in all", attack.name);
    println!("  the other agent's round trips: {times}; the daemon had {} MiB at most", memory >> 20);
    println!("  turns of more than {MAX_WORK} s: {heavy} of {turns} by counted work, {slow} by the clock");
    times.p99() < MAX_P99 && memory < MAX_MEMORY && heavy == 0
}
