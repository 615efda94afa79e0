//! Parses arbitrary octets as a SIMCO message, and passes them to an agent as if a middlebox had sent them.
#![no_main]

use hol_simco::{Agent, Message, Unauthenticated, length_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(message) = Message::parse(octets) {
        let again = message.to_bytes();
        assert_eq!(length_of(&again), Some(again.len()));
        assert_eq!(Message::parse(&again).as_ref(), Ok(&message));
    }
    let mut agent = Agent::new(Box::new(Unauthenticated));
    agent.establish().expect("a new session can be established");
    let mut rest = octets;
    while let Some(length) = length_of(rest) {
        let (message, others) = rest.split_at(length.min(rest.len()));
        // An error is a valid result, too.
        let _ = agent.receive(message);
        rest = others;
    }
});
