//! Parses arbitrary text as an ns script: the result is a network or an error, never a panic or an endless
//! loop. A network written as a script must parse to the same network.
#![no_main]

use hol_network::Topology;
use hol_testbed::{Script, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(script) = Script::read("fuzz.ns", text) else { return };
    let graph = Topology::new(&script.network).expect("a parsed script has a graph");
    let again = Script::read("again.ns", &write(&graph)).unwrap_or_else(|e| panic!("{e}\n{}", write(&graph)));
    let again = Topology::new(&again.network).expect("a written script has a graph");
    assert_eq!(graph.node_names(), again.node_names());
    assert_eq!(write(&graph), write(&again));
});
