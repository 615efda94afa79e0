//! The daemon's throughput, and the cost and duration of a transaction, over one TCP connection on the
//! loopback interface: without a filter, and as root also with nftables and with the journal.
//! `cargo bench -p hol-daemon`.
//!
//! The daemon is its own process, so its processor time and memory are its own; agent and daemon share the
//! machine.

mod client;
mod network;
mod server;

use client::Client;
use hol_base::{Duration, Time};
use server::{DaemonParts, Server};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == server::ROLE) {
        return server::run(&arguments);
    }
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let scaled = |count: usize| if is_test { count / 100 } else { count };
    let null = DaemonParts { filter: false, journal: false };
    pipelined(null, scaled(3_000_000));
    single(null, scaled(200_000));
    many_rules(scaled(1_000_000), scaled(200_000));
    if let Err(error) = network::enter_new_namespace() {
        return println!("the rest is skipped: no network namespace: {error}");
    }
    for parts in [DaemonParts { filter: true, journal: false }, DaemonParts { filter: true, journal: true }] {
        pipelined(parts, scaled(300_000));
        single(parts, scaled(20_000));
    }
}

/// Measures life cycles of rules (enable, change of lifetime, delete), 256 at a time.
fn pipelined(parts: DaemonParts, transactions: usize) {
    let server = Server::start(parts);
    let mut client = Client::connect(server.address);
    client.run_life_cycles(256, transactions / 10);
    let (cpu, start) = (server.processor_time(), client::now());
    client.run_life_cycles(256, transactions);
    let (cpu, passed) = (server.processor_time().saturating_sub(cpu), client::now().since(start));
    let per_second = |span: Duration| transactions as f64 * 1e9 / span.as_nanos() as f64;
    println!(
        "{parts}, pipelined: {transactions} transactions, enable, change of lifetime and delete in equal shares"
    );
    println!("  {:>9.0} transactions/s, with the agent on the same machine", per_second(passed));
    println!(
        "  {:>9.0} transactions/s of a processor's time: {:.2} µs each in the daemon, kernel included",
        per_second(cpu),
        cpu.as_nanos() as f64 / 1e3 / transactions as f64
    );
}

/// Measures transactions one after the other.
fn single(parts: DaemonParts, singles: usize) {
    let server = Server::start(parts);
    let mut client = Client::connect(server.address);
    println!("{parts}, one at a time: {singles} transactions, enable, change, status and delete");
    report(&server, &mut client, singles);
}

/// Measures transactions while many rules are in force.
fn many_rules(rules: usize, singles: usize) {
    let server = Server::start(DaemonParts { filter: false, journal: false });
    let mut client = Client::connect(server.address);
    let before = server.memory();
    let start = client::now();
    client.enable(256, rules);
    let passed = client::now().since(start);
    let memory = server.memory();
    println!("no filter, {rules} rules in force, after {:.1} s", passed.as_nanos() as f64 / 1e9);
    let each = (memory - before) as f64 / rules as f64;
    println!("  {:.0} MB resident, {each:.0} octets a rule", memory as f64 / 1e6);
    report(&server, &mut client, singles);
    println!(
        "  blocking one host without rules (PDR): {:.0} µs",
        client.time_to_block().as_nanos() as f64 / 1e3
    );
}

/// Prints the round-trip times that the agent sees, and the processor time of the daemon, which other load on the
/// machine does not affect.
fn report(server: &Server, client: &mut Client, singles: usize) {
    println!("  round trip      {}", client.measure_transactions(singles, &client::now));
    let processor = || Time::ZERO + server.processor_time();
    println!("  processor time  {}", client.measure_transactions(singles, &processor));
}
