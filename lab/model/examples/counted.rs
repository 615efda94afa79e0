//! Performs the runs whose instructions `scripts/count-instructions` counts. `counted <what> <messages>`
//! prints the number of units of work; the script divides by it.

use hol_base::Seed;
use hol_measure::Summarizer;
use hol_model::run_with_observer;
use hol_scenario::Scenario;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(what), Some(messages)) = (arguments.next(), arguments.next()) else {
        panic!("the arguments are what to run, and the number of messages")
    };
    let (transport, workload, network) = match what.as_str() {
        "tcp" => ("tcp", "kind = 'simco'", "loss = '1%'"),
        "sctp-8" => ("sctp:streams=8", "kind = 'simco'", "loss = '1%'"),
        "quic-8" => ("quic:streams=8", "kind = 'simco'", "loss = '1%'"),
        "bulk" => ("tcp", "kind = 'bulk'", ""),
        "connections" => ("tcp:connections=1024", "kind = 'simco'\nrate = '1000/s'", ""),
        _ => panic!("{what} is none of tcp, sctp-8, quic-8, bulk and connections"),
    };
    let scenario = Scenario::with_single_flow(
        toml::from_str(network).expect("a network"),
        transport.parse().expect("a transport"),
        toml::from_str(workload).expect("a workload"),
        messages.parse().expect("a number of messages"),
    );
    let mut summarizer = Summarizer::default();
    let summary = run_with_observer(&scenario, Seed(1), None, &mut summarizer).expect("it runs");
    let offered = summarizer.finish().offered;
    println!("{}", if matches!(what.as_str(), "bulk" | "connections") { summary.packets } else { offered });
}
