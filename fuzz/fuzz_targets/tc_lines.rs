//! Converts arbitrary lines of tc, as `hol path tc` does. A network that is printed must be one that `hol run` accepts.
#![no_main]

use std::ffi::OsString;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: (&str, &str)| {
    let (up, down) = lines;
    let words = ["hol", "path", "tc", "--down", down, "--", up].map(OsString::from);
    if let Err(problem) = headofline::parse_and_plan(words) {
        assert!(!problem.is_empty());
    }
});
