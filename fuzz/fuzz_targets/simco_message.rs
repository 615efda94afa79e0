//! Octets as a SIMCO message, and as what an agent sends to a middlebox.
#![no_main]

use hol_simco::{Capabilities, Lifetime, Message, Middlebox, Request, Tid, Version, length_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(message) = Message::parse(octets) {
        let again = message.to_bytes();
        assert_eq!(length_of(&again), Some(again.len()));
        assert_eq!(Message::parse(&again).as_ref(), Ok(&message));
    }
    let mut middlebox = Middlebox::new(Capabilities::firewall(Lifetime(60)));
    let se = Message::request(Tid(0), Request::Se { version: Version::SIMCO_3_0, challenge: None });
    middlebox.handle(Default::default(), &se.to_bytes());
    let mut rest = octets;
    while let Some(length) = length_of(rest) {
        let (message, others) = rest.split_at(length.min(rest.len()));
        let answer = middlebox.handle(Default::default(), message);
        assert!(!answer.messages.is_empty());
        answer.messages.iter().for_each(|message| {
            message.to_bytes();
        });
        rest = others;
    }
});
