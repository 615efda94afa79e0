//! Text as an experiment file: points or an error that names its place, never a panic.
#![no_main]

use hol_lab::{Experiment, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Experiment::parse("fuzz", &Source::new("fuzz.toml", text));
});
