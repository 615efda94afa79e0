//! Parses arbitrary text as a trace of a path. The events of a parsed trace are in the order of time, from every start.
#![no_main]

use hol_network::base::Duration;
use hol_network::{LinkDirection, read_repeating_trace, read_trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for direction in [LinkDirection::Both, LinkDirection::Up] {
        for read in [read_trace, read_repeating_trace] {
            let Ok(trace) = read(text, direction) else { continue };
            for start in [Duration::ZERO, trace.end()] {
                let events = trace.events_from(start);
                assert!(events.is_sorted_by_key(|event| event.at));
                assert!(events.iter().all(|event| event.direction == direction));
            }
        }
    }
});
