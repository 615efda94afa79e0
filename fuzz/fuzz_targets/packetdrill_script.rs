//! Text as a script of packets: it passes, departs or is not read, and the endpoints that it plays with do not panic.
#![no_main]

use hol_packetdrill::{PlayRules, play};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = play(text, None, &PlayRules::packetdrill("linux-6.12"));
    let _ = play(text, None, &PlayRules::strict());
});
