//! Parses arbitrary text as an experiment file: the result is points, or an error with its position, never a
//! panic.
#![no_main]

use hol_lab::{Experiment, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Experiment::parse("fuzz", &Source::new("fuzz.toml", text));
});
