//! Plays arbitrary text as a packetdrill script: it passes, fails or is rejected, and no endpoint panics.
#![no_main]

use hol_packetdrill::{PlayRules, play};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = play(text, None, &PlayRules::packetdrill("linux-6.12"));
    let _ = play(text, None, &PlayRules::strict());
});
